"""What an endpoint may answer, and what is refused (001-40)."""

import json
from typing import Any

import numpy as np
import pytest

from broker.embeddings.answers import AnswerUnusableError, answer_bytes_max, read_answer


def item(index: Any, embedding: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": embedding}


def read(*items: Any, count: int = 1) -> list[bytes]:
    body = json.dumps({"object": "list", "data": items, "model": "m"}).encode()
    return read_answer(body, count=count, dimension=2)


def numbers(packed: bytes) -> list[float]:
    return [float(number) for number in np.frombuffer(packed, "<f4")]


def test_vectors_stand_by_index_and_have_length_1() -> None:
    """001-40: whatever order the endpoint answers in."""
    first, second = read(item(1, [0, -2]), item(0, [3, 4.0]), count=2)
    assert numbers(first) == pytest.approx([0.6, 0.8])
    assert numbers(second) == [0.0, -1.0]


REFUSED: dict[str, list[Any]] = {
    "none": [],
    "too_few": [item(0, [1, 0])],
    "too_many": [item(0, [1, 0]), item(1, [1, 0]), item(2, [1, 0])],
    "same_index": [item(0, [1, 0]), item(0, [1, 0])],
    "index_twice": [item(0, [1, 0]), item(1, [1, 0]), item(1, [1, 0])],
    "negative_index": [item(0, [1, 0]), item(-1, [1, 0])],
    "index_beyond": [item(0, [1, 0]), item(2, [1, 0])],
    "index_is_text": [item(0, [1, 0]), item("1", [1, 0])],
    "index_is_list": [item(0, [1, 0]), item([1], [1, 0])],
    "too_short": [item(0, [1, 0]), item(1, [1])],
    "too_long": [item(0, [1, 0]), item(1, [1, 0, 0])],
    "empty": [item(0, [1, 0]), item(1, [])],
    "base64": [item(0, [1, 0]), item(1, "AACAPwAAAAA=")],
    "null": [item(0, [1, 0]), item(1, [1, None])],
    "text": [item(0, [1, 0]), item(1, [1, "0"])],
    "truth": [item(0, [1, 0]), item(1, [True, False])],
    "nested": [item(0, [1, 0]), item(1, [[1], [0]])],
    "zero": [item(0, [1, 0]), item(1, [0, -0.0])],
    "no_embedding": [item(0, [1, 0]), {"index": 1}],
    "not_an_object": [item(0, [1, 0]), 7],
}


@pytest.mark.parametrize("name", REFUSED)
def test_answers_that_do_not_fit_are_refused(name: str) -> None:
    """001-40: a vector that is not surely the text's is no vector."""
    with pytest.raises(AnswerUnusableError):
        read(*REFUSED[name], count=2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>secret</html>",
        b"null",
        b"[]",
        b"{}",
        b'{"data":null}',
        b'{"data":7}',
        b'{"data":{"0":[1,0]}}',
        b'{"data":"ab"}',
        b'{"data":[{"index":0,"embedding":[NaN,1]}]}',
        b'{"data":[{"index":0,"embedding":[1e999,1]}]}',
        b'{"data":[{"index":0,"embedding":[1,0]}]}trailing',
        b"\xff\xfe",
    ],
)
def test_bodies_of_another_shape_are_refused(body: bytes) -> None:
    """001-40: and nothing of them is repeated."""
    with pytest.raises(AnswerUnusableError) as refused:
        read_answer(body, count=1, dimension=2)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("embedding", "unit"),
    [([1e308, 1e308], 0.5**0.5), ([5e-324, 5e-324], 0.5**0.5), ([10**30, 10**30], 0.5**0.5)],
)
def test_numbers_of_any_size_are_brought_to_length_1(embedding: list[Any], unit: float) -> None:
    (packed,) = read(item(0, embedding))
    assert numbers(packed) == pytest.approx([unit, unit])


def test_the_largest_vectors_fit_the_bound() -> None:
    """A number takes at most 25 characters, with its comma."""
    longest = "-1.2345678901234567e-308,"
    assert len(longest) <= 25
    assert answer_bytes_max(32, 2_048) > 32 * (2_048 * len(longest) + 200)
