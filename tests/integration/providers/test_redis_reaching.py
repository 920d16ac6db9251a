"""Who answers at the endpoint, and whether it lets the adapter in (004-37)."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from broker.devstack.processes.ports import free_port
from broker.devstack.redis import Flavour
from providers.conformance.steps import SECONDS
from providers.errors import ProviderTimeoutError, ProviderUnavailableError
from providers.redis.provider import RedisMemoryProvider
from providers.redis.rights import acl_of
from tests.fixtures.redis import RedisBackend, own_redis
from tests.fixtures.redis_proxy import RedisProxy, client_tls
from tests.integration.providers.redis_calls import (
    EVERY,
    are_unfit,
    refusal,
    refusals,
    works,
)

PASSWORD = "qxqx-password"
USER = "qxqx-user"


@asynccontextmanager
async def using(backend: RedisBackend, **given: object) -> AsyncIterator[RedisMemoryProvider]:
    provider = RedisMemoryProvider(backend.options(**given))
    try:
        yield provider
    finally:
        await provider.close()


@asynccontextmanager
async def listening(heard: bytearray, says: bytes = b"") -> AsyncIterator[str]:
    """Listen in the clear, keep what is heard, say something, and name the endpoint."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        while data := await reader.read(65536):
            heard.extend(data)
            if says:
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"rediss://localhost:{server.sockets[0].getsockname()[1]}"


async def unreachable(provider: RedisMemoryProvider) -> str:
    """Expect negotiation and every call to fail alike, and return what they say."""
    told = await refusals(provider, EVERY)
    told["negotiate"] = await refusal(provider.negotiate(timeout=SECONDS))
    assert {type(error) for error in told.values()} == {ProviderUnavailableError}
    (text,) = {str(error) for error in told.values()}
    return text


# -------------------- TLS


async def test_a_server_in_the_clear(redis_backend: RedisBackend) -> None:
    """004-37: a server that speaks no TLS gets no word of ours, and no password above all."""
    heard = bytearray()
    async with listening(heard, b"-ERR in the clear\r\n") as endpoint:
        given = {"endpoint": endpoint, "username": USER, "password": PASSWORD}
        async with using(redis_backend, **given) as provider:
            assert "does not speak TLS" in await unreachable(provider)
    assert heard
    assert PASSWORD.encode() not in heard
    assert b"AUTH" not in heard


async def test_a_real_server_in_the_clear() -> None:
    """004-37: Valkey, on a port without TLS, waits for more and is given up."""
    port = free_port()
    with own_redis(Flavour.VALKEY, port=port) as server:
        backend = RedisBackend(server)
        given: dict[str, object] = {"endpoint": f"rediss://localhost:{port}", "connect_ms": 50}
        async with using(backend, **given) as provider:
            assert await unreachable(provider) == "the server cannot be reached"


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, str]:
    """An authority and the file of its certificate."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    return made, str(tmp_path / "ca.crt")


def before(backend: RedisBackend, authority: trustme.CA, *names: str) -> RedisProxy:
    """Return a proxy that shows a certificate for these names."""
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(shown)
    here = (backend.server.host, backend.server.port)
    return RedisProxy(here, shown, client_tls(backend.server.ca_file))


@pytest.mark.parametrize(
    ("name", "host", "is_taken"),
    [
        ("localhost", "localhost", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("redis.test", "localhost", False),
        ("localhost", "127.0.0.1", False),
        ("127.0.0.1", "localhost", False),
    ],
)
async def test_the_name_in_the_certificate(
    redis_backend: RedisBackend,
    authority: tuple[trustme.CA, str],
    name: str,
    host: str,
    *,
    is_taken: bool,
) -> None:
    """004-37: it must be that of the endpoint; nothing is sent to another."""
    proxy = before(redis_backend, authority[0], name)
    async with proxy.listening():
        given = {"endpoint": f"rediss://{host}:{proxy.port}", "ca_file": authority[1]}
        async with using(redis_backend, **given) as provider:
            if is_taken:
                await works(provider)
            else:
                assert "certificate is for another host" in await unreachable(provider)
    assert bool(proxy.commands) is is_taken


@pytest.mark.parametrize("trusted", ["another", "system"])
async def test_the_authority_of_the_certificate(
    redis_backend: RedisBackend, authority: tuple[trustme.CA, str], trusted: str
) -> None:
    """004-37: it must be one of the file that is named, or of the system; nothing is sent else."""
    proxy = redis_backend.proxy()
    ca_file = authority[1] if trusted == "another" else None
    async with (
        proxy.listening(),
        using(redis_backend, endpoint=f"rediss://localhost:{proxy.port}", ca_file=ca_file) as made,
    ):
        assert "not of an authority that is trusted" in await unreachable(made)
    assert not proxy.commands


async def test_nobody_there(redis_backend: RedisBackend) -> None:
    """004-38: an endpoint where nobody listens."""
    async with listening(bytearray()) as endpoint:
        pass
    async with using(redis_backend, endpoint=endpoint) as provider:
        assert await unreachable(provider) == "the server cannot be reached"


async def test_somebody_who_says_nothing(redis_backend: RedisBackend) -> None:
    """004-38: a connection is given up after its time, and a call after its own."""
    async with listening(bytearray()) as endpoint:
        async with using(redis_backend, endpoint=endpoint, connect_ms=50) as provider:
            assert await unreachable(provider) == "the server cannot be reached"
        async with using(redis_backend, endpoint=endpoint) as provider:
            told = await refusal(provider.negotiate(timeout=0.05))
            assert type(told) is ProviderTimeoutError


# -------------------- who we are


CREDENTIALS: dict[str, dict[str, object]] = {
    "a wrong password": {"password": PASSWORD},
    "an unknown user": {"username": USER},
    "nobody": {"username": None, "password": None},
    "the default user, who is off": {"username": "default"},
}


@pytest.mark.parametrize("name", CREDENTIALS)
async def test_credentials_that_are_not_taken(redis_backend: RedisBackend, name: str) -> None:
    """004-37, 004-38: refused as a matter of rights, and what was given is not told."""
    async with using(redis_backend, **CREDENTIALS[name]) as provider:
        told = await refusals(provider, EVERY)
        told["negotiate"] = await refusal(provider.negotiate(timeout=SECONDS))
    are_unfit(told, "rights")
    assert not any("qxqx" in str(error) for error in told.values())


async def test_a_user_who_is_gone(redis_backend: RedisBackend) -> None:
    """004-38, 004-45: its connections are closed, and there are no new ones until it is back."""
    async with using(redis_backend) as provider:
        await works(provider)
        redis_backend.server.execute("ACL", "DELUSER", redis_backend.server.runtime_user)
        await refusals(provider, EVERY)  # the first of them find connections that were closed
        are_unfit(await refusals(provider, EVERY), "rights")
        redis_backend.server.set_acl(acl_of(redis_backend.prefix))
        await works(provider)


async def test_a_default_user_who_serves(redis_backend: RedisBackend) -> None:
    """004-37: user and password are optional."""
    redis_backend.server.execute("ACL", "SETUSER", "default", "on", "nopass")
    async with using(redis_backend, username=None, password=None) as provider:
        await works(provider)


async def test_what_is_not_tls_is_no_option(redis_backend: RedisBackend) -> None:
    """004-37: an endpoint in the clear is refused before anything is reached."""
    plain = redis_backend.server.endpoint.replace("rediss", "redis")
    with pytest.raises(ValueError, match="the option endpoint must be rediss"):
        redis_backend.options(endpoint=plain)
