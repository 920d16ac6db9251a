"""Index what may enter the context of a run: each part by itself, most important first."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

OURS = "COLLATE memory.candidate_order"
ACTIVE = "state NOT IN ('pending', 'archived', 'superseded', 'rejected', 'promoted', 'forgotten')"
APPROVED = "trust NOT IN ('pending', 'rejected', 'legacy')"
SHARED = "strpos(search_text, U&'\\2001cross-team\\2001') > 0"
PARTS = (
    (
        "records_decision_candidates",
        ("tenant_id", "project_id"),
        f"kind = 'decision' AND {ACTIVE} AND {APPROVED}",
    ),
    (
        "records_memory_candidates",
        ("tenant_id", "project_id", "agent_id"),
        f"kind = 'memory' AND {ACTIVE} AND trust NOT IN ('rejected', 'legacy')",
    ),
    (
        "records_shared_candidates",
        ("tenant_id", "project_id"),
        f"(kind = 'memory' AND {ACTIVE} AND {APPROVED} AND {SHARED}) IS TRUE",
    ),
    (
        "records_session_candidates",
        ("tenant_id", "project_id", "agent_id", "source_run_id"),
        f"kind = 'session_context' AND {ACTIVE} AND {APPROVED}",
    ),
)


def upgrade() -> None:
    """Apply it. There is no way back."""
    # Sorts as C does and is none of the collations that other indexes have.
    op.execute("CREATE COLLATION memory.candidate_order (provider = libc, locale = 'C')")
    for name, scope, condition in PARTS:
        keys = ", ".join(f"{each} {OURS}" for each in scope)
        op.execute(
            f"CREATE INDEX {name} ON memory.records"
            f" ({keys}, importance DESC, update_time DESC, record_id {OURS}) WHERE {condition}"
        )
