"""Search over the wire: what is found, filtered and hidden, and what a page token is bound to."""

from dataclasses import replace
from typing import Any, Final

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from broker.api.v1 import record_pb2
from providers.model import Kind, State, Trust
from tests.fixtures.decisions import decisions, head, id_of, written
from tests.fixtures.desk import Desk, desk
from tests.fixtures.page_tokens import packed_token, unpacked_token
from tests.fixtures.record_calls import ARCHIVE, LIST, REJECT, SEARCH, UPDATE

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

INVALID: Final = ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID")
REPLY_BYTES_MAX: Final = 3 * 1024 * 1024
FULL: Final = record_pb2.RECORD_VIEW_FULL
BASIC: Final = record_pb2.RECORD_VIEW_BASIC
MEMORY: Final = record_pb2.RECORD_KIND_MEMORY
CONTEXT: Final = record_pb2.RECORD_KIND_SESSION_CONTEXT
DECISION: Final = record_pb2.RECORD_KIND_DECISION
PROPOSAL: Final = record_pb2.RECORD_KIND_PROPOSAL
ACTIVE: Final = record_pb2.RECORD_STATE_ACTIVE
ARCHIVED: Final = record_pb2.RECORD_STATE_ARCHIVED


async def found(desk: Desk, query: str = "", /, **changes: Any) -> list[str]:
    """Return the contents found, in order, from every page."""
    return [record.content for page in await pages(desk, query, **changes) for record in page]


async def pages(desk: Desk, query: str = "", /, **changes: Any) -> list[list[record_pb2.Record]]:
    """Return every page, until the token is empty."""
    every: list[list[record_pb2.Record]] = []
    token = ""
    while not every or token:
        reply = await desk.done(SEARCH, query=query, page_token=token, **changes)
        assert reply.ByteSize() <= REPLY_BYTES_MAX
        every.append([*reply.records])
        token = reply.next_page_token
        assert len(token.encode()) <= 512
        assert len(every) < 100, "the pages do not end"
    return every


# -------------------- text

E_COMPOSED, E_DECOMPOSED = "\u00e9", "e\u0301"
TEXTS: Final[dict[str, tuple[str, list[str], list[str]]]] = {
    "case": ("The SKY is Blue", ["the sky", "SKY IS", "bLuE"], ["skyblue", "the  sky"]),
    "case beyond ascii": (
        "\u00c4RGER \u0416\u0423\u041a",
        ["\u00e4rger", "\u0436\u0443\u043a"],
        ["arger"],
    ),
    "sharp s": ("Stra\u00dfe", ["strasse", "STRASSE", "stra\u00dfe"], ["strase"]),
    "final sigma": (
        "\u039f\u0394\u039f\u03a3",
        ["\u03bf\u03b4\u03bf\u03c2", "\u03bf\u03b4\u03bf\u03c3"],
        [],
    ),
    "dotted capital i": ("\u0130zmir", ["i\u0307zmir"], ["\u0131zmir"]),
    "percent": ("at 50% off", ["%", "50%", "50% o"], ["5%0", "a%f", "%%"]),
    "underscore": ("snake_case", ["_", "e_c"], ["sna_e", "__"]),
    "backslash": ("C:\\new\\table", ["\\", "\\n", ":\\new\\t"], ["\\\\", "new\table"]),
    "quotes": ('it\'s "so" `called`', ["'", '\'s "so"', "`c"], ["''", '""', "' OR '1'='1"]),
    "emoji": (
        "up \U0001f680\U0001f468\u200d\U0001f469\u200d\U0001f467 we go",
        ["\U0001f680", "\U0001f468\u200d\U0001f469"],
        ["\U0001f681"],
    ),
    "emoji with a skin": (
        "wave \U0001f44b\U0001f3fd",
        ["\U0001f44b", "\U0001f44b\U0001f3fd"],
        ["\U0001f44b\U0001f3fe"],
    ),
    "japanese": (
        "\u6771\u4eac\u90fd\u306b\u4f4f\u3080",
        ["\u6771\u4eac", "\u4eac\u90fd", "\u4f4f\u3080"],
        ["\u6771\u90fd"],
    ),
    "chinese": (
        "\u6211\u5728\u5317\u4eac\u5de5\u4f5c",
        ["\u5317\u4eac", "\u5de5\u4f5c"],
        ["\u5317\u5de5", "\u53f0\u5317"],
    ),
    "korean": (
        "\uc11c\uc6b8\uc5d0 \uc0b0\ub2e4",
        ["\uc11c\uc6b8", "\uc0b0\ub2e4", "\u1109\u1165\u110b\u116e\u11af"],
        ["\uc6b8\uc11c"],
    ),
    "composed": (f"caf{E_COMPOSED}", [f"caf{E_COMPOSED}", f"caf{E_DECOMPOSED}", "caf"], ["cafe"]),
    "decomposed": (f"caf{E_DECOMPOSED}", [f"CAF{E_COMPOSED}".upper(), E_DECOMPOSED], ["cafe"]),
    "full width": ("\uff21\uff22\uff23", ["\uff21\uff22", "\uff41\uff42"], ["abc", "AB"]),
    "control characters": ("one\ttwo\nthree", ["one\ttwo", "two\nthree"], ["one two"]),
    "trimmed query": ("inner space", ["  inner space \n"], ["inner  space"]),
    "pattern characters": ("a.*b[c]^$(d)", [".*", "[c]", "^$", "(d)"], ["a.b", "^a", "b$"]),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_text(desk: Desk, name: str) -> None:
    """004-67: a substring, without case, composed and decomposed alike; nothing is a pattern."""
    content, hits, misses = TEXTS[name]
    await desk.made(content=content)
    await desk.made("key-2", content="something else: xyz")
    for query in hits:
        assert await found(desk, query) == [content], query
    for query in misses:
        assert await found(desk, query) == [], query


async def test_what_is_looked_through(desk: Desk) -> None:
    """004-67: type, title, content and tags, each for itself; no rationale, no facet."""
    facet = record_pb2.MemoryFacet(subject="in-subject", namespace="in-namespace")
    await desk.made(
        type="in-type",
        title="in-title",
        content="in-content",
        rationale="in-rationale",
        tags=["in-tag", "other-tag"],
        facet=facet,
    )
    for part in ("type", "title", "content", "tag"):
        assert await found(desk, f"IN-{part}"[:-1]) == ["in-content"], part
    for query in ("in-rationale", "in-subject", "in-namespace", "in-typein", "titlein", "tagother"):
        assert await found(desk, query) == [], query
    assert await found(desk, "x" * 256) == []


async def test_edited_and_restored_text(desk: Desk) -> None:
    """004-67: the head is searched, and nothing of its history."""
    first = await desk.made(content="first words")
    await desk.changed(UPDATE, first, content="second words")
    assert await found(desk, "first") == []
    assert await found(desk, "SECOND") == ["second words"]


async def test_whose_records(desk: Desk) -> None:
    """004-66: one project and one agent; the run gives access and no more."""
    await desk.made(content="mine")
    await desk.made("key-2", agent="agent-b", content="theirs")
    other = Desk(desk.stand, desk.channel, desk.stand.project())
    await other.made(content="elsewhere")
    assert await found(desk) == ["mine"]
    assert await found(desk, run="run-b") == ["mine"]
    assert await found(desk, agent="agent-b") == ["theirs"]
    assert await found(desk, agent="agent-c") == []
    assert (await desk.done(SEARCH, {"tenant": "tenant-b"})).records == []


# -------------------- filters


@pytest.fixture
async def shelf(desk: Desk) -> Desk:
    """A project with records of every kind and state; each says which it is."""
    await desk.made(content="memory", tags=["Red", "blue"], importance=0.9)
    put_aside = await desk.made("key-2", content="archived", tags=["red"], importance=0.05)
    await desk.changed(ARCHIVE, put_aside)
    turned_down = await desk.made("key-3", content="rejected", importance=0.1)
    await desk.changed(REJECT, turned_down)
    await desk.made("key-4", kind=CONTEXT, content="context", importance=0.5)
    (serving,) = await decisions(desk.stand, desk.project)
    puts = [
        head(Kind.PROPOSAL, state=State.PENDING),
        head(state=State.SUPERSEDED, superseded_by_record_id=serving, trust=Trust.LEGACY),
        head(Kind.MEMORY, state=State.FORGOTTEN),
    ]
    await written(desk.stand, desk.project, puts)
    return desk


async def test_default_states(shelf: Desk) -> None:
    """004-66: only what is active, unless states are named; each kind by its name."""
    assert {*await found(shelf)} == {"memory", "rejected", "context", "the sky is blue"}
    assert await found(shelf, states=[ARCHIVED]) == ["archived"]
    assert len(await found(shelf, states=[ACTIVE, ARCHIVED, *range(1, 7)])) == 7
    assert await found(shelf, kinds=[MEMORY], states=[ACTIVE, ARCHIVED]) == [
        "rejected",
        "archived",
        "memory",
    ]
    assert await found(shelf, kinds=[CONTEXT]) == ["context"]
    assert {*await found(shelf, kinds=[CONTEXT, DECISION])} == {"context", "the sky is blue"}
    assert await found(shelf, kinds=[PROPOSAL]) == []
    assert len(await found(shelf, kinds=[PROPOSAL], states=[1])) == 1


async def test_trusts(shelf: Desk) -> None:
    """004-66, 000-24, R20: by trust; what is rejected is kept, and found by whoever asks for it."""
    assert await found(shelf, trusts=[record_pb2.TRUST_REJECTED]) == ["rejected"]
    assert await found(shelf, trusts=[record_pb2.TRUST_APPROVED]) == ["context"]
    assert await found(shelf, trusts=[record_pb2.TRUST_LEGACY], states=[4]) == ["the sky is blue"]


async def test_tags(shelf: Desk) -> None:
    """004-67: all of them, whole, without case."""
    assert await found(shelf, tags=["RED"]) == ["memory"]
    assert await found(shelf, tags=["red", " Blue "]) == ["memory"]
    assert await found(shelf, tags=["red", "green"]) == []
    assert await found(shelf, tags=["re"]) == []
    assert await found(shelf, tags=["%"]) == []


async def test_importance(shelf: Desk) -> None:
    """004-66: numbers are compared as numbers, both ends included."""
    everything = {"states": [ACTIVE, ARCHIVED], "kinds": [MEMORY]}
    assert await found(shelf, importance_min=0.1, **everything) == ["rejected", "memory"]
    assert await found(shelf, importance_max=0.1, **everything) == ["rejected", "archived"]
    assert await found(shelf, importance_min=0.05, importance_max=0.05, **everything) == [
        "archived"
    ]
    assert len(await found(shelf, importance_min=0.0, importance_max=1.0, **everything)) == 3
    assert await found(shelf, importance_max=0.0, **everything) == []
    assert await found(shelf, importance_min=0.9, importance_max=0.1, **everything) == []


async def test_times(shelf: Desk) -> None:
    """004-66: from a time on, and before one."""
    (record,) = (await shelf.done(SEARCH, query="memory")).records
    at = record.update_time
    later = Timestamp(seconds=at.seconds + (at.nanos + 1_000) // 10**9)
    later.nanos = (at.nanos + 1_000) % 10**9
    assert await found(shelf, "memory", updated_from=at) == ["memory"]
    assert await found(shelf, "memory", updated_from=later) == []
    assert await found(shelf, "memory", updated_before=at) == []
    assert await found(shelf, "memory", updated_before=later) == ["memory"]


NOT_KNOWN: Final = "must be a known value"
BAD: Final[list[tuple[dict[str, Any], str, str]]] = [
    ({"states": [record_pb2.RECORD_STATE_FORGOTTEN]}, "states[0]", "must not be FORGOTTEN"),
    ({"states": [2, 99]}, "states[1]", NOT_KNOWN),
    ({"kinds": [0]}, "kinds[0]", NOT_KNOWN),
    ({"trusts": [-1]}, "trusts[0]", NOT_KNOWN),
    ({"query": "\U0001f308" * 257}, "query", "must be at most 256 code points"),
    ({"query": "a\x00b"}, "query", "must not hold NUL or lone surrogates"),
    ({"tags": ["a", " "]}, "tags[1]", "must be 1-64 code points"),
    ({"tags": ["a" * 65]}, "tags[0]", "must be at most 64 code points"),
    ({"tags": [f"t{n}" for n in range(33)]}, "tags", "must be at most 32"),
    ({"importance_min": float("nan")}, "importance_min", "must be a number from 0.0 to 1.0"),
    ({"importance_max": 1.1}, "importance_max", "must be a number from 0.0 to 1.0"),
    ({"updated_from": Timestamp(nanos=-1)}, "updated_from", "must be a valid time"),
    ({"updated_before": Timestamp(seconds=2**40)}, "updated_before", "must be a valid time"),
    ({"view": 99}, "view", "must be BASIC or FULL"),
    ({"page_size": -1}, "page_size", "must not be negative"),
]


@pytest.mark.memories("postgres", "redis")
@pytest.mark.parametrize(("changes", "field", "rule"), BAD)
async def test_bad_filters(desk: Desk, changes: dict[str, Any], field: str, rule: str) -> None:
    """004-48, 004-66: every bad filter is named; what was forgotten cannot be asked for."""
    reply = await desk.told(SEARCH, **changes)
    assert (reply.code, reply.reason) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert reply.violations == {field: rule}


# -------------------- order, views, pages


async def test_order_and_views(desk: Desk) -> None:
    """004-67, R18: what changed last comes first; a basic view has a snippet for the text."""
    made = [await desk.made(f"key-{n}", content=f"{n} " + "\U0001f308" * 300) for n in range(4)]
    edited = await desk.changed(UPDATE, made[1], content="edited", rationale="because")
    found_now = (await desk.done(SEARCH)).records
    assert [*found_now] == [edited, made[3], made[2], made[0]]
    basic = (await desk.done(SEARCH, view=BASIC)).records
    assert [one.record_id for one in basic] == [one.record_id for one in found_now]
    for short, whole in zip(basic, found_now, strict=True):
        assert short.snippet == whole.content[:256]
        assert (short.content, short.rationale) == ("", "")
    assert (await desk.done(SEARCH, view=0)).records == basic


async def test_same_time(desk: Desk) -> None:
    """004-67: of what changed at the same time the lower id comes first, also across pages."""
    await desk.made()
    puts = [head() for _ in range(9)]
    now = puts[0].record.current.create_time
    at_once = [_at(put, now) for put in puts]
    await written(desk.stand, desk.project, at_once)
    found_now = await pages(desk, kinds=[DECISION], page_size=2)
    ids = [record.record_id for page in found_now for record in page]
    assert ids == sorted(id_of(put) for put in puts)
    assert [len(page) for page in found_now] == [2, 2, 2, 2, 1]


def _at(put: Any, time: Any) -> Any:
    current = replace(put.record.current, create_time=time)
    return replace(put, record=replace(put.record, current=current, create_time=time))


async def test_page_sizes(desk: Desk) -> None:
    """001-13, 004-66: 0 means 50, above 100 means 100; only the end has an empty token."""
    await desk.made()
    for _ in range(3):
        await decisions(desk.stand, desk.project, 34)
    only = {"kinds": [DECISION]}
    for size, lengths in ((0, [50, 50, 2]), (100, [100, 2]), (101, [100, 2]), (51, [51, 51])):
        found_now = await pages(desk, page_size=size, **only)
        assert [len(page) for page in found_now] == lengths
        assert len({record.record_id for page in found_now for record in page}) == 102


async def test_large_records(desk: Desk) -> None:
    """004-66: a page ends early rather than to exceed 3 MiB, and nothing is lost."""
    for number in range(22):
        await desk.made(f"key-{number}", content=f"{number:02}" + "\U0001f308" * 39_990)
    found_now = await pages(desk, page_size=100)
    assert len(found_now) > 1
    numbers = [int(record.content[:2]) for page in found_now for record in page]
    assert numbers == list(range(21, -1, -1))


async def test_pages_while_others_write(desk: Desk) -> None:
    """004-66, 004-67: what does not change is on exactly one page, whatever others do meanwhile."""
    made = [await desk.made(f"key-{n}", content=f"{n}") for n in range(20)]
    touched = {"3", "8", "9", "14"}
    heads = {record.content: record for record in made}
    seen: list[str] = []
    token, step = "", 0
    while step == 0 or token:
        reply = await desk.done(SEARCH, page_size=3, page_token=token)
        seen += [record.content for record in reply.records]
        token = reply.next_page_token
        await desk.made(f"new-{step}", content=f"new {step}")
        if step == 0:
            await desk.changed(UPDATE, heads["3"], content="3")
            await desk.changed(ARCHIVE, heads["8"])
        if step == 2:
            await desk.changed(UPDATE, heads["14"], content="14")
            await desk.changed(ARCHIVE, heads["9"])
        step += 1
    unchanged = [str(n) for n in range(19, -1, -1) if str(n) not in touched]
    assert [content for content in seen if content in unchanged] == unchanged
    assert not [content for content in seen if content.startswith("new")]


async def test_a_token_is_bound_to_its_search(desk: Desk) -> None:
    """004-56, 004-66: another scope, filter, view or method refuses it; the size may change."""
    for number in range(3):
        await desk.made(f"key-{number}", content=f"blue {number}", tags=["a"])
    one = await desk.made("key-3", content="blue 3", tags=["a"])
    given: dict[str, Any] = {"query": "blue", "page_size": 1, "kinds": [MEMORY, CONTEXT]}
    token = (await desk.done(SEARCH, **given)).next_page_token
    parts = unpacked_token(token)
    assert "blue" not in str(parts) and desk.project not in str(parts)
    version, digest, position = parts
    for forged in ([position[0], "a\x00b"], [position[0], "x" * 257], [2**62, position[1]]):
        forgery = given | {"page_token": packed_token([version, digest, forged])}
        reply = await desk.told(SEARCH, **forgery)
        assert (reply.code, reply.reason) == INVALID, forged
    given["page_token"] = token
    changed: list[dict[str, Any]] = [
        {"run": "run-b"},
        {"agent": "agent-b"},
        {"query": "BLUE"},
        {"query": ""},
        {"kinds": [MEMORY]},
        {"states": [ARCHIVED]},
        {"trusts": [record_pb2.TRUST_PENDING]},
        {"tags": ["a"]},
        {"importance_min": 0.0},
        {"importance_max": 1.0},
        {"updated_from": Timestamp(seconds=1)},
        {"updated_before": Timestamp(seconds=2**32)},
        {"view": BASIC},
    ]
    for changes in changed:
        reply = await desk.told(SEARCH, **(given | changes))
        assert (reply.code, reply.reason) == INVALID, changes
        assert token not in reply.text()
    other = Desk(desk.stand, desk.channel, desk.stand.project())
    await other.made()
    assert (await other.told(SEARCH, **given)).reason == INVALID[1]
    assert (await desk.told(SEARCH, {"tenant": "tenant-b"}, **given)).reason == INVALID[1]
    assert (await desk.told(LIST, record_id=one.record_id, page_token=token)).reason == INVALID[1]
    same = given | {"kinds": [CONTEXT, MEMORY, MEMORY], "query": " blue ", "page_size": 2}
    rest = (await desk.done(SEARCH, {"sub": "actor-b"}, **same)).records
    assert [one.content for one in rest] == ["blue 2", "blue 1"]


async def test_a_token_survives_a_restart(desk: Desk) -> None:
    """004-66: what was handed out before is good after; nothing was kept in memory."""
    for number in range(3):
        await desk.made(f"key-{number}", content=f"{number}")
    given = {"page_size": 1, "page_token": (await desk.done(SEARCH, page_size=1)).next_page_token}
    before = await desk.done(SEARCH, **given)
    assert desk.stand.broker.stop() == 0
    desk.stand.broker.start()
    async with desk.stand.channel() as channel:
        after = Desk(desk.stand, channel, desk.project)
        assert await after.done(SEARCH, **given) == before
