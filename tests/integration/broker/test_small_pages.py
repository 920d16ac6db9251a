"""What a page of large records costs: what is read for it, and who else is served meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk
from tests.fixtures.large import LARGE, LARGE_BYTES, RAINBOW, large_heads, large_history
from tests.fixtures.lossy import behind
from tests.fixtures.record_calls import CREATE, GET, LIST, SEARCH, SEARCH_PROJECT
from tests.fixtures.tcp_proxy import TcpProxy

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["behind"]

COUNT: Final = 110
PAGE: Final = 100
SEARCHERS: Final = 16
OTHERS: Final = 20
REPLY_BYTES_MAX: Final = 3 * 1024 * 1024
FULL: Final = record_pb2.RECORD_VIEW_FULL
BASIC: Final = record_pb2.RECORD_VIEW_BASIC


@dataclass
class Shelf:
    """A project of large records, and what is read of it."""

    desk: Desk
    proxy: TcpProxy
    heads: list[str]
    record: str

    async def page(self, rpc: str, **changes: Any) -> tuple[Any, int]:
        """Return a page, and how many bytes came from PostgreSQL for it."""
        before = self.proxy.replied
        reply = await self.desk.done(rpc, record_id=self.record, page_size=PAGE, **changes)
        return reply, self.proxy.replied - before


@pytest.fixture(scope="module")
def stored(behind: tuple[Stand, TcpProxy]) -> tuple[str, list[str], str]:
    """A project with more than a page of heads, and a record with more than one of revisions."""
    stand, _ = behind
    project = stand.project()

    async def fill() -> tuple[str, list[str], str]:
        async with stand.channel() as channel:
            await Desk(stand, channel, project).made(content="small")
        heads = await large_heads(stand, project, COUNT)
        return project, heads, await large_history(stand, project, COUNT)

    return asyncio.run(fill())


@pytest.fixture
async def shelf(
    behind: tuple[Stand, TcpProxy], stored: tuple[str, list[str], str]
) -> AsyncIterator[Shelf]:
    """What is stored, with a channel of its own and connections that are open."""
    stand, proxy = behind
    project, heads, record = stored
    async with stand.channel() as channel:
        shelf = Shelf(Desk(stand, channel, project), proxy, heads, record)
        await shelf.page(SEARCH, view=BASIC)
        yield shelf


def entries(reply: Any) -> list[Any]:
    """Return what is on a page, of whichever RPC."""
    for name in ("records", "revisions"):
        if hasattr(reply, name):
            return [*getattr(reply, name)]
    return [hit.record for hit in reply.hits]


@pytest.mark.memories("postgres", "redis")  # Cosmos keeps texts packed, and histories in pieces
@pytest.mark.parametrize("rpc", [SEARCH, LIST, SEARCH_PROJECT])
async def test_a_page_reads_what_it_shows(shelf: Shelf, rpc: str) -> None:
    """004-66, 004-68: view BASIC reads no more than snippets, view FULL no more than a reply."""
    reply, read = await shelf.page(rpc, view=BASIC)
    shown, size = entries(reply), reply.ByteSize()
    assert (len(shown), bool(reply.next_page_token)) == (PAGE, True)
    large = [each for each in shown if each.snippet != "small"]
    assert {each.snippet for each in large} == {RAINBOW * 256}
    assert not any(each.content or each.rationale for each in shown)
    assert not any(each.facet.HasField("metadata") for each in shown)
    assert size < read < 2 * size

    reply, read = await shelf.page(rpc, view=FULL)
    count, size = len(entries(reply)), reply.ByteSize()
    assert 1 < count <= REPLY_BYTES_MAX // LARGE_BYTES + 1
    assert size < read < REPLY_BYTES_MAX + LARGE_BYTES


@pytest.mark.filterwarnings("ignore:Sending a large body")
@pytest.mark.parametrize("rpc", [SEARCH, LIST, SEARCH_PROJECT])
async def test_full_pages_join(shelf: Shelf, rpc: str) -> None:
    """004-66, 004-68: pages that were read no further than they hold leave nothing out."""
    found: list[Any] = []
    token = ""
    while not found or token:
        reply, _ = await shelf.page(rpc, view=FULL, page_token=token, agent="agent-a")
        found += entries(reply)
        token = reply.next_page_token
    large = [each for each in found if each.content != "small"]
    assert {(each.content, each.rationale) for each in large} == {(LARGE.content, LARGE.rationale)}
    if rpc == LIST:
        assert [each.revision for each in found] == list(range(COUNT, 0, -1))
    else:
        names = [each.record_id for each in large]
        assert [each for each in names if each != shelf.record] == shelf.heads
        assert len({*names}) == len(names) == COUNT + 1


@pytest.mark.memories("postgres")  # Redis serves one call at a time, and these searches take it
async def test_searches_of_large_records_hold_nobody_up(shelf: Shelf) -> None:
    """004-66: while one tenant searches without a pause another's calls come and go."""
    stand = shelf.desk.stand
    other = Desk(stand, shelf.desk.channel, stand.project())
    tenant = {"subject": "actor-b", "tenant": "tenant-b"}
    reply = await other.done(CREATE, tenant, content="theirs")
    searched, enough = 0, False

    async def search() -> None:
        nonlocal searched
        while not enough:
            await shelf.page(SEARCH, view=BASIC)
            searched += 1

    searchers = [asyncio.ensure_future(search()) for _ in range(SEARCHERS)]
    await asyncio.wait(searchers, timeout=0.5)
    before = searched
    for _ in range(OTHERS):
        await other.done(GET, tenant, record_id=reply.record.record_id)
    meanwhile = searched - before
    enough = True
    await asyncio.gather(*searchers)
    assert 0 < meanwhile < 2 * SEARCHERS * OTHERS
