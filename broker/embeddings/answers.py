"""What an endpoint may answer, held against what was asked."""

from typing import Any, Final

import orjson

from broker.embeddings.vectors import unit_length

NUMBER_BYTES: Final = 32
"""A number in JSON, with the comma after it."""
ANSWER_BYTES: Final = 64 * 1024
"""What an answer may have beside its numbers."""


class AnswerUnusableError(Exception):
    """The endpoint answers, but with nothing usable. The message holds nothing of the answer."""


def answer_bytes_max(count: int, dimension: int) -> int:
    """Return how large the answer to ``count`` texts may be."""
    return ANSWER_BYTES + count * dimension * NUMBER_BYTES


def read_answer(body: bytes, *, count: int, dimension: int) -> list[bytes]:
    """Return the packed vectors of ``count`` texts in the order of these.

    Raises:
        AnswerUnusableError: it is not JSON of the expected shape, or does not have just one vector
            of the dimension for each text, or one has no direction.
    """
    try:
        items = orjson.loads(body)["data"]
        found = {item["index"]: item["embedding"] for item in items}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise AnswerUnusableError("the answer is not what embeddings look like") from None
    if len(items) != count or found.keys() != set(range(count)):
        raise AnswerUnusableError("the answer does not have one vector for each text")
    return [_packed(found[index], dimension) for index in range(count)]


def _packed(numbers: Any, dimension: int) -> bytes:
    if not isinstance(numbers, list) or len(numbers) != dimension:
        raise AnswerUnusableError(f"a vector does not have {dimension} numbers")
    if not {type(number) for number in numbers} <= {float, int}:
        raise AnswerUnusableError("a vector holds what is no number")
    packed = unit_length(numbers)
    if packed is None:
        raise AnswerUnusableError("a vector has no direction")
    return packed
