"""What may be given back, and what never is, by words, by a vector and by tags alike."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.recall_steps import (
    Remembered,
    followed,
    listed,
    matched,
    near,
    recalled,
    remembered,
    tagged,
)
from providers.entries import RecallEntry
from providers.model import (
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    ProjectKey,
    Record,
    Sensitivity,
    State,
    Trust,
)
from providers.recall import Superseded

MOMENT = timedelta(microseconds=1)
START = specimens.START
HERE = specimens.vector(1.0, 0.0)


def _entry(bench: Bench) -> RecallEntry:
    """Make an entry for every arm that this backend has."""
    vectors = Capability.VECTORS in bench.declaration.capabilities
    return specimens.entry("java", vector=HERE if vectors else None)


def _with(bench: Bench, records: Iterable[Record]) -> list[Remembered]:
    return [(each, _entry(bench)) for each in records]


def _memory(record_id: str, facet: MemoryFacet | None = None, **changes: Any) -> Record:
    return specimens.memory(record_id, facet=facet, **changes)


async def _expect(
    bench: Bench,
    wanted: Iterable[str],
    what: str,
    *,
    project: ProjectKey | None = None,
    **asked: Any,
) -> None:
    """Expect every arm to give back just these."""
    where, names = project or bench.project(), sorted(wanted)
    got = await recalled(bench.provider, where, "java", **asked)
    expect.equal(matched(got), names, f"{what}: matches")
    found = await tagged(bench.provider, where, **asked)
    expect.equal((sorted(listed(found)), found.more), (names, False), f"{what}: by tags")
    if Capability.VECTORS in bench.declaration.capabilities:
        nearest = await recalled(bench.provider, where, vector=HERE, **asked)
        expect.equal(sorted(near(nearest)), names, f"{what}: nearest")


@law("Q-1", "B-1", capability=Capability.RECALL)
async def superseded_rejected_expired_forgotten_absent_from_every_arm(bench: Bench) -> None:
    """000-22, 000-24, 001-09, 001-23: over every kind, state and trust, with an end or without."""
    project, now = bench.project(), START + timedelta(hours=2)
    past, coming = START + timedelta(hours=1), START + timedelta(hours=3)
    ends = {
        "open": None,
        "ends-later": MemoryFacet(expire_time=coming, invalidate_time=coming),
        "expired": MemoryFacet(expire_time=past),
        "invalidated": MemoryFacet(invalidate_time=past),
    }
    made: dict[str, dict[str, Any]] = {
        f"{kind}-{state}-{trust}-{end}": {
            "kind": kind,
            "state": state,
            "trust": trust,
            "facet": facet,
        }
        for kind, state, trust in product(Kind, State, Trust)
        for end, facet in ends.items()
        if Kind.MEMORY is kind or end == "open"
    }
    records = [specimens.memory(name, **fields) for name, fields in made.items()]
    await remembered(bench.provider, project, *_with(bench, records))
    for superseded, states, dead in (
        (Superseded.NONE, {State.ACTIVE}, {"expired", "invalidated"}),
        (Superseded.VALID, {State.ACTIVE, State.SUPERSEDED}, {"expired", "invalidated"}),
        (Superseded.ALL, {State.ACTIVE, State.SUPERSEDED}, {"expired"}),
    ):
        wanted = [
            name
            for name, of in made.items()
            if of["kind"] is Kind.MEMORY
            and of["state"] in states
            and of["trust"] in (Trust.PENDING, Trust.APPROVED)
            and not any(name.endswith(f"-{end}") for end in dead)
        ]
        await _expect(bench, wanted, f"superseded {superseded}", superseded=superseded, at=now)


@law("Q-1", "Q-10", "B-1", capability=Capability.RECALL)
async def what_a_revision_ends_is_gone_at_once(bench: Bench) -> None:
    """000-22, 003-05: superseded, rejected, forgotten, expired: the next call gives it no more."""
    project, provider = bench.project(), bench.provider
    over = MemoryFacet(invalidate_time=START, invalidation_reason="superseded")
    endings: dict[str, dict[str, Any]] = {
        "superseded": {"state": State.SUPERSEDED, "facet": over},
        "rejected": {"state": State.REJECTED, "trust": Trust.REJECTED},
        "distrusted": {"trust": Trust.REJECTED},
        "forgotten": {"state": State.FORGOTTEN},
        "archived": {"state": State.ARCHIVED},
        "expired": {"facet": MemoryFacet(expire_time=START)},
        "invalidated": {"facet": over},
    }
    heads = {name: _memory(name) for name in (*endings, "kept")}
    await remembered(provider, project, *_with(bench, heads.values()))
    left = set(heads)
    await _expect(bench, left, "before anything ends")
    for name, changes in endings.items():
        await followed(provider, project, heads[name], **changes)
        left.discard(name)
        await _expect(bench, left, f"once {name}")
    every = await recalled(provider, project, "java", superseded=Superseded.ALL)
    expect.equal(matched(every), ["invalidated", "kept", "superseded"], "all of them")


@law("Q-1", "B-1", capability=Capability.RECALL)
async def the_very_moment_of_expiry_is_expired(bench: Bench) -> None:
    """000-10, 002-20: to the microsecond, in any zone, and for ends beyond any calendar."""
    project = bench.project()
    last = datetime.max.replace(tzinfo=UTC)
    ends = {f"r{n}": START + timedelta(hours=1) + n * MOMENT for n in range(3)}
    records = [_memory(name, MemoryFacet(expire_time=end)) for name, end in ends.items()]
    records += [_memory("last", MemoryFacet(expire_time=last)), _memory("never")]
    await remembered(bench.provider, project, *_with(bench, records))
    east = timezone(timedelta(hours=9))
    for at in (*ends.values(), ends["r0"] - MOMENT, last - MOMENT):
        wanted = [*(name for name, end in ends.items() if at < end), "last", "never"]
        await _expect(bench, wanted, f"at {at}", at=at)
        if at.year < last.year:
            await _expect(bench, wanted, f"at {at} in the east", at=at.astimezone(east))
    await _expect(bench, ["never"], "at the last moment", at=last)


@law("Q-1", "B-1", capability=Capability.RECALL)
async def as_of_a_time_is_what_was_in_use_then(bench: Bench) -> None:
    """002-20: created then or before, not yet invalidated; the old one until the new one came."""
    project, provider = bench.project(), bench.provider
    changed = START + timedelta(minutes=10)
    old = _memory("old")
    await remembered(provider, project, (old, _entry(bench)))
    ended = MemoryFacet(invalidate_time=changed, invalidation_reason="superseded")
    await followed(provider, project, old, state=State.SUPERSEDED, facet=ended, create_time=changed)
    new = _memory("new", create_time=changed)
    kept = _memory("kept", create_time=START - timedelta(days=1))
    await remembered(provider, project, *_with(bench, [new, kept]))
    await followed(provider, project, kept, create_time=changed + timedelta(days=1))
    for superseded, at, wanted in (
        (Superseded.VALID, START - MOMENT, ["kept"]),
        (Superseded.VALID, START, ["kept", "old"]),
        (Superseded.VALID, changed - MOMENT, ["kept", "old"]),
        (Superseded.VALID, changed, ["kept", "new"]),
        (Superseded.NONE, changed - MOMENT, ["kept"]),
        (Superseded.NONE, changed, ["kept", "new"]),
        (Superseded.ALL, changed - MOMENT, ["kept", "old"]),
        (Superseded.ALL, changed, ["kept", "new", "old"]),
        (Superseded.ALL, START - timedelta(days=1) - MOMENT, []),
    ):
        await _expect(bench, wanted, f"{superseded} at {at}", superseded=superseded, at=at)


_FACETS: dict[str, MemoryFacet | None] = {
    "bare": None,
    "empty": MemoryFacet(),
    "team": MemoryFacet(
        namespace="team/a",
        memory_kind=MemoryKind.FACT,
        subject="Build %",
        epoch="q1",
        sensitivity=Sensitivity.PUBLIC,
        origin_tier=OriginTier.OPERATOR,
    ),
    "other": MemoryFacet(
        namespace="team/A",
        memory_kind=MemoryKind.NOTE,
        subject="build %",
        epoch="Q1",
        sensitivity=Sensitivity.SENSITIVE,
        origin_tier=OriginTier.AGENT,
    ),
    "secret": MemoryFacet(
        namespace="team",
        memory_kind=MemoryKind.EPISODE,
        subject="Build x",
        epoch="q11",
        sensitivity=Sensitivity.RESTRICTED,
        origin_tier=OriginTier.EXTERNAL,
    ),
    "inner": MemoryFacet(namespace="", sensitivity=Sensitivity.INTERNAL),
}
_UNSAID = ["bare", "empty", "inner"]
_FILTERS: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({}, [*_FACETS]),
    ({"namespaces": frozenset({"team/a"})}, ["team"]),
    ({"namespaces": frozenset({""})}, _UNSAID),
    ({"namespaces": frozenset({"", "team/A", "team", "none"})}, [*_UNSAID, "other", "secret"]),
    ({"namespaces": frozenset({"team/%", "team/_", "*"})}, []),
    ({"namespaces": frozenset({"\0"})}, []),
    ({"memory_kinds": frozenset({MemoryKind.FACT})}, ["team"]),
    ({"memory_kinds": frozenset({MemoryKind.NOTE, MemoryKind.EPISODE})}, ["other", "secret"]),
    ({"memory_kinds": frozenset(MemoryKind)}, ["team", "other", "secret"]),
    ({"subject": "Build %"}, ["team"]),
    ({"subject": "build %"}, ["other"]),
    ({"subject": ""}, []),
    ({"subject": "Build\0"}, []),
    ({"epoch": "q1"}, ["team"]),
    ({"epoch": "\0"}, []),
    ({"ceiling": Sensitivity.PUBLIC}, ["team"]),
    ({"ceiling": Sensitivity.INTERNAL}, [*_UNSAID, "team"]),
    ({"ceiling": Sensitivity.SENSITIVE}, [*_UNSAID, "team", "other"]),
    ({"lowest_tier": OriginTier.AGENT}, ["team", "other"]),
    ({"lowest_tier": OriginTier.OPERATOR}, ["team"]),
    ({"epoch": "q1", "lowest_tier": OriginTier.OPERATOR, "subject": "Build %"}, ["team"]),
    ({"epoch": "q1", "subject": "Build x"}, []),
    ({"agent_id": "a"}, []),
    ({"agent_id": "a1\0"}, []),
)


@law("Q-2", "B-1", capability=Capability.RECALL)
async def every_filter_acts_on_every_arm(bench: Bench) -> None:
    """000-42, 000-45, 002-20: byte for byte; what has no tier is external, no label internal."""
    project = bench.project()
    records = [_memory(name, facet) for name, facet in _FACETS.items()]
    await remembered(bench.provider, project, *_with(bench, records))
    for asked, wanted in _FILTERS:
        await _expect(bench, wanted, f"asking {asked}", **asked)


@law("Q-2", "B-1", capability=Capability.RECALL)
async def importance_is_a_floor(bench: Bench) -> None:
    """003-02: compared as a number, the bound included."""
    project = bench.project()
    values = (0.0, 5e-324, 1e-05, 0.25, 0.3, 0.1 + 0.2, 0.5, 1 - 2**-53, 1.0)
    records = [
        _memory(f"r{value!r}", content=specimens.content(importance=value)) for value in values
    ]
    await remembered(bench.provider, project, *_with(bench, records))
    for low in (*values, -1.0, 2.0):
        wanted = [f"r{value!r}" for value in values if value >= low]
        await _expect(bench, wanted, f"from {low}", importance_min=low)


_TAGS: dict[str, tuple[str, ...]] = {
    "none": (),
    "plain": ("build", "java"),
    "capital": ("BUILD",),
    "longer": ("builds",),
    "path": ("team/build", "a.b"),
    "wild": ("a*b", "50%", "x_y"),
    "like": ("axb", "50x", "xzy"),
    "accent": ("caf\u00e9", "stra\u00dfe"),
    "spelt": ("cafe\u0301", "STRASSE"),
    "other": ("\u77e5\u8b58", "\U0001f600", "[ab]", "back\\slash"),
}
_ASKED: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"tags": ("build",)}, ["plain", "capital"]),
    ({"tags": ("Java", "BUILD")}, ["plain"]),
    ({"tags": ("build", "builds")}, []),
    ({"tags": ("a*b",)}, ["wild"]),
    ({"tags": ("caf\u00e9",)}, ["accent", "spelt"]),
    ({"tags": ("strasse",)}, ["accent", "spelt"]),
    ({"tags": ("\0",)}, []),
    ({"tags": ("\ud800",)}, []),
    ({"patterns": ("build",)}, ["plain", "capital"]),
    ({"patterns": ("Build*",)}, ["plain", "capital", "longer"]),
    ({"patterns": ("build?",)}, ["longer"]),
    ({"patterns": ("*build",)}, ["plain", "capital", "path"]),
    ({"patterns": ("*",)}, [name for name in _TAGS if name != "none"]),
    ({"patterns": ("?",)}, ["other"]),
    ({"patterns": ("??",)}, ["other"]),
    ({"patterns": ("50%",)}, ["wild"]),
    ({"patterns": ("x_y",)}, ["wild"]),
    ({"patterns": ("a*b",)}, ["wild", "like", "path"]),
    ({"patterns": ("a.b",)}, ["path"]),
    ({"patterns": ("[ab]",)}, ["other"]),
    ({"patterns": ("*\\*",)}, ["other"]),
    ({"patterns": ("back\\slash",)}, ["other"]),
    ({"patterns": ("\u77e5*",)}, ["other"]),
    ({"patterns": ("caf?",)}, ["accent", "spelt"]),
    ({"patterns": ("stra??e", "nothing*")}, ["accent", "spelt"]),
    ({"patterns": ("*build*java*",)}, []),
    ({"patterns": ("",)}, []),
    ({"patterns": ("\0",)}, []),
    ({"patterns": ("build*", "a?b"), "tags": ("java",)}, ["plain"]),
    ({"patterns": ("50*",), "tags": ("x_y", "a*b")}, ["wild"]),
)


@law("Q-2", "B-2", capability=Capability.RECALL)
async def tags_and_patterns_filter(bench: Bench) -> None:
    """003-04, 001-27: all of the tags, any of the patterns; two wildcards and no other."""
    project = bench.project()
    records = [_memory(name, content=specimens.content(tags=tags)) for name, tags in _TAGS.items()]
    await remembered(bench.provider, project, *_with(bench, records))
    for asked, wanted in _ASKED:
        await _expect(bench, wanted, f"asking {asked}", **asked)
    many = tuple(f"nothing{n}" for n in range(31))
    await _expect(bench, ["longer"], "32 patterns", patterns=(*many, "builds"))
    stars = "*a" * 30 + "*b"
    await _expect(bench, [], "a pattern of many stars", patterns=(stars,))
