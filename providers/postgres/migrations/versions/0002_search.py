"""Keep what a search looks through, and index it and the order of its pages."""

import sqlalchemy as sa
from alembic import op

from providers.folding import search_text
from providers.model import Content

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SCHEMA = "memory"
BATCH = 100

# Both are trusted: whoever may create in the database may install them. One that is there already,
# in whatever schema, is used where it is.
EXTENSIONS = ("pg_trgm", "btree_gin")
TRIGRAM_CLASS = """
SELECT format('%I.%I', n.nspname, o.opcname)
FROM pg_opclass AS o
JOIN pg_namespace AS n ON n.oid = o.opcnamespace
WHERE o.opcname = 'gin_trgm_ops'
"""

NEXT = """
SELECT tenant_id, project_id, record_id, type, title, content, tags
FROM memory.records
WHERE (tenant_id, project_id, record_id) > (:tenant_id, :project_id, :record_id)
ORDER BY tenant_id, project_id, record_id
LIMIT :batch
"""
FILL = """
UPDATE memory.records
SET search_text = :search_text
WHERE tenant_id = :tenant_id AND project_id = :project_id AND record_id = :record_id
"""


def upgrade() -> None:
    """Apply it. There is no way back."""
    for extension in EXTENSIONS:
        op.execute(f"CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA {SCHEMA}")
    op.add_column("records", sa.Column("search_text", sa.Text(collation="C")), schema=SCHEMA)
    fill()
    op.alter_column("records", "search_text", nullable=False, schema=SCHEMA)
    create_indexes()


def fill() -> None:
    """Give what is stored already its search text, a bounded part at a time."""
    connection = op.get_bind()
    at = {"tenant_id": "", "project_id": "", "record_id": ""}
    while rows := connection.execute(sa.text(NEXT), {**at, "batch": BATCH}).all():
        filled = [
            {
                "tenant_id": row.tenant_id,
                "project_id": row.project_id,
                "record_id": row.record_id,
                "search_text": search_text(content_of(row)),
            }
            for row in rows
        ]
        connection.execute(sa.text(FILL), filled)
        at = {name: filled[-1][name] for name in at}


def content_of(row: sa.Row[tuple[object, ...]]) -> Content:
    return Content(
        type=row.type,
        title=row.title,
        content=row.content,
        rationale=None,
        importance=0.0,
        tags=tuple(row.tags),
    )


def create_indexes() -> None:
    for name, scope in (
        ("records_agent_order", ("tenant_id", "project_id", "agent_id")),
        ("records_project_order", ("tenant_id", "project_id")),
    ):
        op.execute(
            f"CREATE INDEX {name} ON memory.records"
            f" ({collated('POSIX', *scope)}, update_time DESC, {collated('POSIX', 'record_id')})"
        )
    trigrams = op.get_bind().execute(sa.text(TRIGRAM_CLASS)).scalars().first()
    keys = collated("ucs_basic", "tenant_id", "project_id", "agent_id")
    op.execute(
        f"CREATE INDEX records_search_text ON memory.records"
        f" USING gin ({keys}, search_text {trigrams})"
    )


def collated(collation: str, *names: str) -> str:
    return ", ".join(f'{name} COLLATE "{collation}"' for name in names)
