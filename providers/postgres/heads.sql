-- Heads that several calls ask for, each of its own tenant and project, and each by its number. The
-- first row holds the marker; without one there is no first row.
-- LIMIT 1 keeps each lookup by key from being planned as a join.
--
-- $1 tenants  $2 projects  $3 record ids: one of each for a call
SELECT
    0::bigint AS number,
    m.resource_id,
    m.generation,
    NULL::timestamptz AS record_create_time,
    NULL AS record_id, NULL::integer AS revision, NULL AS revision_id,
    NULL AS previous_revision_id, NULL AS agent_id, NULL AS kind, NULL AS type, NULL AS title,
    NULL AS content, NULL AS rationale, NULL::float8 AS importance, NULL::text[] AS tags,
    NULL::json AS facet, NULL AS state, NULL AS trust, NULL AS source_run_id,
    NULL AS source_session_id, NULL AS promoted_decision_id, NULL AS superseded_by_record_id,
    NULL AS reason, NULL AS change_kind, NULL AS actor_fingerprint,
    NULL::timestamptz AS create_time
FROM memory.resource AS m
UNION ALL
SELECT
    a.number, NULL, NULL, r.create_time,
    r.record_id, r.revision, r.revision_id, r.previous_revision_id, r.agent_id, r.kind, r.type,
    r.title, r.content, r.rationale, r.importance, r.tags, r.facet, r.state, r.trust,
    r.source_run_id, r.source_session_id, r.promoted_decision_id, r.superseded_by_record_id,
    r.reason, r.change_kind, r.actor_fingerprint, r.update_time
FROM unnest($1::text[], $2::text[], $3::text[])
    WITH ORDINALITY AS a (tenant_id, project_id, record_id, number)
CROSS JOIN LATERAL (
    SELECT h.*
    FROM memory.records AS h
    WHERE h.tenant_id = a.tenant_id AND h.project_id = a.project_id AND h.record_id = a.record_id
    LIMIT 1
) AS r
