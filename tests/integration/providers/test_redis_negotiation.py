"""What makes a server unfit, at negotiation and on the next call: each named by one word."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

import pytest

from broker.devstack.processes.errors import ServerError
from providers.conformance import specimens
from providers.conformance.steps import SECONDS, load
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ResourceMismatchError,
    StoredDataInvalidError,
)
from providers.redis.keys import base_key, marker_key, project_digest
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Replayed
from tests.fixtures.redis import RedisBackend
from tests.integration.providers.redis_calls import (
    EVERY,
    PROJECT,
    expect_unfit,
    refusal,
    refusals,
    until,
    works,
)

Act = Callable[[RedisBackend], object]


@dataclass(frozen=True)
class Hazard:
    """What is wrong, how it comes and goes, and whether a write is applied all the same."""

    fact: str
    spoil: Act
    undo: Act
    applied: bool = False
    words: str = ""


def setting(fact: str, name: str, wrong: str, right: str, *, applied: bool = False) -> Hazard:
    return Hazard(
        fact,
        spoil=lambda backend: backend.server.execute("CONFIG", "SET", name, wrong),
        undo=lambda backend: backend.server.execute("CONFIG", "SET", name, right),
        applied=applied,
        words=f"{name} must be {right}",
    )


def key(backend: RedisBackend, name: str) -> str:
    return base_key(backend.prefix, project_digest(PROJECT)) + name


def run(*words: str) -> Act:
    return lambda backend: backend.server.execute(*words)


def own(command: str, name: str, *words: str) -> Act:
    return lambda backend: backend.server.execute(command, key(backend, name), *words)


def evict(backend: RedisBackend) -> None:
    """Let the server evict somebody else's key, and be as it should again."""
    run("SET", "cache", "x", "EX", "1000")(backend)
    run("CONFIG", "SET", "maxmemory-policy", "volatile-ttl", "maxmemory", "1")(backend)
    with pytest.raises(ServerError, match="maxmemory"):
        run("SET", "any", "thing")(backend)
    run("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0")(backend)
    assert backend.server.execute("EXISTS", "cache") == 0


POLICIES = [
    f"{among}-{how}"
    for among in ("allkeys", "volatile")
    for how in ("lru", "lfu", "random", "ttl")
    if (among, how) != ("allkeys", "ttl")
]
EXPIRES = "a key in the database expires"
HAZARDS = {
    "no append-only file": setting("aof", "appendonly", "no", "yes"),
    "synced each second": setting("aof", "appendfsync", "everysec", "always", applied=True),
    "never synced": setting("aof", "appendfsync", "no", "always", applied=True),
    "not synced during a rewrite": setting(
        "aof", "no-appendfsync-on-rewrite", "yes", "no", applied=True
    ),
    **{
        policy: setting("eviction", "maxmemory-policy", policy, "noeviction") for policy in POLICIES
    },
    "keys that were evicted before": Hazard(
        "eviction", evict, run("CONFIG", "RESETSTAT"), words="evicted"
    ),
    "a replica": Hazard(
        "replica",
        run("REPLICAOF", "127.0.0.1", "1"),
        run("REPLICAOF", "NO", "ONE"),
        words="the server is a replica",
    ),
    "a key of ours expires": Hazard(
        "expiring_key",
        own("EXPIRE", "heads", "1000"),
        own("PERSIST", "heads"),
        words=EXPIRES,
    ),
    "the marker expires": Hazard(
        "expiring_key",
        lambda backend: backend.server.execute("EXPIRE", marker_key(backend.prefix), 1000),
        lambda backend: backend.server.execute("PERSIST", marker_key(backend.prefix)),
        words=EXPIRES,
    ),
    "somebody else's key expires": Hazard(
        "expiring_key",
        run("SET", "somebody-else's", "cache", "EX", "1000"),
        run("DEL", "somebody-else's"),
        words=EXPIRES,
    ),
}
FIELDS = {
    "the field that is read": Hazard(
        "expiring_key",
        own("HPEXPIRE", "heads", "1000000", "FIELDS", "1", "r1"),
        own("HPERSIST", "heads", "FIELDS", "1", "r1"),
        words="a field of a hash in the database expires",
    ),
    "another field": Hazard(
        "expiring_key",
        own("HPEXPIRE", "heads", "1000000", "FIELDS", "1", "r2"),
        own("HPERSIST", "heads", "FIELDS", "1", "r2"),
        words="a field of a hash in the database expires",
    ),
    "a field of somebody else": Hazard(
        "expiring_key",
        run("HSETEX", "somebody-else's", "EX", "1000", "FIELDS", "1", "f", "v"),
        run("DEL", "somebody-else's"),
        words="a field of a hash in the database expires",
    ),
}


@pytest.fixture
async def provider(redis_backend: RedisBackend) -> AsyncIterator[RedisMemoryProvider]:
    """A provider with two records, which was seen to work."""
    made = RedisMemoryProvider(redis_backend.options())
    await works(made)
    records = (specimens.memory("r1"), specimens.memory("r2"))
    await made.commit(specimens.create(PROJECT, *records), timeout=SECONDS)
    yield made
    await made.close()


async def is_refused(provider: RedisMemoryProvider, backend: RedisBackend, hazard: Hazard) -> None:
    """Spoil the server under a provider that works, and undo it."""
    hazard.spoil(backend)
    await expect_unfit(provider, hazard.fact, applied=hazard.applied)
    told = await refusal(provider.negotiate(timeout=SECONDS))
    assert hazard.words in str(told)
    await expect_unfit_anew(backend, hazard)
    hazard.undo(backend)
    await until(lambda: not backend.is_rewriting())
    await works(provider)


async def expect_unfit_anew(backend: RedisBackend, hazard: Hazard) -> None:
    """Expect the same of a provider that never saw the server fit."""
    another = RedisMemoryProvider(backend.options())
    await expect_unfit(another, hazard.fact, applied=hazard.applied)
    await another.close()


@pytest.mark.parametrize("name", HAZARDS)
async def test_unfit_servers(
    provider: RedisMemoryProvider, redis_backend: RedisBackend, name: str
) -> None:
    """004-38, 004-39, 004-45: refused at negotiation and by each call, and taken again after it."""
    await is_refused(provider, redis_backend, HAZARDS[name])


@pytest.mark.parametrize("name", FIELDS)
async def test_fields_that_expire(valkey_backend: RedisBackend, name: str) -> None:
    """004-39: so is a server on which a field of a hash expires, touched or not (Valkey 9)."""
    provider = RedisMemoryProvider(valkey_backend.options())
    await works(provider)
    records = (specimens.memory("r1"), specimens.memory("r2"))
    await provider.commit(specimens.create(PROJECT, *records), timeout=SECONDS)
    await is_refused(provider, valkey_backend, FIELDS[name])
    await provider.close()


async def test_keys_that_expire_elsewhere(
    provider: RedisMemoryProvider, redis_backend: RedisBackend
) -> None:
    """004-39: what expires in a database of another number is nobody's concern here."""
    cache = "redis.call('SELECT', 1) return redis.call('SET', 'cache', 'x', 'EX', 1000)"
    redis_backend.server.execute("EVAL", cache, 0)
    assert redis_backend.server.execute("INFO", "keyspace")["db1"]["expires"] == 1
    await works(provider)


@pytest.mark.parametrize("number", [1, 10])
async def test_the_number_of_the_database_counts(redis_backend: RedisBackend, number: int) -> None:
    """004-37, 004-39: a resource elsewhere than in 0 is looked at where it is."""
    in_it = "redis.call('SELECT', ARGV[1]) return redis.call(unpack(ARGV, 2))"
    run_there = partial(redis_backend.server.execute, "EVAL", in_it, 0, number)
    run_there("SET", marker_key(redis_backend.prefix), '["redis-resource",1]')
    redis_backend.server.execute("SET", "cache", "x", "EX", 1000)
    made = RedisMemoryProvider(redis_backend.options(database=number))
    await works(made)
    run_there("SET", "cache", "x", "EX", 1000)
    await expect_unfit(made, "expiring_key")
    await made.close()


@pytest.mark.parametrize("name", [name for name, each in HAZARDS.items() if not each.applied])
async def test_nothing_is_written_to_an_unfit_server(
    provider: RedisMemoryProvider, redis_backend: RedisBackend, name: str
) -> None:
    """004-38: where a script can see that the server is unfit it writes nothing."""
    HAZARDS[name].spoil(redis_backend)
    late = specimens.create(PROJECT, specimens.memory("late"))
    await refusal(provider.commit(late, timeout=SECONDS))
    HAZARDS[name].undo(redis_backend)
    await until(lambda: not redis_backend.is_rewriting())
    assert (await load(provider, PROJECT, "late")).heads == {}


async def test_a_write_under_wrong_settings_is_unknown(
    provider: RedisMemoryProvider, redis_backend: RedisBackend
) -> None:
    """004-38, 004-43: it is not acknowledged, and once the server is fit the retry replays it."""
    redis_backend.server.execute("CONFIG", "SET", "appendfsync", "everysec")
    late = specimens.create(PROJECT, specimens.memory("late"))
    assert type(await refusal(provider.commit(late, timeout=SECONDS))) is OutcomeUnknownError
    redis_backend.server.execute("CONFIG", "SET", "appendfsync", "always")
    assert isinstance(await provider.commit(late, timeout=SECONDS), Replayed)
    found = await load(provider, PROJECT, "late")
    assert found.heads["late"].current.revision == 1


MARKERS: dict[str, tuple[tuple[str, ...], type[ProviderError]]] = {
    "absent": (("DEL",), ResourceMismatchError),
    "another id": (("SET", '["another",1]'), ResourceMismatchError),
    "another generation": (("SET", '["redis-resource",2]'), ResourceMismatchError),
    "another spelling": (("SET", '["redis-resource", 1]'), StoredDataInvalidError),
    "no JSON": (("SET", '["redis-resource",1'), StoredDataInvalidError),
    "too short": (("SET", '["redis-resource"]'), StoredDataInvalidError),
    "no id": (("SET", "[null,1]"), StoredDataInvalidError),
    "no generation": (("SET", '["redis-resource","1"]'), StoredDataInvalidError),
    "no UTF-8": (("SET", "\udcff"), StoredDataInvalidError),
    "empty": (("SET", ""), StoredDataInvalidError),
    "a list": (("RPUSH", '["redis-resource",1]'), StoredDataInvalidError),
}


@pytest.mark.parametrize("name", MARKERS)
async def test_markers_that_are_not_ours(
    provider: RedisMemoryProvider, redis_backend: RedisBackend, name: str
) -> None:
    """004-27, 004-44: another marker, none, or a damaged one: nothing is read or written."""
    marker = marker_key(redis_backend.prefix)
    (command, *values), kind = MARKERS[name]
    redis_backend.server.execute("DEL", marker)
    given = [value.encode("utf-8", "surrogateescape") for value in values]
    redis_backend.server.execute(command, marker, *given)
    told = [await refusal(provider.negotiate(timeout=SECONDS))]
    told += (await refusals(provider, EVERY)).values()
    assert {type(error) for error in told} == {kind}
    redis_backend.server.execute("DEL", marker)
    redis_backend.mark()
    await works(provider)


@pytest.mark.parametrize("given", [{"resource_id": "another"}, {"generation": 2}])
async def test_options_of_another_resource(
    redis_backend: RedisBackend, given: dict[str, object]
) -> None:
    """004-27: so it is when the options are those of another resource."""
    made = RedisMemoryProvider(redis_backend.options(**given))
    assert type(await refusal(made.negotiate(timeout=SECONDS))) is ResourceMismatchError
    told = await refusals(made, EVERY)
    assert {type(error) for error in told.values()} == {ResourceMismatchError}
    await made.close()
