"""Gives every memory whose text changes the entry that recall finds it by: the one place for it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from providers.entries import RecallEntry
from providers.model import HeadPut, Kind, MemoryFacet, Revision, WriteSet
from providers.requests import Loaded

Index = Callable[[tuple[Revision, ...]], Awaitable[tuple[RecallEntry, ...]]]
"""Makes entries, one for each revision."""


async def indexed(write_set: WriteSet, loaded: Loaded, index: Index) -> WriteSet:
    """Return the write set with an entry on every head that needs one.

    A head that says what it said keeps the entry it has.
    """
    told = [put for put in write_set.heads if put.entry is None and _tells_anew(put, loaded)]
    if not told:
        return write_set
    entries = await index(tuple(put.record.current for put in told))
    made = {put.record.current.record_id: entry for put, entry in zip(told, entries, strict=True)}
    heads = (
        replace(put, entry=made.get(put.record.current.record_id, put.entry))
        for put in write_set.heads
    )
    return replace(write_set, heads=tuple(heads))


def _tells_anew(put: HeadPut, loaded: Loaded) -> bool:
    """Tell whether a head is of a memory, and new, or found by other words than before."""
    current = put.record.current
    if current.kind is not Kind.MEMORY:
        return False
    before = loaded.heads.get(current.record_id)
    if put.expected_revision is None or before is None:
        return True
    return _found_by(before.current) != _found_by(current)


def _found_by(revision: Revision) -> tuple[object, ...]:
    said = revision.content
    return said.title, said.content, said.tags, (revision.facet or MemoryFacet()).subject
