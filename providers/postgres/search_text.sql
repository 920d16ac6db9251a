-- A page of heads that hold a text. The newest heads of the scope are looked through one by one: a
-- text that many hold fills the page there. Only where it does not, the index of the text finds the
-- older ones; it brings all of them before they can be sorted. Written so that no plan can do
-- without it: conditions with its collation fit no other index (schema.py), and IS TRUE keeps
-- the rest of them from fitting any.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 to $17 as in search.sql  $18 a pattern of the text or of a tag, one with trigrams
WITH walked AS MATERIALIZED (
    SELECT r.update_time, r.record_id, /* fits */ AS fits
    FROM memory.records AS r
    WHERE /* scope */ AND r.state <> 'forgotten'
        AND r.update_time >= coalesce($9::timestamptz, '-infinity')
        AND r.update_time < coalesce($10::timestamptz, 'infinity')
        AND r.update_time <= coalesce($11::timestamptz, 'infinity')
        AND (r.update_time < coalesce($11::timestamptz, 'infinity') OR r.record_id > $12)
    ORDER BY r.update_time DESC, r.record_id COLLATE "POSIX"
    LIMIT /* walk */
),
"end" AS MATERIALIZED (
    SELECT w.update_time, w.record_id
    FROM walked AS w
    WHERE (SELECT count(*) = /* walk */ AND count(*) FILTER (WHERE fits) < $13 FROM walked)
    ORDER BY w.update_time, w.record_id DESC
    LIMIT 1
),
found AS MATERIALIZED (
    SELECT w.update_time, w.record_id
    FROM walked AS w
    WHERE w.fits
    UNION ALL
    SELECT r.update_time, r.record_id
    FROM memory.records AS r
    WHERE EXISTS (SELECT FROM "end")
        AND /* scope of the text */ AND r.search_text LIKE $18
        AND (
            r.state <> 'forgotten'
            AND r.update_time >= coalesce($9::timestamptz, '-infinity')
            AND r.update_time < coalesce($10::timestamptz, 'infinity')
            AND (
                r.update_time < (SELECT update_time FROM "end")
                OR (
                    r.update_time = (SELECT update_time FROM "end")
                    AND r.record_id > (SELECT record_id FROM "end")
                )
            )
            AND /* fits */
        ) IS TRUE
    ORDER BY update_time DESC, record_id
    LIMIT $13
)
SELECT
    m.resource_id, m.generation, v.create_time AS record_create_time, v.more,
    /* columns */, v.update_time
FROM memory.resource AS m
LEFT JOIN (
    SELECT
        r.*,
        row_number() OVER page AS place,
        lead(true) OVER page AS more,
        sum(/* size */) OVER page AS bytes
    FROM found AS f
    CROSS JOIN LATERAL (
        SELECT h.*
        FROM memory.records AS h
        WHERE h.tenant_id = $1 AND h.project_id = $2 AND h.record_id = f.record_id
        LIMIT 1
    ) AS r
    WINDOW page AS (ORDER BY f.update_time DESC, f.record_id ROWS UNBOUNDED PRECEDING)
) AS v ON v.place = 1 OR (v.place < $13 AND (v.bytes > /* bytes */) IS NOT TRUE)
ORDER BY v.place
