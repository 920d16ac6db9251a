"""Remember, recall, forget, through gRPC, over every store."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from broker.api.v1 import memory_service_pb2 as pb
from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.memory_calls import CREATED, SKIPPED, SUPERSEDED, Agent
from tests.fixtures.record_calls import (
    ARCHIVE,
    CREATE,
    REJECT,
    REOPEN,
    RESTORE,
    UNARCHIVE,
    UPDATE,
    Refused,
)

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

TEA: Final = "Mira drinks green tea every morning before work"
AGENT: Final = record_pb2.SOURCE_TYPE_AGENT
HARVEST: Final = record_pb2.SOURCE_TYPE_HARVEST
FACT: Final = record_pb2.MEMORY_KIND_FACT
BELIEF: Final[dict[str, Any]] = {
    "subject": "tea",
    "belief_type": record_pb2.BELIEF_TYPE_PREFERENCE,
}


@pytest.fixture
async def agent(stand: Stand) -> AsyncIterator[Agent]:
    """An agent of a fresh project."""
    async with stand.channel() as channel:
        yield Agent(stand, channel)


async def test_the_same_text_at_once_is_kept_once(agent: Agent) -> None:
    """001-04, R15: of 32 callers one creates, and the others are told of its record."""
    replies = await asyncio.gather(*(agent.remember(TEA) for _ in range(32)))
    assert [each for each in replies if isinstance(each, Refused)] == []
    actions = Counter(each.remembered.action for each in replies)
    assert actions == {CREATED: 1, SKIPPED: 31}
    assert len({each.remembered.record.record_id for each in replies}) == 1
    assert await agent.stand.rows("memory.records", agent.project) == 1


async def test_beliefs_that_race_leave_one(agent: Agent) -> None:
    """002-05, 002-08: of statements at once about one subject one is live in the end."""
    texts = [f"Mira likes tea number {number}" for number in range(8)]
    replies = await asyncio.gather(*(agent.remember(text, **BELIEF) for text in texts))
    done = [each for each in replies if not isinstance(each, Refused)]
    assert {each.reason for each in replies if isinstance(each, Refused)} <= {"CONCURRENT_WRITE"}
    actions = Counter(each.remembered.action for each in done)
    assert actions == {CREATED: 1, SUPERSEDED: len(done) - 1} if len(done) > 1 else {CREATED: 1}
    assert len(await agent.texts("tea number", limit=20)) == 1


async def test_a_replay_says_what_was_said(agent: Agent) -> None:
    """004-63, R15: after the memory moved on the first reply comes back, a skip too."""
    first = await agent.remember(TEA, key="one", source_type=AGENT)
    skipped = await agent.remember(TEA, key="two", source_type=AGENT)
    assert (await agent.forget(first.remembered.record)).found
    for key, before in (("one", first), ("two", skipped)):
        again = await agent.remember(TEA, key=key, source_type=AGENT)
        assert again.replayed
        before.replayed = True
        assert again == before


async def test_what_was_forgotten_stays_so(agent: Agent) -> None:
    """000-23, R1, 002-17, 003-05: by no read, in no arm, and by no way of writing."""
    record = await agent.kept(TEA)
    assert (await agent.forget(record)).found
    assert not (await agent.forget(record)).found
    assert await agent.texts("green tea") == []
    for way in (agent.remember(TEA.upper()), agent.batch([TEA])):
        refused = await way
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "TOMBSTONED")
    other = Agent(agent.stand, agent.channel, agent.project, "agent-b")
    assert (await other.remember(TEA)).remembered.action == CREATED


@pytest.mark.parametrize(
    ("kind", "barred"),
    [
        (record_pb2.REJECT_KIND_UNTRUE, True),
        (record_pb2.REJECT_KIND_CHANGED, True),
        (record_pb2.REJECT_KIND_NOT_HERE, False),
        (record_pb2.REJECT_KIND_UNSPECIFIED, False),
    ],
)
async def test_what_was_rejected(agent: Agent, kind: int, *, barred: bool) -> None:
    """002-16, 002-18, §6.3 step 0: untrue and changed bar the text; reopening lifts that."""
    rejected = await agent.change(REJECT, await agent.kept(TEA), reject_kind=kind)
    assert await agent.texts("green tea") == []
    again = await agent.remember(TEA)
    if not barred:
        assert again.remembered.action == CREATED
        return
    assert again.reason == "TOMBSTONED"
    await agent.change(REOPEN, rejected.record)
    assert (await agent.remember(TEA)).remembered.action == SKIPPED
    assert await agent.texts("green tea") == [TEA]


async def test_what_was_superseded_is_found_where_asked_for(agent: Agent) -> None:
    """001-09, 002-20, 000-22: out of recall, but for history and for then."""
    await agent.kept(TEA, **BELIEF)
    then = datetime.now(UTC)
    coffee = "Mira prefers black coffee to tea by now"
    done = await agent.remember(coffee, **BELIEF)
    assert done.remembered.action == SUPERSEDED
    assert await agent.texts("tea") == [coffee]
    assert sorted(await agent.texts("tea", include_superseded=True)) == sorted([TEA, coffee])
    assert await agent.texts("tea", as_of=then) == [TEA]
    assert (await agent.remember(TEA, **BELIEF)).remembered.action == SUPERSEDED


async def test_a_harvested_fact_takes_another_s_place(agent: Agent) -> None:
    """000-17, 000-18: the new one is written with the old one's end, in one write set."""
    harvest: dict[str, Any] = {"source_type": HARVEST, "memory_kind": FACT}
    old = await agent.kept(TEA, **harvest)
    done = await agent.remember("Mira drinks green tea every evening before sleep", **harvest)
    assert done.remembered.action == SUPERSEDED
    assert done.remembered.signal == pb.DEDUP_SIGNAL_JACCARD
    assert done.remembered.superseded_record_id == old.record_id
    assert len(await agent.texts("green tea")) == 1


async def test_archived_and_expired_are_not_recalled(agent: Agent) -> None:
    """000-10, R3: put aside, and from the instant of expiry on; taken back, found again."""
    archived = await agent.change(ARCHIVE, await agent.kept(TEA))
    past = datetime.now(UTC) - timedelta(seconds=1)
    await agent.kept("Tea is out of stock", expire_time=past)
    assert await agent.texts("tea") == []
    await agent.change(UNARCHIVE, archived.record)
    assert await agent.texts("tea") == [TEA]


async def test_a_superseded_memory_that_is_restored_is_recalled(agent: Agent) -> None:
    """002-20: what is in use again is found again."""
    old = await agent.kept(TEA, **BELIEF)
    await agent.kept("Mira prefers black coffee", **BELIEF)
    old.revision += 1
    restored = await agent.change(RESTORE, old, source_revision=1)
    assert not isinstance(restored, Refused), restored
    assert (await agent.texts("green tea"))[0] == TEA


async def test_other_agents_projects_and_namespaces(agent: Agent) -> None:
    """000-42, 002-21, G-2: nothing of others, whatever is asked."""
    await agent.kept(TEA, namespace="home")
    for other in (
        Agent(agent.stand, agent.channel, agent.project, "agent-b"),
        Agent(agent.stand, agent.channel),
    ):
        assert await other.texts("tea") == []
    work = pb.RecallFilter(namespaces=["work", ""])
    home = pb.RecallFilter(namespaces=["home"])
    assert await agent.texts("tea", filter=work) == []
    assert await agent.texts("tea", filter=home) == [TEA]


async def test_a_session_told_fifty_times(agent: Agent) -> None:
    """000-16: replaying one session leaves the number of memories as it was."""
    session = [f"On day {day} the team shipped release {day}.{day}" for day in range(1, 11)]
    await agent.batch(session)
    before = await agent.stand.rows("memory.records", agent.project)
    for _ in range(50):
        again = await agent.batch(session)
        assert {each.action for each in again.remembered} == {SKIPPED}
    assert await agent.stand.rows("memory.records", agent.project) == before == len(session)


async def test_a_batch_is_whole_or_nothing(agent: Agent) -> None:
    """000-19, 000-20: twelve are taken, thirteen are not, and a refused one takes all with it."""
    twelve = [f"Fact number {number} of twelve" for number in range(12)]
    refused = await agent.batch([*twelve, "One more"])
    assert refused.violations == {"memories": "must be 1-12 memories"}
    refused = await agent.batch([*twelve[:11], "password: hunter2hunter2"])
    assert refused.reason == "CONTENT_REFUSED"
    assert await agent.stand.rows("memory.records", agent.project) == 0
    done = await agent.batch(twelve)
    assert [each.record.content for each in done.remembered] == twelve


async def test_by_tags(agent: Agent) -> None:
    """001-22, 003-04, R16: all of these tags, or one; the most important first, then the cut."""
    for number, tags in enumerate((["a", "Ops-1"], ["a", "b"], ["b", "ops-2"])):
        memory = pb.MemoryInput(content=f"text {number}", tags=tags, importance=number / 2)
        await agent.send("Remember", memory=memory)

    async def found(**given: Any) -> list[str]:
        limit = given.pop("limit", 0)
        full = record_pb2.RECORD_VIEW_FULL
        reply = await agent.send(
            "RecallByTags", filter=pb.RecallFilter(**given), limit=limit, view=full
        )
        return [each.content for each in reply.records]

    assert await found(tags_all=["A"]) == ["text 1", "text 0"]
    assert await found(tags_all=["a", "b"]) == ["text 1"]
    assert await found(tags_any_glob=["OPS-?"]) == ["text 2", "text 0"]
    assert await found(tags_any_glob=["o*"], limit=1) == ["text 2"]
    assert await found(tags_any_glob=["%", "ops_1"]) == []
    nothing = await agent.send("RecallByTags", filter=pb.RecallFilter())
    assert list(nothing.violations) == ["filter.tags_all"]


QUERIES: Final = {
    "one letter": ("x", "the x axis"),
    "stop words": ("to be or not to be", "to be or not to be"),
    "backslashes": (r"C:\x\y", r"kept in C:\x\y since May"),
    "part of a path": ("y", r"kept in C:\x\y since May"),
    "prefix": ("foo:*", "foo:* is no query here"),
    "quotes": ('say "hello', 'they say "hello to all'),
    "operators": ("a & | !", "a & | ! are signs"),
    "e-mail": ("mira@example.com", "write to mira@example.com"),
    "uuid": ("01a22d84-7d3a-758f-bdd5-c9730a0a638e", "id 01a22d84-7d3a-758f-bdd5-c9730a0a638e"),
    "snake": ("retry", "set max_retry_count to 3"),
    "camel": ("retry", "set maxRetryCount to 3"),
    "japanese": ("東京", "会議は東京で開かれる"),
    "chinese": ("数据库", "我们的数据库在上海"),
    "korean": ("회의실", "회의실은 3층입니다"),
    "arabic": ("القهوة", "ميرا تحب القهوة"),
    "emoji": ("🚀", "we ship 🚀 on Monday"),
    "decomposed": ("cafe\u0301", "the café at the corner"),
    "stem": ("deploying", "we deploy on Mondays"),
}


@pytest.mark.parametrize("name", QUERIES)
async def test_queries_of_every_kind(agent: Agent, name: str) -> None:
    """000-02, 6.6-10: text is text, in every language, on every store."""
    query, text = QUERIES[name]
    await agent.kept("Nothing of that kind")
    await agent.kept(text)
    assert (await agent.texts(query))[:1] == [text]


@pytest.mark.parametrize("query", ["", " \t\n", "x" * 2_001])
async def test_queries_out_of_bounds(agent: Agent, query: str) -> None:
    """000-01, 001-22: refused by name and limit; 2,000 code points are taken."""
    refused = await agent.recall(query)
    assert (refused.reason, list(refused.violations)) == ("FIELD_INVALID", ["query"])
    assert not isinstance(await agent.recall("x" * 2_000), Refused)


async def test_what_was_forgotten_does_not_come_back_by_reopening(agent: Agent) -> None:
    """R1, 002-17: a memory that was rejected says it again only while nobody forgot it."""
    kind = record_pb2.REJECT_KIND_NOT_HERE
    rejected = await agent.change(REJECT, await agent.kept(TEA), reject_kind=kind)
    twin = await agent.kept(TEA)
    assert (await agent.forget(twin)).found
    reopened = await agent.change(REOPEN, rejected.record)
    assert reopened.reason == "TOMBSTONED"
    assert await agent.texts("green tea") == []


async def test_what_was_forgotten_does_not_come_back_by_a_later_expiry(agent: Agent) -> None:
    """R1, 000-10: a memory that is over is in use again only while nobody forgot its text."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    over = await agent.kept(TEA, expire_time=past)
    assert (await agent.forget(await agent.kept(TEA))).found
    again = await agent.change(
        UPDATE,
        over,
        content=TEA,
        type=over.type,
        facet=record_pb2.MemoryFacet(),
        facet_mask=FieldMask(paths=["expire_time"]),
    )
    assert again.reason == "TOMBSTONED"


async def test_a_refuted_text_stays_refuted_when_its_record_is_forgotten(agent: Agent) -> None:
    """002-16, 002-17: forgetting bars the text of today, and lifts nothing of before."""
    kind = record_pb2.REJECT_KIND_UNTRUE
    rejected = await agent.change(REJECT, await agent.kept(TEA), reject_kind=kind)
    edited = await agent.change(UPDATE, rejected.record, content="something else", type="note")
    assert (await agent.forget(edited.record)).found
    for text in (TEA, "something else"):
        assert (await agent.remember(text)).reason == "TOMBSTONED"


async def test_a_reason_is_no_place_for_secrets(agent: Agent) -> None:
    """002-03: what is said about a memory is screened as it is."""
    record = await agent.kept(TEA)
    refused = await agent.forget(record, reason="password: hunter2hunter2")
    assert refused.reason == "CONTENT_REFUSED"


async def test_a_twin_without_the_key_is_a_duplicate_too(agent: Agent) -> None:
    """§6.3 step 1: a memory of the same text is met whoever holds its key."""
    first = await agent.kept(TEA)
    made = await agent.change(CREATE, first, content=TEA, kind=record_pb2.RECORD_KIND_MEMORY)
    await agent.change(ARCHIVE, first)
    told = await agent.remember(TEA, source_type=record_pb2.SOURCE_TYPE_ORCHESTRATION)
    assert told.remembered.action == SKIPPED
    assert told.remembered.record.record_id == made.record.record_id


@pytest.mark.parametrize("query", ["\u200b", "\u200d \u2060", "\ufeff"])
async def test_a_query_that_nobody_sees_is_blank(agent: Agent, query: str) -> None:
    """000-01: characters without a shape ask for nothing."""
    assert list((await agent.recall(query)).violations) == ["query"]
