"""Which candidates enter, in which order, and what is told of the others: a table of cases.

Requirements 004-89 to 004-97, 000-06, 000-33, R19.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from providers.model import DeliveryPolicy, MemoryFacet, Record, Trust
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

ON_DEMAND = MemoryFacet(delivery_policy=DeliveryPolicy.ON_DEMAND)
RETRIEVED = MemoryFacet(delivery_policy=DeliveryPolicy.RETRIEVED)
RELEVANCE = "relevance"


def expires(after: timedelta) -> MemoryFacet:
    return MemoryFacet(expire_time=NOW + after)


@dataclass(frozen=True)
class Case:
    """Candidates and a request; what enters, in order; what is left out, in order, and why."""

    name: str
    records: tuple[Record, ...]
    enter: list[str]
    left: list[tuple[str, str]] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)


def q(text: str, **more: Any) -> dict[str, Any]:
    return {"query": text} | more


QUEUE = q("queue worker retry")

SCORING = (
    Case("no query: nothing is judged (004-94)", (memory("m1", text="elephants"),), ["m1"]),
    Case("no query: irrelevant enters", (memory("m1", tags=("irrelevant",)),), ["m1"]),
    Case(
        "empty query counts as given: irrelevant stays out",
        (memory("m1", tags=("irrelevant",)), memory("m2")),
        ["m2"],
        [("m1", RELEVANCE)],
        q(""),
    ),
    Case(
        "empty query keeps nothing else out", (memory("m1", text="elephants"),), ["m1"], [], q("")
    ),
    Case("a query of stop words is as empty", (memory("m1"),), ["m1"], [], q("this agent")),
    Case("a query of short words is as empty", (memory("m1"),), ["m1"], [], q("a to it")),
    Case(
        "irrelevant in any case of letters, also where words match",
        (memory("m1", tags=("IrRelevant", "queue")),),
        [],
        [("m1", RELEVANCE)],
        QUEUE,
    ),
    Case("no match: left out", (memory("m1"),), [], [("m1", RELEVANCE)], QUEUE),
    Case(
        "one match in the content counts nothing",
        (memory("m1", text="one queue"),),
        [],
        [("m1", RELEVANCE)],
        QUEUE,
    ),
    Case(
        "two matches in the content count", (memory("m1", text="queue retry"),), ["m1"], [], QUEUE
    ),
    Case(
        "one word twice is one match",
        (memory("m1", text="queue Queue QUEUE"),),
        [],
        [("m1", RELEVANCE)],
        QUEUE,
    ),
    Case("one match in a tag counts", (memory("m1", tags=("queue",)),), ["m1"], [], QUEUE),
    Case(
        "a title and a type are not looked at",
        (memory("m1", title="queue worker", of_type="queue worker"),),
        [],
        [("m1", RELEVANCE)],
        QUEUE,
    ),
    Case(
        "a tag weighs 2, so that it ties with two content words and beats none",
        (
            memory("content3", text="queue worker retry"),
            memory("tag", tags=("queue",), age=1),
            memory("content2", text="queue worker", age=2),
        ),
        ["content3", "tag", "content2"],
        [],
        QUEUE,
    ),
    Case(
        "a word in two tags counts twice",
        (
            memory("content3", text="queue worker retry"),
            memory("tags", tags=("queue", "the queue"), age=9),
        ),
        ["tags", "content3"],
        [],
        QUEUE,
    ),
    Case(
        "tags and content add up: 2 + 2 before 2 + 0",
        (
            memory("lone", tags=("queue",), text="worker"),
            memory("both", tags=("queue",), text="worker retry", age=9),
        ),
        ["both", "lone"],
        [],
        QUEUE,
    ),
    Case(
        "a tag is split by itself",
        (memory("m1", tags=("queue-of-worker",)), memory("m2", tags=("queue",))),
        ["m1", "m2"],
        [],
        QUEUE,
    ),
    Case(
        "own core counts 1 and is never left out",
        (memory("core", of_type="core_context"), memory("m1", tags=("queue",), age=9)),
        ["m1", "core"],
        [],
        QUEUE,
    ),
    Case(
        "own core counts 1 whatever it matches",
        (
            memory("core", of_type="core_context", tags=("queue", "worker")),
            memory("m1", text="queue worker", age=9),
        ),
        ["m1", "core"],
        [],
        QUEUE,
    ),
    Case(
        "own core tagged irrelevant is left out",
        (memory("core", of_type="core_context", tags=("irrelevant",)),),
        [],
        [("core", RELEVANCE)],
        QUEUE,
    ),
    Case(
        "core of another agent is nothing special",
        (foreign("core", of_type="core_context"),),
        [],
        [("core", RELEVANCE)],
        QUEUE,
    ),
    Case(
        "without words core counts 0, as all do",
        (memory("core", of_type="core_context", age=1), memory("m1")),
        ["m1", "core"],
        [],
        q(""),
    ),
    Case(
        "always enters whatever the query, and first (000-06)",
        (
            memory("m1", tags=("queue", "worker", "retry"), importance=1.0),
            memory("always", facet=always(), importance=0.0, age=9),
        ),
        ["always", "m1"],
        [],
        QUEUE,
    ),
    Case(
        "always enters also where it is tagged irrelevant",
        (memory("m1", facet=always(), tags=("irrelevant",)),),
        ["m1"],
        [],
        QUEUE,
    ),
    Case(
        "always before always: by relevance",
        (memory("m1", facet=always()), memory("m2", facet=always(), tags=("queue",), age=9)),
        ["m2", "m1"],
        [],
        QUEUE,
    ),
    Case(
        "retrieved is judged as what says nothing",
        (memory("m1", facet=RETRIEVED), memory("m2", facet=RETRIEVED, tags=("queue",))),
        ["m2"],
        [("m1", RELEVANCE)],
        QUEUE,
    ),
    Case(
        "decisions and the session note are not judged",
        (decision("d1"), note("s1"), memory("m1")),
        ["d1", "s1"],
        [("m1", RELEVANCE)],
        QUEUE,
    ),
)

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
    Case("always expires, too", (memory("m1", facet=always(expire_time=NOW)),), []),
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
