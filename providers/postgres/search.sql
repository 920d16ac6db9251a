-- A page of heads in their order, read from the index that has it: as many rows as it takes to fill
-- the page. Serves what no index of the text could: lists, and text of one or two characters.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 tenant  $2 project  $3 kinds  $4 states  $5 trusts  $6 patterns of the tags  $7 importance at
-- least  $8 at most  $9 updated from  $10 updated before  $11 and $12 where the page before ended
-- $13 number of rows, one more than are sent  $14 text  $15 agent  $16 whether rows are brief
-- $17 bytes at most. Null asks for nothing, but for $2, $6, $13, $16.
SELECT
    m.resource_id, m.generation, v.create_time AS record_create_time, v.more,
    /* columns */, v.update_time
FROM memory.resource AS m
LEFT JOIN LATERAL (
    SELECT p.*
    FROM (
        SELECT
            r.*,
            row_number() OVER page AS place,
            lead(true) OVER page AS more,
            sum(/* size */) OVER page AS bytes
        FROM (
            SELECT r.*
            FROM memory.records AS r
            WHERE /* scope */ AND r.state <> 'forgotten'
                AND r.update_time >= coalesce($9::timestamptz, '-infinity')
                AND r.update_time < coalesce($10::timestamptz, 'infinity')
                AND r.update_time <= coalesce($11::timestamptz, 'infinity')
                AND (r.update_time < coalesce($11::timestamptz, 'infinity') OR r.record_id > $12)
                AND /* fits */
            ORDER BY r.update_time DESC, r.record_id COLLATE "POSIX"
            LIMIT $13
        ) AS r
        WINDOW page AS (
            ORDER BY r.update_time DESC, r.record_id COLLATE "POSIX" ROWS UNBOUNDED PRECEDING
        )
    ) AS p
    WHERE p.place = 1 OR (p.place < $13 AND (p.bytes > /* bytes */) IS NOT TRUE)
) AS v ON true
ORDER BY v.place
