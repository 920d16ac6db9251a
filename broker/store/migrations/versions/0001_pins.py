"""Pins: one immutable row for each run."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply it. There is no way back: pins are for ever."""
    op.execute(
        """
        CREATE TABLE knowledge.pins (
            tenant_id text COLLATE "C" NOT NULL,
            project_id text COLLATE "C" NOT NULL,
            run_id text COLLATE "C" NOT NULL,
            project_revision bigint NOT NULL CHECK (project_revision >= 1),
            project_configuration_revision bigint NOT NULL
                CHECK (project_configuration_revision >= 1),
            context_revision text COLLATE "C" NOT NULL,
            provider_id text COLLATE "C" NOT NULL,
            adapter_version text COLLATE "C" NOT NULL,
            options_schema_version integer NOT NULL CHECK (options_schema_version >= 1),
            options_revision text COLLATE "C" NOT NULL,
            resource_id text COLLATE "C" NOT NULL,
            resource_generation bigint NOT NULL CHECK (resource_generation >= 1),
            capabilities text[] NOT NULL,
            create_time timestamptz NOT NULL,
            CONSTRAINT pins_pkey PRIMARY KEY (tenant_id, project_id, run_id)
        )
        """
    )
    op.execute(
        """
        CREATE FUNCTION knowledge.refuse_change() RETURNS trigger
        LANGUAGE plpgsql SET search_path = '' AS $$
        BEGIN
            RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME
                USING ERRCODE = 'integrity_constraint_violation';
        END
        $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER pins_immutable BEFORE UPDATE OR DELETE ON knowledge.pins
        FOR EACH ROW EXECUTE FUNCTION knowledge.refuse_change()
        """
    )
    op.execute(
        """
        CREATE TRIGGER pins_kept BEFORE TRUNCATE ON knowledge.pins
        FOR EACH STATEMENT EXECUTE FUNCTION knowledge.refuse_change()
        """
    )

