"""The marker: written once by an operator, and never over another (004-27)."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from broker.devstack.processes.ports import free_port
from broker.devstack.redis import Flavour
from providers.conformance.steps import SECONDS
from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderUnavailableError,
    ResourceMismatchError,
    StoredDataInvalidError,
)
from providers.redis.keys import marker_key
from providers.redis.provider import RedisMemoryProvider
from providers.redis.resource import init_resource
from tests.fixtures.redis import RESOURCE, RedisBackend, own_redis
from tests.integration.providers.redis_calls import refusal

OPERATOR = "~test:* +get +info +select +set"
"""What ``deploy/redis/users.acl`` grants an operator, on the prefix of a test."""


def address(backend: RedisBackend, *, database: int = 0, **changes: object) -> str:
    server = backend.server
    given = {
        "user": server.runtime_user,
        "password": server.runtime_password,
        "port": server.port,
        "ca_file": server.ca_file,
        **changes,
    }
    who = f"{quote(str(given['user']))}:{quote(str(given['password']))}"
    where = f"localhost:{given['port']}/{database}"
    return f"rediss://{who}@{where}?ca_file={given['ca_file']}&key_prefix={backend.prefix}"


async def init(backend: RedisBackend, resource_id: str, generation: int, **given: Any) -> None:
    await init_resource(address(backend, **given), resource_id, generation)


def marker(backend: RedisBackend) -> bytes | None:
    found: bytes | None = backend.server.execute("GET", marker_key(backend.prefix))
    return found


@pytest.fixture
def empty(redis_backend: RedisBackend) -> RedisBackend:
    """A place for a resource that has none, and an operator who may make one."""
    redis_backend.server.execute("FLUSHALL")
    redis_backend.server.set_acl(OPERATOR)
    return redis_backend


async def serves(backend: RedisBackend, **given: object) -> None:
    backend.reset_rights()
    provider = RedisMemoryProvider(backend.options(**given))
    negotiated = await provider.negotiate(timeout=SECONDS)
    assert negotiated.resource == RESOURCE
    await provider.close()


@pytest.mark.parametrize("database", [0, 15])
async def test_a_marker_is_written(empty: RedisBackend, database: int) -> None:
    """004-27: an operator with no more rights than the shipped list writes what is served later."""
    await init(empty, RESOURCE.resource_id, RESOURCE.generation, database=database)
    assert (marker(empty) is not None) is (database == 0)
    await serves(empty, database=database)


async def test_a_marker_that_says_the_same(empty: RedisBackend) -> None:
    """004-27: it is left as it is, and told apart from another."""
    await init(empty, "r", 3)
    before = marker(empty)
    told = await refusal(init(empty, "r", 3))
    assert isinstance(told, NegotiationRefusedError)
    assert told.fact == "marker"
    assert marker(empty) == before == b'["r",3]'


@pytest.mark.parametrize(("resource_id", "generation"), [("r", 4), ("r", 2), ("s", 3), ("R", 3)])
async def test_a_marker_that_says_something_else(
    empty: RedisBackend, resource_id: str, generation: int
) -> None:
    """004-27: another resource or another generation is never written over."""
    await init(empty, "r", 3)
    told = await refusal(init(empty, resource_id, generation))
    assert type(told) is ResourceMismatchError
    assert marker(empty) == b'["r",3]'


async def test_one_of_two_operators_is_first(empty: RedisBackend) -> None:
    """004-27: of two at once one writes and the other is refused."""
    made = [init(empty, name, 1) for name in ("one", "other")]
    outcomes = await asyncio.gather(*made, return_exceptions=True)
    assert [type(each) for each in outcomes].count(ResourceMismatchError) == 1
    winner = b'["one",1]' if outcomes[0] is None else b'["other",1]'
    assert marker(empty) == winner


@pytest.mark.parametrize("value", ["", "x", '["r", 1]'])
async def test_a_marker_that_is_damaged(empty: RedisBackend, value: str) -> None:
    empty.server.execute("SET", marker_key(empty.prefix), value)
    assert type(await refusal(init(empty, "r", 1))) is ResourceMismatchError
    assert marker(empty) == value.encode()


async def test_a_marker_that_is_a_list(empty: RedisBackend) -> None:
    empty.server.execute("RPUSH", marker_key(empty.prefix), "x")
    assert type(await refusal(init(empty, "r", 1))) is StoredDataInvalidError
    assert empty.server.execute("LLEN", marker_key(empty.prefix)) == 1


@pytest.mark.parametrize("given", [{"password": "wrong"}, {"user": "nobody"}])
async def test_credentials_that_are_not_taken(
    empty: RedisBackend, given: dict[str, object]
) -> None:
    """004-37: who is not let in writes nothing."""
    are_rights(await refusal(init(empty, "r", 1, **given)))
    assert marker(empty) is None


async def test_the_user_that_serves_writes_no_marker(empty: RedisBackend) -> None:
    """004-38: it has no right to: an operator's user is needed."""
    empty.reset_rights()
    are_rights(await refusal(init(empty, "r", 1)))
    assert marker(empty) is None


def are_rights(told: ProviderError) -> None:
    assert isinstance(told, NegotiationRefusedError)
    assert told.fact == "rights"


async def test_nobody_there(empty: RedisBackend) -> None:
    told = await refusal(init(empty, "r", 1, port=free_port()))
    assert type(told) is ProviderUnavailableError
    assert "cannot be reached" in str(told)


async def test_a_replica_is_given_no_marker(empty: RedisBackend) -> None:
    empty.server.execute("REPLICAOF", "127.0.0.1", "1")
    told = await refusal(init(empty, "r", 1))
    assert isinstance(told, NegotiationRefusedError)
    assert told.fact == "replica"


async def test_one_of_a_cluster_is_given_no_marker() -> None:
    settings: dict[str, str | int] = {"cluster-enabled": "yes", "cluster-port": free_port()}
    with own_redis(Flavour.REDIS, **settings) as server:
        told = await refusal(init(RedisBackend(server), "r", 1))
        assert isinstance(told, NegotiationRefusedError)
        assert told.fact == "cluster"


@pytest.mark.parametrize(
    "wrong",
    [
        "redis://u:qxqx@localhost:1/0",
        "rediss://u:qxqx@localhost/0",
        "rediss://u:qxqx@localhost:1/16",
        "rediss://u:qxqx@localhost:1/0?qxqx=1",
        "qxqx",
    ],
)
async def test_addresses_that_are_none(wrong: str) -> None:
    """004-37: refused before anything is reached, and not repeated."""
    with pytest.raises(ValueError, match=r"the address is not|the option") as refused:
        await init_resource(wrong, "r", 1)
    assert "qx" not in str(refused.value)


@pytest.mark.parametrize(("resource_id", "generation"), [("", 1), ("a b", 1), ("r", 0)])
async def test_resources_that_are_none(
    empty: RedisBackend, resource_id: str, generation: int
) -> None:
    with pytest.raises(ValueError, match="the option"):
        await init(empty, resource_id, generation)
    assert marker(empty) is None
