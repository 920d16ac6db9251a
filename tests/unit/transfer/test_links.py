"""Where the links of a bundle lead: decisions of the agent, and never, at any time, in a circle."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from broker.domain.errors import ReplacementCycleError, ReplacementInvalidError
from broker.transfer.bundle import Bundle, Chain
from broker.transfer.links import check_links, judged_links, links_of
from providers.conformance import specimens
from providers.model import Kind, Record, Revision, State
from tests.fixtures.bundles import START

MINUTE: Final = timedelta(minutes=1)
Step = tuple[float, str | None]
"""When a revision was made, in minutes, and what it names as its replacement."""


def chain(record_id: str, *steps: Step) -> Chain:
    """Return a decision with one revision for each step."""
    made: list[Revision] = []
    for number, (minute, target) in enumerate(steps, start=1):
        made.append(
            replace(
                specimens.decision(record_id).current,
                revision=number,
                revision_id=f"{record_id}.{number}",
                previous_revision_id=made[-1].revision_id if made else None,
                state=State.ACTIVE if target is None else State.SUPERSEDED,
                superseded_by_record_id=target,
                create_time=START + minute * MINUTE,
            )
        )
    return Chain(Record(made[-1], made[0].create_time), tuple(made))


def bundle(chains: Sequence[Chain]) -> Bundle:
    """Return a bundle of these."""
    agent = chains[0].record.current.agent_id
    return Bundle("p", agent, tuple(chains))


def judge(made: Bundle, there: dict[str, Record]) -> None:
    """Judge the links of a bundle by itself, then by what is there."""
    check_links(made, judged_links(made), there)


LEGAL: Final[dict[str, list[Chain]]] = {
    "no links": [chain("a", (0, None))],
    "one": [chain("a", (0, None), (1, "b")), chain("b", (0, None))],
    "restored before the other way round": [
        chain("a", (0, None), (1, "b"), (2, None)),
        chain("b", (0, None), (3, "a")),
    ],
    "restored at the very time": [
        chain("a", (0, None), (1, "b"), (2, None)),
        chain("b", (0, None), (2, "a")),
    ],
    "there, back and there again": [
        chain("a", (0, None), (1, "b"), (2, None), (5, "b")),
        chain("b", (0, None), (3, "a"), (4, None)),
    ],
    "a diamond": [
        chain("a", (0, None), (1, "b"), (2, None), (3, "c")),
        chain("b", (0, None), (4, "d")),
        chain("c", (0, None), (5, "d")),
        chain("d", (0, None)),
    ],
    "a ring that was never closed": [
        chain("a", (0, None), (1, "b"), (2, None)),
        chain("b", (0, None), (3, "c")),
        chain("c", (0, None), (4, "a")),
    ],
    "a chain of 25": [
        *(chain(f"r{n}", (0, None), (1, f"r{n + 1}")) for n in range(24)),
        chain("r24", (0, None)),
    ],
}
CYCLES: Final[dict[str, tuple[list[Chain], int]]] = {
    "of two, for good": (
        [chain("a", (0, None), (1, "b")), chain("b", (0, None), (2, "a"))],
        1,
    ),
    "of two, of one moment": (
        [chain("a", (0, None), (1, "b"), (2, None)), chain("b", (0, None), (1, "a"), (2, None))],
        0,
    ),
    "closed before it was restored": (
        [chain("a", (0, None), (1, "b"), (3, None)), chain("b", (0, None), (2, "a"))],
        1,
    ),
    "over long ago": (
        [chain("a", (0, None), (1, "b"), (3, None)), chain("b", (0, None), (2, "a"), (4, None))],
        1,
    ),
    "where times say nothing": (
        [chain("a", (0, None), (0, "b"), (0, None)), chain("b", (0, None), (0, "a"), (0, None))],
        0,
    ),
    "of three, closed in the middle": (
        [
            chain("a", (0, None), (1, "b")),
            chain("b", (0, None), (3, "c")),
            chain("c", (0, None), (2, "a")),
        ],
        1,
    ),
    "beside a tail": (
        [
            chain("t", (0, None), (1, "a")),
            chain("a", (0, None), (2, "b")),
            chain("b", (0, None), (3, "a")),
        ],
        2,
    ),
    "of 25": (
        [chain(f"r{n:02}", (0, None), (1 + n, f"r{(n + 1) % 25:02}")) for n in range(25)],
        24,
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_no_cycle_is(name: str) -> None:
    """004-58, 004-87: a link that was taken back leaves the way free."""
    judge(bundle(LEGAL[name]), {})


@pytest.mark.parametrize("name", CYCLES)
def test_what_a_cycle_is(name: str) -> None:
    """004-87: told at the link that closed it, wherever in a history; the order means nothing."""
    chains, closing = CYCLES[name]
    path = rf"bundle.records\[{closing}\].revisions\[1\].superseded_by_record_id"
    with pytest.raises(ReplacementCycleError, match=path) as refused:
        judge(bundle(chains), {})
    assert refused.value.metadata == {"index": str(closing)}
    with pytest.raises(ReplacementCycleError):
        judge(bundle(chains[::-1]), {})


# -------------------- out of the bundle

AWAY: Final = [chain("a", (0, None), (1, "x"), (2, None))]


def stored(**changes: Any) -> dict[str, Record]:
    """Return what the store has under the id ``x``."""
    record = specimens.decision("x")
    current: Revision = replace(record.current, **changes)
    return {"x": replace(record, current=current)}


def test_a_decision_of_the_store() -> None:
    """004-87: whatever its state, as long as it was not forgotten."""
    assert judged_links(bundle(AWAY)).outside == ("x",)
    judge(bundle(AWAY), stored())
    judge(bundle(AWAY), stored(state=State.ARCHIVED))


@pytest.mark.parametrize(
    "changes",
    [
        None,
        {"agent_id": "another"},
        {"kind": Kind.MEMORY},
        {"kind": Kind.PROPOSAL},
        {"state": State.FORGOTTEN},
    ],
)
def test_no_decision_of_the_agent(changes: dict[str, Any] | None) -> None:
    """004-87, C14: absent, foreign, another kind or forgotten: one answer."""
    known = {} if changes is None else stored(**changes)
    with pytest.raises(ReplacementInvalidError, match=r"records\[0\]\.revisions\[1\]") as refused:
        judge(bundle(AWAY), known)
    assert refused.value.metadata == {"index": "0"}


def test_a_memory_of_the_bundle() -> None:
    """004-57, 004-87: a decision is not replaced by a memory."""
    memory = specimens.memory("b")
    chains = [chain("a", (0, None), (1, "b")), Chain(memory, (memory.current,))]
    with pytest.raises(ReplacementInvalidError):
        judge(bundle(chains), {})


def test_every_target_once() -> None:
    """004-87: what is loaded for an import."""
    chains = [
        chain("a", (0, None), (1, "x"), (2, None), (3, "y")),
        chain("b", (0, None), (1, "a"), (2, None), (3, "x")),
    ]
    assert judged_links(bundle(chains)).outside == ("x", "y")
    assert [(link.source, link.target) for link in links_of(bundle(chains))] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "a"),
        ("b", "x"),
    ]
