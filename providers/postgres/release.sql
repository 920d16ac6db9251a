-- Gives a lease back if the token is the current one, expired or not, and tells whether it was.
-- No row when there is no marker.
--
-- $1 tenant  $2 project  $3 receipt id  $4 run  $5 resource id  $6 generation  $7 token  $8 code
WITH locked AS MATERIALIZED (
    SELECT e.run_id, e.delivered, e.lease_token
    FROM memory.effects AS e
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $3
    FOR UPDATE
),
judged AS MATERIALIZED (
    SELECT l.run_id = $4 AND NOT l.delivered AND l.lease_token = $7 AS holds
    FROM locked AS l
),
released AS (
    UPDATE memory.effects AS e
    SET lease_token = NULL, leased_until = NULL, last_code = $8
    FROM judged AS j
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $3 AND j.holds
        AND EXISTS (SELECT FROM memory.resource WHERE resource_id = $5 AND generation = $6)
    RETURNING 1
)

SELECT m.resource_id, m.generation, EXISTS (SELECT FROM released) AS done
FROM memory.resource AS m
