"""Whose texts go to an endpoint, and what callers are told of those that do not."""

import asyncio

import pytest

from broker.domain.embedding import Embedded, NoVectors
from broker.embeddings.breaker import Breaker
from broker.embeddings.endpoint import Endpoint, EndpointOptions
from broker.embeddings.metered import MeteredEmbeddings
from broker.embeddings.off import NoEmbeddings
from broker.embeddings.remote import RemoteEmbeddings
from broker.telemetry.logs import logger
from broker.telemetry.metrics import Metrics
from providers.entries import Vector

OFF, NOT_LISTED, RESTRICTED = NoVectors.OFF, NoVectors.NOT_LISTED, NoVectors.RESTRICTED


class Unreachable:
    """Resolves nothing, and counts who tried."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        raise OSError


def remote(resolve: Unreachable, *tenants: str) -> RemoteEmbeddings:
    options = EndpointOptions(url="https://model.test/v1", model="m", dimension=3)
    return RemoteEmbeddings(
        Endpoint(options, resolve),
        Breaker(lambda: 0.0),
        tenants=frozenset(tenants),
        log=logger("embeddings"),
    )


@pytest.mark.parametrize(
    ("tenants", "restricted", "reason", "asked"),
    [
        ((), False, NOT_LISTED, 0),
        (("t2", "t", "t11"), False, NOT_LISTED, 0),
        (("T1",), False, NOT_LISTED, 0),
        ((), True, NOT_LISTED, 0),
        (("t1",), True, RESTRICTED, 0),
        (("t1",), False, NoVectors.FAILED, 1),
    ],
)
async def test_only_listed_tenants_and_never_restricted_texts(
    tenants: tuple[str, ...], restricted: bool, reason: NoVectors, asked: int
) -> None:
    """6.6-15: off for a tenant until it is listed, byte for byte."""
    resolve = Unreachable()
    embeddings = remote(resolve, *tenants)
    found = await embeddings.embed(["a"], tenant_id="t1", restricted=restricted, timeout=9)
    assert found == Embedded(reason=reason)
    assert resolve.asked == asked
    await embeddings.aclose()


@pytest.mark.parametrize(("tenants", "asked"), [((), 0), (("t1",), 2)])
async def test_a_start_asks_whether_it_answers(tenants: tuple[str, ...], asked: int) -> None:
    """000-41: a dead endpoint is found at once; where nobody may use one, nothing is asked."""
    resolve = Unreachable()
    embeddings = remote(resolve, *tenants)
    embeddings.start()
    await asyncio.sleep(0)
    if tenants:
        assert embeddings._probe is not None
        await embeddings._probe
        found = await embeddings.embed(["a"], tenant_id="t1", restricted=False, timeout=9)
        assert found.reason is NoVectors.BREAKER_OPEN
    assert resolve.asked == asked
    await embeddings.aclose()


async def test_off_says_so() -> None:
    """6.6-15: without embeddings every call is told that there are none."""
    found = await NoEmbeddings().embed(["a"], tenant_id="t", restricted=False, timeout=9)
    assert found == Embedded(reason=OFF)
    with pytest.raises(ValueError, match="1-100 texts"):
        await NoEmbeddings().embed([], tenant_id="t", restricted=False, timeout=9)


async def test_outcomes_are_counted_by_reason() -> None:
    metrics = Metrics()
    embeddings = MeteredEmbeddings(NoEmbeddings(), metrics.embedding)
    await embeddings.embed(["a"], tenant_id="t", restricted=False, timeout=9)
    with pytest.raises(ValueError, match="texts"):
        await embeddings.embed([], tenant_id="t", restricted=False, timeout=9)
    found = {
        outcome: metrics.registry.get_sample_value(
            "broker_embedding_duration_seconds_count", {"outcome": outcome}
        )
        for outcome in ("ok", "off", "cancelled")
    }
    assert found == {"ok": None, "off": 1, "cancelled": 1}


@pytest.mark.parametrize(
    ("vectors", "reason"), [((), None), ((Vector("m", b"\0\0\0\0"),), NoVectors.FAILED)]
)
def test_either_vectors_or_a_reason(vectors: tuple[Vector, ...], reason: NoVectors | None) -> None:
    with pytest.raises(ValueError, match="either"):
        Embedded(vectors, reason)
