-- What stands in the way of a write set, of one new snapshot. No row when there is no marker.
-- For the shape of the last lookup see load.sql.
--
-- $1 tenant  $2 project  $3 actor  $4 idempotency key  $5 record ids  $6 revision ids  $7 keys
-- $8 counter names  $9 receipt id of the effect, or null
SELECT
    m.resource_id,
    m.generation,
    (
        SELECT json_build_array(
            t.method, t.fingerprint, t.refs, t.effect_id, t.outcome, t.create_time
        )
        FROM memory.receipts AS t
        WHERE t.tenant_id = $1 AND t.project_id = $2 AND t.actor_fingerprint = $3
            AND t.idempotency_key = $4
    ) AS receipt,
    (
        SELECT json_agg(json_build_array(c.key, c.record_id, c.tombstone_kind))
        FROM memory.claims AS c
        WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.key = ANY ($7)
    ) AS keys,
    (
        SELECT json_agg(json_build_array(n.name, n.value))
        FROM memory.counters AS n
        WHERE n.tenant_id = $1 AND n.project_id = $2 AND n.name = ANY ($8)
    ) AS counters,
    (
        SELECT json_agg(json_build_array(r.record_id, r.revision, r.revision_id))
        FROM memory.records AS r
        WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($5)
    ) AS heads,
    (
        SELECT json_agg(v.revision_id)
        FROM unnest($6::text[]) AS a (revision_id)
        CROSS JOIN LATERAL (
            SELECT r.revision_id
            FROM memory.revisions AS r
            WHERE r.tenant_id = $1 AND r.project_id = $2
                AND r.revision_id BETWEEN a.revision_id AND a.revision_id
            ORDER BY r.revision_id
            LIMIT 1
        ) AS v
    ) AS revision_ids,
    EXISTS (
        SELECT
        FROM memory.effects AS e
        WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.receipt_id = $9
    ) AS has_effect
FROM memory.resource AS m
