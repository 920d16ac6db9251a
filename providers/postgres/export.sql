-- Whole chains of one agent, of one snapshot: counted first, then read, then measured, and sent only
-- if all of it is within the limits. No row when there is no marker; one without a revision when
-- there is nothing to send or a limit was passed.
-- The kinds that are not exported are named, not those that are: a kind that nobody knows is told.
--
-- $1 tenant  $2 project  $3 agent  $4 records, $5 revisions and $6 bytes at most  $7 record ids
WITH RECURSIVE /* chosen */,
counted AS MATERIALIZED (
    SELECT count(*) AS records, coalesce(sum(revision), 0) AS revisions
    FROM chosen
),
read AS MATERIALIZED (
    SELECT
        h.revision AS head,
        h.kind AS head_kind,
        h.create_time AS record_create_time,
        CASE WHEN v.revision = h.revision THEN
            (
                h.revision_id, h.previous_revision_id, h.agent_id, h.kind, h.type, h.title,
                h.content, h.rationale, h.importance, h.tags, h.facet::text, h.state, h.trust,
                h.source_run_id, h.source_session_id, h.promoted_decision_id,
                h.superseded_by_record_id, h.reason, h.change_kind, h.actor_fingerprint,
                h.update_time
            ) IS NOT DISTINCT FROM (
                v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type, v.title,
                v.content, v.rationale, v.importance, v.tags, v.facet::text, v.state, v.trust,
                v.source_run_id, v.source_session_id, v.promoted_decision_id,
                v.superseded_by_record_id, v.reason, v.change_kind, v.actor_fingerprint,
                v.create_time
            )
        END AS is_head,
        v.*
    FROM chosen AS h
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM memory.revisions AS r
        WHERE (SELECT records <= $4 AND revisions <= $5 FROM counted)
            AND r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = h.record_id
            -- One beyond the head would be damage, and is to be seen.
            AND r.revision <= h.revision + 1
        ORDER BY r.revision
        LIMIT $5 + 1
    ) AS v
),
measured AS MATERIALIZED (
    SELECT
        coalesce(
            sum(
                octet_length(type) + octet_length(content) + coalesce(octet_length(title), 0)
                + coalesce(octet_length(rationale), 0) + coalesce(octet_length(reason), 0)
                + octet_length(array_to_string(tags, ''))
            ),
            0
        ) AS bytes
    FROM read
)

SELECT
    m.resource_id, m.generation, c.records, c.revisions, b.bytes, v.head, v.is_head,
    v.record_create_time,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.create_time
FROM memory.resource AS m
CROSS JOIN counted AS c
CROSS JOIN measured AS b
LEFT JOIN read AS v ON b.bytes <= $6
ORDER BY v.head_kind COLLATE "C", v.record_id, v.revision
