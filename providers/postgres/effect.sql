-- One effect of one run. No row when there is no marker; one without an effect when the run has none.
-- LIMIT keeps the run out of the look-up, which could be planned as a walk through the run otherwise.
--
-- $1 tenant  $2 project  $3 receipt id  $4 run
SELECT
    m.resource_id, m.generation,
    e.run_id, e.sequence, e.receipt_id, e.receipt, e.accept_time, e.delivered, e.last_code,
    e.fact_id, e.fact_sequence
FROM memory.resource AS m
LEFT JOIN (
    SELECT *
    FROM memory.effects
    WHERE tenant_id = $1 AND project_id = $2 AND receipt_id = $3
    LIMIT 1
) AS e ON e.run_id = $4
