-- Memories without an entry, or without a vector of a model, in the order of their ids.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 tenant  $2 project  $3 id that the page before ended with  $4 number of rows
-- $5 model, where one is asked for
WITH found AS MATERIALIZED (
    SELECT e.record_id
    FROM memory.recall_entries AS e
    WHERE /* lacking */
    ORDER BY e.record_id COLLATE "/* collation */"
    LIMIT $4::bigint
)
SELECT
    m.resource_id, m.generation, v.create_time AS record_create_time,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.update_time
FROM memory.resource AS m
LEFT JOIN (
    found AS f
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM memory.records AS r
        WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = f.record_id
        LIMIT 1
    ) AS v
) ON true
ORDER BY f.record_id
