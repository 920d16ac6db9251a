-- The most important memories that fit; what is one too many says that there are more.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 to $15 as in recall.sql  $16 number of rows, one more than are sent
WITH found AS MATERIALIZED (
    SELECT
        e.record_id,
        row_number() OVER (
            ORDER BY e.importance DESC, e.update_time DESC, e.record_id
        ) AS place
    FROM memory.recall_entries AS e
    WHERE /* scope */ AND /* fits */
    ORDER BY place
    LIMIT $16::bigint
)
SELECT
    m.resource_id, m.generation,
    (SELECT count(*) = $16 FROM found) AS more,
    v.create_time AS record_create_time,
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
) ON f.place < $16
ORDER BY f.place
