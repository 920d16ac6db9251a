"""Embeddings of an endpoint: who may use it, how long it is waited for, when it is left alone."""

import asyncio
from collections.abc import Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from broker.domain.embedding import Embedded, NoVectors, check_texts
from broker.embeddings.addresses import AddressRefusedError
from broker.embeddings.answers import AnswerUnusableError
from broker.embeddings.breaker import FAILURES_MAX, Breaker, Ended
from broker.embeddings.endpoint import CONNECTIONS_MAX, Endpoint, EndpointDownError
from providers.entries import Vector

REQUEST_TEXTS_MAX: Final = 32
"""Texts of one request: servers that limit it limit it to this or more."""


class RemoteEmbeddings:
    """Asks an endpoint for the tenants listed, never with restricted texts.

    A request has the ``timeout_s`` of the endpoint. Only one that had it all says something against
    the endpoint: what a caller's shorter time ended, or its leaving, opens no breaker.
    """

    is_on = True

    def __init__(
        self,
        endpoint: Endpoint,
        breaker: Breaker,
        *,
        tenants: frozenset[str],
        log: FilteringBoundLogger,
    ) -> None:
        self._endpoint = endpoint
        self._breaker = breaker
        self._tenants = tenants
        self._log = log
        self._trouble: str | None = None
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)
        self._probe: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Find out beside everything else whether it answers; if not, the breaker opens."""
        if self._tenants:
            self._probe = asyncio.create_task(self._probed())

    async def embed(
        self, texts: Sequence[str], *, tenant_id: str, restricted: bool, timeout: float
    ) -> Embedded:
        """Fulfil ``EmbeddingPort``."""
        check_texts(texts)
        if tenant_id not in self._tenants:
            return Embedded(reason=NoVectors.NOT_LISTED)
        if restricted:
            return Embedded(reason=NoVectors.RESTRICTED)
        try:
            async with asyncio.timeout(timeout):
                return await self._embedded(texts)
        except TimeoutError:
            return Embedded(reason=NoVectors.TIMED_OUT)

    async def aclose(self) -> None:
        """Stop the probe and close the connections."""
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.wait([self._probe])
        await self._endpoint.aclose()

    async def _probed(self) -> None:
        for _ in range(FAILURES_MAX):
            if (await self._embedded(["probe"])).reason is None:
                return

    async def _embedded(self, texts: Sequence[str]) -> Embedded:
        vectors: list[Vector] = []
        for begin in range(0, len(texts), REQUEST_TEXTS_MAX):
            some = await self._admitted(list(texts[begin : begin + REQUEST_TEXTS_MAX]))
            if some.reason is not None:
                return some
            vectors += some.vectors
        return Embedded(tuple(vectors))

    async def _admitted(self, texts: list[str]) -> Embedded:
        async with self._places:
            admitted = self._breaker.admit()
            if admitted is None:
                return Embedded(reason=NoVectors.BREAKER_OPEN)
            ended = Ended.ABANDONED
            try:
                ended, embedded = await self._asked(texts)
                return embedded
            finally:
                self._breaker.conclude(admitted, ended)

    async def _asked(self, texts: list[str]) -> tuple[Ended, Embedded]:
        try:
            async with asyncio.timeout(self._endpoint.options.timeout_s):
                vectors = await self._endpoint.vectors(texts)
        except TimeoutError:
            self._tell("timed out")
            return Ended.FAILED, Embedded(reason=NoVectors.TIMED_OUT)
        except EndpointDownError as error:
            self._tell(str(error))
            return Ended.FAILED, Embedded(reason=NoVectors.FAILED)
        except AnswerUnusableError as error:
            self._tell(str(error))
            return Ended.ANSWERED, Embedded(reason=NoVectors.FAILED)
        except AddressRefusedError as error:
            self._tell(str(error))
            return Ended.ABANDONED, Embedded(reason=NoVectors.FAILED)
        self._tell(None)
        return Ended.ANSWERED, Embedded(vectors)

    def _tell(self, trouble: str | None) -> None:
        """Write a line when what is wrong changes. No text, key or answer is in it."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble is None:
            self._log.info("embeddings are had again", what=self._endpoint.host)
        else:
            self._log.warning("embeddings are not had", what=self._endpoint.host, reason=trouble)
