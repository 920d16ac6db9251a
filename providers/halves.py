"""A revision in two halves: what a brief page holds (S-8, V-4), and what it leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from providers import documents
from providers.errors import StoredDataInvalidError
from providers.heads import size_of
from providers.model import Revision
from providers.requests import BRIEF_LENGTH

_CONTENT, _RATIONALE, _FACET, _TIME = 8, 9, 12, 22
_WIDTH = 23
_TEXTS = (0, 2, 4, 5, 6, 8, 13, 14)
_TEXTS_OR_NONE = (3, 7, 9, 15, 16, 17, 18, 19, 20, 21)
_TEXT_OR_NONE = (str, type(None))
_NUMBER = (int, float)


@dataclass(frozen=True, slots=True)
class Halves:
    """Both halves, ready to become JSON, and the sizes of the whole.

    Attributes:
        brief: The values of a revision's columns, its content cut and two things left out.
        rest: The whole content, rationale and the facet's metadata; ``None`` where ``brief`` has
            all there is.
        size: Bytes that count without the facet (K-5, X-2).
        full_size: Bytes that count with it (S-9).
    """

    brief: list[object]
    rest: tuple[object, ...] | None
    size: int
    full_size: int


def halves(revision: Revision) -> Halves:
    """Return a revision in two halves.

    Raises:
        TypeError: It holds something that is not JSON.
    """
    columns = documents.revision_columns(revision)
    values = list(columns.values())
    size = size_of(revision)
    facet = columns["facet"]
    full_size = size + (0 if facet is None else len(documents.to_json(facet)))
    content, rationale = revision.content.content, revision.content.rationale
    metadata = None if revision.facet is None else revision.facet.metadata
    if len(content) <= BRIEF_LENGTH and rationale is None and metadata is None:
        return Halves(values, None, size, full_size)
    values[_CONTENT], values[_RATIONALE] = content[:BRIEF_LENGTH], None
    if isinstance(facet, dict):
        facet.pop("metadata", None)
    return Halves(values, (content, rationale, metadata), size, full_size)


def joined(brief: Sequence[Any], rest: Sequence[Any] | None) -> Revision:
    """Return the revision that two halves make, or a brief one where the second is left out.

    Raises:
        StoredDataInvalidError: They make none. Not retryable.
    """
    try:
        values = list(brief)
        if rest is not None:
            values[_CONTENT], values[_RATIONALE], metadata = rest
            if metadata is not None:
                values[_FACET] = {**values[_FACET], "metadata": metadata}
        _check_types(values)
        values[_TIME] = documents.to_time(values[_TIME])
        facet = None if values[_FACET] is None else documents.to_facet(values[_FACET])
    except documents.DAMAGE:
        raise StoredDataInvalidError("a stored revision is damaged") from None
    return documents.make_revision(values, facet)


def _check_types(values: Sequence[Any]) -> None:
    if (
        len(values) != _WIDTH
        or any(type(values[each]) is not str for each in _TEXTS)
        or any(type(values[each]) not in _TEXT_OR_NONE for each in _TEXTS_OR_NONE)
        or type(values[1]) is not int
        or type(values[10]) not in _NUMBER
        or type(values[11]) is not list
    ):
        raise TypeError
