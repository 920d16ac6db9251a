"""Context candidates: what enters, what never does, in which order, and how much of it."""

import asyncio
from datetime import timedelta
from itertools import product
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import candidates, commit, committed, created, names, trips
from providers.errors import StoredDataInvalidError
from providers.model import (
    Content,
    DeliveryPolicy,
    Kind,
    Record,
    Sensitivity,
    State,
    Trust,
)
from providers.requests import CANDIDATES_BYTES_MAX, CANDIDATES_MAX, Candidates, Committed

SHARED = ("cross-team",)
TURNS = 40


def _session(record_id: str, run_id: str | None = "run-1", **changes: Any) -> Record:
    fields = {"kind": Kind.SESSION_CONTEXT, "trust": Trust.APPROVED, "source_run_id": run_id}
    return specimens.memory(record_id, **{**fields, **changes})


def _theirs(record_id: str, *tags: str, **changes: Any) -> Record:
    fields = {"agent_id": "a2", "trust": Trust.APPROVED, "content": specimens.content(tags=tags)}
    return specimens.memory(record_id, **{**fields, **changes})


@law("K-1", "K-2", "K-3", "K-4", capability=Capability.COMPOSE)
async def candidates_of_one_run(bench: Bench) -> None:
    """004-89: decisions, own and shared memories, this run's context; in this order, no other."""
    project, provider = bench.project(), bench.provider
    early = specimens.START - timedelta(hours=1)
    decision, own = specimens.decision("z-decision", agent_id="a2"), specimens.memory("own")
    shared = _theirs("shared", "x", "Cross-Team", create_time=early)
    session = _session("a-session")
    others = (
        _theirs("private"),
        _theirs("pending", *SHARED, trust=Trust.PENDING),
        _session("other-run", "run-2"),
        _session("no-run", None),
        _session("their-context", agent_id="a2", content=specimens.content(tags=SHARED)),
        specimens.proposal("offer", content=specimens.content(tags=SHARED)),
    )
    await committed(provider, specimens.create(project, session, shared, own, decision, *others))
    wanted = Candidates((decision, own, shared, session))
    expect.equal(await candidates(provider, project, limit=10), wanted, "what may enter")
    elsewhere = await candidates(provider, project, run_id="run-9")
    expect.equal(elsewhere, Candidates((decision, own, shared)), "in a run without a context")
    nobody = await candidates(provider, project, agent_id="nobody")
    expect.equal(nobody, Candidates((decision, shared)), "for an agent that has nothing")
    unstorable: tuple[dict[str, Any], ...] = ({"agent_id": "a1\0"}, {"run_id": "run-1\0"})
    for asked in unstorable:
        got = await candidates(provider, project, **asked)
        expect.equal(got, Candidates(()), f"asking for {asked}")


@law("K-1", "K-2", "K-3", capability=Capability.COMPOSE)
async def only_the_right_state_and_trust_enter(bench: Bench) -> None:
    """004-89: over every kind, state and trust, of this agent and another, shared or not."""
    project, provider = bench.project(), bench.provider
    records: list[Record] = []
    wanted: list[str] = []
    for kind, state, trust in product(Kind, State, Trust):
        for agent_id, tag in product(("a1", "a2"), ("cross-team", "team")):
            name = f"{kind}-{state}-{trust}-{agent_id}-{tag}"
            fields = {"kind": kind, "state": state, "trust": trust, "agent_id": agent_id}
            said = specimens.content(tags=(tag,), type=f"type of {name}")
            made = specimens.memory(name, content=said, source_run_id="run-1", **fields)
            records.append(made)
            rule = {
                Kind.DECISION: trust is Trust.APPROVED,
                Kind.MEMORY: trust in (Trust.PENDING, Trust.APPROVED)
                if agent_id == "a1"
                else trust is Trust.APPROVED and tag == "cross-team",
                Kind.SESSION_CONTEXT: trust is Trust.APPROVED and agent_id == "a1",
                Kind.PROPOSAL: False,
            }
            if state is State.ACTIVE and rule[kind]:
                wanted.append(name)
    await created(provider, project, *records)
    found = names(await candidates(provider, project, limit=len(records)))
    expect.equal(sorted(found), sorted(wanted), "what may enter")


@law("K-1", "K-2", "K-3", "G-1", "G-2", capability=Capability.COMPOSE)
async def candidates_are_of_one_project_agent_and_run(bench: Bench) -> None:
    """004-89, 004-48: nothing of other tenants, of prefixes and other cases, or of other runs."""
    project, provider = bench.project(), bench.provider
    mine = (specimens.decision("decision"), specimens.memory("memory"), _session("session"))
    await committed(provider, specimens.create(project, *mine))
    for agent_id in ("a", "a10", "A1", "a_1", "a%", "b1"):
        theirs = [
            specimens.memory(f"{agent_id}-memory", agent_id=agent_id),
            _theirs(f"{agent_id}-approved", agent_id=agent_id),
            _session(f"{agent_id}-session", agent_id=agent_id),
        ]
        await committed(provider, specimens.create(project, *theirs))
    runs = ("run", "run-10", "RUN-1", "run_1", "run%")
    await committed(provider, specimens.create(project, *(_session(each, each) for each in runs)))
    for elsewhere in (bench.project("p2"), bench.project("p10"), bench.project(tenant_id="t2")):
        far = [specimens.decision("far-decision"), specimens.memory("far"), _session("far-session")]
        shared = _theirs("far-shared", *SHARED)
        await committed(provider, specimens.create(elsewhere, *far, shared))
    expect.equal(await candidates(provider, project), Candidates(mine), "what may enter")
    one_more = await candidates(provider, project, limit=3)
    expect.equal(one_more, Candidates(mine), "what may enter when others would fill the limit")


@law("K-3", capability=Capability.COMPOSE)
async def memories_are_shared_by_one_tag(bench: Bench) -> None:
    """004-89: the tag as a whole in ASCII of any case, among others; nothing that looks like it."""
    project, provider = bench.project(), bench.provider
    sharing = (("cross-team",), ("CROSS-TEAM",), ("a", "cRoSs-TeAm", "b"), ("x", "x", "Cross-team"))
    private = (
        *((), ("cross",), ("team",), ("cross", "team"), ("cross-", "team"), ("crossteam",)),
        *(("cross_team",), ("cross-teams",), ("xcross-team",), (" cross-team",), ("cross-team\n",)),
        *(("cross-team,",), ("cross%",), ("%",), ("{cross-team}",), ("a cross-team b",)),
        *(("cro\u00df-team",), ("cro\u017fs-team",), ("cro\u017f\u017f-team",)),
        *(("cross\u2010team",), ("cross\u2001-team",), ("cross-te\u0430m",)),
        ("\uff43\uff52\uff4f\uff53\uff53-team",),
    )
    shared = [_theirs(f"s{number}", *tags) for number, tags in enumerate(sharing)]
    kept = [_theirs(f"p{number}", *tags) for number, tags in enumerate(private)]
    said = specimens.content("cross-team", type="cross-team", title="cross-team", tags=())
    kept.append(_theirs("said", content=said))
    await committed(provider, specimens.create(project, *shared, *kept))
    found = names(await candidates(provider, project, limit=1000))
    expect.equal(found, [each.current.record_id for each in shared], "what is shared")
    of_theirs = names(await candidates(provider, project, agent_id="a2", limit=1000))
    expect.equal(len(of_theirs), len(shared) + len(kept), "what its own agent gets, each once")


@law("K-1", "K-2", capability=Capability.COMPOSE)
async def candidates_are_not_judged_further(bench: Bench) -> None:
    """004-89: expired, sensitive, flagged, on demand, of any type: that is for the caller."""
    project, provider = bench.project(), bench.provider
    told = specimens.facet(
        expire_time=specimens.START - timedelta(days=900),
        invalidate_time=specimens.START - timedelta(days=900),
        sensitivity=Sensitivity.RESTRICTED,
        delivery_policy=DeliveryPolicy.ON_DEMAND,
        flagged=True,
    )
    said = specimens.content(type="a type that nobody knows", tags=("irrelevant",), importance=0.0)
    records = (
        specimens.decision("d", facet=told, content=said, superseded_by_record_id="absent"),
        specimens.memory("m", facet=told, content=said),
        _session("s", facet=told, content=said),
    )
    await committed(provider, specimens.create(project, *records))
    expect.equal(await candidates(provider, project), Candidates(records), "what may enter")


@law("K-4", capability=Capability.COMPOSE)
async def candidates_come_most_important_first(bench: Bench) -> None:
    """004-89, 004-L1: importance as a number, then the newest, then the id byte for byte."""
    project, provider = bench.project(), bench.provider
    values = (1.0, 1 - 2**-53, 0.9, 0.75, 0.5, 0.3, 0.25, 0.1 + 0.2, 1e-05, 5e-324, 0.0)
    usual, by_value = specimens.content().importance, sorted(values, reverse=True)
    tied = sorted(("B", "a", "Z", "a-b", "a.b", "a_b", "aB", "ab", "10", "9", ":x"), key=str.encode)
    newer, older = (specimens.START + timedelta(microseconds=n) for n in (1, -1))
    wanted: list[str] = []
    records: list[Record] = []
    for part, make in (
        ("d", specimens.decision),
        ("m", specimens.memory),
        ("s", _session),
    ):
        half = [
            make(f"{part}{value!r}", content=specimens.content(importance=value), create_time=older)
            for value in values
        ]
        half.append(make(f"z{part}", create_time=newer))
        half += [make(f"{name}{part}") for name in tied]
        records += half[::-1]
        above = [f"{part}{value!r}" for value in by_value if value > usual]
        below = [f"{part}{value!r}" for value in by_value if value <= usual]
        wanted += [*above, f"z{part}", *sorted(f"{name}{part}" for name in tied), *below]
    shared = [_theirs("0m-shared", *SHARED), _theirs("~m-shared", *SHARED)]
    place = wanted.index("zm") + 1
    middle = sorted([*wanted[place : place + len(tied)], "0m-shared", "~m-shared"])
    wanted[place : place + len(tied)] = middle
    await created(provider, project, *records, *shared)
    everything = await candidates(provider, project, limit=CANDIDATES_MAX)
    expect.equal(names(everything), wanted, "all of them")
    for limit in (1, 2, 20, 24, 30, len(wanted) - 1, len(wanted)):
        got = await candidates(provider, project, limit=limit)
        expect.equal(got, Candidates(everything.records[:limit]), f"the first {limit}")


@law("K-1", "K-2", "K-3", "K-4", capability=Capability.COMPOSE)
async def candidates_follow_the_head(bench: Bench) -> None:
    """004-89: what a revision changes lets a record in, moves it, or takes it out, at once."""
    project, provider, other = bench.project(), bench.provider, await bench.another()
    steps: tuple[tuple[dict[str, Any], bool], ...] = (
        ({}, True),
        ({"trust": Trust.PENDING}, False),
        ({"trust": Trust.APPROVED}, True),
        ({"content": specimens.content(tags=("cross-teams",))}, False),
        ({"content": specimens.content(tags=("CROSS-team",), importance=0.9)}, True),
        ({"state": State.ARCHIVED}, False),
        ({"state": State.ACTIVE, "content": specimens.content(tags=SHARED)}, True),
        ({"state": State.FORGOTTEN}, False),
    )
    still = specimens.memory("still", content=specimens.content(importance=0.7))
    now = _theirs("moving", *SHARED)
    await committed(provider, specimens.create(project, still, now))
    for number, (changes, enters) in enumerate(steps):
        if changes:
            later = specimens.after(now, **changes)
            await committed(other, specimens.write(project, specimens.put(later, over=now)))
            now = later
        first = enters and now.current.content.importance > still.current.content.importance
        wanted = [still, now] if enters else [still]
        got = await candidates(provider, project)
        expect.equal(got, Candidates(tuple(wanted[::-1] if first else wanted)), f"step {number}")


@law("K-5", capability=Capability.COMPOSE)
async def candidates_within_bytes(bench: Bench) -> None:
    """004-89: as many as fit, in UTF-8, from the first on; the first always; and it is told."""
    project, provider = bench.project(), bench.provider
    texts = ("\u77e5\u8b58 \U0001f600", "x" * 400, "y")
    records = tuple(
        specimens.memory(f"r{number}", content=_said(text, 0.5 - number / 10), reason="\u00fc")
        for number, text in enumerate(texts)
    )
    last = _session("s0", content=_said("z", 0.9))
    await committed(provider, specimens.create(project, *records, last))
    everyone = (*records, last)
    sizes = [_size(each) for each in everyone]
    for count in range(1, len(everyone) + 1):
        exact = sum(sizes[:count])
        got = await candidates(provider, project, bytes_max=exact)
        whole = count == len(everyone)
        wanted = Candidates(everyone[:count], truncated_bytes=not whole)
        expect.equal(got, wanted, f"{count} that fit exactly")
        less = await candidates(provider, project, bytes_max=exact - 1)
        fewer = Candidates(everyone[: max(count - 1, 1)], truncated_bytes=True)
        expect.equal(less, fewer, f"{count} that are one byte too many")
    one = await candidates(provider, project, bytes_max=1, limit=1)
    expect.equal(one, Candidates(everyone[:1]), "the first, when no other was asked for")
    two = await candidates(provider, project, bytes_max=sum(sizes[:2]), limit=2)
    expect.equal(two, Candidates(everyone[:2]), "two that fit, when no third was asked for")


def _said(text: str, importance: float) -> Content:
    return specimens.content(
        text, title="\u00fc", rationale="\u1e9e", tags=("\u77e5", "x"), importance=importance
    )


def _size(record: Record) -> int:
    said = record.current.content
    texts = (said.type, said.title, said.content, said.rationale, record.current.reason, *said.tags)
    return sum(len((each or "").encode()) for each in texts)


@law("K-5", capability=Capability.COMPOSE)
async def no_more_than_16_mib_are_sent(bench: Bench) -> None:
    """004-89: without a bound of the caller's, content stops at 16 MiB."""
    project, provider = bench.project(), bench.provider
    parts = -(-CANDIDATES_BYTES_MAX // bench.declaration.sizes.record_bytes)
    share = CANDIDATES_BYTES_MAX // parts
    fields = {"title": None, "tags": (), "type": "note"}
    rest = CANDIDATES_BYTES_MAX - (parts - 1) * share
    sizes = [share] * (parts - 1) + [rest]
    for number, size in enumerate((*sizes, 5)):
        text = "x" * (size - len("note"))
        said = specimens.content(text, importance=1 - number / 1_000, **fields)
        record = specimens.memory(f"r{number}", content=said)
        await committed(provider, specimens.create(project, record))
    got = await candidates(provider, project)
    expect.equal(names(got), [f"r{number}" for number in range(parts)], "what holds 16 MiB")
    expect.equal(sum(map(_size, got.records)), CANDIDATES_BYTES_MAX, "their content")
    expect.that(got.truncated_bytes, "that one more was held back")
    whole = await candidates(provider, project, limit=parts)
    expect.that(not whole.truncated_bytes, "that nothing asked for was held back")


@law("K-6", capability=Capability.COMPOSE)
async def candidates_are_of_one_snapshot(bench: Bench) -> None:
    """004-89: records that are always changed together come as one commit left them."""
    project, provider, writer = bench.project(), bench.provider, await bench.another()
    trio = [specimens.decision("d"), specimens.memory("m"), _session("s")]
    await committed(provider, specimens.create(project, *trio))

    async def update() -> None:
        now = trio
        for turn in range(TURNS):
            importance = 1 / (turn + 2)
            said = specimens.content(f"turn {turn}", importance=importance)
            later = [specimens.after(each, content=said) for each in now]
            puts = [specimens.put(new, over=old) for new, old in zip(later, now, strict=True)]
            outcome = await commit(writer, specimens.write(project, *puts))
            expect.equal(outcome, Committed(), "an update of all")
            now = later
            await asyncio.sleep(0)

    updating = asyncio.create_task(update())
    while not updating.done():
        got = await candidates(provider, project)
        texts = {each.current.content.content for each in got.records}
        expect.equal((names(got), len(texts)), (["d", "m", "s"], 1), "what belongs together")
        await asyncio.sleep(0)
    await updating
    last = {each.current.revision for each in (await candidates(provider, project)).records}
    expect.equal(last, {TURNS + 1}, "the revisions in the end")


@law("K-6", capability=Capability.COMPOSE, facts=(StoreFact.COUNTED,))
async def candidates_are_one_round_trip(bench: Bench) -> None:
    """004-89: candidates cost one trip, however many there are, within the bound or past it."""
    project, provider = bench.project(), bench.provider
    records = [specimens.memory(f"r{number}") for number in range(50)]
    await created(provider, project, *records, _session("s"))
    cases: tuple[tuple[dict[str, Any], int], ...] = (
        ({}, 51),
        ({"limit": 7}, 7),
        ({"bytes_max": 1}, 1),
        ({"agent_id": "nobody"}, 0),
        ({"agent_id": "\0"}, 0),
    )
    await candidates(provider, project)
    for asked, wanted in cases:
        before = bench.round_trips()
        got = await candidates(provider, project, **asked)
        trips(bench, before, "candidates")
        expect.equal(len(got.records), wanted, f"candidates for {asked}")


@law("G-7", capability=Capability.COMPOSE, facts=(StoreFact.CORRUPTIBLE,))
async def damaged_candidate_is_told(bench: Bench) -> None:
    """004-44: where a damaged record might enter it is an error, and not one candidate fewer."""
    project, provider = bench.project(), bench.provider
    damaged = (specimens.decision("d"), specimens.memory("m"), _theirs("t", *SHARED), _session("s"))
    for number, record in enumerate(damaged):
        where = bench.project(f"damaged-{number}")
        await committed(provider, specimens.create(where, record, specimens.memory("good")))
        expect.equal(len((await candidates(provider, where)).records), 2, "before the damage")
        await bench.corrupt(where, record.current.record_id)
        call = candidates(provider, where)
        await expect.raises(call, StoredDataInvalidError, what=f"candidates, {number} damaged")
    expect.equal(await candidates(provider, project), Candidates(()), "of another project")
