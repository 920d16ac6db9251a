-- Takes the lease of one effect, or says why not. The row is locked first; then the store's clock is
-- read, so that what was waited for counts. No row when there is no marker.
--
-- What the lock returns is the newest version of the row, while the look at earlier effects sees the
-- statement's snapshot. That is safe: an effect is committed after all before it in its stream, and
-- none goes back to undelivered, so that an older look can only refuse. The run is compared after the
-- lock: a condition on it could be planned as a walk through the run.
--
-- $1 tenant  $2 project  $3 receipt id  $4 run  $5 resource id  $6 generation  $7 milliseconds
WITH locked AS MATERIALIZED (
    SELECT e.*
    FROM memory.effects AS e
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $3
    FOR UPDATE
),
judged AS MATERIALIZED (
    SELECT
        l.*,
        clock_timestamp() AS seen,
        EXISTS (
            SELECT
            FROM memory.effects AS p
            WHERE p.tenant_id COLLATE "POSIX" = $1 AND p.project_id COLLATE "POSIX" = $2
                AND p.run_id COLLATE "POSIX" = l.run_id AND p.sequence < l.sequence
                AND NOT p.delivered
        ) AS is_behind
    FROM locked AS l
    WHERE l.run_id = $4
),
leased AS (
    UPDATE memory.effects AS e
    SET
        lease_token = gen_random_uuid()::text,
        leased_until = j.seen + $7::integer * interval '1 millisecond'
    FROM judged AS j
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $3
        AND NOT j.delivered AND NOT j.is_behind
        AND (j.leased_until IS NULL OR j.leased_until <= j.seen)
        AND EXISTS (SELECT FROM memory.resource WHERE resource_id = $5 AND generation = $6)
    RETURNING e.lease_token
)

SELECT
    m.resource_id, m.generation, (SELECT lease_token FROM leased) AS token,
    j.run_id, j.sequence, j.receipt_id, j.receipt, j.accept_time, j.delivered, j.last_code,
    j.fact_id, j.fact_sequence
FROM memory.resource AS m
LEFT JOIN judged AS j ON true
