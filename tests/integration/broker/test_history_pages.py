"""Pages of a history over the wire: sizes, tokens, and what a token is bound to."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pytest
from grpc import aio

from tests.fixtures.broker import Stand
from tests.fixtures.record_calls import CREATE, LIST, UPDATE, Refused, refused, request, send

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

INVALID: Final = ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID")
REPLY_BYTES_MAX: Final = 3 * 1024 * 1024


@dataclass
class History:
    """One record with a history."""

    stand: Stand
    channel: aio.Channel
    project: str
    record: str = ""
    length: int = 0

    async def grow(self, length: int, **changes: Any) -> None:
        """Add revisions up to a length."""
        for number in range(self.length + 1, length + 1):
            rpc = UPDATE if self.length else CREATE
            given: dict[str, Any] = {
                "record_id": self.record,
                "expected_revision": self.length,
                "idempotency_key": f"key-{number}",
            }
            message = request(rpc, self.project, **(given | changes))
            reply = await send(self.channel, rpc, message, self.stand.metadata())
            self.record, self.length = reply.record.record_id, number

    def message(self, **changes: Any) -> Any:
        """Return a request for a page."""
        return request(LIST, self.project, **({"record_id": self.record} | changes))

    async def page(self, **changes: Any) -> Any:
        """Return a page."""
        reply = await send(self.channel, LIST, self.message(**changes), self.stand.metadata())
        assert not isinstance(reply, Refused), reply
        assert reply.ByteSize() <= REPLY_BYTES_MAX
        return reply

    async def pages(self, **changes: Any) -> list[list[int]]:
        """Return the numbers on every page, until the token is empty."""
        pages, token = [], ""
        for _ in range(self.length + 1):
            reply = await self.page(page_token=token, **changes)
            pages.append([entry.revision for entry in reply.revisions])
            token = reply.next_page_token
            assert len(token.encode()) <= 512
            if not token:
                return pages
        raise AssertionError("the pages do not end")


@pytest.fixture
async def history(stand: Stand) -> AsyncIterator[History]:
    """A record that does not exist yet."""
    async with stand.channel() as channel:
        yield History(stand, channel, stand.project())


async def test_page_sizes(history: History) -> None:
    """004-68: 0 means 50, more than 100 means 100; the end has an empty token, and only the end."""
    await history.grow(102)
    every = list(range(102, 0, -1))
    for size, first in ((0, 50), (50, 50), (99, 99), (100, 100), (101, 100), (2**31 - 1, 100)):
        pages = await history.pages(page_size=size)
        assert [len(page) for page in pages[:-1]] == [first] * (len(pages) - 1)
        assert [*chain.from_iterable(pages)] == every
    for size in (51, 34):
        pages = await history.pages(page_size=size)
        assert [*chain.from_iterable(pages)] == every
        assert len(pages) == 102 // size, "an exact multiple has no empty page behind it"
    for size in (-1, -(2**31)):
        message = history.message(page_size=size)
        reply = await refused(history.channel, LIST, message, history.stand.metadata())
        assert reply.violations == {"page_size": "must not be negative"}


async def test_pages_while_the_record_changes(history: History) -> None:
    """004-68: what was there is neither skipped nor repeated; a page may be of another size."""
    await history.grow(7)
    first = await history.page(page_size=3)
    await history.grow(9)
    second = await history.page(page_size=2, page_token=first.next_page_token)
    third = await history.page(page_token=second.next_page_token)
    seen = [entry.revision for page in (first, second, third) for entry in page.revisions]
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    assert third.next_page_token == ""
    again = await history.page(page_size=2, page_token=first.next_page_token)
    assert again == second


async def test_large_revisions(history: History) -> None:
    """004-68: a page ends early rather than to exceed 3 MiB, and nothing is lost."""
    await history.grow(22, content="\U0001f308" * 40_000)
    pages = await history.pages(page_size=100)
    assert len(pages) > 1
    assert [*chain.from_iterable(pages)] == list(range(22, 0, -1))


async def test_a_token_is_bound_to_its_request(history: History) -> None:
    """004-56, 004-68: another tenant, project, run, agent or record refuses it."""
    await history.grow(3)
    token = (await history.page(page_size=1)).next_page_token
    decoded = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    for name in (history.project, history.record, "run-a", "agent-a", "tenant-a"):
        assert name not in decoded
    other = History(history.stand, history.channel, history.stand.project())
    await other.grow(2)
    says = history.stand.metadata()
    changed = (
        (history.message(page_token=token, run="run-b"), says),
        (history.message(page_token=token, run="RUN-A"), says),
        (history.message(page_token=token, agent="agent-b"), says),
        (history.message(page_token=token, record_id=other.record), says),
        (history.message(page_token=token, record_id=history.record.upper()), says),
        (other.message(page_token=token), says),
        (other.message(page_token=token, record_id=history.record), says),
        (
            history.message(page_token=token),
            history.stand.metadata(history.stand.identity.token(tenant="tenant-b")),
        ),
    )
    for message, metadata in changed:
        reply = await refused(history.channel, LIST, message, metadata)
        assert (reply.code, reply.reason) == INVALID
        assert token not in reply.text()
    token_of_another_caller = history.stand.metadata(history.stand.identity.token("actor-b"))
    reply = await send(
        history.channel, LIST, history.message(page_token=token), token_of_another_caller
    )
    assert not isinstance(reply, Refused), "authority decides who reads, not the token"


async def test_what_is_no_token(history: History) -> None:
    """004-68: whatever is not exactly a token is refused, and nothing of it is repeated."""
    await history.grow(3)
    token = (await history.page(page_size=1)).next_page_token
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))

    def encoded(text: bytes) -> str:
        return base64.urlsafe_b64encode(text).rstrip(b"=").decode()

    wrong = [
        token[:-1],
        token[1:],
        token + "A",
        token.swapcase(),
        "x",
        "a" * 513,
        "\u00e4",
        " ",
        "%00",
        encoded(b"[]"),
        encoded(b"null"),
        encoded(b"[" * 300),
        encoded(raw.replace(b"[1,", b"[2,", 1)),
        encoded(raw.replace(b"[3]", b"[0]")),
        encoded(raw.replace(b"[3]", b"[-1]")),
        encoded(raw.replace(b"[3]", b"[]")),
        encoded(raw.replace(b"[3]", b"[3,3]")),
        encoded(raw.replace(b"[3]", b'["3"]')),
        encoded(raw.replace(b"[3]", b"[3.0]")),
        encoded(raw.replace(b"[3]", b"[99999999999999999999]")),
    ]
    assert len({*wrong, token}) == len(wrong) + 1
    for one in wrong:
        message = history.message(page_token=one)
        reply = await refused(history.channel, LIST, message, history.stand.metadata())
        assert (reply.code, reply.reason) == INVALID, one
    past_the_head = encoded(raw.replace(b"[3]", b"[9223372036854775807]"))
    assert [entry.revision for entry in (await history.page(page_token=past_the_head)).revisions]


async def test_tokens_and_receipts_survive_a_restart(history: History) -> None:
    """004-63, 004-68: what was handed out before is good after; nothing was kept in memory."""
    await history.grow(3)
    token = (await history.page(page_size=1)).next_page_token
    before = await history.page(page_token=token)
    assert history.stand.broker.stop() == 0
    history.stand.broker.start()
    async with history.stand.channel() as channel:
        after = History(history.stand, channel, history.project, history.record, history.length)
        assert await after.page(page_token=token) == before
        message = request(CREATE, history.project, idempotency_key="key-1")
        again = await send(channel, CREATE, message, history.stand.metadata())
        assert (again.replayed, again.record.record_id) == (True, history.record)
        assert again.record.revision == 1
