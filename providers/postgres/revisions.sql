-- A page of one record's history, newest first, and the head it belongs to. With each revision comes
-- the one before it, for their numbers and links to be compared. No row when there is no marker; one
-- row without a revision when agent and record do not match, the record is forgotten, or nothing is
-- left.
--
-- $1 tenant  $2 project  $3 agent  $4 record  $5 only below this revision  $6 number of rows, one
-- more than are sent  $7 whether rows are brief  $8 bytes at most or null
SELECT
    m.resource_id, m.generation, h.revision AS head, v.earlier, v.earlier_id,
    /* columns */, v.create_time
FROM memory.resource AS m
LEFT JOIN memory.records AS h
    ON h.tenant_id = $1 AND h.project_id = $2 AND h.record_id = $4 AND h.agent_id = $3
    AND h.state <> 'forgotten'
LEFT JOIN LATERAL (
    SELECT p.*
    FROM (
        SELECT
            r.*,
            row_number() OVER page AS place,
            lead(r.revision) OVER page AS earlier,
            lead(r.revision_id) OVER page AS earlier_id,
            sum(/* size */) OVER page AS bytes
        FROM (
            SELECT r.*
            FROM memory.revisions AS r
            WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = h.record_id
                AND r.revision < $5::bigint
            ORDER BY r.revision DESC
            LIMIT $6
        ) AS r
        WINDOW page AS (ORDER BY r.revision DESC ROWS UNBOUNDED PRECEDING)
    ) AS p
    WHERE p.place = 1 OR (p.place < $6 AND (p.bytes > /* bytes */) IS NOT TRUE)
) AS v ON true
ORDER BY v.place
