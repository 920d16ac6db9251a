"""Reads of one head: those that are asked for in one tick of the event loop are one statement.

What a read costs is mostly the statement, and not the row. Each call keeps its own outcome: its
time, its cancellation and what is wrong with its row are no concern of the others (ADR 0034).
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import asyncpg

from providers.marker import check_marker
from providers.model import ResourceIdentity
from providers.postgres.connections import Connection, Connections
from providers.postgres.reader import all_findable
from providers.postgres.rows import to_record
from providers.postgres.statements import HEADS
from providers.requests import Loaded, LoadRequest, new_loaded

MOST: Final = 8
"""How many reads one statement carries at most: each may find a record of the largest size.

With more the server and this process would wait for each other by turns.
"""
_COLUMNS: Final = 4
"""Where the columns of a head begin."""

_Row: TypeAlias = asyncpg.Record
_Found: TypeAlias = tuple[_Row | None, _Row | None]
"""A row with the marker, and one with the head."""


def is_one_head(request: LoadRequest) -> bool:
    """Tell whether it asks for one head and for nothing else."""
    return len(request.record_ids) == 1 and not (
        request.revisions
        or request.receipt
        or request.keys
        or request.chain_from is not None
        or request.graph
        or request.transfer
        or request.stream_run_id is not None
    )


@dataclass(eq=False, slots=True)
class _Wish:
    """What one call asks for, and until when it waits, in seconds of the loop's clock.

    ``mates`` are those that share its statement, itself included, while it is under way.
    """

    request: LoadRequest
    until: float
    found: "asyncio.Future[_Found | Exception]"
    mates: "list[_Wish]" = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    def give(self, answer: _Found | Exception) -> None:
        """End the wait, unless it ended."""
        if not self.found.done():
            self.found.set_result(answer)

    def leave(self) -> None:
        """Give the statement up when nobody waits for it any more."""
        if self.task is not None and all(each.found.done() for each in self.mates):
            self.task.cancel()


class _Alarm:
    """Ends the waits whose time is over while their statement is under way: one timer for all."""

    def __init__(self, wishes: Sequence[_Wish]) -> None:
        """Set it for the first of them."""
        self._loop = asyncio.get_running_loop()
        self._wishes = wishes
        self._timer = self._next()

    def stop(self) -> None:
        """End it."""
        if self._timer is not None:
            self._timer.cancel()

    def _next(self) -> asyncio.TimerHandle | None:
        waiting = [each.until for each in self._wishes if not each.found.done()]
        return self._loop.call_at(min(waiting), self._ring) if waiting else None

    def _ring(self) -> None:
        now = self._loop.time()
        for wish in self._wishes:
            if wish.until <= now:
                wish.give(TimeoutError())
        self._timer = self._next()


class HeadReader:
    """Reads heads, each for one call."""

    def __init__(self, connections: Connections, resource: ResourceIdentity) -> None:
        """Take what statements run on, and what the marker has to say."""
        self._connections = connections
        self._resource = resource
        self._wishes: list[_Wish] = []

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """Load one head; see ``is_one_head``.

        Raises:
            See ``Connections.run`` and ``reader.load``.
        """
        self._connections.check_open()
        loop = asyncio.get_running_loop()
        wish = _Wish(request, loop.time() + timeout, loop.create_future())
        if not self._wishes:
            loop.call_soon(self._send, context=Context())
        self._wishes.append(wish)
        try:
            found = await wish.found
            if isinstance(found, Exception):
                raise found
        except BaseException:
            wish.leave()
            raise
        return self._loaded(*found)

    def _send(self) -> None:
        wishes = [each for each in self._wishes if not each.found.done()]
        self._wishes = []
        for first in range(0, len(wishes), MOST):
            mates = wishes[first : first + MOST]
            task = asyncio.get_running_loop().create_task(self._read(mates))
            for each in mates:
                each.mates, each.task = mates, task

    async def _read(self, wishes: list[_Wish]) -> None:
        left = max(each.until for each in wishes) - asyncio.get_running_loop().time()
        failed: Exception | None = None
        rows: list[_Row] = []
        alarm = _Alarm(wishes)
        try:
            work = partial(fetch, requests=[each.request for each in wishes])
            rows = await self._connections.run(work, timeout=left)
        except Exception as error:  # noqa: BLE001 - told to each of those who wait
            failed = error
        except BaseException:  # whatever ended it, nobody is left waiting without a timer
            for wish in wishes:
                wish.give(TimeoutError())
            raise
        finally:
            alarm.stop()
        marker, heads = rows[0] if rows else None, {row[0]: row for row in rows}
        for number, wish in enumerate(wishes, start=1):
            wish.give(failed or (marker, heads.get(number)))
        wishes.clear()

    def _loaded(self, marker: _Row | None, head: _Row | None) -> Loaded:
        said = (None, None) if marker is None else (marker[1], marker[2])
        check_marker(self._resource, *said)
        if head is None:
            return Loaded()
        record = to_record(head[_COLUMNS:], head[3])
        return new_loaded(heads={record.current.record_id: record})


async def fetch(link: Connection, *, requests: Sequence[LoadRequest]) -> list[_Row]:
    """Return a row for each head that is there, by the number of its request from 1.

    Each holds the marker. Where no head is there, one row holds it; where no marker is, none.
    """
    projects = [each.project for each in requests]
    return await link.fetch(
        HEADS,
        all_findable(each.tenant_id for each in projects),
        all_findable(each.project_id for each in projects),
        all_findable(each.record_ids[0] for each in requests),
    )
