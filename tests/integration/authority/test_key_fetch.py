"""Key sets over https, against a real server with a certificate of our own (004-12)."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker.authority import keys as keys_module
from broker.authority.issuers import KeysUrl, TrustedIssuer
from broker.authority.jwk import DOCUMENT_BYTES_MAX
from broker.authority.keys import HttpsKeys, KeySource, key_source
from broker.authority.tokens import TokenVerifier
from broker.domain.errors import KeysUnavailableError, TokenInvalidError
from tests.fixtures import forged_tokens as forge
from tests.fixtures.key_server import KeyServer, body, close

EC = forge.Signer(forge.private_key("EC", "a"), "one", "ES256")
NEXT = forge.Signer(forge.private_key("EC", "next"), "two", "ES256")
ONE = forge.key_set(forge.public_jwk(EC.key, "one"))
BOTH = forge.key_set(forge.public_jwk(EC.key, "one"), forge.public_jwk(NEXT.key, "two"))


@pytest.fixture
def clocks() -> forge.Clocks:
    return forge.Clocks()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[KeyServer]:
    async with KeyServer(tmp_path).running() as running:
        running.answer = body(ONE)
        yield running


@pytest.fixture
async def keys(server: KeyServer, clocks: forge.Clocks) -> AsyncIterator[KeySource]:
    source = key_source(KeysUrl(server.url, server.ca_file), clocks.monotonic)
    yield source
    await source.aclose()


async def settled(source: KeySource) -> None:
    """Wait for a fetch in the background."""
    assert isinstance(source, HttpsKeys)
    if source._fetching is not None:
        await source._fetching


async def test_keys_are_fetched_once_and_used(server: KeyServer, keys: KeySource) -> None:
    """004-12: fetched when first needed, then kept."""
    for _ in range(3):
        assert set((await keys.current()).keys) == {"one"}
    assert len(server.requests) == 1
    assert b"authorization" not in server.requests[0].lower()


async def test_one_fetch_in_flight(server: KeyServer, keys: KeySource) -> None:
    """004-12: a hundred callers wait for the same fetch."""
    await asyncio.gather(*(keys.current() for _ in range(50)), *(keys.renewed() for _ in range(50)))
    assert len(server.requests) == 1


async def test_caller_who_leaves_does_not_stop_the_fetch(
    server: KeyServer, keys: KeySource
) -> None:
    """004-12: the fetch belongs to nobody."""
    impatient = asyncio.create_task(keys.current())
    patient = asyncio.create_task(keys.current())
    await server.asked.wait()
    impatient.cancel()
    assert set((await patient).keys) == {"one"}
    assert impatient.cancelled() or impatient.done()
    assert len(server.requests) == 1


async def test_old_keys_are_renewed_in_the_background(
    server: KeyServer, keys: KeySource, clocks: forge.Clocks
) -> None:
    """004-12: after five minutes, while the known keys go on serving."""
    first = await keys.current()
    clocks.advance(301)
    server.answer = body(BOTH)
    assert (await keys.current()) is first
    await settled(keys)
    second = await keys.current()
    assert set(second.keys) == {"one", "two"}
    assert second.generation == first.generation + 1


async def test_same_keys_make_no_new_generation(keys: KeySource, clocks: forge.Clocks) -> None:
    """004-12: cached signatures survive a renewal that changed nothing."""
    first = await keys.current()
    clocks.advance(301)
    await keys.current()
    await settled(keys)
    clocks.advance(301)
    assert (await keys.current()) is first


async def test_unreachable_and_older_than_ten_minutes(
    server: KeyServer, keys: KeySource, clocks: forge.Clocks
) -> None:
    """004-12: good for ten minutes, then unavailable, then good again with the server."""
    await keys.current()
    server.answer = close
    clocks.advance(600)
    assert set((await keys.current()).keys) == {"one"}
    await settled(keys)
    clocks.advance(5)
    with pytest.raises(KeysUnavailableError):
        await keys.current()
    asked = len(server.requests)
    with pytest.raises(KeysUnavailableError):
        await keys.current()
    assert len(server.requests) == asked, "a server in trouble is asked once in five seconds"
    server.answer = body(ONE)
    clocks.advance(5)
    assert set((await keys.current()).keys) == {"one"}


REFUSED = {
    "redirect": body(b"", status="302 Found", headers="Location: https://localhost/\r\n"),
    "not_found": body(ONE, status="404 Not Found"),
    "no_content": body(b"", status="204 No Content"),
    "error": body(ONE, status="500 Internal Server Error"),
    "one_byte_too_large": body(ONE + b" " * (DOCUMENT_BYTES_MAX - len(ONE) + 1)),
    "encoded": body(gzip.compress(ONE), headers="Content-Encoding: gzip\r\n"),
    "closed": close,
    "not_json": body(b"<html>"),
    "no_usable_key": body(b'{"keys":[]}'),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_answers_that_are_refused(server: KeyServer, keys: KeySource, name: str) -> None:
    """004-12: nothing but one plain, small, well-formed answer counts; nothing is followed."""
    server.answer = REFUSED[name]
    with capture_logs() as logs, pytest.raises(KeysUnavailableError):
        await keys.current()
    assert len(server.requests) == 1
    (line,) = logs
    assert line["event"] in {"key set cannot be used", "key set cannot be fetched"}
    assert "html" not in str(line)


async def test_trouble_is_told_when_it_changes(
    server: KeyServer, keys: KeySource, clocks: forge.Clocks
) -> None:
    """An operator reads once why keys cannot be had, not at each attempt."""
    with capture_logs() as logs:
        for name in ("error", "error", "not_json", "not_json", "error"):
            server.answer = REFUSED[name]
            with pytest.raises(KeysUnavailableError):
                await keys.current()
            clocks.advance(5)
    assert [line["reason"] for line in logs] == [
        "the answer has status 500",
        "malformed",
        "the answer has status 500",
    ]


async def test_redirects_are_not_followed(server: KeyServer, keys: KeySource) -> None:
    """004-12: not even to where the right keys are."""
    answers = [
        body(b"", status="302 Found", headers=f"Location: {server.url}\r\n"),
        body(ONE),
    ]

    async def answer(writer: asyncio.StreamWriter) -> None:
        await answers.pop(0)(writer)

    server.answer = answer
    with pytest.raises(KeysUnavailableError):
        await keys.current()
    assert len(server.requests) == 1


async def test_endless_answer_is_cut_off(server: KeyServer, keys: KeySource) -> None:
    """004-12: the size is bounded while the answer comes in, not afterwards."""
    sent = 0

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while sent < 64 * DOCUMENT_BYTES_MAX:
            writer.write(b" " * 65_536)
            await writer.drain()
            sent += 65_536

    server.answer = answer
    with pytest.raises(KeysUnavailableError):
        await keys.current()
    assert sent < 64 * DOCUMENT_BYTES_MAX


async def test_largest_answer(server: KeyServer, keys: KeySource) -> None:
    """004-12: 256 KiB are read."""
    server.answer = body(ONE + b" " * (DOCUMENT_BYTES_MAX - len(ONE)))
    assert set((await keys.current()).keys) == {"one"}


@pytest.mark.parametrize("drip", [b"", b"H"], ids=["hangs", "drips"])
async def test_slow_server(
    server: KeyServer, keys: KeySource, drip: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-12: the whole fetch is bounded, however it is slow."""
    monkeypatch.setattr(keys_module, "FETCH_S", 0.2)
    left = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        while not left.is_set():
            writer.write(drip)
            await writer.drain()
            await asyncio.sleep(0.02)

    server.answer = answer
    with pytest.raises(KeysUnavailableError):
        await keys.current()
    left.set()


async def test_certificate_of_nobody_we_trust(server: KeyServer, clocks: forge.Clocks) -> None:
    """004-12: without the right root certificate there are no keys, and no request either."""
    source = key_source(KeysUrl(server.url), clocks.monotonic)
    with pytest.raises(KeysUnavailableError):
        await source.current()
    await source.aclose()
    assert server.requests == []


async def test_certificate_of_another_host(server: KeyServer, clocks: forge.Clocks) -> None:
    """004-12: the name in the certificate counts."""
    url = server.url.replace("localhost", "127.0.0.1")
    source = key_source(KeysUrl(url, server.ca_file), clocks.monotonic)
    with pytest.raises(KeysUnavailableError):
        await source.current()
    await source.aclose()


async def test_proxies_of_the_environment_are_ignored(
    server: KeyServer, clocks: forge.Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-12: keys come straight from where the settings say."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    source = key_source(KeysUrl(server.url, server.ca_file), clocks.monotonic)
    assert set((await source.current()).keys) == {"one"}
    await source.aclose()


@pytest.fixture
async def verifier(server: KeyServer, clocks: forge.Clocks) -> AsyncIterator[TokenVerifier]:
    made = TokenVerifier(
        [
            TrustedIssuer(
                issuer=forge.ISSUER,
                audience=forge.AUDIENCE,
                algorithms=frozenset({"ES256"}),
                keys=KeysUrl(server.url, server.ca_file),
            )
        ],
        wall=clocks.wall,
        monotonic=clocks.monotonic,
    )
    yield made
    await made.aclose()


async def test_unknown_keys_fetch_once_in_thirty_seconds(
    server: KeyServer, verifier: TokenVerifier, clocks: forge.Clocks
) -> None:
    """004-12: a new key is found without waiting for the old ones to age; a flood is harmless."""
    await verifier.load()
    server.answer = body(BOTH)
    unknown = [f"Bearer {NEXT.token(sub=f'actor-{n}')}" for n in range(20)]
    for authorization in unknown:
        with pytest.raises(TokenInvalidError, match="key"):
            await verifier.verify([authorization], [])
    assert len(server.requests) == 1
    clocks.advance(30)
    assert (await verifier.verify([unknown[0]], [])).subject == "actor-0"
    assert len(server.requests) == 2
    nobody = f"Bearer {EC.token(head=EC.header(kid='nobody'))}"
    for _ in range(5):
        with pytest.raises(TokenInvalidError, match="key"):
            await verifier.verify([nobody], [])
    assert len(server.requests) == 2


async def test_unknown_key_while_the_server_is_away(
    server: KeyServer, verifier: TokenVerifier, clocks: forge.Clocks
) -> None:
    """004-12: nobody knows whether the key exists, so it is not said that it does not."""
    await verifier.load()
    known = f"Bearer {EC.token()}"
    server.answer = close
    clocks.advance(30)
    with pytest.raises(KeysUnavailableError):
        await verifier.verify([f"Bearer {NEXT.token()}"], [])
    assert (await verifier.verify([known], [])).subject == "actor-a"


async def test_cached_signature_needs_keys_that_are_young_enough(
    server: KeyServer, verifier: TokenVerifier, clocks: forge.Clocks
) -> None:
    """004-12: a revoked key must not live on in the cache of signatures."""
    await verifier.load()
    server.answer = close
    clocks.advance(599)
    token = f"Bearer {EC.token(exp=int(forge.NOW) + 3600)}"
    await verifier.verify([token], [])
    clocks.advance(6)
    with pytest.raises(KeysUnavailableError):
        await verifier.verify([token], [])


async def test_closing_stops_a_fetch(server: KeyServer, clocks: forge.Clocks) -> None:
    """004-12: nothing runs on after the end."""
    left = asyncio.Event()

    async def answer(_: asyncio.StreamWriter) -> None:
        await left.wait()

    server.answer = answer
    source = key_source(KeysUrl(server.url, server.ca_file), clocks.monotonic)
    waiting = asyncio.create_task(source.current())
    await server.asked.wait()
    await source.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    left.set()
