"""Create the tables, and the triggers that keep what was written."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "memory"
HEX = "'^[0-9a-f]{64}$'"
KINDS = ("memory", "decision", "proposal", "session_context")
STATES = ("pending", "active", "archived", "superseded", "rejected", "promoted", "forgotten")
TRUSTS = ("pending", "approved", "rejected", "legacy")
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
)
# Trigger, table, event. An UPDATE OF that lists every column but some allows those alone.
KEPT = (
    ("records_are_kept", "records", "DELETE OR TRUNCATE"),
    ("revisions_are_kept", "revisions", "UPDATE OR DELETE OR TRUNCATE"),
    ("receipts_are_kept", "receipts", "UPDATE OR DELETE OR TRUNCATE"),
    ("effects_are_kept", "effects", "DELETE OR TRUNCATE"),
    (
        "effects_are_not_changed",
        "effects",
        "UPDATE OF tenant_id, project_id, run_id, sequence, receipt_id, receipt, accept_time",
    ),
)


def upgrade() -> None:
    """Apply it. There is no way back: what was written stays."""
    create_resource()
    create_records()
    create_receipts()
    create_counters_and_claims()
    create_effects()
    create_triggers()


def identifier(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(collation="C"), nullable=null)


def plain(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def time(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def scope() -> tuple[sa.Column[Any], ...]:
    return identifier("tenant_id"), identifier("project_id")


def known(table: str, column: str, values: tuple[str, ...]) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}_known")


def snapshot(table: str) -> tuple[sa.Column[Any] | sa.CheckConstraint, ...]:
    return (
        identifier("record_id"),
        sa.Column("revision", sa.Integer(), nullable=False),
        identifier("revision_id"),
        identifier("previous_revision_id", null=True),
        identifier("agent_id"),
        plain("kind"),
        plain("type"),
        plain("title", null=True),
        plain("content"),
        plain("rationale", null=True),
        sa.Column("importance", sa.Double(), nullable=False),
        sa.Column("tags", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("facet", postgresql.JSON(), nullable=True),
        plain("state"),
        plain("trust"),
        identifier("source_run_id", null=True),
        identifier("source_session_id", null=True),
        identifier("promoted_decision_id", null=True),
        identifier("superseded_by_record_id", null=True),
        plain("reason", null=True),
        plain("change_kind", null=True),
        plain("actor_fingerprint", null=True),
        known(table, "kind", KINDS),
        known(table, "state", STATES),
        known(table, "trust", TRUSTS),
        known(table, "change_kind", CHANGE_KINDS),
        sa.CheckConstraint("importance BETWEEN 0 AND 1", name=f"{table}_importance_range"),
        sa.CheckConstraint("revision >= 1", name=f"{table}_revision_range"),
        sa.CheckConstraint(
            "(revision = 1) = (previous_revision_id IS NULL)", name=f"{table}_first_has_no_link"
        ),
        sa.CheckConstraint(f"actor_fingerprint ~ {HEX}", name=f"{table}_actor_fingerprint_form"),
    )


def create_resource() -> None:
    op.create_table(
        "resource",
        sa.Column("single", sa.Boolean(), nullable=False, server_default=sa.text("true")),
        identifier("resource_id"),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        time("create_time"),
        sa.PrimaryKeyConstraint("single", name="resource_pkey"),
        sa.CheckConstraint("single", name="resource_is_single"),
        sa.CheckConstraint("generation >= 1", name="resource_generation_range"),
        schema=SCHEMA,
    )


def create_records() -> None:
    op.create_table(
        "records",
        *scope(),
        *snapshot("records"),
        time("create_time"),
        time("update_time"),
        sa.PrimaryKeyConstraint("tenant_id", "project_id", "record_id", name="records_pkey"),
        schema=SCHEMA,
        # Room on each page for the next version of a head keeps the update out of the index.
        postgresql_with={"fillfactor": 80},
    )
    op.create_table(
        "revisions",
        *scope(),
        *snapshot("revisions"),
        time("create_time"),
        sa.PrimaryKeyConstraint(
            "tenant_id", "project_id", "record_id", "revision", name="revisions_pkey"
        ),
        sa.UniqueConstraint(
            "tenant_id", "project_id", "revision_id", name="revisions_revision_id_key"
        ),
        schema=SCHEMA,
    )


def create_receipts() -> None:
    op.create_table(
        "receipts",
        *scope(),
        plain("actor_fingerprint"),
        identifier("idempotency_key"),
        plain("method"),
        plain("fingerprint"),
        sa.Column("refs", postgresql.JSON(), nullable=False),
        identifier("effect_id", null=True),
        sa.Column("outcome", postgresql.JSON(), nullable=False),
        time("create_time"),
        sa.PrimaryKeyConstraint(
            "tenant_id", "project_id", "actor_fingerprint", "idempotency_key", name="receipts_pkey"
        ),
        sa.CheckConstraint(f"actor_fingerprint ~ {HEX}", name="receipts_actor_fingerprint_form"),
        sa.CheckConstraint(f"fingerprint ~ {HEX}", name="receipts_fingerprint_form"),
        schema=SCHEMA,
    )


def create_counters_and_claims() -> None:
    op.create_table(
        "counters",
        *scope(),
        identifier("name"),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "project_id", "name", name="counters_pkey"),
        sa.CheckConstraint("value >= 1", name="counters_value_range"),
        schema=SCHEMA,
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "claims",
        *scope(),
        identifier("key"),
        identifier("record_id", null=True),
        plain("tombstone_kind", null=True),
        time("tombstone_time", null=True),
        sa.PrimaryKeyConstraint("tenant_id", "project_id", "key", name="claims_pkey"),
        sa.CheckConstraint(
            "num_nonnulls(record_id, tombstone_kind) <= 1", name="claims_one_holder"
        ),
        sa.CheckConstraint(
            "(tombstone_kind IS NULL) = (tombstone_time IS NULL)", name="claims_tombstone_whole"
        ),
        schema=SCHEMA,
        postgresql_with={"fillfactor": 90},
    )


def create_effects() -> None:
    op.create_table(
        "effects",
        *scope(),
        identifier("run_id"),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        identifier("receipt_id"),
        sa.Column("receipt", postgresql.JSON(), nullable=False),
        time("accept_time"),
        sa.Column("delivered", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        plain("lease_token", null=True),
        time("leased_until", null=True),
        plain("last_code", null=True),
        sa.PrimaryKeyConstraint(
            "tenant_id", "project_id", "run_id", "sequence", name="effects_pkey"
        ),
        sa.UniqueConstraint("tenant_id", "project_id", "receipt_id", name="effects_receipt_id_key"),
        sa.CheckConstraint("sequence >= 1", name="effects_sequence_range"),
        schema=SCHEMA,
        postgresql_with={"fillfactor": 80},
    )


def create_triggers() -> None:
    op.execute(
        """
        CREATE FUNCTION memory.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION USING
                ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('%s refuses %s', TG_TABLE_NAME, TG_OP);
        END
        $$
        """
    )
    for name, table, event in KEPT:
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {event} ON {SCHEMA}.{table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION memory.refuse()"
        )
