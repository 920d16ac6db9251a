-- For development: the role and the schema of the reference Events service, after roles.sql.
CREATE ROLE broker_events LOGIN
    NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT CONNECT ON DATABASE knowledge TO broker_events;
\connect knowledge
CREATE SCHEMA events AUTHORIZATION broker_events;
