#!/bin/sh
# Run by the postgres image after the roles are made: gives the roles the passwords of their addresses.
set -eu

password_in() {
    sed -n 's|^postgresql://[^:]*:\([^@]*\)@.*|\1|p' "/run/secrets/$1"
}

psql --username "${POSTGRES_USER:-postgres}" --dbname postgres --no-psqlrc \
    --set ON_ERROR_STOP=1 \
    --set migrator="$(password_in migration_dsn)" \
    --set runtime="$(password_in runtime_dsn)" \
    --set events="$(password_in events_dsn)" <<'SQL'
ALTER ROLE broker_migrator PASSWORD :'migrator';
ALTER ROLE broker_runtime PASSWORD :'runtime';
ALTER ROLE broker_events PASSWORD :'events';
SQL
