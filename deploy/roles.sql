-- The roles and the database, made once by a superuser: psql --set ON_ERROR_STOP=1 --file roles.sql
-- No password is set here. `broker migrate` grants the runtime role its rights on the tables.

-- Owns the database and its schemas; for migrations and repairs only.
CREATE ROLE broker_migrator LOGIN
    NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- Serves. It must be in no other role and may hold no right beyond those granted by migrate.
CREATE ROLE broker_runtime LOGIN
    NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- Rows that break a constraint stay out of the server's log. Only a superuser may say so.
ALTER ROLE broker_runtime SET log_error_verbosity = terse;
-- Reads everything, for pg_dump.
CREATE ROLE broker_backup LOGIN
    NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT pg_read_all_data TO broker_backup;

CREATE DATABASE knowledge OWNER broker_migrator TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE knowledge FROM PUBLIC;
GRANT CONNECT ON DATABASE knowledge TO broker_runtime, broker_backup;

-- Where pgvector is installed, memories are recalled by vectors too. Creating it is for a superuser.
\connect knowledge
SELECT 'CREATE EXTENSION IF NOT EXISTS vector' FROM pg_available_extensions WHERE name = 'vector' \gexec
