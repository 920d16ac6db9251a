"""Which refusal a write set meets: the precedence of clause C-3, over the facts of one snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass

from providers.counters import GRAPH, TRANSFER, stream
from providers.model import HeadPut, IdempotencyReceipt, WriteSet
from providers.requests import (
    AlreadyExists,
    ClaimTaken,
    CommitOutcome,
    Contended,
    GraphConflict,
    IdempotencyReused,
    KeyHolder,
    Replayed,
    StaleRevision,
    Tombstoned,
)

_FREE = KeyHolder(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the store holds under the keys of a write set.

    ``heads`` gives number and id of the current revision; ``revision_ids`` those that exist;
    ``has_effect`` says whether the effect's receipt id does.
    """

    receipt: IdempotencyReceipt | None
    holders: Mapping[str, KeyHolder]
    counters: Mapping[str, int]
    heads: Mapping[str, tuple[int, str]]
    revision_ids: frozenset[str]
    has_effect: bool


def expected_revision_id(write_set: WriteSet, put: HeadPut) -> str | None:
    """Return the revision id that the head must be at: the one the first new revision links to."""
    current = put.record.current
    first = (put.expected_revision or 0) + 1
    for revision in write_set.history:
        if revision.record_id == current.record_id and revision.revision == first:
            return revision.previous_revision_id
    return current.previous_revision_id


def judge(write_set: WriteSet, facts: Facts) -> CommitOutcome | None:
    """Return the first refusal that holds, or ``None`` when nothing stands in the way any more."""
    return (
        _replay(write_set, facts)
        or _tombstone(write_set, facts)
        or _taken(write_set, facts)
        or _moved(write_set, facts)
        or _stale(write_set, facts)
    )


def _replay(write_set: WriteSet, facts: Facts) -> CommitOutcome | None:
    kept, asked = facts.receipt, write_set.receipt
    if kept is None:
        return None
    same = kept.method == asked.method and kept.fingerprint == asked.fingerprint
    return Replayed(kept) if same else IdempotencyReused()


def _tombstone(write_set: WriteSet, facts: Facts) -> CommitOutcome | None:
    for key in (*write_set.must_be_absent, *(claim.key for claim in write_set.claims)):
        if facts.holders.get(key, _FREE).tombstone_kind is not None:
            return Tombstoned(key)
    return None


def _taken(write_set: WriteSet, facts: Facts) -> CommitOutcome | None:
    for put in write_set.heads:
        record_id = put.record.current.record_id
        if put.expected_revision is None and record_id in facts.heads:
            return AlreadyExists(record_id)
    for revision in (*write_set.history, *(put.record.current for put in write_set.heads)):
        if revision.revision_id in facts.revision_ids:
            return AlreadyExists(revision.record_id)
    if write_set.effect is not None and facts.has_effect:
        return AlreadyExists(write_set.effect.receipt_id)
    for claim in write_set.claims:
        holder = facts.holders.get(claim.key, _FREE).record_id
        if holder != claim.held_by:
            return ClaimTaken(claim.key, holder)
    return None


def _moved(write_set: WriteSet, facts: Facts) -> CommitOutcome | None:
    if write_set.graph_expected not in {None, facts.counters.get(GRAPH, 0)}:
        return GraphConflict()
    if write_set.transfer_expected not in {None, facts.counters.get(TRANSFER, 0)}:
        return GraphConflict()
    effect = write_set.effect
    if effect is not None:
        value = facts.counters.get(stream(effect.run_id), 0)
        if value != effect.sequence - 1:
            return Contended()
    return None


def _stale(write_set: WriteSet, facts: Facts) -> CommitOutcome | None:
    for put in write_set.heads:
        if put.expected_revision is None:
            continue
        record_id = put.record.current.record_id
        head = facts.heads.get(record_id, (0, None))
        if head != (put.expected_revision, expected_revision_id(write_set, put)):
            return StaleRevision(record_id, head[0])
    return None
