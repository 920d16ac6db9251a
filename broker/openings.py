"""Opens what settings choose one of: embeddings. Wiring hands out what comes of it."""

import time
from contextlib import AsyncExitStack

from broker.config import EmbeddingsSettings, HttpEmbeddingsSettings, LocalEmbeddingsSettings
from broker.domain.ports import EmbeddingPort
from broker.embeddings.breaker import Breaker
from broker.embeddings.endpoint import Endpoint, EndpointOptions
from broker.embeddings.local import LocalEmbeddings
from broker.embeddings.metered import MeteredEmbeddings
from broker.embeddings.minilm import MiniLm
from broker.embeddings.off import NoEmbeddings
from broker.embeddings.pinned import ModelUnusableError
from broker.embeddings.remote import RemoteEmbeddings
from broker.readiness import ConfigurationError
from broker.telemetry.logs import logger
from broker.telemetry.metrics import Metrics


def open_embeddings(
    given: EmbeddingsSettings, metrics: Metrics, stack: AsyncExitStack
) -> EmbeddingPort:
    """Open what turns texts into vectors; the stack closes it. What is off is not counted.

    An endpoint is asked nothing but whether it answers, beside the start.

    Raises:
        ConfigurationError: the local model cannot be run, or a file cannot be read.
    """
    opened: LocalEmbeddings | RemoteEmbeddings
    try:
        match given:
            case HttpEmbeddingsSettings():
                opened = _remote(given)
            case LocalEmbeddingsSettings():
                opened = LocalEmbeddings(MiniLm.load(), logger("embeddings"))
            case _:
                return NoEmbeddings()
    except (ModelUnusableError, ValueError, OSError) as error:
        raise ConfigurationError(f"embeddings: {error}") from error
    stack.push_async_callback(opened.aclose)
    return MeteredEmbeddings(opened, metrics.embedding)


def _remote(given: HttpEmbeddingsSettings) -> RemoteEmbeddings:
    options = EndpointOptions(
        url=given.endpoint,
        model=given.model,
        dimension=given.dimension,
        key=None if given.key is None else given.key.get_secret_value(),
        ca_file=given.ca_file,
        allow_loopback=given.allow_loopback,
        code_points_max=given.code_points_max,
        timeout_s=given.timeout_seconds,
    )
    remote = RemoteEmbeddings(
        Endpoint(options),
        Breaker(time.monotonic),
        tenants=frozenset(given.tenants),
        log=logger("embeddings"),
    )
    remote.start()
    return remote
