"""The counters of a project, and which of them a write set expects to stand where (C-12, C-13)."""

from providers.model import WriteSet

GRAPH = "graph"
TRANSFER = "transfer"


def stream(run_id: str) -> str:
    """Return the name of the counter of a run's effect stream."""
    return f"stream/{run_id}"


def expected_counters(write_set: WriteSet) -> dict[str, int | None]:
    """Return the counters that a commit advances by one each, and what it expects of them.

    ``None``: any value will do.
    """
    expected: dict[str, int | None] = {}
    if write_set.graph_expected is not None:
        expected[GRAPH] = write_set.graph_expected
    if write_set.effect is not None:
        expected[stream(write_set.effect.run_id)] = write_set.effect.sequence - 1
    if write_set.transfer_expected is not None or write_set.tombstones:
        expected[TRANSFER] = write_set.transfer_expected
    return expected
