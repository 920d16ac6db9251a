-- The one look-up without a project: an effect by its receipt id, for the issuer and subject that it
-- was accepted for. No row when there is no marker; one without an effect when there is none.
--
-- $1 tenant  $2 receipt id  $3 issuer  $4 subject
SELECT
    m.resource_id, m.generation, e.project_id,
    e.run_id, e.sequence, e.receipt_id, e.receipt, e.accept_time, e.delivered, e.last_code,
    e.fact_id, e.fact_sequence
FROM memory.resource AS m
LEFT JOIN LATERAL (
    SELECT u.*
    FROM memory.effects AS u
    WHERE u.tenant_id COLLATE "ucs_basic" = $1 AND u.receipt_id COLLATE "ucs_basic" = $2
        AND u.receipt ->> 'issuer' = $3 AND u.receipt ->> 'subject' = $4
    ORDER BY u.project_id
    LIMIT 1
) AS e ON true
