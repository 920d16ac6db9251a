"""Stored things that are damaged behind the adapter's back: refused by every call, never skipped.

What one document may look like is tried in ``tests/unit/providers/test_redis_rows.py``; here the
scripts meet it, which look at some of it themselves.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import orjson
import pytest

from providers.conformance import specimens
from providers.conformance.delivery_steps import acquire, effect_of, pending, release
from providers.conformance.recall_steps import index, recalled, tagged, unindexed
from providers.conformance.steps import SECONDS, candidates, page, search
from providers.conformance.transfer_steps import export, graves
from providers.errors import ProviderError, StoredDataInvalidError
from providers.model import Claim, ProjectKey, State, WriteSet
from providers.recall import Superseded
from providers.redis.keys import base_key, project_digest
from providers.redis.provider import RedisMemoryProvider
from providers.requests import LoadRequest
from tests.fixtures.redis import RedisBackend
from tests.integration.providers.redis_calls import PROJECT

Call = Callable[[RedisMemoryProvider], Awaitable[object]]

CONTENT = ("qxqx", "r1", "d1", "run-1", "a1", "k1", "k2")
OTHER = ProjectKey("t1", "p2")
FIRST = specimens.memory("r1", content=specimens.content("Java", tags=("Cross-Team", "qxqx")))
HEAD = specimens.after(FIRST, "Java 25")
REPLACED = specimens.memory("r3", state=State.SUPERSEDED)
NEAR = specimens.vector(1.0, 0.0)
ENTRY = specimens.entry("qxqx java", vector=NEAR)
BORN = specimens.decision("d1")
LINKED = specimens.superseded(BORN, "d2")
EFFECTS = [specimens.effect(1), specimens.effect(2)]
RECEIPT = specimens.receipt(key="key", refs=[specimens.ref(FIRST)])
MADE = specimens.write(
    PROJECT, specimens.put(FIRST), receipt=RECEIPT, claims=(Claim("k1", "r1"),), graph_expected=0
)
SEEDS = [
    MADE,
    specimens.write(PROJECT, specimens.put(HEAD, over=FIRST, entry=ENTRY)),
    specimens.write(
        PROJECT,
        *map(specimens.put, (BORN, specimens.decision("d2"))),
        specimens.put(REPLACED, entry=specimens.entry("qxqx")),
    ),
    specimens.write(PROJECT, specimens.put(LINKED, over=BORN)),
    specimens.write(PROJECT, tombstones=(specimens.tombstone("k2"),)),
    *(specimens.write(PROJECT, effect=each) for each in EFFECTS),
    specimens.create(OTHER, FIRST),
]
ASKED = LoadRequest(
    project=PROJECT,
    record_ids=("r1", "d1"),
    revisions=(specimens.ref(FIRST),),
    receipt=RECEIPT.key,
    keys=("k1", "k2"),
    graph=True,
    transfer=True,
    stream_run_id="run-1",
    chain_from="d1",
)


def updated() -> WriteSet:
    following = specimens.put(specimens.after(HEAD), over=HEAD, entry=ENTRY)
    return specimens.write(
        PROJECT, following, releases=(Claim("k1", "r1"),), graph_expected=1, must_be_absent=("k3",)
    )


ON_HEADS: dict[str, Call] = {
    "load": lambda provider: provider.load(ASKED, timeout=SECONDS),
    "revisions": lambda provider: page(provider, PROJECT, "r1"),
    "brief revisions": lambda provider: page(provider, PROJECT, "r1", limit=1, brief=True),
    "search": lambda provider: search(provider, PROJECT),
    "search for text": lambda provider: search(provider, PROJECT, text="java"),
    "search by tag": lambda provider: search(provider, PROJECT, tags=("qxqx",), brief=True),
    "search by number": lambda provider: search(provider, PROJECT, importance_min=0.1),
    "candidates": lambda provider: candidates(provider, PROJECT),
    "export": lambda provider: export(provider, PROJECT),
    "export by name": lambda provider: export(provider, PROJECT, "r1", "d1"),
    "update": lambda provider: provider.commit(updated(), timeout=SECONDS),
}
ON_ENTRIES: dict[str, Call] = {
    "recall": lambda provider: recalled(
        provider, PROJECT, "java", vector=NEAR, superseded=Superseded.ALL
    ),
    "recall by other words": lambda provider: recalled(provider, PROJECT, "absent"),
    "tagged": lambda provider: tagged(provider, PROJECT, superseded=Superseded.ALL),
    "tagged by tag": lambda provider: tagged(provider, PROJECT, tags=("qxqx",)),
    "unindexed": lambda provider: unindexed(provider, PROJECT),
    "unindexed for a model": lambda provider: unindexed(provider, PROJECT, vector_model="m2"),
    "index": lambda provider: index(provider, PROJECT, HEAD, ENTRY),
}
ON_EFFECTS: dict[str, Call] = {
    "effect": lambda provider: effect_of(provider, PROJECT, EFFECTS[0]),
    "pending": lambda provider: pending(provider, PROJECT),
    "release": lambda provider: release(provider, PROJECT, EFFECTS[0], "no token"),
    "acquire": lambda provider: acquire(provider, PROJECT, EFFECTS[0], lease_ms=1),
}
ON_KEYS: dict[str, Call] = {
    "replay": lambda provider: provider.commit(MADE, timeout=SECONDS),
    "tombstones": lambda provider: graves(provider, PROJECT, "k2", "k1"),
}
CALLS = {**ON_KEYS, **ON_EFFECTS, **ON_ENTRIES, **ON_HEADS}


class Store:
    """What is stored, and a provider over it."""

    def __init__(self, backend: RedisBackend, provider: RedisMemoryProvider) -> None:
        self.backend, self.provider = backend, provider
        self.base = base_key(backend.prefix, project_digest(PROJECT))
        self.run = backend.server.execute

    async def seed(self) -> None:
        """Store two records with histories, two effects, a claim and a tombstone."""
        self.backend.empty()
        for each in SEEDS:
            await self.provider.commit(each, timeout=SECONDS)
        await acquire(self.provider, PROJECT, EFFECTS[0], lease_ms=1)

    def get(self, name: str, field: str) -> bytes:
        found: bytes = self.run("HGET", self.base + name, field)
        assert found is not None
        return found

    def put(self, name: str, field: str, value: bytes) -> None:
        self.run("HSET", self.base + name, field, value)

    async def refused(self, calls: dict[str, Call] = CALLS) -> set[str]:
        """Return which calls find damage; any other error, and any content told, is a failure."""
        found: dict[str, ProviderError] = {}
        for name, call in calls.items():
            try:
                await call(self.provider)
            except ProviderError as error:
                found[name] = error
        assert all(type(error) is StoredDataInvalidError for error in found.values()), found
        assert not any(each in str(error) for error in found.values() for each in CONTENT)
        return {*found}


@pytest.fixture
async def store(redis_backend: RedisBackend) -> AsyncIterator[Store]:
    made = Store(redis_backend, RedisMemoryProvider(redis_backend.options()))
    await made.seed()
    yield made
    await made.provider.close()


async def test_what_is_whole_is_served(store: Store) -> None:
    assert await store.refused() == set()


OTHERS = [None, True, 0, -1, 7, 1.5, 1e300, "qxqx", "", ["qxqx"], [True], [], {"qxqx": 1}]
SHORT = [b"", b"x", b"null", b"7", b'"qxqx"', b"[]", b"{}", b'{"1":2}', b"[[[[", b"\xff\0"]


def spoiled(document: bytes) -> Iterable[tuple[int, bytes]]:
    """Give a JSON list with each of its values replaced in turn, and where; at -1 all of it."""
    values: list[Any] = orjson.loads(document)
    for at, value in enumerate(values):
        for other in OTHERS:
            if type(other) is not type(value) or other != value:
                yield at, orjson.dumps([*values[:at], other, *values[at + 1 :]])
    for short in SHORT:
        yield -1, short


# Of a head: the values that every reader compares, and those that scripts alone go by.
COMPARED, SCRIPTED = {*range(10), 18, -1}, {10, 11, 12, 13, 14, 15, 16, 17}


async def test_heads_of_every_shape(store: Store) -> None:
    """004-44: whichever value of a head is another, no call ends otherwise than with that."""
    right = store.get("heads", "r1")
    found: dict[int, set[str]] = {}
    for at, wrong in spoiled(right):
        store.put("heads", "r1", wrong)
        refused = await store.refused(ON_HEADS)
        found.setdefault(at, set()).update(refused)
        assert at not in COMPARED or refused >= {"load", "search", "update"} - unheard(at), wrong
        if "update" in refused:
            store.put("heads", "r1", right)
        else:
            await store.seed()
            right = store.get("heads", "r1")
    assert all(found[at] for at in (*COMPARED, *SCRIPTED))


def unheard(at: int) -> set[str]:
    """Name calls that cannot see that this value of a head is another: it filters, or is no key."""
    return {18: {"update"}}.get(
        at, {"search", "update"} if at in {2, 3, 4, 5, 6, 7, 8, 9} else set()
    )


ON_EFFECT = {"effect", "pending", "release", "acquire"}


async def test_effects_of_every_shape(store: Store) -> None:
    """004-44, R6: the same of an effect, and of where its delivery stands."""
    for name in ("effects", "deliveries"):
        right = store.get(name, EFFECTS[0].receipt_id)
        found: dict[int, set[str]] = {}
        for at, wrong in spoiled(right):
            store.put(name, EFFECTS[0].receipt_id, wrong)
            found.setdefault(at, set()).update(await store.refused(ON_EFFECTS))
        store.put(name, EFFECTS[0].receipt_id, right)
        assert await store.refused() == set()
        assert found[-1] == ON_EFFECT
        if name == "effects":
            assert all(found[at] >= {"effect", "pending"} for at in range(6))
        else:
            assert all(found[at] >= {"effect", "pending"} for at in (2, 3, 4, 5))
            assert found[1] == {"acquire", "release"}, "only scripts look at the time"


ON_R1 = {*ON_HEADS}
GIVEN = {"tagged", "tagged by tag", "unindexed for a model"}
ON_ALL = {*ON_HEADS} - {"revisions", "brief revisions"}

# A hash, one of its fields, what is there instead, and who has to notice.
DAMAGES: dict[str, tuple[str, str, bytes | None, set[str]]] = {
    "no newest revision": ("revisions", "2/r1", None, ON_R1 - {"update"} | GIVEN),
    "no earlier revision": (
        "revisions",
        "1/r1",
        None,
        {"load", "revisions", "brief revisions", "export", "export by name"} - {"load"},
    ),
    "no head": (
        "heads",
        "r1",
        None,
        ON_ALL - {"load", "export by name", "update"} | GIVEN | {"recall", "recall by other words"},
    ),
    "no search text": ("texts", "r1", None, {"search for text"}),
    "no effect": ("effects", EFFECTS[0].receipt_id, None, {"pending"}),
    "a receipt": ("receipts", f"{specimens.ACTOR}/key", b"qxqx", {"load", "replay"}),
    "a short receipt": ("receipts", f"{specimens.ACTOR}/key", b"[]", {"load", "replay"}),
    "a holder": ("keys", "k1", b"qxqx", {"load", "replay", "tombstones"}),
    "a holder without a record": ("keys", "k1", b"r", {"load", "replay"}),
    "a holder that is no text": ("keys", "k1", b"r\xff", {"load", "replay"}),
    "a tombstone": ("keys", "k2", b"t[]", {"load", "tombstones"}),
    "a counter": ("counters", "graph", b"qxqx", {"load", "replay", "update"}),
    "a counter that is not whole": ("counters", "graph", b"1.5", {"load", "replay", "update"}),
    "a counter that is no number": ("counters", "graph", b"nan", {"load", "replay", "update"}),
    "a counter in hex": ("counters", "graph", b"0x1", {"load", "replay", "update"}),
    "a counter below nothing": ("counters", "graph", b"-1", {"load", "replay", "update"}),
    "a stream": ("counters", "stream/run-1", b"qxqx", {"load"}),
    "a count of bytes": ("bytes", "r1", b"qxqx", {"export", "export by name", "update", "replay"}),
}


@pytest.mark.parametrize("name", DAMAGES)
async def test_things_that_are_damaged_or_gone(store: Store, name: str) -> None:
    """004-44: what is missing, or says nothing, is noticed by each call that goes by it."""
    key, field, value, expected = DAMAGES[name]
    store.get(key, field)
    if value is None:
        store.run("HDEL", store.base + key, field)
    else:
        store.put(key, field, value)
    assert await store.refused() == expected


ENTRIES = {
    "order/a1": ("", {"search", "search for text", "search by number"}),
    "tagged/a1": ("qxqx\0", {"search by tag"}),
    "memories/a1": ("", {"candidates", "tagged", "tagged by tag"}),
    "replaced/a1": ("", {"tagged"}),
    "recalled/a1": ("qxqx\0l", {"recall", "recall by other words"}),
    "indexed": ("0\0", {"unindexed", "unindexed for a model"}),
    "moved/a1": ("", {"export"}),
}


@pytest.mark.parametrize("name", ENTRIES)
async def test_entries_of_an_index_that_lead_nowhere(store: Store, name: str) -> None:
    """004-44: nothing that an index names is left out in silence."""
    begins, expected = ENTRIES[name]
    member = begins if name == "recalled/a1" else f"{begins}{'0' * 16}qxqx"
    store.run("ZADD", store.base + name, 0, member)
    assert await store.refused() == expected


# Where the entry of r1 is cut in two, and what is put between.
SPOILT: dict[str, tuple[bytes, bytes]] = {
    "of another project": (b"", b"0"),
    "of another record": (b"\0r1\0", b"\0r3\0"),
    "a length that is none": (b"\x002\0", b"\0qxqx\0"),
    "a vector cut short": (b"\08\0m1\0", b"\09\0m1\0"),
    "a vector that is too long": (b"\08\0m1\0", b"\0007\0m1\0"),
    "a vector beyond the end": (b"\08\0m1\0", b"\0999999999999\0m1\0"),
    "terms cut short": (b"qxqx\t1\n", b"qxqx\t1"),
    "no terms": (b"\njava\t1\nqxqx\t1\n", b""),
}
ON_ENTRY = {"recall", "recall by other words", "index", "update"}


@pytest.mark.parametrize("name", SPOILT)
async def test_entries_of_every_shape(store: Store, name: str) -> None:
    """004-44: whoever reads a damaged entry, or puts another in its place, says so."""
    right, (before, after) = store.get("entries", "r1"), SPOILT[name]
    assert before in right
    store.put("entries", "r1", right.replace(before, after, 1) if before else after + right[1:])
    assert await store.refused() == ON_ENTRY


async def test_counts_of_every_shape(store: Store) -> None:
    """004-44: a count is looked at where its term is asked for."""
    right = store.get("entries", "r1")
    for wrong in (b"java\tqxqx\n", b"java\t\n", b"java\t-1\n", b"java\t1x\n", b"java\t0\n"):
        store.put("entries", "r1", right.replace(b"java\t1\n", wrong))
        assert await store.refused({name: CALLS[name] for name in ON_ENTRIES}) == {"recall"}, wrong
        store.put("entries", "r1", right)


async def test_documents_that_stand_in_for_others(store: Store) -> None:
    """004-44: what belongs to another record, revision, effect or project is not taken."""
    other = base_key(store.backend.prefix, project_digest(OTHER))
    of_another_project = store.run("HGET", other + "heads", "r1")
    revision_of_another = store.run("HGET", other + "revisions", "1/r1")
    foreign = [
        ("heads", "r1", store.get("heads", "d1"), ON_R1),
        ("heads", "r1", of_another_project, ON_R1),
        ("revisions", "2/r1", store.get("revisions", "1/r1"), ON_R1 - {"update"}),
        ("revisions", "2/r1", store.get("revisions", "2/d1"), ON_R1 - {"update"}),
        ("revisions", "1/r1", revision_of_another, {"load", "revisions", "brief revisions"}),
        (
            "effects",
            EFFECTS[0].receipt_id,
            store.get("effects", EFFECTS[1].receipt_id),
            ON_EFFECT,
        ),
    ]
    for key, field, value, expected in foreign:
        store.get(key, field)
        store.put(key, field, value)
        assert await store.refused({**ON_EFFECTS, **ON_HEADS}) >= expected, (key, value)
        await store.seed()
    assert await store.refused() == set()


async def test_another_effect_is_not_leased(store: Store) -> None:
    """004-42, 004-44: an effect that stands in for another is not taken, nor given back."""
    store.put("effects", EFFECTS[0].receipt_id, store.get("effects", EFFECTS[1].receipt_id))
    before = store.backend.kept()
    assert await store.refused(ON_EFFECTS) == ON_EFFECT
    assert store.backend.kept() == before


async def test_keys_of_another_type(store: Store) -> None:
    """004-41, 004-44: each key in turn is a list: who goes by it refuses and writes nothing."""
    names = [key.removeprefix(store.base.encode()) for key in store.run("KEYS", store.base + "*")]
    assert len(names) > 15
    noticed = {}
    for name in (each.decode() for each in names):
        await store.seed()
        store.run("DEL", store.base + name)
        store.run("RPUSH", store.base + name, "qxqx")
        before = store.backend.kept()
        noticed[name] = await store.refused({"update": ON_HEADS["update"]})
        assert (store.backend.kept() == before) == bool(noticed[name])
        noticed[name] |= await store.refused()
    assert all(noticed.values())
