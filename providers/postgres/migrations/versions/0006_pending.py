"""Let little of the text index wait to be sorted in: each search walks through what waits."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

KILOBYTES = 512


def upgrade() -> None:
    """Apply it. There is no way back."""
    op.execute(
        f"ALTER INDEX memory.records_search_text SET (gin_pending_list_limit = {KILOBYTES})"
    )
