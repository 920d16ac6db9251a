"""How the reference makes pages small: brief, or ended by their bytes."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from providers.model import MemoryFacet, Record, Revision
from providers.requests import BRIEF_LENGTH


def within(revisions: Sequence[Revision], bytes_max: int | None) -> int:
    """Return how many of these a page holds that takes no more bytes, the first in any case."""
    left = bytes_max
    for count, revision in enumerate(revisions):
        if left is None:
            break
        left -= size(revision)
        if left < 0:
            return max(count, 1)
    return len(revisions)


def size(revision: Revision) -> int:
    """Return how many bytes of a page a revision takes."""
    return text_size(revision) + _facet_size(revision.facet)


def text_size(revision: Revision) -> int:
    """Return how many bytes what a revision says takes, its facet left out."""
    said = revision.content
    texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
    return sum(len(text.encode()) for text in texts if text is not None)


def brief_record(record: Record) -> Record:
    """Return a head as a brief page holds it."""
    return replace(record, current=brief(record.current))


def brief(revision: Revision) -> Revision:
    """Return a revision as a brief page holds it."""
    said, facet = revision.content, revision.facet
    return replace(
        revision,
        content=replace(said, content=said.content[:BRIEF_LENGTH], rationale=None),
        facet=None if facet is None else replace(facet, metadata=None),
    )


def _facet_size(facet: MemoryFacet | None) -> int:
    if facet is None:
        return 0
    held = {name: value for name, value in asdict(facet).items() if value is not None}
    return len(json.dumps(held, default=str, ensure_ascii=False).encode())
