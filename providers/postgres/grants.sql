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
            ' memory.claims, memory.effects TO %1$I',
        'GRANT UPDATE ON memory.records, memory.counters, memory.claims TO %1$I',
        'GRANT UPDATE (delivered, lease_token, leased_until, last_code) ON memory.effects TO %1$I'
    ]
    LOOP
        EXECUTE format(statement, role);
    END LOOP;
END
$$
