"""A real endpoint over TLS, and embeddings that ask it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from broker.domain.embedding import Embedded
from broker.embeddings.addresses import Resolve, resolved
from broker.embeddings.breaker import Breaker
from broker.embeddings.endpoint import Endpoint, EndpointOptions
from broker.embeddings.remote import RemoteEmbeddings
from broker.telemetry.logs import logger
from tests.fixtures.embedding_server import DIMENSION, EmbeddingServer

KEY = "hush-hush-key"
TENANT = "tenant-1"
SECONDS = 30.0


@dataclass
class Site:
    """The endpoint, and what asks it; time stands still unless it is moved."""

    server: EmbeddingServer
    stack: AsyncExitStack
    now: float = 0.0
    names: list[tuple[str, int]] = field(default_factory=list)

    def remote(
        self, resolve: Resolve = resolved, log: Any = None, **changed: Any
    ) -> RemoteEmbeddings:
        """Embeddings of the endpoint, with other options; closed with the site."""
        options = {
            "url": self.server.url,
            "model": "model-1",
            "dimension": DIMENSION,
            "key": KEY,
            "ca_file": self.server.ca_file,
            "allow_loopback": True,
            "timeout_s": SECONDS,
            **changed,
        }

        async def noted(host: str, port: int) -> list[str]:
            self.names.append((host, port))
            return await resolve(host, port)

        remote = RemoteEmbeddings(
            Endpoint(EndpointOptions(**options), noted),
            Breaker(lambda: self.now),
            tenants=frozenset({TENANT}),
            log=log or logger("embeddings"),
        )
        self.stack.push_async_callback(remote.aclose)
        return remote


async def embed(remote: RemoteEmbeddings, *texts: str, timeout: float = SECONDS) -> Embedded:
    """Embed as the tenant that is listed."""
    return await remote.embed(texts or ["a"], tenant_id=TENANT, restricted=False, timeout=timeout)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with EmbeddingServer(tmp_path).running() as server, AsyncExitStack() as stack:
        yield Site(server, stack)
