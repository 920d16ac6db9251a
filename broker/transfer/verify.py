"""The checks of a bundle as a whole: whose it is, how large, whether its chains fit (004-86).

What the store knows (ids that are taken, links out of the bundle) is judged where it was read.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from broker.domain.errors import (
    BundleInvalidError,
    BundleScopeMismatchError,
    BundleUnsupportedError,
    Violation,
)
from broker.domain.requests import ScopeInput
from broker.transfer.bundle import FORMAT, SCHEMA_VERSION, Bundle, Chain, check_size
from broker.transfer.faults import Faults
from broker.transfer.given import BundleSource, GivenHead, GivenRecord, GivenRevision
from broker.transfer.snapshots import check_head, checked_revision
from providers.model import Record, Revision

AHEAD_MAX: Final = timedelta(minutes=5)
"""How far a time may lie ahead of the broker's clock: what honest clocks differ by, and more."""


def check_label(source: BundleSource, scope: ScopeInput) -> None:
    """Check that there is a bundle, of a form known here, of this project and agent.

    Raises:
        BundleInvalidError, BundleUnsupportedError, BundleScopeMismatchError: not retryable.
    """
    if not source.present:
        raise BundleInvalidError((Violation("bundle", "must be given"),))
    if source.format != FORMAT:
        raise BundleUnsupportedError(f"bundle.format: must be {FORMAT}")
    if source.schema_version != SCHEMA_VERSION:
        raise BundleUnsupportedError(f"bundle.schema_version: must be {SCHEMA_VERSION}")
    for field in ("project_id", "agent_id"):
        if getattr(source, field) != getattr(scope, field):
            raise BundleScopeMismatchError(
                f"bundle.{field}: must be that of the scope", metadata={"field": field}
            )


def check_counts(source: BundleSource) -> None:
    """Check how much there is, before any of it is looked at (004-83, 004-85).

    Raises:
        BundleTooLargeError, BundleInvalidError: not retryable.
    """
    check_size("records", source.record_count)
    check_size("revisions", source.revision_count)
    if source.record_count == 0:
        raise BundleInvalidError((Violation("bundle.records", "must hold at least one record"),))


def checked_bundle(source: BundleSource, now: datetime) -> Bundle:
    """Check every record, and return what the bundle says.

    Raises:
        BundleInvalidError: names up to 16 faults by their paths. Not retryable.
    """
    faults = Faults("bundle")
    reader = _Reader(source.agent_id, source.project_id, now + AHEAD_MAX)
    chains = tuple(_read(faults, reader, source.records()))
    faults.refuse_if_any()
    return Bundle(source.project_id, source.agent_id, chains)


class _Reader:
    """What the records of a bundle have to agree with: each other, and the bundle's label."""

    def __init__(self, agent_id: str, project_id: str, latest: datetime) -> None:
        self.agent_id = agent_id
        self.project_id = project_id
        self.latest = latest
        self.record_ids: set[str] = set()
        self.revision_ids: set[str] = set()


def _read(faults: Faults, reader: _Reader, records: Iterator[GivenRecord]) -> Iterator[Chain]:
    for index, given in enumerate(records):
        chain = _chain(faults.below(f"records[{index}]"), reader, given)
        if chain is not None:
            yield chain
        if faults.full:
            return


def _chain(faults: Faults, reader: _Reader, given: GivenRecord) -> Chain | None:
    head, revisions = given.head, given.revisions
    faults.require(head is not None, "record", "must be given")
    faults.require(revisions != (), "revisions", "must hold at least one revision")
    if head is None or not revisions:
        return None
    at_head = faults.below("record")
    at_head.require(head.project_id == reader.project_id, "project_id", "must be the bundle's")
    at_head.require(head.agent_id == reader.agent_id, "agent_id", "must be the bundle's")
    at_head.require(head.record_id not in reader.record_ids, "record_id", "must occur once")
    reader.record_ids.add(head.record_id)
    read = _revisions(faults, reader, head, revisions)
    check_head(at_head, head, revisions)
    if faults or read is None:
        return None
    return Chain(Record(read[-1], read[0].create_time), read)


def _revisions(
    faults: Faults, reader: _Reader, head: GivenHead, given: tuple[GivenRevision, ...]
) -> tuple[Revision, ...] | None:
    read: list[Revision] = []
    before: GivenRevision | None = None
    for index, each in enumerate(given):
        below = faults.below(f"revisions[{index}]")
        revision = checked_revision(below, each)
        if revision is not None:
            read.append(revision)
        _check_place(below, reader, head, each, before)
        below.require(each.revision == index + 1, "revision", f"must be {index + 1}")
        before = each
    return tuple(read) if len(read) == len(given) else None


def _check_place(
    faults: Faults,
    reader: _Reader,
    head: GivenHead,
    given: GivenRevision,
    before: GivenRevision | None,
) -> None:
    """Check that a revision follows the one before, and belongs to the record."""
    faults.require(given.record_id == head.record_id, "record_id", "must be the record's")
    faults.require(given.agent_id == reader.agent_id, "agent_id", "must be the bundle's")
    faults.require(given.revision_id not in reader.revision_ids, "revision_id", "must occur once")
    reader.revision_ids.add(given.revision_id)
    link = "" if before is None else before.revision_id
    rule = "must be the id of the revision before" if link else "must not be set: it is the first"
    faults.require(given.previous_revision_id == link, "previous_revision_id", rule)
    if isinstance(given.create_time, datetime):
        rule = "must not be more than 5 min ahead"
        faults.require(given.create_time <= reader.latest, "create_time", rule)
        if before is not None and isinstance(before.create_time, datetime):
            rule = "must not be before the revision before"
            faults.require(given.create_time >= before.create_time, "create_time", rule)
    if before is not None:
        faults.require(given.kind == before.kind, "kind", "must be the same in every revision")
