-- The rights of the runtime role: what it needs and nothing more, whatever it had before.
-- The role's name is in the setting knowledge_broker.runtime_role.
DO $$
DECLARE
    role text := current_setting('knowledge_broker.runtime_role');
    statement text;
BEGIN
    FOREACH statement IN ARRAY ARRAY[
        'REVOKE ALL ON SCHEMA knowledge FROM PUBLIC, %1$I',
        'REVOKE ALL ON ALL TABLES IN SCHEMA knowledge FROM PUBLIC, %1$I',
        'GRANT USAGE ON SCHEMA knowledge TO %1$I',
        'GRANT SELECT ON ALL TABLES IN SCHEMA knowledge TO %1$I',
        'GRANT INSERT ON knowledge.pins, knowledge.compilations, knowledge.compilation_items TO %1$I'
    ]
    LOOP
        EXECUTE format(statement, role);
    END LOOP;
END
$$
