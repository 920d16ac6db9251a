chosen AS MATERIALIZED (
    SELECT r.*
    FROM memory.records AS r
    WHERE r.tenant_id COLLATE "POSIX" = $1 AND r.project_id COLLATE "POSIX" = $2
        AND r.agent_id COLLATE "POSIX" BETWEEN $3 AND $3
        AND r.kind NOT IN ('proposal', 'session_context') AND r.state <> 'forgotten'
    -- The order that the agent's index has, and the project's has not.
    ORDER BY r.agent_id COLLATE "POSIX", r.update_time DESC
    LIMIT $4::bigint + 1
)
