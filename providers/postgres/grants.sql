-- The rights of the runtime role: what it needs and nothing more, whatever it had before.
-- The role's name is in the setting knowledge_broker.runtime_role.
DO $$
DECLARE
    role text := current_setting('knowledge_broker.runtime_role');
    statement text;
BEGIN
    FOREACH statement IN ARRAY ARRAY[
        'REVOKE ALL ON SCHEMA memory FROM PUBLIC, %1$I',
        'REVOKE ALL ON ALL TABLES IN SCHEMA memory FROM PUBLIC, %1$I',
        'GRANT USAGE ON SCHEMA memory TO %1$I',
        'GRANT SELECT ON ALL TABLES IN SCHEMA memory TO %1$I',
        'GRANT INSERT ON memory.records, memory.revisions, memory.receipts, memory.counters,'
            ' memory.claims, memory.effects, memory.recall_entries, memory.recall_vectors TO %1$I',
        -- What a row is found by is not among the columns: no statement moves a row to another key.
        'GRANT UPDATE (revision, revision_id, previous_revision_id, agent_id, kind, type, title,'
            ' content, rationale, importance, tags, facet, state, trust, source_run_id,'
            ' source_session_id, promoted_decision_id, superseded_by_record_id, reason, change_kind,'
            ' actor_fingerprint, create_time, update_time, search_text) ON memory.records TO %1$I',
        'GRANT UPDATE (value) ON memory.counters TO %1$I',
        'GRANT UPDATE (record_id, tombstone_kind, tombstone_time) ON memory.claims TO %1$I',
        'GRANT UPDATE (agent_id, live, replaced, forgotten, create_time, update_time, importance,'
            ' expire_time, invalidate_time, namespace, memory_kind, subject, epoch, sensitivity,'
            ' origin_tier, tags, length, vector_id, vector_model, vector_dimension, terms, counts)'
            ' ON memory.recall_entries TO %1$I',
        -- A vector is never changed: another one takes its place.
        'GRANT DELETE ON memory.recall_vectors TO %1$I',
        'GRANT UPDATE (delivered, lease_token, leased_until, last_code, fact_id, fact_sequence)'
            ' ON memory.effects TO %1$I'
    ]
    LOOP
        EXECUTE format(statement, role);
    END LOOP;
END
$$
