"""Answers that are none of the service's: cut, empty, a proxy's page, or more of the same."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from broker.devstack.cosmos import Fault
from providers.conformance import specimens
from providers.conformance.calls import CALLS
from providers.conformance.steps import commit, committed, load, stored
from providers.cosmos.provider import CosmosMemoryProvider
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ProviderThrottledError,
    ProviderUnavailableError,
)
from providers.model import ProjectKey
from providers.requests import Replayed
from tests.fixtures.cosmos_resource import CosmosResource
from tests.integration.providers.cosmos_gateway import Answer, Gateway, Spoil, gateway_to

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0


def _saying(body: bytes, **headers: str) -> Spoil:
    return lambda answer: answer.saying(body, **headers)


def _with(status: int, **headers: str) -> Spoil:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda answer: Answer(status, named, b"")


def _documents(*found: object) -> Spoil:
    return _saying(json.dumps({"Documents": found}).encode())


UNSOUND: dict[str, Spoil] = {
    "nothing": _saying(b""),
    "null": _saying(b"null"),
    "a text": _saying(b'"x"'),
    "a number": _saying(b"5"),
    "an object": _saying(b'{"x": 1}'),
    "a page": _saying(b"<html>busy</html>", content_type="text/html"),
    "a cut body": lambda answer: answer.saying(answer.body[:-3]),
    "no utf-8": _saying(b'["\xff"]'),
    "no gzip": lambda answer: answer.saying(answer.body, content_encoding="gzip"),
    "a deep nest": _saying(b"[" * 100_000 + b"]" * 100_000),
    "a list of null": _saying(b"[null]"),
    "a list of objects": _saying(b"[{}]"),
    "a list of statuses": _saying(b'[{"statusCode": "x"}]'),
    "204": _with(204),
    "302": _with(302, location="https://127.0.0.1:1/"),
    "304": _with(304),
    "a substatus that is none": _with(503, x_ms_substatus="abc"),
}
OF_BATCHES: dict[str, Spoil] = {
    **UNSOUND,
    "an inner substatus that is none": lambda answer: Answer(
        207, answer.headers, b'[{"statusCode": 403, "subStatusCode": "x"}]'
    ),
    "a short list of refusals": lambda answer: Answer(
        207, answer.headers, b'[{"statusCode": 412}]'
    ),
    "nothing but 424": lambda answer: Answer(207, answer.headers, b'[{"statusCode": 424}]'),
}
OF_QUERIES: dict[str, Spoil] = {
    **UNSOUND,
    "no documents": _documents(None),
    "documents without a name": _documents({}),
    "documents without an etag": _documents({"id": "x", "doc": "head"}),
    "documents as a text": _saying(b'{"Documents": "abc"}'),
}


@asynccontextmanager
async def _through(memory: CosmosResource) -> AsyncIterator[tuple[Gateway, CosmosMemoryProvider]]:
    """Open a provider that reaches the resource through a gateway."""
    async with gateway_to(memory.server) as gateway:
        provider = CosmosMemoryProvider(memory.options(endpoint=gateway.endpoint))
        try:
            await provider.ready(timeout=SECONDS)
            yield gateway, provider
        finally:
            await provider.close()


def _calls(provider: CosmosMemoryProvider) -> dict[str, Callable[[], Awaitable[object]]]:
    """One call of every method."""
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "load": lambda: load(provider, PROJECT, "r1", chain_from="d1"),
        "an update": lambda: commit(provider, specimens.update(PROJECT, specimens.memory("r1"))),
    }
    for named in CALLS.values():
        for name, call in named.items():
            calls[name] = lambda call=call: call(provider, PROJECT)  # type: ignore[misc]
    return calls


async def test_a_write_with_an_unsound_answer_is_unknown(memory: CosmosResource) -> None:
    """G-4, G-5, 004-35, 004-43: never an error of ours; the retry finds the receipt."""
    async with _through(memory) as (gateway, provider):
        for name, spoil in OF_BATCHES.items():
            write = specimens.create(PROJECT, specimens.memory(f"r {name}"))
            gateway.strike("batch", spoil)
            with pytest.raises(OutcomeUnknownError):
                await commit(provider, write)
            gateway.heal()
            assert gateway.spoiled == 1, name
            assert await commit(provider, write) == Replayed(write.receipt)
            await stored(provider, PROJECT, write.heads[0].record)


@pytest.mark.parametrize("name", OF_QUERIES)
async def test_a_read_with_an_unsound_answer_is_unavailable(
    memory: CosmosResource, name: str
) -> None:
    """G-4, G-5: of every call; and the next one is answered."""
    async with _through(memory) as (gateway, provider):
        await committed(provider, specimens.create(PROJECT, specimens.memory("r1")))
        for call in _calls(provider).values():
            gateway.strike("query", OF_QUERIES[name])
            with pytest.raises(ProviderUnavailableError):
                await call()
            gateway.heal()
        assert memory.server.control.counts()["batch"] == 1
        assert (await load(provider, PROJECT, "r1")).heads


@pytest.mark.parametrize("kind", ["account", "read container", "read"])
async def test_a_look_with_an_unsound_answer_spoils_nothing(
    memory: CosmosResource, kind: str
) -> None:
    """N-1, R-2, G-5: the SDK keeps what it was told of a container; all goes on all the same."""
    async with _through(memory) as (gateway, provider):
        for name, spoil in UNSOUND.items():
            gateway.strike(kind, spoil)
            for call in (provider.negotiate, provider.ready):
                with pytest.raises(ProviderError) as refused:
                    await call(timeout=SECONDS)
                assert not isinstance(refused.value, OutcomeUnknownError), name
            gateway.heal()
            write = specimens.create(PROJECT, specimens.memory(f"r {name}"))
            await committed(provider, write)
            await provider.negotiate(timeout=SECONDS)


@pytest.mark.parametrize("kind", ["account", "read container", "read"])
async def test_who_connects_to_something_unsound_connects_again(
    memory: CosmosResource, kind: str
) -> None:
    """R-1, R-2: the first call may fail, the next does not."""
    async with gateway_to(memory.server) as gateway:
        for spoil in UNSOUND.values():
            provider = CosmosMemoryProvider(memory.options(endpoint=gateway.endpoint))
            gateway.strike(kind, spoil)
            with pytest.raises(ProviderError):
                await provider.ready(timeout=SECONDS)
            gateway.heal()
            await provider.ready(timeout=SECONDS)
            await provider.close()


@pytest.mark.parametrize(
    ("told", "delay"),
    [("1e300", 86_400_000), ("-5", 0), ("nan", 1_000), ("inf", 1_000), ("soon", 1_000)],
)
async def test_a_delay_is_one_that_can_be_told(
    memory: CosmosResource, told: str, delay: int
) -> None:
    """004-35, G-5: whatever the header says."""
    async with _through(memory) as (gateway, provider):
        gateway.strike("query", _with(429, x_ms_retry_after_ms=told))
        with pytest.raises(ProviderThrottledError) as refused:
            await load(provider, PROJECT, "r1")
        assert refused.value.retry_after_ms == delay


async def test_a_query_that_goes_round_is_ended(memory: CosmosResource) -> None:
    """G-4: a continuation that leads to the same page, or around some of them."""
    async with _through(memory) as (gateway, provider):
        records = [specimens.memory(f"r{n}") for n in range(4)]
        await committed(provider, specimens.create(PROJECT, *records))
        pages: list[Answer] = []

        def around(answer: Answer) -> Answer:
            if len(pages) < 2:
                pages.append(answer)
                return answer
            return pages[gateway.spoiled % 2].saying(pages[0].body)

        memory.server.control.inject(Fault(kind="query", items=1, times=1_000))
        gateway.strike("query", around)
        names = [each.current.record_id for each in records]
        with pytest.raises(ProviderUnavailableError):
            await load(provider, PROJECT, *names)
        assert gateway.spoiled < 10


def _told(error: BaseException | None) -> str:
    """Everything that a log could show of an error."""
    texts: list[str] = []
    while error is not None:
        texts += [repr(error), str(error)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(texts)


@pytest.mark.parametrize("kind", ["query", "batch", "read", "read container"])
async def test_what_was_answered_is_told_to_nobody(memory: CosmosResource, kind: str) -> None:
    """G-5: neither content nor the key is in the error, or in what it is chained to."""
    texts = (b'{"statusCode": "s3cret"}', b'[{"statusCode": "s3cret"}]', b'"s3cret"')
    async with _through(memory) as (gateway, provider):
        for number, body in enumerate(texts):
            gateway.strike(kind, _saying(body))
            with pytest.raises(ProviderError) as refused:
                await commit(provider, specimens.create(PROJECT, specimens.memory(f"r{number}")))
            assert "s3cret" not in _told(refused.value)
            assert memory.server.key not in _told(refused.value)
            gateway.heal()
