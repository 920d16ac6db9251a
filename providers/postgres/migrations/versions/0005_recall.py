"""Keep what memories are recalled by, beside their heads."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SCHEMA = "memory"

STANDINGS = ("live", "replaced", "forgotten")

# Memories that are stored already can be given back by their tags at once. Their words and vectors
# are the broker's to find: until it did they have no entry.
FILL = """
INSERT INTO memory.recall_entries (
    tenant_id, project_id, record_id, agent_id, live, replaced, forgotten, create_time, update_time,
    importance, expire_time, invalidate_time, namespace, memory_kind, subject, epoch, sensitivity,
    origin_tier, tags
)
SELECT
    tenant_id, project_id, record_id, agent_id,
    state = 'active' AND trust IN ('pending', 'approved'),
    state = 'superseded' AND trust IN ('pending', 'approved'),
    state = 'forgotten',
    create_time, update_time, importance,
    (facet ->> 'expire_time')::timestamptz, (facet ->> 'invalidate_time')::timestamptz,
    coalesce(facet ->> 'namespace', ''), facet ->> 'memory_kind', facet ->> 'subject',
    facet ->> 'epoch', facet ->> 'sensitivity', facet ->> 'origin_tier',
    memory.tags_of(search_text)
FROM memory.records
WHERE kind = 'memory'
"""
# What stands between two marks, or behind the first and before the last, is a tag, folded.
TAGS_OF = r"""
CREATE FUNCTION memory.tags_of(search_text text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (string_to_array(search_text, U&'\2001'))
    [2 : cardinality(string_to_array(search_text, U&'\2001')) - 1]
"""


CHANGE_KINDS = (
    "created",
    "updated",
    "proposal_created",
    "proposal_rejected",
    "proposal_promoted",
    "decision_archived",
    "decision_approved",
    "decision_restored",
    "decision_superseded",
    "imported",
    "archived",
    "unarchived",
    "approved",
    "rejected",
    "reopened",
    "reinforced",
    "forgotten",
    "superseded",
)


def upgrade() -> None:
    """Apply it. There is no way back."""
    know_superseded_memories()
    create_entries()
    create_vectors()
    op.execute(TAGS_OF)
    op.execute(FILL)
    create_indexes()


def identifier(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(collation="C"), nullable=null)


def plain(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def time(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def texts(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, postgresql.ARRAY(sa.Text(collation="C")), nullable=null)


def know_superseded_memories() -> None:
    listed = ", ".join(f"'{kind}'" for kind in CHANGE_KINDS)
    for table in ("records", "revisions"):
        name = f"{table}_change_kind_known"
        op.drop_constraint(name, table, schema=SCHEMA)
        op.create_check_constraint(name, table, f"change_kind IN ({listed})", schema=SCHEMA)


def create_entries() -> None:
    op.create_table(
        "recall_entries",
        *(identifier(each) for each in ("tenant_id", "project_id", "record_id", "agent_id")),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in STANDINGS),
        time("create_time"),
        time("update_time"),
        sa.Column("importance", sa.Double(), nullable=False),
        time("expire_time", null=True),
        time("invalidate_time", null=True),
        identifier("namespace"),
        plain("memory_kind", null=True),
        identifier("subject", null=True),
        identifier("epoch", null=True),
        plain("sensitivity", null=True),
        plain("origin_tier", null=True),
        texts("tags"),
        sa.Column("length", sa.Integer(), nullable=True),
        sa.Column("vector_id", sa.Uuid(), nullable=True),
        identifier("vector_model", null=True),
        sa.Column("vector_dimension", sa.Integer(), nullable=True),
        texts("terms", null=True),
        sa.Column("counts", postgresql.ARRAY(sa.Integer()), nullable=True),
        sa.PrimaryKeyConstraint(
            "tenant_id", "project_id", "record_id", name="recall_entries_pkey"
        ),
        sa.CheckConstraint(
            "num_nulls(length, terms, counts) IN (0, 3)", name="recall_entries_whole"
        ),
        sa.CheckConstraint(
            "num_nulls(vector_id, vector_model, vector_dimension) IN (0, 3)",
            name="recall_entries_vector_whole",
        ),
        schema=SCHEMA,
        # Room on each page for the next version of a row keeps a change of state out of the
        # indexes: that of the terms would have to take all of them anew.
        postgresql_with={"fillfactor": 80},
    )


def create_vectors() -> None:
    op.create_table(
        "recall_vectors",
        *(identifier(each) for each in ("tenant_id", "project_id", "record_id")),
        sa.Column("vector_id", sa.Uuid(), nullable=False),
        identifier("agent_id"),
        identifier("model"),
        sa.Column("dimension", sa.Integer(), nullable=False),
        # vectors.sql, which every migration ends with, makes vectors of these where it can.
        sa.Column("embedding", postgresql.ARRAY(sa.REAL()), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "project_id", "record_id", "vector_id", name="recall_vectors_pkey"
        ),
        schema=SCHEMA,
    )


def create_indexes() -> None:
    scope = ("tenant_id", "project_id", "agent_id")
    op.execute(
        f"CREATE INDEX recall_entries_scope ON memory.recall_entries ({collated('POSIX', *scope)})"
    )
    op.execute(
        f"CREATE INDEX recall_entries_terms ON memory.recall_entries"
        f" USING gin ({collated('ucs_basic', *scope)}, terms)"
        # What is not in the index yet is walked through by each look-up: let it be little.
        " WITH (gin_pending_list_limit = 64)"
    )
    keys = collated("POSIX", "tenant_id", "project_id", "record_id")
    op.execute(
        f"CREATE INDEX recall_entries_bare ON memory.recall_entries ({keys})"
        " WHERE length IS NULL AND NOT forgotten"
    )
    op.execute(
        f"CREATE INDEX recall_vectors_scope ON memory.recall_vectors"
        f" ({collated('POSIX', *scope, 'model')}, dimension)"
    )


def collated(collation: str, *names: str) -> str:
    return ", ".join(f'{name} COLLATE "{collation}"' for name in names)
