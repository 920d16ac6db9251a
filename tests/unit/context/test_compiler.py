"""Which candidates enter, in which order, and what is told of the others: a table of cases.

Requirements 004-89 to 004-97, 000-06, 000-33, R19.
"""

from datetime import timedelta

import pytest

from providers.model import DeliveryPolicy, MemoryFacet, Trust
from tests.fixtures.candidates import (
    NOW,
    TICK,
    always,
    compiled,
    decision,
    entered,
    foreign,
    left_out,
    memory,
    note,
    sensitivity,
    tier,
)
from tests.unit.context.scoring_cases import QUEUE, RETRIEVED, SCORING, Case

ON_DEMAND = MemoryFacet(delivery_policy=DeliveryPolicy.ON_DEMAND)


def expires(after: timedelta) -> MemoryFacet:
    return MemoryFacet(expire_time=NOW + after)


ORDER = (
    Case(
        "relevance before importance",
        (memory("high", tags=("queue",), importance=0.9), memory("low", tags=("queue", "worker"))),
        ["low", "high"],
        [],
        QUEUE,
    ),
    Case(
        "importance is a number: high, medium, low, which no order of letters gives (004-L1)",
        (
            memory("medium", importance=0.5),
            memory("low", importance=0.25),
            memory("high", importance=0.9, age=9),
        ),
        ["high", "medium", "low"],
    ),
    Case(
        "within a band of importance the younger is first (004-95)",
        (memory("older", importance=1.0, age=1), memory("younger", importance=0.7)),
        ["younger", "older"],
    ),
    Case(
        "bands: 0.4 is medium, 0.39 is low",
        (memory("low", importance=0.39), memory("medium", importance=0.4, age=9)),
        ["medium", "low"],
    ),
    Case(
        "bands: 0.7 is high, 0.69 is medium",
        (memory("medium", importance=0.69), memory("high", importance=0.7, age=9)),
        ["high", "medium"],
    ),
    Case(
        "creation counts, not the last change",
        (memory("m1", age=1), memory("m2", age=2, updated=-9)),
        ["m1", "m2"],
    ),
    Case(
        "at one time: by record id",
        (memory("m2"), memory("m10"), memory("M2")),
        ["M2", "m10", "m2"],
    ),
    Case(
        "decisions: the oldest first, then by id (004-92)",
        (decision("d1"), decision("d3", age=5), decision("d2", age=5)),
        ["d2", "d3", "d1"],
    ),
    Case(
        "decisions, memories, the session note",
        (note("a"), memory("b"), decision("c")),
        ["c", "b", "a"],
    ),
    Case(
        "the session note created last, however late another was changed",
        (note("s1", age=5, updated=-9), note("s2", age=1), note("s3", age=3)),
        ["s2"],
    ),
    Case(
        "of session notes of one time the one changed last",
        (note("s1", age=5, updated=4), note("s2", age=5, updated=3)),
        ["s2"],
    ),
)

KEPT_OUT = (
    Case("on_demand never enters (000-06)", (memory("m1", facet=ON_DEMAND), memory("m2")), ["m2"]),
    Case("on_demand also as a session note", (note("s1", facet=ON_DEMAND),), []),
    Case("on_demand does not unbind a decision", (decision("d1", facet=ON_DEMAND),), ["d1"]),
    Case("expired a tick ago", (memory("m1", facet=expires(-TICK)),), []),
    Case("expired just now", (memory("m1", facet=expires(timedelta(0))),), []),
    Case("expires in a tick", (memory("m1", facet=expires(TICK)),), ["m1"]),
    Case("always expires, too (000-30)", (memory("m1", facet=always(expire_time=NOW)),), []),
    Case("an expired decision", (decision("d1", facet=expires(-TICK)),), []),
    Case(
        "an expired session note leaves the place to the one before",
        (note("s1", facet=expires(-TICK)), note("s2", age=9)),
        ["s2"],
    ),
    Case("out of use", (memory("m1", facet=MemoryFacet(invalidate_time=NOW)),), []),
    Case("own pending enters", (memory("m1", trust=Trust.PENDING),), ["m1"]),
    Case(
        "own pending enters where it is asked for",
        (memory("m1", trust=Trust.PENDING),),
        ["m1"],
        asked={"include_pending": True},
    ),
    Case(
        "own pending stays out where it is not wanted",
        (memory("m1", trust=Trust.PENDING), memory("m2")),
        ["m2"],
        asked={"include_pending": False},
    ),
    Case(
        "pending and always stays out as well",
        (memory("m1", trust=Trust.PENDING, facet=always()),),
        [],
        asked={"include_pending": False},
    ),
    Case(
        "a lowest tier: operator, agent, external, none",
        (
            memory("m1", facet=tier("operator")),
            memory("m2", facet=tier("agent"), age=1),
            memory("m3", facet=tier("external")),
            memory("m4"),
        ),
        ["m1", "m2"],
        asked={"min_origin_tier": tier("agent").origin_tier},
    ),
    Case(
        "the lowest tier of all keeps nothing out",
        (memory("m1", facet=tier("external")), memory("m2", age=1)),
        ["m1", "m2"],
        asked={"min_origin_tier": tier("external").origin_tier},
    ),
    Case(
        "a lowest tier is for memories",
        (decision("d1"), note("s1"), memory("m1")),
        ["d1", "s1"],
        asked={"min_origin_tier": tier("operator").origin_tier},
    ),
    Case(
        "namespaces: those named, letter for letter (000-33)",
        (
            memory("m1", facet=MemoryFacet(namespace="a")),
            memory("m2", facet=MemoryFacet(namespace="A")),
            memory("m3"),
        ),
        ["m1"],
        asked={"namespaces": ("a", "b")},
    ),
    Case(
        "an empty namespace: those without one",
        (
            memory("m1", facet=MemoryFacet(namespace="a")),
            memory("m2"),
            memory("m3", facet=RETRIEVED),
        ),
        ["m2", "m3"],
        asked={"namespaces": ("",)},
    ),
    Case(
        "namespaces are for memories",
        (decision("d1"), note("s1")),
        ["d1", "s1"],
        asked={"namespaces": ("a",)},
    ),
    Case(
        "a ceiling of internal: what says nothing is internal (R19)",
        (
            memory("m1", facet=sensitivity("public")),
            memory("m2", facet=sensitivity("internal"), age=1),
            memory("m3", age=2),
            memory("m4", facet=sensitivity("sensitive")),
        ),
        ["m1", "m2", "m3"],
        asked={"sensitivity_ceiling": sensitivity("internal").sensitivity},
    ),
    Case(
        "a ceiling of public keeps out what says nothing",
        (memory("m1", facet=sensitivity("public")), memory("m2")),
        ["m1"],
        asked={"sensitivity_ceiling": sensitivity("public").sensitivity},
    ),
    Case("no ceiling: all", (memory("m1", facet=sensitivity("restricted")),), ["m1"]),
    Case(
        "a ceiling holds for decisions and the session note",
        (
            decision("d1", facet=sensitivity("restricted")),
            note("s1", facet=sensitivity("sensitive")),
        ),
        [],
        asked={"sensitivity_ceiling": sensitivity("internal").sensitivity},
    ),
    Case("cross-team in any case of letters", (foreign("m1", tags=("Cross-TEAM",)),), ["m1"]),
    Case(
        "own before others only by rank",
        (memory("m1", age=1), foreign("m2"), foreign("m3", agent="agent-3", age=2)),
        ["m2", "m1", "m3"],
    ),
    Case("decisions of any agent", (decision("d1", agent="agent-2"),), ["d1"]),
    Case("memories of any run", (memory("m1", run="run-2"), memory("m2", run=None)), ["m1", "m2"]),
    Case("nothing at all", (), []),
)

TABLE = SCORING + ORDER + KEPT_OUT


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_what_enters(case: Case, turned: bool) -> None:
    """004-89 to 004-97: the table; a provider's order does not matter."""
    context = compiled(*(case.records[::-1] if turned else case.records), **case.asked)
    assert (entered(context), left_out(context)) == (case.enter, case.left)
    assert [cause.value for cause in context.causes] == sorted({cause for _, cause in case.left})
    assert context.omitted_memory_count == len(case.left)
    assert (context.text is None) == (not case.enter and not case.left)


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 60
    assert len({case.name for case in TABLE}) == len(TABLE)
