"""How an endpoint is asked: what is sent, and where to (000-41, 001-40)."""

import asyncio
import math
import struct

import pytest

from broker.domain.embedding import NoVectors
from broker.embeddings.addresses import Resolve
from tests.fixtures import embedding_server as server
from tests.fixtures.embedding_server import DIMENSION, Asked
from tests.integration.embeddings.conftest import KEY, SECONDS, Site, embed


def to(*addresses: str) -> Resolve:
    """Every name has these addresses."""

    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


async def test_the_request(site: Site) -> None:
    """001-40: model and texts; the key in its header and nowhere else."""
    embedded = await embed(site.remote(), "one", "ünö\n\"'")
    (asked,) = site.server.asked
    assert asked.head.startswith("POST /v1/embeddings HTTP/1.1\r\n")
    assert asked.document == {"model": "model-1", "input": ["one", "ünö\n\"'"]}
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["host"] == f"localhost:{site.server.port}"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.head.count(KEY) == 1
    assert [vector.model for vector in embedded.vectors] == ["model-1"] * 2
    assert {vector.dimension for vector in embedded.vectors} == {DIMENSION}
    first = struct.unpack("<3f", embedded.vectors[0].packed)
    assert first == pytest.approx([3 / math.sqrt(10), 1 / math.sqrt(10), 0])


async def test_no_key_no_header(site: Site) -> None:
    assert (await embed(site.remote(key=None))).vectors
    assert "authorization" not in site.server.asked[0].headers


async def test_the_key_is_not_in_what_is_printed(site: Site) -> None:
    remote = site.remote()
    assert KEY not in repr(remote._endpoint.options)


async def test_long_texts_are_cut_off(site: Site) -> None:
    """Models refuse what is longer than they take."""
    await embed(site.remote(code_points_max=4), "1234", "12345", "😀" * 5)
    assert site.server.asked[0].texts == ["1234", "1234", "😀" * 4]


@pytest.mark.parametrize(("count", "requests"), [(1, [1]), (32, [32]), (33, [32, 1])])
async def test_32_texts_go_in_one_request(site: Site, count: int, requests: list[int]) -> None:
    """001-40: order holds over all of them."""
    texts = ["x" * (number + 1) for number in range(count)]
    embedded = await embed(site.remote(), *texts)
    assert [len(asked.texts) for asked in site.server.asked] == requests
    slopes = [struct.unpack("<3f", vector.packed) for vector in embedded.vectors]
    assert [round(x / y) for x, y, _ in slopes] == [len(text) for text in texts]


async def test_100_texts(site: Site) -> None:
    assert len((await embed(site.remote(), *(["a"] * 100))).vectors) == 100
    with pytest.raises(ValueError, match="1-100 texts"):
        await embed(site.remote(), *(["a"] * 101))


async def test_eight_requests_run_at_once(site: Site) -> None:
    """What waits for its turn is not held against the endpoint."""
    go = asyncio.Event()

    async def held(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await go.wait()
        await server.healthy(asked, writer)

    site.server.answer = held
    remote = site.remote()
    asked = [asyncio.create_task(embed(remote, f"text {n}")) for n in range(20)]
    await site.server.until(8)
    late = await embed(remote, "late", timeout=0.05)
    assert late.reason is NoVectors.TIMED_OUT
    assert len(site.server.asked) == 8
    go.set()
    assert all(each.vectors for each in await asyncio.gather(*asked))
    assert "late" not in [text for each in site.server.asked for text in each.texts]
    assert site.server.connections <= 8


async def test_the_address_that_was_looked_at_is_called(site: Site) -> None:
    """000-41: a name is resolved once for a request; what it says later leads nowhere.

    The certificate still is for the name.
    """
    url = f"https://model.test:{site.server.port}/v1"
    remote = site.remote(to("127.0.0.1"), url=url)
    assert (await embed(remote)).vectors
    assert site.names == [("model.test", site.server.port)]
    assert site.server.asked[0].headers["host"] == f"model.test:{site.server.port}"


@pytest.mark.parametrize(
    "addresses",
    [
        ("169.254.169.254",),
        ("127.0.0.1", "169.254.169.254"),
        ("127.0.0.1", "::ffff:169.254.169.254"),
        ("127.0.0.1", "100.100.100.200"),
    ],
)
async def test_a_name_that_leads_to_a_metadata_service(
    site: Site, addresses: tuple[str, ...]
) -> None:
    """000-41: refused as a whole after resolution, every time; that opens no breaker."""
    remote = site.remote(to(*addresses))
    reasons = {(await embed(remote)).reason for _ in range(3)}
    assert reasons == {NoVectors.FAILED}
    assert site.server.connections == 0
    assert len(site.names) == 3


async def test_this_machine_only_where_allowed(site: Site) -> None:
    remote = site.remote(allow_loopback=False)
    assert (await embed(remote)).reason is NoVectors.FAILED
    assert site.server.connections == 0


async def test_the_next_address_where_one_refuses(site: Site) -> None:
    """A name has several addresses, and not all must serve: loopback 2 does not."""
    url = f"https://model.test:{site.server.port}/v1"
    assert (await embed(site.remote(to("127.0.0.2", "127.0.0.1"), url=url))).vectors
    assert len(site.server.asked) == 1


async def test_the_name_in_the_certificate_counts(site: Site) -> None:
    """000-41: whoever holds the address but not the name is told nothing."""
    url = f"https://other.test:{site.server.port}/v1"
    assert (await embed(site.remote(to("127.0.0.1"), url=url))).reason is NoVectors.FAILED
    assert site.server.asked == []


async def test_the_authority_counts(site: Site) -> None:
    """000-41: without the test's own authority no text leaves."""
    assert (await embed(site.remote(ca_file=None))).reason is NoVectors.FAILED
    assert site.server.asked == []


async def test_proxies_of_the_environment_are_ignored(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """000-41: texts go straight to the endpoint."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert (await embed(site.remote())).vectors


async def test_redirects_are_not_followed(site: Site) -> None:
    """000-41: not even to where the endpoint is: key and texts stay."""
    answers = [
        server.content(b"", status="307 Temporary", headers=f"Location: {site.server.url}\r\n"),
        server.healthy,
    ]

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await answers.pop(0)(asked, writer)

    site.server.answer = answer
    assert (await embed(site.remote())).reason is NoVectors.FAILED
    assert len(site.server.asked) == 1


async def test_an_endless_answer_is_cut_off(site: Site) -> None:
    """000-41: its size is bounded while it comes in."""
    sent = 0

    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while sent < 1 << 26:
            writer.write(b" " * 65_536)
            await writer.drain()
            sent += 65_536

    site.server.answer = endless
    assert (await embed(site.remote())).reason is NoVectors.FAILED
    assert sent < 1 << 26


async def test_closing_stops_the_probe(site: Site) -> None:
    """Nothing runs on after the end."""
    site.server.answer = server.hang
    remote = site.remote()
    remote.start()
    await site.server.until(1)
    assert site.server.asked[0].texts == ["probe"]
    await asyncio.wait_for(remote.aclose(), SECONDS)
