-- A page of one record's history, newest first, and the head it belongs to. No row when there is no
-- marker; one row without a revision when agent and record do not match, the record is forgotten, or
-- nothing is left.
--
-- $1 tenant  $2 project  $3 agent  $4 record  $5 only below this revision  $6 number of rows
SELECT
    m.resource_id, m.generation, h.revision AS head,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.create_time
FROM memory.resource AS m
LEFT JOIN memory.records AS h
    ON h.tenant_id = $1 AND h.project_id = $2 AND h.record_id = $4 AND h.agent_id = $3
    AND h.state <> 'forgotten'
LEFT JOIN LATERAL (
    SELECT r.*
    FROM memory.revisions AS r
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = h.record_id
        AND r.revision < $5::bigint
    ORDER BY r.revision DESC
    LIMIT $6
) AS v ON true
