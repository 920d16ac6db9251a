"""A server that is configured as deploy/redis says is one that the broker takes."""

import pytest

from broker.devstack.redis import Flavour, RedisServer
from providers.conformance import specimens
from providers.conformance.steps import SECONDS
from providers.model import ProjectKey, ResourceIdentity
from providers.redis.provider import RedisMemoryProvider
from providers.redis.resource import init_resource
from providers.redis.rights import acl_of
from providers.requests import Committed
from tests.deploy.files import DEPLOY
from tests.fixtures.redis import RedisBackend, own_redis

# What names paths, addresses and files of the machine; the server of a test has its own.
OWN = {"bind", "port", "tls-port", "aclfile", "dir", "tls-auth-clients"}
RESOURCE = ResourceIdentity("redis-resource", 1)
PROJECT = ProjectKey("t1", "p1")


def shipped_settings() -> dict[str, str]:
    lines = (DEPLOY / "redis" / "redis.conf").read_text(encoding="utf-8").splitlines()
    words = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {
        name: value
        for name, value in words
        if name not in OWN and not name.endswith(("-file", "-cert-file"))
    }


def shipped_users() -> dict[str, str]:
    lines = (DEPLOY / "redis" / "users.acl").read_text(encoding="utf-8").splitlines()
    words = [line.split(maxsplit=2) for line in lines]
    assert all(first == "user" for first, *_ in words)
    return {name: rules for _, name, rules in words}


def rules_of(name: str) -> str:
    begin = "reset on #HASH "
    rules = shipped_users()[name]
    assert rules.startswith(begin)
    return rules.removeprefix(begin)


def address(server: RedisServer) -> str:
    who = f"{server.runtime_user}:{server.runtime_password}"
    return f"rediss://{who}@localhost:{server.port}/0?ca_file={server.ca_file}"


@pytest.mark.parametrize("flavour", list(Flavour))
async def test_shipped_server_is_taken(flavour: Flavour) -> None:
    """004-37, 004-38: the configuration and the access list fit, and are enough."""
    with own_redis(flavour, **shipped_settings()) as server:
        server.execute("ACL", "SETUSER", "default", *shipped_users()["default"].split())
        server.set_acl(rules_of("operator"))
        await init_resource(address(server), RESOURCE.resource_id, RESOURCE.generation)
        server.set_acl(rules_of("broker"))
        backend = RedisBackend(server, "agentweaver:knowledge")
        provider = RedisMemoryProvider(backend.options())
        try:
            await provider.negotiate(timeout=SECONDS)
            await provider.ready(timeout=SECONDS)
            made = specimens.create(PROJECT, specimens.memory("r1"))
            assert await provider.commit(made, timeout=SECONDS) == Committed()
        finally:
            await provider.close()


def test_access_list_is_what_the_adapter_needs() -> None:
    """004-37: the list that is shipped is the one that the tests of the adapter run with."""
    assert rules_of("broker") == acl_of()
