"""The model's threads: bounded, fair, and given up in time."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from broker.domain.embedding import TEXTS_MAX, Embedded, NoVectors
from broker.embeddings.local import THREADS, LocalEmbeddings
from broker.embeddings.minilm import ModelFailedError
from broker.telemetry.logs import logger
from providers.entries import Vector

SECONDS = 30.0


class HeldModel:
    """Computes when it is let; counts what runs at once."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.begun: list[str] = []
        self.most = 0
        self._running = 0
        self._lock = threading.Condition()

    def vector(self, text: str) -> Vector:
        with self._lock:
            self.begun.append(text)
            self._lock.notify_all()
            self._running += 1
            self.most = max(self.most, self._running)
        self.let.wait(SECONDS)
        with self._lock:
            self._running -= 1
        if text == "broken":
            raise ModelFailedError("RuntimeException")
        return Vector("m", text.encode())

    async def busy(self, texts: int) -> None:
        """Wait until so many texts were begun."""
        await asyncio.to_thread(self._wait, texts)

    def _wait(self, texts: int) -> None:
        with self._lock:
            self._lock.wait_for(lambda: len(self.begun) >= texts, SECONDS)


@pytest.fixture
def model() -> HeldModel:
    return HeldModel()


@pytest.fixture
async def embeddings(model: HeldModel) -> AsyncIterator[LocalEmbeddings]:
    opened = LocalEmbeddings(model, logger("embeddings"))
    yield opened
    model.let.set()
    await opened.aclose()


async def embed(embeddings: LocalEmbeddings, *texts: str, timeout: float = SECONDS) -> Embedded:
    return await embeddings.embed(texts, tenant_id="t", restricted=True, timeout=timeout)


async def test_each_text_has_its_vector_in_order(
    model: HeldModel, embeddings: LocalEmbeddings
) -> None:
    """001-40: restricted texts too, as nothing leaves the process."""
    model.let.set()
    embedded = await embed(embeddings, "a", "b", "a")
    assert [vector.packed for vector in embedded.vectors] == [b"a", b"b", b"a"]
    assert embedded.reason is None


async def test_two_texts_run_at_once(model: HeldModel, embeddings: LocalEmbeddings) -> None:
    """Whatever is asked, the event loop and other calls keep a part of the machine."""
    asked = [asyncio.create_task(embed(embeddings, str(n))) for n in range(10)]
    await model.busy(THREADS)
    model.let.set()
    assert all(embedded.vectors for embedded in await asyncio.gather(*asked))
    assert model.most == THREADS


async def test_a_call_of_many_texts_leaves_room(
    model: HeldModel, embeddings: LocalEmbeddings
) -> None:
    """One text of a call is with the threads at a time."""
    many = asyncio.create_task(embed(embeddings, *(f"many {n}" for n in range(50))))
    await model.busy(1)
    one = asyncio.create_task(embed(embeddings, "one"))
    await model.busy(2)
    assert model.begun == ["many 0", "one"]
    model.let.set()
    await asyncio.gather(many, one)


async def test_time_runs_out_without_an_error(
    model: HeldModel, embeddings: LocalEmbeddings
) -> None:
    """6.6-15: and what nobody waits for any more is not begun."""
    running = [asyncio.create_task(embed(embeddings, f"held {n}")) for n in range(THREADS)]
    await model.busy(THREADS)
    late = await embed(embeddings, "late", "later", timeout=0.05)
    assert late == Embedded(reason=NoVectors.TIMED_OUT)
    model.let.set()
    await asyncio.gather(*running)
    assert (await embed(embeddings, "next")).vectors
    assert model.begun == ["held 0", "held 1", "next"]


async def test_a_failing_model_is_a_reason(model: HeldModel, embeddings: LocalEmbeddings) -> None:
    """6.6-15, 001-02: no vector for any text, and the log holds none of them."""
    model.let.set()
    with capture_logs() as logs:
        assert await embed(embeddings, "fine", "broken") == Embedded(reason=NoVectors.FAILED)
    assert [line["reason"] for line in logs] == ["RuntimeException"]
    assert "broken" not in str(logs)


async def test_closing_waits_for_what_runs_and_drops_the_rest(model: HeldModel) -> None:
    opened = LocalEmbeddings(model, logger("embeddings"))
    asked = [asyncio.create_task(embed(opened, str(n))) for n in range(THREADS + 2)]
    await model.busy(THREADS)
    closing = asyncio.create_task(opened.aclose())
    await asyncio.sleep(0)
    model.let.set()
    await closing
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(each, Embedded) for each in outcomes) == THREADS
    assert len(model.begun) == THREADS


@pytest.mark.parametrize(("count", "fits"), [(0, False), (1, True), (100, True), (101, False)])
async def test_1_to_100_texts(
    model: HeldModel, embeddings: LocalEmbeddings, count: int, fits: bool
) -> None:
    assert TEXTS_MAX == 100
    model.let.set()
    if fits:
        assert len((await embed(embeddings, *(["a"] * count))).vectors) == count
    else:
        with pytest.raises(ValueError, match="1-100 texts"):
            await embed(embeddings, *(["a"] * count))
