"""Tables of schema ``knowledge``. Every key begins with (tenant_id, project_id)."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP

SCHEMA: Final = "knowledge"
metadata: Final = MetaData(schema=SCHEMA)


def _identifier(name: str) -> Column[str]:
    return Column(name, Text(collation="C"), nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


pins: Final = Table(
    "pins",
    metadata,
    _identifier("tenant_id"),
    _identifier("project_id"),
    _identifier("run_id"),
    Column("project_revision", BigInteger, nullable=False),
    Column("project_configuration_revision", BigInteger, nullable=False),
    Column("context_revision", Text(collation="C"), nullable=False),
    _identifier("provider_id"),
    _identifier("adapter_version"),
    Column("options_schema_version", Integer, nullable=False),
    Column("options_revision", Text(collation="C"), nullable=False),
    _identifier("resource_id"),
    Column("resource_generation", BigInteger, nullable=False),
    Column("capabilities", ARRAY(Text), nullable=False),
    Column("create_time", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant_id", "project_id", "run_id", name="pins_pkey"),
)

compilations: Final = Table(
    "compilations",
    metadata,
    _identifier("tenant_id"),
    _identifier("project_id"),
    _identifier("compilation_id"),
    _identifier("run_id"),
    _identifier("agent_id"),
    _identifier("actor_fingerprint"),
    Column("query_hash", Text(collation="C")),
    _number("tokens"),
    _number("item_limit"),
    _number("characters_used"),
    Column("text_hash", Text(collation="C")),
    _number("render_version"),
    _number("item_count"),
    _number("omitted_memory_count"),
    _number("omitted_session_count"),
    _number("ignored_decision_count"),
    Column("items", JSONB, nullable=False),
    Column("left_out", JSONB, nullable=False),
    Column("create_time", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant_id", "project_id", "compilation_id", name="compilations_pkey"),
    Index("compilations_project_order", "tenant_id", "project_id", "create_time", "compilation_id"),
    Index(
        "compilations_run_order",
        "tenant_id",
        "project_id",
        "run_id",
        "create_time",
        "compilation_id",
    ),
)

compilation_items: Final = Table(
    "compilation_items",
    metadata,
    _identifier("tenant_id"),
    _identifier("project_id"),
    _identifier("record_id"),
    Column("revision", BigInteger, nullable=False),
    _identifier("run_id"),
    _identifier("compilation_id"),
    Column("create_time", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint(
        "tenant_id",
        "project_id",
        "record_id",
        "create_time",
        "compilation_id",
        name="compilation_items_pkey",
    ),
    Index(
        "compilation_items_revision_order",
        "tenant_id",
        "project_id",
        "record_id",
        "revision",
        "create_time",
        "compilation_id",
    ),
)
"""What entered, once more: by record, to find the compilations of a record or revision."""
