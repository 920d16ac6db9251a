"""Who holds the key of a text, and what a write does about it. No I/O.

A memory claims the key of what it says. A key that holds a tombstone, or a memory that was rejected
as untrue or changed, lets nothing in that says the same. Other kinds claim nothing: they prove that
there is no tombstone.

``Loaded.keys`` has an entry for every key that was asked for, ``FREE`` where nothing holds it; a
key without an entry was not asked for.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from functools import cached_property
from typing import Final

from broker.domain.errors import TombstonedError
from broker.domain.requests import RejectKind
from broker.memory.keys import belief_key_of, content_key_of
from providers.model import (
    Claim,
    ClaimRelease,
    HeadPut,
    Kind,
    MemoryFacet,
    Record,
    Revision,
    State,
    Trust,
    WriteSet,
)
from providers.requests import KeyHolder, Loaded, LoadRequest

FREE: Final = KeyHolder(record_id=None, tombstone_kind=None)
"""Stands for a key that was asked for and that nothing holds."""

REFUTING: Final = frozenset({RejectKind.UNTRUE, RejectKind.CHANGED})
"""The rejections after which nobody may say the same again."""

_REFUTED: Final = frozenset(f"rejected_{kind}" for kind in REFUTING)


class Standing(Enum):
    """What the record that holds a key means for others who say the same."""

    LIVE = auto()
    """It says this and is in use."""
    REFUTED = auto()
    """It was rejected as untrue or changed: nobody may say this again."""
    GONE = auto()
    """It says something else by now, or is out of use: the key is there to be taken."""


def standing(holder: Record, key: str, now: datetime) -> Standing:
    """Tell what the holder of a content key means at a time."""
    current = holder.current
    if is_refuted(current):
        return Standing.REFUTED
    if current.kind is Kind.MEMORY and is_live(current, now) and content_key_of(current) == key:
        return Standing.LIVE
    return Standing.GONE


def is_refuted(revision: Revision) -> bool:
    """Tell whether a record is rejected as untrue or changed; reopening it ends that (002-16)."""
    facet = revision.facet
    return (
        revision.trust is Trust.REJECTED
        and facet is not None
        and facet.invalidation_reason in _REFUTED
    )


def is_live(revision: Revision, now: datetime) -> bool:
    """Tell whether a record is in use at a time: active, not rejected, not over."""
    facet = revision.facet or MemoryFacet()
    is_over = any(
        end is not None and end <= now for end in (facet.expire_time, facet.invalidate_time)
    )
    return revision.state is State.ACTIVE and revision.trust is not Trust.REJECTED and not is_over


def barred(key: str, record_id: str, loaded: Loaded) -> bool:
    """Tell whether a record may not say what a key stands for, since others no longer may."""
    held_by = loaded.keys.get(key, FREE)
    holder = loaded.heads.get(held_by.record_id or "")
    return held_by.tombstone_kind is not None or (
        holder is not None and held_by.record_id != record_id and is_refuted(holder.current)
    )


def holders_of(keys: Iterable[str], loaded: Loaded) -> tuple[str, ...]:
    """Return the records that hold these keys and were not loaded yet."""
    held_by = (loaded.keys.get(key, FREE).record_id for key in keys)
    return tuple(dict.fromkeys(each for each in held_by if each and each not in loaded.heads))


def keeping(write_set: WriteSet, loaded: Loaded) -> WriteSet | LoadRequest:
    """Return the write set with what its heads do to keys, or what has to be known first.

    Raises:
        TombstonedError: a head says what may not be said again. Not retryable.
    """
    changes = [_Change(put, _before(put, loaded)) for put in write_set.heads]
    keys = tuple(each.key for each in changes if each.is_new)
    asked = tuple(each.key for each in changes if each.must_ask and each.key not in loaded.keys)
    holders = holders_of(keys, loaded)
    if asked or holders:
        return LoadRequest(
            project=write_set.project, keys=asked, record_ids=holders, graph=bool(holders)
        )
    kept = _Kept()
    for change in changes:
        change.settle(kept, loaded)
    if kept.meets_refusals:
        write_set = replace(write_set, graph_expected=loaded.graph)
    return replace(
        write_set,
        claims=(*write_set.claims, *kept.claims),
        releases=(*write_set.releases, *kept.releases),
        must_be_absent=(*write_set.must_be_absent, *kept.must_be_absent),
    )


def _before(put: HeadPut, loaded: Loaded) -> Revision | None:
    if put.expected_revision is None:
        return None
    return loaded.heads[put.record.current.record_id].current


def _worded(revision: Revision) -> tuple[str | None, str]:
    namespace = None if revision.facet is None else revision.facet.namespace
    return namespace, revision.content.content


class _Kept:
    """What becomes of keys.

    ``meets_refusals`` says whether a key is taken from a record because it is out of use. That
    advances the graph that it expects, and so does a refusal as untrue or changed: who takes a key
    from a record that is being refused meets that, though the key stays where it is.
    """

    def __init__(self) -> None:
        self.meets_refusals = False
        self.claims: list[Claim] = []
        self.releases: list[ClaimRelease] = []
        self.must_be_absent: list[str] = []


class _Change:
    """A head and what it follows."""

    def __init__(self, put: HeadPut, before: Revision | None) -> None:
        self.after = put.record.current
        self.before = before

    @cached_property
    def key(self) -> str:
        """The key of what it says."""
        return content_key_of(self.after)

    @cached_property
    def is_new(self) -> bool:
        """Whether it says something that its record did not say just before."""
        before = self.before
        if before is None:
            return True
        if _worded(before) == _worded(self.after):  # most changes: hashing is what costs
            return False
        return content_key_of(before) != self.key

    @property
    def must_ask(self) -> bool:
        """Whether the key has to be looked at before: who claims it finds out by claiming."""
        return self.is_new and self.after.kind is not Kind.MEMORY

    def settle(self, kept: _Kept, loaded: Loaded) -> None:
        """Take, prove and give back what has to be."""
        if self.is_new:
            self._enter(kept, loaded)
        elif self._comes_back:
            kept.must_be_absent.append(self.key)
        elif self._is_refuting:
            self._take_over(kept, loaded)
        if self.before is not None and self.after.kind is Kind.MEMORY:
            self._leave(kept, self.before)

    @property
    def _comes_back(self) -> bool:
        """Whether it is in use again with the text it had, which may be forgotten meanwhile.

        It may have been put aside, rejected, or over.
        """
        now = self.after.create_time
        return (
            self.before is not None and not is_live(self.before, now) and is_live(self.after, now)
        )

    @property
    def _is_refuting(self) -> bool:
        was_refuted = self.before is not None and is_refuted(self.before)
        return self.after.kind is Kind.MEMORY and is_refuted(self.after) and not was_refuted

    def _enter(self, kept: _Kept, loaded: Loaded) -> None:
        key, now = self.key, self.after.create_time
        if barred(key, self.after.record_id, loaded):
            raise TombstonedError("the content was forgotten or rejected and may not come back")
        held_by = loaded.keys.get(key, FREE).record_id
        holder = loaded.heads.get(held_by or "")
        is_own = held_by == self.after.record_id
        if self.after.kind is not Kind.MEMORY or (
            holder is not None and not is_own and standing(holder, key, now) is Standing.LIVE
        ):
            kept.must_be_absent.append(key)
        else:
            kept.claims.append(Claim(key, self.after.record_id, held_by))
            kept.meets_refusals |= held_by is not None and not is_own

    def _take_over(self, kept: _Kept, loaded: Loaded) -> None:
        """Hold the key of what is refuted, whoever holds it; a tombstone does as well."""
        held_by = loaded.keys.get(self.key)
        if held_by is None:
            kept.claims.append(Claim(self.key, self.after.record_id, self.after.record_id))
        elif held_by.tombstone_kind is None:
            kept.claims.append(Claim(self.key, self.after.record_id, held_by.record_id))

    def _leave(self, kept: _Kept, before: Revision) -> None:
        """Give back what it does not say any more; a rejected record goes on holding it."""
        if self.is_new and self.after.trust is not Trust.REJECTED:
            kept.releases.append(ClaimRelease(content_key_of(before), before.record_id))
        belief = belief_key_of(before)
        if belief is not None and belief != belief_key_of(self.after):
            kept.releases.append(ClaimRelease(belief, before.record_id))
