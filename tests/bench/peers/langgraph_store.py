"""LangGraph's ``AsyncPostgresStore`` as a peer. It runs in the environment of the peers."""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from langgraph.store.postgres import AsyncPostgresStore

from tests.bench.peers import guard
from tests.bench.peers.loop import Operation, PeerFailedError, lead
from tests.bench.texts import tags, text

READ, WRITTEN = ("tenant-a", "atlas", "reader"), ("tenant-a", "atlas", "writer")
FOUND = 10


class LangGraphPeer:
    """One store over a pool of connections; what is read and what is written lie apart."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._stack = AsyncExitStack()
        self._stock = 0
        self._store: Any = None

    async def start(self, given: Mapping[str, Any]) -> Mapping[str, Operation]:
        """See ``Peer``."""
        pool = {"min_size": given["pool"], "max_size": given["pool"]}
        opened = AsyncPostgresStore.from_conn_string(given["dsn"], pool_config=pool)
        self._store = await self._stack.enter_async_context(opened)
        await self._store.setup()
        self._stock = given["stock"]
        for number in range(self._stock):
            await self._store.aput(READ, f"record-{number}", _value(number))
        return {"put": self._put, "get": self._get, "search": self._search}

    async def stop(self) -> None:
        """See ``Peer``."""
        await self._stack.aclose()

    async def _put(self, number: int) -> None:
        await self._store.aput(WRITTEN, f"record-{number}", _value(number))

    async def _get(self, number: int) -> None:
        item = await self._store.aget(READ, f"record-{number % self._stock}")
        if item is None:
            raise PeerFailedError("get found nothing")

    async def _search(self, number: int) -> None:
        """Without vectors it can look for values only, so that it is asked for a tag."""
        area = tags(number)[0]
        found = await self._store.asearch(READ, filter={"area": area}, limit=FOUND)
        if len(found) != FOUND:
            raise PeerFailedError(f"search found {len(found)}")


def _value(number: int) -> dict[str, object]:
    area, part = tags(number)
    return {"content": text(number), "area": area, "part": part, "importance": 0.5}


if __name__ == "__main__":
    guard.stay_here()
    logging.disable(logging.INFO)
    lead(LangGraphPeer())
