"""The cases of scoring: what a query lets in, and in which order. 004-94, 000-06."""

from dataclasses import dataclass, field
from typing import Any

from providers.model import DeliveryPolicy, MemoryFacet, Record
from tests.fixtures.candidates import always, decision, foreign, memory, note

RETRIEVED = MemoryFacet(delivery_policy=DeliveryPolicy.RETRIEVED)
RELEVANCE = "relevance"


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
