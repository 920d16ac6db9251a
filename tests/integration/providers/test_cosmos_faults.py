"""What the service answers when it fails, what the caller is told; and nothing is sent twice."""

from typing import Any

import pytest

from broker.devstack.cosmos import Fault
from providers.conformance import specimens
from providers.conformance.steps import committed, head, load, nothing_of, stored
from providers.cosmos.provider import CosmosMemoryProvider
from providers.deliveries import AcquireRequest
from providers.errors import (
    NegotiationRefusedError,
    OutcomeUnknownError,
    ProviderError,
    ProviderThrottledError,
    ProviderUnavailableError,
    ResourceMismatchError,
    StorageFullError,
    WriteSetTooLargeError,
)
from providers.model import ProjectKey, WriteSet
from providers.requests import Committed, LoadRequest, Replayed
from tests.fixtures.cosmos_resource import CosmosResource

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
MANY = 50
"""A fault that strikes so often strikes everything that is sent again, too."""

REFUSED: dict[str, tuple[Fault, type[ProviderError]]] = {
    "410": (Fault.refused("batch", 410, 1002, times=MANY), ProviderUnavailableError),
    "413": (Fault.refused("batch", 413, times=MANY), WriteSetTooLargeError),
    "429": (Fault.throttled("batch", retry_after_ms=1_234, times=MANY), ProviderThrottledError),
    "449": (Fault.refused("batch", 449, times=MANY), ProviderUnavailableError),
    "401": (Fault.refused("batch", 401, times=MANY), NegotiationRefusedError),
    "403": (Fault.refused("batch", 403, times=MANY), NegotiationRefusedError),
    "403/3": (Fault.refused("batch", 403, 3, times=MANY), ProviderUnavailableError),
    "403/1008": (Fault.refused("batch", 403, 1008, times=MANY), ProviderUnavailableError),
    "403/1014": (Fault.refused("batch", 403, 1014, times=MANY), StorageFullError),
    "404": (Fault.refused("batch", 404, times=MANY), NegotiationRefusedError),
    "404/1002": (Fault.refused("batch", 404, 1002, times=MANY), ProviderUnavailableError),
    "400": (Fault.refused("batch", 400, times=MANY), ProviderUnavailableError),
    "400/1024": (Fault.refused("batch", 400, 1024, times=MANY), ResourceMismatchError),
    "inner 413": (Fault(kind="batch", inner=413, index=1, times=MANY), WriteSetTooLargeError),
    "inner 429": (Fault(kind="batch", inner=429, times=MANY), ProviderThrottledError),
    "inner 449": (Fault(kind="batch", inner=449, times=MANY), ProviderUnavailableError),
    "inner 403": (Fault(kind="batch", inner=403, times=MANY), NegotiationRefusedError),
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "408": {"status": 408},
    "500": {"status": 500},
    "503": {"status": 503},
    "lost": {"drop": True},
}


def _write() -> WriteSet:
    record = specimens.memory("r1")
    return specimens.create(PROJECT, record, **specimens.claiming("r1", "k"))


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_batch_is_told_and_sent_once(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource, name: str
) -> None:
    """004-35, C17, C-9: each by its status; nothing is written, and one POST is all there was."""
    fault, wanted = REFUSED[name]
    write, control = _write(), memory.server.control
    control.inject(fault)
    with pytest.raises(wanted) as refused:
        await cosmos_provider.commit(write, timeout=SECONDS)
    assert type(refused.value) is wanted
    control.clear()
    assert control.counts()["batch"] == 1
    if name == "429":
        assert isinstance(refused.value, ProviderThrottledError)
        assert refused.value.retry_after_ms == 1_234
    await nothing_of(cosmos_provider, write)
    assert await cosmos_provider.commit(write, timeout=SECONDS) == Committed()


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("applied", [True, False])
async def test_a_batch_without_a_sound_answer_is_unknown(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource, name: str, *, applied: bool
) -> None:
    """004-35, 004-43: one POST; the retry finds what became of it, and the first receipt."""
    write, control = _write(), memory.server.control
    control.inject(Fault(kind="batch", applied=applied, times=MANY, **UNKNOWN[name]))
    with pytest.raises(OutcomeUnknownError):
        await cosmos_provider.commit(write, timeout=SECONDS)
    control.clear()
    assert control.counts()["batch"] == 1
    outcome = await cosmos_provider.commit(write, timeout=SECONDS)
    assert outcome == (Replayed(write.receipt) if applied else Committed())
    await stored(cosmos_provider, PROJECT, write.heads[0].record)


async def test_an_answer_in_part_is_no_success(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-35: fewer results than operations, though all were applied."""
    for results in range(3):
        write = specimens.create(PROJECT, specimens.memory(f"r{results}"))
        memory.server.control.inject(Fault(kind="batch", applied=True, results=results))
        with pytest.raises(OutcomeUnknownError):
            await cosmos_provider.commit(write, timeout=SECONDS)
        assert await cosmos_provider.commit(write, timeout=SECONDS) == Replayed(write.receipt)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (Fault.refused("query", 503, times=MANY), ProviderUnavailableError),
        (Fault.refused("query", 408, times=MANY), ProviderUnavailableError),
        (Fault.refused("query", 410, 1002, times=MANY), ProviderUnavailableError),
        (Fault.refused("query", 449, times=MANY), ProviderUnavailableError),
        (Fault.throttled("query", retry_after_ms=77, times=MANY), ProviderThrottledError),
        (Fault.dropped("query", applied=False, times=MANY), ProviderUnavailableError),
        (Fault.refused("query", 404, 1003, times=MANY), NegotiationRefusedError),
        (Fault.refused("query", 401, times=MANY), NegotiationRefusedError),
        (Fault.refused("read", 429, 3200, times=MANY), ProviderThrottledError),
    ],
    ids=lambda each: f"{each.kind}-{each.status}" if isinstance(each, Fault) else "",
)
async def test_a_read_that_fails_is_told_and_nothing_was_written(
    cosmos_provider: CosmosMemoryProvider,
    memory: CosmosResource,
    fault: Fault,
    wanted: type[ProviderError],
) -> None:
    """G-4, G-5: a commit reads first; where that fails no batch is sent."""
    write, control = _write(), memory.server.control
    control.inject(fault)
    for call in (
        cosmos_provider.load(LoadRequest(project=PROJECT), timeout=SECONDS),
        cosmos_provider.commit(write, timeout=SECONDS),
    ):
        with pytest.raises(wanted):
            await call
    control.clear()
    assert control.counts().get("batch", 0) == 0
    await nothing_of(cosmos_provider, write)


async def test_a_delivery_is_sent_once(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-74, C-9: a lease that may have been taken is unknown, and is not taken again."""
    effect, control = specimens.effect(1), memory.server.control
    await committed(cosmos_provider, specimens.write(PROJECT, effect=effect))
    asked = AcquireRequest(
        project=PROJECT, run_id="run-1", receipt_id=effect.receipt_id, lease_ms=60_000
    )
    control.forget()
    control.inject(Fault.timed_out("batch", applied=True, times=MANY))
    with pytest.raises(OutcomeUnknownError):
        await cosmos_provider.acquire(asked, timeout=SECONDS)
    control.clear()
    assert control.counts()["batch"] == 1
    assert (await cosmos_provider.acquire(asked, timeout=SECONDS)).token is None


async def test_what_others_write_meanwhile_is_read_again(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """C-9, C-14: a batch that met another etag is judged anew, and sent again where all is well."""
    record = specimens.memory("r1")
    await committed(cosmos_provider, specimens.create(PROJECT, record))
    control = memory.server.control
    for status in (409, 412, 404):
        control.forget()
        control.inject(Fault(kind="batch", inner=status, index=1))
        following = specimens.update(PROJECT, record)
        await committed(cosmos_provider, following)
        record = following.heads[0].record
        assert (control.counts()["batch"], control.counts()["query"]) == (2, 2)
    assert await head(cosmos_provider, PROJECT, "r1") == record


async def test_a_load_of_several_pages_is_of_one_moment(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """L-2: pages are compared with what is there afterwards, and read again where it changed."""
    records = [specimens.memory(f"r{n}") for n in range(3)]
    await committed(cosmos_provider, specimens.create(PROJECT, *records))
    control = memory.server.control
    names = [each.current.record_id for each in records]
    control.forget()
    control.inject(Fault(kind="query", items=1, times=3))
    loaded = await load(cosmos_provider, PROJECT, *names)
    assert dict(loaded.heads) == dict(zip(names, records, strict=True))
    assert control.counts()["query"] == 4
