-- Undelivered effects of one run in stream order, read from the index that holds no others.
-- No row when there is no marker; one without an effect when nothing is pending.
--
-- $1 tenant  $2 project  $3 run  $4 only after this sequence  $5 number of rows
SELECT
    m.resource_id, m.generation,
    e.run_id, e.sequence, e.receipt_id, e.receipt, e.accept_time, e.delivered, e.last_code,
    e.fact_id, e.fact_sequence
FROM memory.resource AS m
LEFT JOIN LATERAL (
    SELECT p.*
    FROM memory.effects AS p
    WHERE p.tenant_id COLLATE "POSIX" = $1 AND p.project_id COLLATE "POSIX" = $2
        AND p.run_id COLLATE "POSIX" = $3 AND p.sequence > $4 AND NOT p.delivered
    ORDER BY p.sequence
    LIMIT $5
) AS e ON true
ORDER BY e.sequence
