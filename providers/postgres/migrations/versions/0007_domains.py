"""Hold columns to their values by domains: a session keeps such checks ready, a table's it does not.

No table is written anew. A column changes to a domain that allows everything yet; the check comes
after it, and looks through what is stored. All tables are taken at once, before anything is done:
one after the other, those who use them in another order would wait for each other.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SCHEMA = "memory"
# 64 hex digits. A pattern that counts them takes ten times as long.
HEX = "octet_length(VALUE) = 64 AND VALUE !~ '[^0-9a-f]'"
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
    "superseded",
)


# Who waits for a table keeps all others from it, and after a second one of two who wait for each
# other is ended. So it waits for less, gives back what it has, and tries again for a minute.
TAKE = """
DO $$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    FOR attempt IN 1..100 LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '300ms', true);
            LOCK TABLE memory.records, memory.revisions, memory.receipts IN ACCESS EXCLUSIVE MODE;
            PERFORM set_config('lock_timeout', before, true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(random() * 0.6);
        END;
    END LOOP;
    RAISE EXCEPTION 'records, revisions or receipts were in use all the time; migrate again later';
END
$$
"""


def known(values: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"VALUE IN ({listed})"


# Domain, what it is over, name and condition of its check.
DOMAINS = (
    ("record_kind", "text", "record_kind_known", known(KINDS)),
    ("record_state", "text", "record_state_known", known(STATES)),
    ("record_trust", "text", "record_trust_known", known(TRUSTS)),
    ("change_kind", "text", "change_kind_known", known(CHANGE_KINDS)),
    ("fingerprint", "text", "fingerprint_form", HEX),
    ("unit", "double precision", "unit_range", "VALUE BETWEEN 0 AND 1"),
    ("ordinal", "integer", "ordinal_range", "VALUE >= 1"),
)
# Column, its domain, and how the name of the check ends that goes.
SNAPSHOT = (
    ("kind", "record_kind", "kind_known"),
    ("state", "record_state", "state_known"),
    ("trust", "record_trust", "trust_known"),
    ("change_kind", "change_kind", "change_kind_known"),
    ("importance", "unit", "importance_range"),
    ("revision", "ordinal", "revision_range"),
    ("actor_fingerprint", "fingerprint", "actor_fingerprint_form"),
)
COLUMNS = {
    "records": SNAPSHOT,
    "revisions": SNAPSHOT,
    "receipts": (
        ("actor_fingerprint", "fingerprint", "actor_fingerprint_form"),
        ("fingerprint", "fingerprint", "fingerprint_form"),
    ),
}


def upgrade() -> None:
    """Apply it. There is no way back."""
    op.execute(TAKE)
    for domain, base, _, _ in DOMAINS:
        op.execute(f"CREATE DOMAIN {SCHEMA}.{domain} AS {base}")
    for table, columns in COLUMNS.items():
        dropped = (f"DROP CONSTRAINT IF EXISTS {table}_{check}" for _, _, check in columns)
        typed = (f"ALTER COLUMN {name} TYPE {SCHEMA}.{domain}" for name, domain, _ in columns)
        op.execute(f"ALTER TABLE {SCHEMA}.{table} {', '.join((*dropped, *typed))}")
    for domain, _, check, condition in DOMAINS:
        op.execute(f"ALTER DOMAIN {SCHEMA}.{domain} ADD CONSTRAINT {check} CHECK ({condition})")
    for table in COLUMNS:
        analyse(table)


def analyse(table: str) -> None:
    """Look at the columns again: what was known of them went with their types."""
    filled = sa.text(f"SELECT EXISTS (SELECT FROM {SCHEMA}.{table})")
    if op.get_bind().execute(filled).scalar_one():
        op.execute(f"ANALYZE {SCHEMA}.{table}")
