"""Tables of schema ``knowledge``. Every key begins with (tenant_id, project_id)."""

from typing import Final

from sqlalchemy import BigInteger, Column, Integer, MetaData, PrimaryKeyConstraint, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

SCHEMA: Final = "knowledge"
metadata: Final = MetaData(schema=SCHEMA)


def _identifier(name: str) -> Column[str]:
    return Column(name, Text(collation="C"), nullable=False)


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
