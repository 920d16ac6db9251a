"""Keep what the events service answered, and index what is to be delivered."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SCHEMA = "memory"
POSIX = 'COLLATE "POSIX"'
BASIC = 'COLLATE "ucs_basic"'


def upgrade() -> None:
    """Apply it. There is no way back."""
    op.add_column("effects", sa.Column("fact_id", sa.Text(collation="C")), schema=SCHEMA)
    op.add_column("effects", sa.Column("fact_sequence", sa.BigInteger()), schema=SCHEMA)
    op.create_check_constraint(
        "effects_acknowledgement_whole",
        "effects",
        "(fact_id IS NULL) = (fact_sequence IS NULL) AND (fact_id IS NULL OR delivered)",
        schema=SCHEMA,
    )
    op.create_check_constraint(
        "effects_fact_sequence_range", "effects", "fact_sequence >= 1", schema=SCHEMA
    )
    op.execute(
        "CREATE TRIGGER effects_stay_delivered BEFORE UPDATE ON memory.effects"
        " FOR EACH ROW WHEN (OLD.delivered) EXECUTE FUNCTION memory.refuse()"
    )
    op.execute(
        f"CREATE INDEX effects_pending ON memory.effects"
        f" (tenant_id {POSIX}, project_id {POSIX}, run_id {POSIX}, sequence) WHERE NOT delivered"
    )
    op.execute(
        f"CREATE INDEX effects_unscoped ON memory.effects (tenant_id {BASIC}, receipt_id {BASIC})"
    )
