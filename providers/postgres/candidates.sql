-- What may enter the context of one run: chosen and measured first, then as much of it sent as is
-- within the bound. Each part is read in its order from an index of its own, and no further than the
-- number of rows asked for; conditions with the collation of these fit no other index (schema.py).
-- The states and trusts that do not enter are named, not those that do: one that nobody knows is told.
-- A tag is looked for in the search text, which an index can have and which finds some more than
-- is meant; the tags themselves then say.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 tenant  $2 project  $3 agent  $4 run  $5 number of rows  $6 bytes at most
WITH part AS MATERIALIZED (
    (
        SELECT
            1 AS part, r.importance, r.update_time, r.record_id,
            octet_length(type) + octet_length(content) + coalesce(octet_length(title), 0)
                + coalesce(octet_length(rationale), 0) + coalesce(octet_length(reason), 0)
                + octet_length(array_to_string(tags, '')) AS bytes
        FROM memory.records AS r
        WHERE r.tenant_id COLLATE memory.candidate_order = $1
            AND r.project_id COLLATE memory.candidate_order = $2
            AND kind = 'decision'
            AND state NOT IN ('pending', 'archived', 'superseded', 'rejected', 'promoted', 'forgotten')
            AND trust NOT IN ('pending', 'rejected', 'legacy')
        ORDER BY r.importance DESC, r.update_time DESC, r.record_id COLLATE memory.candidate_order
        LIMIT $5
    )
    UNION ALL
    (
        SELECT
            2, r.importance, r.update_time, r.record_id,
            octet_length(type) + octet_length(content) + coalesce(octet_length(title), 0)
                + coalesce(octet_length(rationale), 0) + coalesce(octet_length(reason), 0)
                + octet_length(array_to_string(tags, ''))
        FROM memory.records AS r
        WHERE r.tenant_id COLLATE memory.candidate_order = $1
            AND r.project_id COLLATE memory.candidate_order = $2
            AND r.agent_id COLLATE memory.candidate_order = $3
            AND kind = 'memory'
            AND state NOT IN ('pending', 'archived', 'superseded', 'rejected', 'promoted', 'forgotten')
            AND trust NOT IN ('rejected', 'legacy')
        ORDER BY r.importance DESC, r.update_time DESC, r.record_id COLLATE memory.candidate_order
        LIMIT $5
    )
    UNION ALL
    (
        SELECT
            2, r.importance, r.update_time, r.record_id,
            octet_length(type) + octet_length(content) + coalesce(octet_length(title), 0)
                + coalesce(octet_length(rationale), 0) + coalesce(octet_length(reason), 0)
                + octet_length(array_to_string(tags, ''))
        FROM memory.records AS r
        WHERE r.tenant_id COLLATE memory.candidate_order = $1
            AND r.project_id COLLATE memory.candidate_order = $2
            AND (
                kind = 'memory'
                AND state NOT IN ('pending', 'archived', 'superseded', 'rejected', 'promoted', 'forgotten')
                AND trust NOT IN ('pending', 'rejected', 'legacy')
                AND strpos(search_text, U&'\2001cross-team\2001') > 0
            ) IS TRUE
            AND r.agent_id <> $3
            AND EXISTS (
                SELECT
                FROM unnest(r.tags) AS t (tag)
                WHERE lower(t.tag COLLATE "C") = 'cross-team'
            )
        ORDER BY r.importance DESC, r.update_time DESC, r.record_id COLLATE memory.candidate_order
        LIMIT $5
    )
    UNION ALL
    (
        SELECT
            3, r.importance, r.update_time, r.record_id,
            octet_length(type) + octet_length(content) + coalesce(octet_length(title), 0)
                + coalesce(octet_length(rationale), 0) + coalesce(octet_length(reason), 0)
                + octet_length(array_to_string(tags, ''))
        FROM memory.records AS r
        WHERE r.tenant_id COLLATE memory.candidate_order = $1
            AND r.project_id COLLATE memory.candidate_order = $2
            AND r.agent_id COLLATE memory.candidate_order = $3
            AND r.source_run_id COLLATE memory.candidate_order = $4
            AND kind = 'session_context'
            AND state NOT IN ('pending', 'archived', 'superseded', 'rejected', 'promoted', 'forgotten')
            AND trust NOT IN ('pending', 'rejected', 'legacy')
        ORDER BY r.importance DESC, r.update_time DESC, r.record_id COLLATE memory.candidate_order
        LIMIT $5
    )
),
chosen AS MATERIALIZED (
    SELECT *
    FROM part
    ORDER BY part, importance DESC, update_time DESC, record_id
    LIMIT $5
),
measured AS MATERIALIZED (
    SELECT c.record_id, row_number() OVER w AS place, sum(c.bytes) OVER w AS total
    FROM chosen AS c
    WINDOW w AS (
        ORDER BY c.part, c.importance DESC, c.update_time DESC, c.record_id
        ROWS UNBOUNDED PRECEDING
    )
),
sent AS MATERIALIZED (
    SELECT s.record_id, s.place
    FROM measured AS s
    WHERE s.place = 1 OR s.total <= $6
)
SELECT
    m.resource_id, m.generation,
    (SELECT count(*) FROM sent) < (SELECT count(*) FROM measured) AS truncated,
    v.create_time AS record_create_time,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.update_time
FROM memory.resource AS m
LEFT JOIN (
    sent AS s
    CROSS JOIN LATERAL (
        SELECT r.*
        FROM memory.records AS r
        WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = s.record_id
        LIMIT 1
    ) AS v
) ON true
ORDER BY s.place
