"""The log of compilations: what every context was rendered from."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = ("compilations", "compilation_items")
HASH = "'^[0-9a-f]{64}$'"


def upgrade() -> None:
    """Apply it. There is no way back: the log is for ever."""
    op.execute(
        f"""
        CREATE TABLE knowledge.compilations (
            tenant_id text COLLATE "C" NOT NULL,
            project_id text COLLATE "C" NOT NULL,
            compilation_id text COLLATE "C" NOT NULL,
            run_id text COLLATE "C" NOT NULL,
            agent_id text COLLATE "C" NOT NULL,
            actor_fingerprint text COLLATE "C" NOT NULL CHECK (actor_fingerprint ~ {HASH}),
            query_hash text COLLATE "C" CHECK (query_hash ~ {HASH}),
            tokens integer NOT NULL CHECK (tokens >= 0),
            item_limit integer NOT NULL CHECK (item_limit >= 0),
            characters_used integer NOT NULL CHECK (characters_used >= 0),
            text_hash text COLLATE "C" CHECK (text_hash ~ {HASH}),
            render_version integer NOT NULL CHECK (render_version >= 1),
            item_count integer NOT NULL CHECK (item_count = jsonb_array_length(items)),
            omitted_memory_count integer NOT NULL CHECK (omitted_memory_count >= 0),
            omitted_session_count integer NOT NULL CHECK (omitted_session_count >= 0),
            ignored_decision_count integer NOT NULL CHECK (ignored_decision_count >= 0),
            items jsonb NOT NULL,
            left_out jsonb NOT NULL CHECK (jsonb_array_length(left_out) <= 1000),
            create_time timestamptz NOT NULL
        )
        """
    )
    op.execute(
        """
        CREATE INDEX compilations_project_order
        ON knowledge.compilations (tenant_id, project_id, create_time, compilation_id)
        """
    )
    op.execute(
        """
        CREATE INDEX compilations_run_order
        ON knowledge.compilations (tenant_id, project_id, run_id, create_time, compilation_id)
        """
    )
    # Each key comes last: without statistics, of indexes that seem equal the newest is taken.
    op.execute(
        """
        ALTER TABLE knowledge.compilations ADD CONSTRAINT compilations_pkey
        PRIMARY KEY (tenant_id, project_id, compilation_id)
        """
    )
    op.execute(
        """
        CREATE TABLE knowledge.compilation_items (
            tenant_id text COLLATE "C" NOT NULL,
            project_id text COLLATE "C" NOT NULL,
            record_id text COLLATE "C" NOT NULL,
            revision bigint NOT NULL CHECK (revision >= 1),
            run_id text COLLATE "C" NOT NULL,
            compilation_id text COLLATE "C" NOT NULL,
            create_time timestamptz NOT NULL
        )
        """
    )
    op.execute(
        """
        CREATE INDEX compilation_items_revision_order ON knowledge.compilation_items
            (tenant_id, project_id, record_id, revision, create_time, compilation_id)
        """
    )
    # It gives the pages of a record; that a record enters once keeps them free of repeats.
    op.execute(
        """
        ALTER TABLE knowledge.compilation_items ADD CONSTRAINT compilation_items_pkey
        PRIMARY KEY (tenant_id, project_id, record_id, create_time, compilation_id)
        """
    )
    for table in TABLES:
        _keep(table)


def _keep(table: str) -> None:
    op.execute(
        f"""
        CREATE TRIGGER {table}_immutable BEFORE UPDATE OR DELETE ON knowledge.{table}
        FOR EACH ROW EXECUTE FUNCTION knowledge.refuse_change()
        """
    )
    op.execute(
        f"""
        CREATE TRIGGER {table}_kept BEFORE TRUNCATE ON knowledge.{table}
        FOR EACH STATEMENT EXECUTE FUNCTION knowledge.refuse_change()
        """
    )
