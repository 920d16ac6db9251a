"""Keeps pages inside the largest reply.

A page is cut early; what is left comes with the next token.
"""

from collections.abc import Iterable
from typing import Final

import orjson

from broker.domain.paging import REPLY_BYTES_MAX
from providers.model import MemoryFacet, Record, Revision

_FIXED_BYTES: Final = 2_048
"""More than identifiers, enums, times and framing of one revision take on the wire."""


def cut_records(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """Return the longest prefix of heads that surely fits one reply."""
    return records[: len(cut_to_reply(tuple(record.current for record in records)))]


def bytes_at_most(records: Iterable[Record]) -> int:
    """Return how many bytes whole heads surely do not pass on the wire."""
    return sum(_bytes_at_most(record.current) for record in records)


def cut_to_reply(revisions: tuple[Revision, ...]) -> tuple[Revision, ...]:
    """Return the longest prefix that surely fits one reply, but never nothing of something."""
    room = REPLY_BYTES_MAX
    for count, revision in enumerate(revisions):
        room -= _bytes_at_most(revision)
        if room < 0:
            return revisions[: max(count, 1)]
    return revisions


def _bytes_at_most(revision: Revision) -> int:
    content = revision.content
    texts = (content.content, content.title, content.rationale, revision.reason, *content.tags)
    return _FIXED_BYTES + sum(_utf8(text) for text in texts) + _facet_bytes(revision.facet)


def _facet_bytes(facet: MemoryFacet | None) -> int:
    if facet is None:
        return 0
    texts = (facet.namespace, facet.subject, facet.source, facet.epoch, facet.invalidation_reason)
    # A Struct takes up to some 20 bytes more for each value than JSON does.
    metadata = 0 if facet.metadata is None else 12 * len(orjson.dumps(facet.metadata))
    return sum(_utf8(text) for text in texts) + metadata


def _utf8(text: str | None) -> int:
    if not text:
        return 0
    return 8 + (len(text) if text.isascii() else 4 * len(text))
