"""Embeddings of a model in this process, beside the event loop."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from broker.domain.embedding import Embedded, NoVectors, check_texts
from broker.embeddings.minilm import ModelFailedError
from providers.entries import Vector

THREADS: Final = 2


class Model(Protocol):
    """What computes."""

    def vector(self, text: str) -> Vector:
        """Return the vector of a text.

        Raises:
            ModelFailedError: there is none.
        """
        ...


class LocalEmbeddings:
    """Runs a model on two threads of its own. Texts of all tenants, restricted ones too.

    A call has one text at a time with them, so that a call of many texts does not keep those of one
    waiting. A text that is being computed when the time is over is computed to its end for nobody.
    """

    is_on = True

    def __init__(self, model: Model, log: FilteringBoundLogger) -> None:
        self._model = model
        self._log = log
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="embeddings")

    async def embed(
        self, texts: Sequence[str], *, tenant_id: str, restricted: bool, timeout: float
    ) -> Embedded:
        """Fulfil ``EmbeddingPort``."""
        check_texts(texts)
        try:
            async with asyncio.timeout(timeout):
                return Embedded(tuple([await self._vector(text) for text in texts]))
        except TimeoutError:
            return Embedded(reason=NoVectors.TIMED_OUT)
        except ModelFailedError as error:
            self._log.warning("the local model fails", reason=str(error))
            return Embedded(reason=NoVectors.FAILED)

    async def _vector(self, text: str) -> Vector:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._model.vector, text)

    async def aclose(self) -> None:
        """Drop what waits and wait for the texts that are being computed."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._threads.shutdown)
