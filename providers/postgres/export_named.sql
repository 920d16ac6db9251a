reached AS (
    SELECT r.record_id
    FROM memory.records AS r
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($7) AND r.agent_id = $3
        AND r.kind NOT IN ('proposal', 'session_context') AND r.state <> 'forgotten'
    UNION
    SELECT n.record_id
    FROM reached AS c
    CROSS JOIN LATERAL (
        SELECT v.superseded_by_record_id
        FROM memory.revisions AS v
        WHERE v.tenant_id = $1 AND v.project_id = $2 AND v.record_id = c.record_id
            AND v.superseded_by_record_id IS NOT NULL
        -- Keeps it a look-up for each record, by the index that has this order.
        ORDER BY v.revision
        OFFSET 0
    ) AS l
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM memory.records AS r
        WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = l.superseded_by_record_id
        LIMIT 1
    ) AS n
    WHERE n.agent_id = $3
        AND n.kind NOT IN ('proposal', 'session_context') AND n.state <> 'forgotten'
),
-- The walk ends with the first record that is too many.
chosen AS MATERIALIZED (
    SELECT r.*
    FROM (SELECT record_id FROM reached LIMIT $4::bigint + 1) AS c
    CROSS JOIN LATERAL (
        SELECT h.*
        FROM memory.records AS h
        WHERE h.tenant_id = $1 AND h.project_id = $2 AND h.record_id = c.record_id
        LIMIT 1
    ) AS r
)
