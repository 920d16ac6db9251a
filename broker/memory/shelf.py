"""What one request to remember writes, as it grows memory by memory.

Earlier memories of a batch count for later ones: each decision sees the shelf as those before left
it. In the end it is one write set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from broker.memory.holding import is_live
from providers.entries import RecallEntry
from providers.model import (
    Claim,
    ClaimRelease,
    HeadPut,
    Record,
    Revision,
    RevisionRef,
)
from providers.requests import KeyHolder


@dataclass(slots=True)
class _Draft:
    """A head that is being written: its revisions since it was read, oldest first."""

    record: Record
    expected_revision: int | None
    revisions: list[Revision]
    entry: RecallEntry | None


class Shelf:
    """Heads and keys as they were read, and what is to be written over them."""

    def __init__(
        self, heads: Mapping[str, Record], keys: Mapping[str, KeyHolder], *, at: datetime
    ) -> None:
        """Take what was read, and the time that tells what is live."""
        self._heads = dict(heads)
        self._at = at
        self._found = {key: holder.record_id for key, holder in keys.items()}
        self._held = dict(self._found)
        self._proved: dict[str, None] = {}
        self._drafts: dict[str, _Draft] = {}

    def holder(self, key: str) -> Record | None:
        """Return the head of the record that holds a key now."""
        record_id = self._held.get(key)
        return None if record_id is None else self._heads.get(record_id)

    def live(self, record_id: str) -> Record | None:
        """Return a head if it is in use."""
        record = self._heads.get(record_id)
        return record if record is not None and is_live(record.current, self._at) else None

    def head(self, record_id: str) -> Record:
        """Return a head as it is to be, or as it was read."""
        return self._heads[record_id]

    def put(self, put: HeadPut) -> None:
        """Take a head that follows the one here, or begins."""
        current = put.record.current
        self._heads[current.record_id] = put.record
        draft = self._drafts.get(current.record_id)
        if draft is None:
            self._drafts[current.record_id] = _Draft(
                put.record, put.expected_revision, [current], put.entry
            )
            return
        draft.record = put.record
        draft.revisions.append(current)
        draft.entry = put.entry or draft.entry

    def take(self, key: str, record_id: str) -> None:
        """Let a record hold a key."""
        self._held[key] = record_id

    def leave(self, key: str, record_id: str) -> None:
        """Let a record give a key back if it holds it."""
        if self._held.get(key) == record_id:
            self._held[key] = None

    def prove(self, key: str) -> None:
        """Have it proved that there is no tombstone on a key."""
        self._proved[key] = None

    # -------------------- what is written

    @property
    def heads(self) -> tuple[HeadPut, ...]:
        """Every head that is written, at its newest."""
        return tuple(
            HeadPut(draft.record, draft.expected_revision, draft.entry)
            for draft in self._drafts.values()
        )

    @property
    def history(self) -> tuple[Revision, ...]:
        """The revisions below those heads that are written with them."""
        return tuple(
            revision for draft in self._drafts.values() for revision in draft.revisions[:-1]
        )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Keys that change hands."""
        return tuple(
            Claim(key, record_id, held_by=self._found.get(key))
            for key, record_id in self._held.items()
            if record_id is not None and record_id != self._found.get(key)
        )

    @property
    def takes_over(self) -> bool:
        """Whether a key is taken from a record that nothing is written of: it was out of use."""
        taken = (claim.held_by for claim in self.claims if claim.held_by is not None)
        return any(record_id not in self._drafts for record_id in taken)

    @property
    def releases(self) -> tuple[ClaimRelease, ...]:
        """Keys that nobody holds any more."""
        return tuple(
            ClaimRelease(key, held_by)
            for key, held_by in self._found.items()
            if held_by is not None and self._held.get(key) is None
        )

    @property
    def absences(self) -> tuple[str, ...]:
        """Keys to prove free of a tombstone that no claim proves free."""
        claimed = {claim.key for claim in self.claims}
        return tuple(key for key in self._proved if key not in claimed)

    def ref(self, record_id: str) -> RevisionRef:
        """Name the revision a record is left at."""
        return RevisionRef(record_id, self._heads[record_id].current.revision)


def with_entry(put: HeadPut, entry: RecallEntry) -> HeadPut:
    """Return the head with what recall finds it by."""
    return replace(put, entry=entry)
