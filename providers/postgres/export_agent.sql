chosen AS MATERIALIZED (
    SELECT r.*
    FROM memory.records AS r
    WHERE r.tenant_id COLLATE "POSIX" = $1 AND r.project_id COLLATE "POSIX" = $2
        AND r.agent_id COLLATE "POSIX" = $3
        AND r.kind NOT IN ('proposal', 'session_context') AND r.state <> 'forgotten'
    LIMIT $4::bigint + 1
)
