"""mem0's ``AsyncMemory`` over pgvector as a peer. It runs in the environment of the peers.

Nothing is inferred and no model is asked: the embedder costs nothing. A model of language and one
of embeddings must be named for it to start, and are never called.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.peers import guard
from tests.bench.peers.loop import Operation, PeerFailedError, lead
from tests.bench.texts import query, tags, text

READER, WRITER = "reader", "writer"
FOUND = 10
DIMENSION = 1536
"""Of the model that mem0 asks unless another is named."""
OFF = {"provider": "openai", "config": {"api_key": "none"}}


class ConstantVector:
    """Gives every text the same vector."""

    def embed(self, said: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text."""
        return [1.0] * DIMENSION

    def embed_batch(
        self, said: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        """Return the vectors of some texts."""
        return [self.embed(each) for each in said]


class Mem0Peer:
    """One memory for two users: the one who reads, and the one who writes."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._memory: Any = None
        self._ids: list[str] = []

    async def start(self, given: Mapping[str, Any]) -> Mapping[str, Operation]:
        """See ``Peer``."""
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": given["directory"]}
        from mem0 import AsyncMemory  # reads the environment when it is imported

        store = {
            "collection_name": "memories",
            "connection_string": given["dsn"],
            "embedding_model_dims": DIMENSION,
            "minconn": given["pool"],
            "maxconn": given["pool"],
        }
        config = {
            "vector_store": {"provider": "pgvector", "config": store},
            "llm": OFF,
            "embedder": OFF,
            "history_db_path": str(Path(given["directory"]) / "history.db"),
        }
        self._memory = AsyncMemory.from_config(config)
        self._memory.embedding_model = ConstantVector()
        self._ids = [await self._add(READER, number) for number in range(given["stock"])]
        return {"add": self._write, "get": self._get, "search": self._search}

    async def stop(self) -> None:
        """See ``Peer``."""
        self._memory.vector_store.connection_pool.close()
        self._memory.close()

    async def _add(self, user: str, number: int) -> str:
        area, part = tags(number)
        added = await self._memory.add(
            text(number), user_id=user, infer=False, metadata={"area": area, "part": part}
        )
        return str(added["results"][0]["id"])

    async def _write(self, number: int) -> None:
        await self._add(WRITER, number)

    async def _get(self, number: int) -> None:
        if await self._memory.get(self._ids[number % len(self._ids)]) is None:
            raise PeerFailedError("get found nothing")

    async def _search(self, number: int) -> None:
        found = await self._memory.search(
            query(number), filters={"user_id": READER}, top_k=FOUND, threshold=0.0
        )
        if not found["results"]:
            raise PeerFailedError("search found nothing")


if __name__ == "__main__":
    guard.stay_here()
    logging.disable(logging.WARNING)
    lead(Mem0Peer())
