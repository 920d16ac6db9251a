-- Applies one write set, or nothing, and tells which. Heads, counters and keys are locked first, in
-- this order and each sorted, so that no two commits can wait for each other; the rows that the
-- locks return are the newest, while everything else still sees the statement's snapshot. What is
-- absent cannot be locked: it is inserted, and whoever comes second gets a unique violation.
--
-- Each part of a statement costs the server time, also where it finds nothing to do. What stands
-- between "if" and "end" is left out of the statements for write sets that lack it: heads that are
-- new, heads that are changed, and counters with the effects that they number (statements.py).
--
-- $1 tenant  $2 project  $3 resource id  $4 generation  $5 revisions
-- $6 keys with what to do  $7 the keys alone  $8 actor  $9 idempotency key  $10 method
-- $11 fingerprint  $12 refs  $13 effect id  $14 outcome  $15 time of the receipt
-- $16 the numbers of all vectors
-- $17 record ids of the heads that expect one, where heads are changed
-- $18 counter names  $19 their expected values, null where any will do  $20 effects
--
-- Stored rows are always found by "= ANY" over the whole key: a join could be planned as a walk
-- through the whole project.
WITH given AS MATERIALIZED (
    -- In the columns' own types, domains, values are checked here, once for head and revision.
    SELECT *
    FROM json_to_recordset($5) AS g (
        record_id text COLLATE "C", revision memory.ordinal, revision_id text COLLATE "C",
        previous_revision_id text, agent_id text, kind memory.record_kind, type text, title text,
        content text, rationale text, importance memory.unit, tags text[], facet json,
        state memory.record_state, trust memory.record_trust, source_run_id text,
        source_session_id text, promoted_decision_id text, superseded_by_record_id text,
        reason text, change_kind memory.change_kind, actor_fingerprint memory.fingerprint,
        create_time timestamptz,
        -- Only heads have these; the last two only where the record must exist already.
        record_create_time timestamptz, search_text text, expected_revision integer,
        expected_revision_id text,
        -- Only memories have these, out of their facet and of their entry. A length, or none, says
        -- whether an entry is given.
        namespace text, memory_kind text, subject text, epoch text, sensitivity text,
        origin_tier text, expire_time timestamptz, invalidate_time timestamptz,
        length integer, terms text[], counts integer[], vector_id uuid, vector_model text,
        vector_dimension integer, vector_from integer
    )
),
asked_keys AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset($6) AS k (
        key text COLLATE "C", action text, record_id text, held_by text, tombstone_kind text,
        tombstone_time timestamptz, free_of_tombstone boolean
    )
),
-- if ordered:
asked_counters AS MATERIALIZED (
    SELECT name, expected FROM unnest($18::text[], $19::bigint[]) AS a (name, expected)
),
-- end

-- if changed:
locked_heads AS MATERIALIZED (
    SELECT r.record_id, r.revision, r.revision_id
    FROM memory.records AS r
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($17)
    ORDER BY r.record_id
    FOR UPDATE
),
-- end
-- if ordered:
locked_counters AS MATERIALIZED (
    SELECT c.name, c.value
    FROM memory.counters AS c
    WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.name = ANY ($18)
        AND (SELECT count(*) FROM locked_heads) >= 0
    ORDER BY c.name
    FOR UPDATE
),
-- end
locked_keys AS MATERIALIZED (
    SELECT c.key, c.record_id, c.tombstone_kind
    FROM memory.claims AS c
    WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.key = ANY ($7)
-- if changed:
        AND (SELECT count(*) FROM locked_heads) >= 0
-- end
-- if ordered:
        AND (SELECT count(*) FROM locked_counters) >= 0
-- end
    ORDER BY c.key
    FOR UPDATE
),
gate AS MATERIALIZED (
    SELECT
        EXISTS (SELECT FROM memory.resource WHERE resource_id = $3 AND generation = $4)
        -- A replay is no violation, which the server would put on record.
        AND NOT EXISTS (
            SELECT
            FROM memory.receipts AS t
            WHERE t.tenant_id = $1 AND t.project_id = $2 AND t.actor_fingerprint = $8
                AND t.idempotency_key = $9
        )
-- if changed:
        AND NOT EXISTS (
            SELECT
            FROM given AS g
            LEFT JOIN locked_heads AS l ON l.record_id = g.record_id
            WHERE g.expected_revision IS NOT NULL
                AND (l.revision, l.revision_id)
                    IS DISTINCT FROM (g.expected_revision, g.expected_revision_id)
        )
-- end
-- if ordered:
        AND NOT EXISTS (
            SELECT
            FROM asked_counters AS a
            LEFT JOIN locked_counters AS l ON l.name = a.name
            WHERE a.expected <> coalesce(l.value, 0)
        )
-- end
        AND NOT EXISTS (
            SELECT
            FROM asked_keys AS a
            LEFT JOIN locked_keys AS l ON l.key = a.key
            WHERE (a.free_of_tombstone AND l.tombstone_kind IS NOT NULL)
                OR (a.action = 'claim' AND l.record_id IS DISTINCT FROM a.held_by)
        ) AS open
),

new_receipt AS (
    INSERT INTO memory.receipts (
        tenant_id, project_id, actor_fingerprint, idempotency_key, method, fingerprint, refs,
        effect_id, outcome, create_time
    )
    SELECT $1, $2, $8, $9, $10, $11, $12, $13, $14, $15
    FROM gate
    WHERE open
    RETURNING 1
),
-- if new:
new_records AS (
    INSERT INTO memory.records (
        tenant_id, project_id, record_id, revision, revision_id, previous_revision_id, agent_id,
        kind, type, title, content, rationale, importance, tags, facet, state, trust, source_run_id,
        source_session_id, promoted_decision_id, superseded_by_record_id, reason, change_kind,
        actor_fingerprint, create_time, update_time, search_text
    )
    SELECT
        $1, $2, g.record_id, g.revision, g.revision_id, g.previous_revision_id, g.agent_id,
        g.kind, g.type, g.title, g.content, g.rationale, g.importance, g.tags, g.facet, g.state,
        g.trust, g.source_run_id, g.source_session_id, g.promoted_decision_id,
        g.superseded_by_record_id, g.reason, g.change_kind, g.actor_fingerprint,
        g.record_create_time, g.create_time, g.search_text
    FROM new_receipt, given AS g
    WHERE g.record_create_time IS NOT NULL AND g.expected_revision IS NULL
    ORDER BY g.record_id
    RETURNING 1
),
new_entries AS (
    INSERT INTO memory.recall_entries (
        tenant_id, project_id, record_id, agent_id, live, replaced, forgotten, create_time,
        update_time, importance, expire_time, invalidate_time, namespace, memory_kind, subject,
        epoch, sensitivity, origin_tier, tags, length, terms, counts, vector_id, vector_model,
        vector_dimension
    )
    SELECT
        $1, $2, g.record_id, g.agent_id,
        g.state = 'active' AND g.trust IN ('pending', 'approved'),
        g.state = 'superseded' AND g.trust IN ('pending', 'approved'),
        g.state = 'forgotten',
        g.record_create_time, g.create_time, g.importance, g.expire_time, g.invalidate_time,
        coalesce(g.namespace, ''), g.memory_kind, g.subject, g.epoch, g.sensitivity, g.origin_tier,
        memory.tags_of(g.search_text), g.length, g.terms, g.counts, g.vector_id, g.vector_model,
        g.vector_dimension
    FROM new_receipt, given AS g
    WHERE g.record_create_time IS NOT NULL AND g.expected_revision IS NULL AND g.kind = 'memory'
        AND (SELECT count(*) FROM new_records) >= 0
    RETURNING 1
),
-- end
-- if changed:
changed_records AS (
    UPDATE memory.records AS r
    SET
        revision = g.revision,
        revision_id = g.revision_id,
        previous_revision_id = g.previous_revision_id,
        agent_id = g.agent_id,
        kind = g.kind,
        type = g.type,
        title = g.title,
        content = g.content,
        rationale = g.rationale,
        importance = g.importance,
        tags = g.tags,
        facet = g.facet,
        state = g.state,
        trust = g.trust,
        source_run_id = g.source_run_id,
        source_session_id = g.source_session_id,
        promoted_decision_id = g.promoted_decision_id,
        superseded_by_record_id = g.superseded_by_record_id,
        reason = g.reason,
        change_kind = g.change_kind,
        actor_fingerprint = g.actor_fingerprint,
        create_time = g.record_create_time,
        update_time = g.create_time,
        search_text = g.search_text
    FROM new_receipt, given AS g
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($17)
        AND r.record_id = g.record_id AND g.expected_revision IS NOT NULL
    RETURNING 1
),
changed_entries AS (
    UPDATE memory.recall_entries AS e
    SET
        agent_id = g.agent_id,
        live = g.state = 'active' AND g.trust IN ('pending', 'approved'),
        replaced = g.state = 'superseded' AND g.trust IN ('pending', 'approved'),
        forgotten = g.state = 'forgotten',
        create_time = g.record_create_time,
        update_time = g.create_time,
        importance = g.importance,
        expire_time = g.expire_time,
        invalidate_time = g.invalidate_time,
        namespace = coalesce(g.namespace, ''),
        memory_kind = g.memory_kind,
        subject = g.subject,
        epoch = g.epoch,
        sensitivity = g.sensitivity,
        origin_tier = g.origin_tier,
        tags = memory.tags_of(g.search_text),
        length = CASE WHEN g.length IS NULL THEN e.length ELSE g.length END,
        terms = CASE WHEN g.length IS NULL THEN e.terms ELSE g.terms END,
        counts = CASE WHEN g.length IS NULL THEN e.counts ELSE g.counts END,
        vector_id = CASE WHEN g.length IS NULL THEN e.vector_id ELSE g.vector_id END,
        vector_model = CASE WHEN g.length IS NULL THEN e.vector_model ELSE g.vector_model END,
        vector_dimension
            = CASE WHEN g.length IS NULL THEN e.vector_dimension ELSE g.vector_dimension END
    FROM new_receipt, given AS g
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.record_id = ANY ($17)
        AND e.record_id = g.record_id AND g.expected_revision IS NOT NULL
    RETURNING 1
),
old_vectors AS (
    DELETE FROM memory.recall_vectors AS v
    USING new_receipt, given AS g
    WHERE v.tenant_id = $1 AND v.project_id = $2 AND v.record_id = ANY ($17)
        AND v.record_id = g.record_id AND g.length IS NOT NULL
    RETURNING 1
),
-- end
new_vectors AS (
    INSERT INTO memory.recall_vectors (
        tenant_id, project_id, record_id, vector_id, agent_id, model, dimension, embedding
    )
    SELECT
        $1, $2, g.record_id, g.vector_id, g.agent_id, g.vector_model, g.vector_dimension,
        ($16::real[])[g.vector_from : g.vector_from + g.vector_dimension - 1]
    FROM new_receipt, given AS g
    WHERE g.vector_id IS NOT NULL
    RETURNING 1
),
new_revisions AS (
    INSERT INTO memory.revisions (
        tenant_id, project_id, record_id, revision, revision_id, previous_revision_id, agent_id,
        kind, type, title, content, rationale, importance, tags, facet, state, trust, source_run_id,
        source_session_id, promoted_decision_id, superseded_by_record_id, reason, change_kind,
        actor_fingerprint, create_time
    )
    SELECT
        $1, $2, g.record_id, g.revision, g.revision_id, g.previous_revision_id, g.agent_id,
        g.kind, g.type, g.title, g.content, g.rationale, g.importance, g.tags, g.facet, g.state,
        g.trust, g.source_run_id, g.source_session_id, g.promoted_decision_id,
        g.superseded_by_record_id, g.reason, g.change_kind, g.actor_fingerprint, g.create_time
    FROM new_receipt, given AS g
-- if new:
    WHERE (SELECT count(*) FROM new_records) >= 0
-- end
    ORDER BY g.revision_id
    RETURNING 1
),
-- if ordered:
changed_counters AS (
    UPDATE memory.counters AS c
    SET value = c.value + 1
    FROM new_receipt
    WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.name = ANY ($18)
    RETURNING 1
),
new_counters AS (
    INSERT INTO memory.counters (tenant_id, project_id, name, value)
    SELECT $1, $2, a.name, 1
    FROM new_receipt, asked_counters AS a
    WHERE (SELECT count(*) FROM new_revisions) >= 0
        AND NOT EXISTS (SELECT FROM locked_counters AS l WHERE l.name = a.name)
    ORDER BY a.name
    RETURNING 1
),
-- end
changed_keys AS (
    UPDATE memory.claims AS c
    SET
        record_id = CASE WHEN a.action = 'claim' THEN a.record_id END,
        tombstone_kind = a.tombstone_kind,
        tombstone_time = a.tombstone_time
    FROM new_receipt, asked_keys AS a, locked_keys AS l
    WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.key = ANY ($7)
        AND c.key = a.key AND l.key = a.key
        AND (a.action IN ('claim', 'bury') OR (a.action = 'release' AND l.record_id = a.record_id))
    RETURNING 1
),
new_keys AS (
    INSERT INTO memory.claims (
        tenant_id, project_id, key, record_id, tombstone_kind, tombstone_time
    )
    SELECT
        $1, $2, a.key, CASE WHEN a.action = 'claim' THEN a.record_id END, a.tombstone_kind,
        a.tombstone_time
    FROM new_receipt, asked_keys AS a
    WHERE (SELECT count(*) FROM new_revisions) >= 0
-- if ordered:
        AND (SELECT count(*) FROM new_counters) >= 0
-- end
        AND NOT EXISTS (SELECT FROM locked_keys AS l WHERE l.key = a.key)
    ORDER BY a.key
    RETURNING 1
)
-- if ordered:
, new_effects AS (
    INSERT INTO memory.effects (
        tenant_id, project_id, run_id, sequence, receipt_id, receipt, accept_time
    )
    SELECT $1, $2, e.run_id, e.sequence, e.receipt_id, e.receipt, e.accept_time
    FROM new_receipt, json_to_recordset($20) AS e (
        run_id text, sequence bigint, receipt_id text, receipt json, accept_time timestamptz
    )
    WHERE (SELECT count(*) FROM new_keys) >= 0
    RETURNING 1
)
-- end

SELECT
    EXISTS (SELECT FROM new_receipt)
    AND (SELECT count(*) FROM new_keys) >= 0
-- if ordered:
    AND (SELECT count(*) FROM new_effects) >= 0
-- end
    AS applied
