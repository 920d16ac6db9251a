-- Everything that one call needs to decide, of one snapshot. The first row holds what is there once;
-- each further row is a head or a revision. Without a marker there is no first row.
-- No plan may walk through a whole project, whatever the statistics say. LIMIT 1 keeps a lookup by
-- key from being planned as a join; an order that one index has keeps it from the others. Parts of
-- one type in each column, which a domain is not, need no step of the plan that would make them so.
-- What stands behind an "if" is left out where a call does not ask for it (statements.py).
--
-- $1 tenant  $2 project  $3 record ids
-- $4 actor and $5 idempotency key of the receipt, or null  $6 keys  $7 counter names
-- $8 record ids and $9 numbers of revisions  $10 start of the chain or null
-- if linked:
WITH RECURSIVE chain AS (
    SELECT
        1 AS position, r.record_id, r.agent_id, r.kind, r.state, r.superseded_by_record_id,
        ARRAY[r.record_id] AS seen, false AS repeated
    FROM memory.records AS r
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = $10
    UNION ALL
    SELECT
        c.position + 1, r.record_id, r.agent_id, r.kind, r.state, r.superseded_by_record_id,
        c.seen || r.record_id, r.record_id = ANY (c.seen)
    FROM chain AS c
    CROSS JOIN LATERAL (
        SELECT h.record_id, h.agent_id, h.kind, h.state, h.superseded_by_record_id
        FROM memory.records AS h
        WHERE h.tenant_id = $1 AND h.project_id = $2 AND h.record_id = c.superseded_by_record_id
        LIMIT 1
    ) AS r
    WHERE NOT c.repeated AND c.position < 66
)
-- end
SELECT
    'once' AS part,
    m.resource_id,
    m.generation,
-- if kept:
    (
        SELECT json_build_array(
            t.method, t.fingerprint, t.refs, t.effect_id, t.outcome, t.create_time
        )
        FROM memory.receipts AS t
        WHERE t.tenant_id = $1 AND t.project_id = $2 AND t.actor_fingerprint = $4
            AND t.idempotency_key = $5
    ) AS receipt,
    (
        SELECT json_agg(json_build_array(c.key, c.record_id, c.tombstone_kind))
        FROM memory.claims AS c
        WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.key = ANY ($6)
    ) AS keys,
    (
        SELECT json_agg(json_build_array(n.name, n.value))
        FROM memory.counters AS n
        WHERE n.tenant_id = $1 AND n.project_id = $2 AND n.name = ANY ($7)
    ) AS counters,
-- else:
    NULL AS receipt, NULL AS keys, NULL AS counters,
-- end
-- if linked:
    (
        SELECT json_agg(
            json_build_array(
                l.record_id, l.agent_id, l.kind, l.state, l.superseded_by_record_id
            )
            ORDER BY l.position
        )
        FROM chain AS l
    ) AS chain,
-- else:
    NULL AS chain,
-- end
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
    'head', NULL, NULL, NULL, NULL, NULL, NULL, r.create_time,
    r.record_id, r.revision::integer, r.revision_id, r.previous_revision_id, r.agent_id,
    r.kind::text, r.type, r.title, r.content, r.rationale, r.importance::float8, r.tags, r.facet,
    r.state::text, r.trust::text, r.source_run_id, r.source_session_id, r.promoted_decision_id,
    r.superseded_by_record_id, r.reason, r.change_kind::text, r.actor_fingerprint::text,
    r.update_time
FROM memory.records AS r
WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($3)
-- if linked:
UNION ALL
SELECT
    'revision', NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    v.record_id, v.revision::integer, v.revision_id, v.previous_revision_id, v.agent_id,
    v.kind::text, v.type, v.title, v.content, v.rationale, v.importance::float8, v.tags, v.facet,
    v.state::text, v.trust::text, v.source_run_id, v.source_session_id, v.promoted_decision_id,
    v.superseded_by_record_id, v.reason, v.change_kind::text, v.actor_fingerprint::text,
    v.create_time
FROM unnest($8::text[], $9::bigint[]) AS a (record_id, revision)
CROSS JOIN LATERAL (
    SELECT r.*
    FROM memory.revisions AS r
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = a.record_id
        AND r.revision BETWEEN a.revision AND a.revision
    ORDER BY r.revision
    LIMIT 1
) AS v
-- end
