-- Marks an effect delivered if the token holds it, and tells whether it did. The row is locked first
-- and judged then: whoever waited until the lease was over is told no, also when the one that was
-- waited for changed nothing. No row when there is no marker.
--
-- $1 tenant  $2 project  $3 receipt id  $4 run  $5 resource id  $6 generation  $7 token
-- $8 fact id  $9 the fact's sequence
WITH locked AS MATERIALIZED (
    SELECT e.run_id, e.delivered, e.lease_token, e.leased_until
    FROM memory.effects AS e
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $3
    FOR UPDATE
),
judged AS MATERIALIZED (
    SELECT
        l.run_id = $4 AND NOT l.delivered AND l.lease_token = $7
            AND clock_timestamp() < l.leased_until AS holds
    FROM locked AS l
),
acknowledged AS (
    UPDATE memory.effects AS e
    SET
        delivered = true,
        lease_token = NULL,
        leased_until = NULL,
        last_code = NULL,
        fact_id = $8,
        fact_sequence = $9
    FROM judged AS j
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $3 AND j.holds
        AND EXISTS (SELECT FROM memory.resource WHERE resource_id = $5 AND generation = $6)
    RETURNING 1
)

SELECT m.resource_id, m.generation, EXISTS (SELECT FROM acknowledged) AS done
FROM memory.resource AS m
