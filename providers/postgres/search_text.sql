-- A page of heads that hold a text. The newest heads of the scope are looked through one by one: a
-- text that many hold fills the page there. Only where it does not, the index of the text finds the
-- older ones; it brings all of them before they can be sorted. Written so that no plan can do
-- without it: conditions with its collation fit no other index (schema.py), and IS TRUE keeps
-- the rest of them from fitting any.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 to $15 as in search.sql  $16 a pattern of the text or of a tag, one with trigrams
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
        AND /* scope of the text */ AND r.search_text LIKE $16
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
    m.resource_id, m.generation, v.create_time AS record_create_time,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.update_time
FROM memory.resource AS m
LEFT JOIN (
    found AS f
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM memory.records AS r
        WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = f.record_id
        LIMIT 1
    ) AS v
) ON true
ORDER BY v.update_time DESC, v.record_id
