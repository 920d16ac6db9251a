-- Heads that several calls ask for, each of its own tenant and project, and each by its number. Each
-- row holds the marker; without one there is none, and without a head one with nothing else.
-- LIMIT 1 keeps each lookup by key from being planned as a join.
--
-- $1 tenants  $2 projects  $3 record ids: one of each for a call
SELECT
    v.number, m.resource_id, m.generation, v.create_time AS record_create_time,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.update_time
FROM memory.resource AS m
LEFT JOIN (
    SELECT a.number, r.*
    FROM unnest($1::text[], $2::text[], $3::text[])
        WITH ORDINALITY AS a (tenant_id, project_id, record_id, number)
    CROSS JOIN LATERAL (
        SELECT h.*
        FROM memory.records AS h
        WHERE h.tenant_id = a.tenant_id AND h.project_id = a.project_id
            AND h.record_id = a.record_id
        LIMIT 1
    ) AS r
) AS v ON true
