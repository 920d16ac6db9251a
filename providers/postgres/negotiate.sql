-- What the server, the database and the role are, from the catalogs alone: this answers also where
-- nothing was migrated. Rights are read from the access lists of the role and of PUBLIC; owners,
-- members of other roles and superusers would have more, and are refused for what they are.
WITH me AS (
    SELECT * FROM pg_roles WHERE rolname = current_user
),
wanted (table_name, privilege) AS (
    VALUES
    ('alembic_version', 'SELECT'),
    ('resource', 'SELECT'),
    ('records', 'SELECT'), ('records', 'INSERT'),
    ('revisions', 'SELECT'), ('revisions', 'INSERT'),
    ('receipts', 'SELECT'), ('receipts', 'INSERT'),
    ('counters', 'SELECT'), ('counters', 'INSERT'), ('counters.value', 'UPDATE'),
    ('claims', 'SELECT'), ('claims', 'INSERT'), ('claims.record_id', 'UPDATE'),
    ('claims.tombstone_kind', 'UPDATE'), ('claims.tombstone_time', 'UPDATE'),
    ('effects', 'SELECT'), ('effects', 'INSERT'),
    ('effects.delivered', 'UPDATE'), ('effects.lease_token', 'UPDATE'),
    ('effects.leased_until', 'UPDATE'), ('effects.last_code', 'UPDATE'),
    ('effects.fact_id', 'UPDATE'), ('effects.fact_sequence', 'UPDATE'),
    ('recall_entries', 'SELECT'), ('recall_entries', 'INSERT'),
    ('recall_vectors', 'SELECT'), ('recall_vectors', 'INSERT'), ('recall_vectors', 'DELETE')
    UNION ALL
    SELECT 'recall_entries.' || name, 'UPDATE'
    FROM unnest(ARRAY[
        'agent_id', 'live', 'replaced', 'forgotten', 'create_time', 'update_time', 'importance',
        'expire_time', 'invalidate_time', 'namespace', 'memory_kind', 'subject', 'epoch',
        'sensitivity', 'origin_tier', 'tags', 'length', 'vector_id', 'vector_model',
        'vector_dimension', 'terms', 'counts'
    ]) AS c (name)
    UNION ALL
    SELECT 'records.' || name, 'UPDATE'
    FROM unnest(ARRAY[
        'revision', 'revision_id', 'previous_revision_id', 'agent_id', 'kind', 'type', 'title',
        'content', 'rationale', 'importance', 'tags', 'facet', 'state', 'trust', 'source_run_id',
        'source_session_id', 'promoted_decision_id', 'superseded_by_record_id', 'reason',
        'change_kind', 'actor_fingerprint', 'create_time', 'update_time', 'search_text'
    ]) AS c (name)
),
relations AS (
    SELECT c.oid, c.relname::text, c.relowner, c.relacl
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'memory' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
),
acls AS (
    SELECT relname AS name, relacl AS acl FROM relations
    UNION ALL
    SELECT r.relname || '.' || a.attname, a.attacl
    FROM relations AS r
    JOIN pg_attribute AS a ON a.attrelid = r.oid
    WHERE a.attacl IS NOT NULL
),
held AS (
    SELECT a.name AS table_name, e.privilege_type AS privilege, e.is_grantable
    FROM acls AS a
    CROSS JOIN LATERAL aclexplode(a.acl) AS e
    WHERE e.grantee IN (0, (SELECT oid FROM me))
)
SELECT
    current_database()::text AS database_name,
    pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS read_only,
    current_setting('server_encoding') AS encoding,
    current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean
        AND current_setting('synchronous_commit') <> 'off' AS durable,
    (SELECT array_agg(relname) FROM relations) AS tables,
    (
        SELECT count(*)
        FROM pg_trigger AS t
        JOIN relations AS r ON r.oid = t.tgrelid
        WHERE t.tgname IN (
            'records_are_kept', 'revisions_are_kept', 'receipts_are_kept', 'effects_are_kept',
            'effects_are_not_changed', 'effects_stay_delivered'
        ) AND t.tgenabled IN ('O', 'A')
    ) AS triggers,
    (
        SELECT count(*)
        FROM pg_index AS i
        JOIN relations AS r ON r.oid = i.indrelid
        JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE c.relname IN (
            'records_agent_order', 'records_project_order', 'records_search_text',
            'effects_pending', 'effects_unscoped', 'records_decision_candidates',
            'records_memory_candidates', 'records_shared_candidates', 'records_session_candidates',
            'recall_entries_scope', 'recall_entries_terms', 'recall_entries_bare',
            'recall_vectors_scope'
        ) AND i.indisvalid AND i.indisready
    ) AS indexes,
    (
        SELECT count(*) = 2
        FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = 'memory' AND p.proname IN ('to_vector', 'likeness')
            AND has_function_privilege(p.oid, 'EXECUTE')
    ) AS vectors,
    (
        SELECT
            rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication
            OR session_user <> current_user
            OR EXISTS (SELECT FROM pg_auth_members WHERE member = me.oid)
            OR EXISTS (SELECT FROM relations WHERE relowner = me.oid)
            OR EXISTS (SELECT FROM pg_namespace WHERE nspname = 'memory' AND nspowner = me.oid)
            OR EXISTS (
                SELECT
                FROM pg_type AS t
                JOIN pg_namespace AS n ON n.oid = t.typnamespace
                WHERE n.nspname = 'memory' AND t.typtype = 'd' AND t.typowner = me.oid
            )
            OR EXISTS (
                SELECT FROM pg_database WHERE datname = current_database() AND datdba = me.oid
            )
            OR has_database_privilege(current_database(), 'CREATE')
            OR EXISTS (
                SELECT
                FROM pg_namespace
                WHERE nspname = 'memory' AND has_schema_privilege(oid, 'CREATE')
            )
        FROM me
    ) AS too_mighty,
    (
        SELECT array_agg(format('%s on %s', privilege, table_name))
        FROM held AS h
        WHERE is_grantable OR (
            privilege <> 'SELECT'
            AND NOT EXISTS (
                SELECT
                FROM wanted AS w
                WHERE w.table_name = h.table_name AND w.privilege = h.privilege
            )
        )
    ) AS excess,
    (
        SELECT array_agg(format('%s on %s', privilege, table_name))
        FROM wanted AS w
        WHERE NOT EXISTS (
            SELECT
            FROM held AS h
            WHERE h.table_name = w.table_name AND h.privilege = w.privilege
        )
    ) AS missing
