"""What an endpoint can do wrong, and whether the breaker counts it (000-41, 6.6-15)."""

import asyncio
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from broker.domain.embedding import Embedded, NoVectors
from broker.embeddings.answers import answer_bytes_max
from broker.embeddings.remote import RemoteEmbeddings
from tests.fixtures import embedding_server as server
from tests.fixtures.embedding_server import DIMENSION, Answer, Asked
from tests.fixtures.raw_server import listening
from tests.integration.embeddings.conftest import KEY, Site, embed

BREAKER_OPEN, FAILED, TIMED_OUT = NoVectors.BREAKER_OPEN, NoVectors.FAILED, NoVectors.TIMED_OUT
SHORT = 1.0
"""Seconds after which a request that hangs is over."""
ERROR = b'{"error": {"message": "you sent: secret-text"}}'


@dataclass(frozen=True)
class Fault:
    """What is answered, what callers hear, whether two of them open the breaker."""

    answer: Answer
    counts: bool
    reason: NoVectors = FAILED


def status(line: str, headers: str = "") -> Answer:
    return server.content(ERROR, status=line, headers=headers)


async def cut_off(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Half an answer."""
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data":')
    await writer.drain()
    writer.close()


async def no_http(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Something else."""
    writer.write(b"\x00\x01\x02 secret-text\r\n\r\n")
    await writer.drain()
    writer.close()


FAULTS = {
    "500": Fault(status("500 Internal Server Error"), counts=True),
    "503": Fault(status("503 Service Unavailable"), counts=True),
    "599": Fault(status("599 Odd"), counts=True),
    "closed": Fault(server.close, counts=True),
    "cut_off": Fault(cut_off, counts=True),
    "no_http": Fault(no_http, counts=True),
    "hangs": Fault(server.hang, counts=True, reason=TIMED_OUT),
    "drips": Fault(server.drip, counts=True, reason=TIMED_OUT),
    "400": Fault(status("400 Bad Request"), counts=False),
    "401": Fault(status("401 Unauthorized"), counts=False),
    "408": Fault(status("408 Request Timeout"), counts=False),
    "413": Fault(status("413 Too Large"), counts=False),
    "429": Fault(status("429 Too Many Requests", "Retry-After: 1\r\n"), counts=False),
    "499": Fault(status("499 Odd"), counts=False),
    "redirect": Fault(status("307 Temporary", "Location: https://localhost/\r\n"), counts=False),
    "204": Fault(server.content(b"", status="204 No Content"), counts=False),
    "garbage": Fault(server.content(b"<html>secret-text"), counts=False),
    "encoded": Fault(server.content(ERROR, headers="Content-Encoding: gzip\r\n"), counts=False),
    "dimension": Fault(server.items(server.item(0, 1, 2)), counts=False),
    "count": Fault(server.items(), counts=False),
    "zero": Fault(server.items(server.item(0, 0, 0, 0)), counts=False),
    "too_large": Fault(server.content(b" " * (answer_bytes_max(1, DIMENSION) + 1)), counts=False),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_two_faults_and_the_breaker(site: Site, name: str) -> None:
    """000-41: opens after two transport failures, time-outs or 5xx, and after nothing else.

    001-02, 6.6-15: nothing is raised, and every reply says why there is no vector.
    """
    fault = FAULTS[name]
    site.server.answer = fault.answer
    remote = site.remote(timeout_s=SHORT if fault.reason is TIMED_OUT else 30)
    for _ in range(2):
        assert await embed(remote) == Embedded(reason=fault.reason)
    third = await embed(remote)
    assert third.reason is (BREAKER_OPEN if fault.counts else fault.reason)
    assert len(site.server.asked) == (2 if fault.counts else 3)
    await _recovers(site, remote, asked=len(site.server.asked), was_open=fault.counts)


async def _recovers(site: Site, remote: RemoteEmbeddings, *, asked: int, was_open: bool) -> None:
    """The endpoint is well again: at once, or after 300 seconds where the breaker opened."""
    site.server.answer = server.healthy
    if was_open:
        site.now += 299.9
        assert (await embed(remote)).reason is BREAKER_OPEN
        assert len(site.server.asked) == asked
        site.now += 0.1
    assert (await embed(remote)).vectors
    assert len(site.server.asked) == asked + 1


async def test_connection_refused(site: Site) -> None:
    """000-41: nobody listens there."""
    async with listening(_never) as port:
        pass
    remote = site.remote(url=f"https://localhost:{port}/v1")
    reasons = [(await embed(remote)).reason for _ in range(3)]
    assert reasons == [FAILED, FAILED, BREAKER_OPEN]


async def _never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    raise AssertionError


async def test_a_name_without_address(site: Site) -> None:
    """000-41: whoever cannot be found cannot be reached."""

    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError

    remote = site.remote(nowhere)
    reasons = [(await embed(remote)).reason for _ in range(3)]
    assert reasons == [FAILED, FAILED, BREAKER_OPEN]


async def test_an_answer_between_two_failures(site: Site) -> None:
    """000-41: in a row means in a row; a refusal is an answer."""
    remote = site.remote()
    for answer in (FAULTS["500"], FAULTS["429"], FAULTS["closed"], FAULTS["400"], FAULTS["503"]):
        site.server.answer = answer.answer
        assert (await embed(remote)).reason is FAILED
    site.server.answer = server.healthy
    assert (await embed(remote)).vectors


async def test_half_open_lets_one_through(site: Site) -> None:
    """000-41: of eight at once, one is sent; the others are told."""
    remote = site.remote()
    site.server.answer = FAULTS["500"].answer
    for _ in range(2):
        await embed(remote)
    site.now += 300
    found = await asyncio.gather(*(embed(remote) for _ in range(8)))
    assert sorted(str(each.reason) for each in found) == ["breaker_open"] * 7 + ["failed"]
    assert len(site.server.asked) == 3
    site.now += 299.9
    assert (await embed(remote)).reason is BREAKER_OPEN


@pytest.mark.parametrize("leaves", [False, True])
async def test_what_a_caller_ends_says_nothing_of_the_endpoint(site: Site, leaves: bool) -> None:
    """000-41: callers in a hurry, or gone, do not take the vectors of all others away."""
    remote = site.remote()
    site.server.answer = server.hang
    for number in range(1, 4):
        calling = asyncio.create_task(embed(remote, timeout=30 if leaves else SHORT))
        if leaves:
            await site.server.until(number)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        else:
            assert (await calling).reason is TIMED_OUT
    site.server.answer = server.healthy
    assert (await embed(remote)).vectors


async def test_a_trouble_is_told_once_and_without_content(site: Site) -> None:
    """No text, key or answer in the log."""
    with capture_logs() as logs:
        remote = site.remote()
        for name in ("429", "429", "garbage", "429"):
            site.server.answer = FAULTS[name].answer
            await embed(remote, "secret-text")
        site.server.answer = server.healthy
        await embed(remote, "secret-text")
        await embed(remote, "secret-text")
    assert [line.get("reason") for line in logs] == [
        "status 429",
        "the answer is not what embeddings look like",
        "status 429",
        None,
    ]
    for hidden in ("secret-text", KEY):
        assert hidden not in str(logs)


async def test_a_failing_request_of_several_leaves_no_vector(site: Site) -> None:
    """001-02: a half of the vectors is none."""

    async def second_fails(asked: Asked, writer: asyncio.StreamWriter) -> None:
        answer = server.healthy if len(site.server.asked) == 1 else FAULTS["500"].answer
        await answer(asked, writer)

    site.server.answer = second_fails
    assert await embed(site.remote(), *(["a"] * 33)) == Embedded(reason=FAILED)
    assert len(site.server.asked) == 2
