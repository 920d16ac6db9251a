"""Bundles of the wire to the area of transfers, and back.

A bundle is read only once the caller's rights were checked: see ``BundleSource``. Reading never
fails; what has no meaning becomes ``UNKNOWN`` for the checks to refuse.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from broker.api.v1 import transfer_pb2
from broker.domain.facets import INPUT_FIELDS
from broker.domain.fields import TAGS_MAX
from broker.domain.requests import TOO_LARGE, UNKNOWN, ContentInput, Unknown
from broker.server.app import REQUEST_BYTES_MAX
from broker.server.bundle_json import canonical_json
from broker.server.bundle_values import count_values, is_exact
from broker.server.convert import (
    METADATA_WIRE_BYTES_MAX,
    facet_input,
    record_message,
    revision_message,
)
from broker.server.vocabulary import CHANGE_KINDS, KINDS, ORIGIN_TIERS, STATES, TRUSTS
from broker.server.wellknown import time_of
from broker.transfer.bundle import FORMAT, SCHEMA_VERSION, Bundle
from broker.transfer.given import GivenFacet, GivenHead, GivenRecord, GivenRevision

WIRE_BYTES_MAX: Final = REQUEST_BYTES_MAX - 4_096
"""Of a bundle in a request, beside its scope and key."""
_MICROSECOND_NANOS: Final = 1_000


class MessageBundle:
    """A bundle of a request, read as far as it is asked for."""

    def __init__(self, message: transfer_pb2.Bundle, *, present: bool) -> None:
        """Take the message; nothing of it is read yet."""
        self._message = message
        self.present = present
        self.format = message.format
        self.schema_version = message.schema_version
        self.project_id = message.project_id
        self.agent_id = message.agent_id

    @property
    def record_count(self) -> int:
        """How many records there are."""
        return len(self._message.records)

    @property
    def revision_count(self) -> int:
        """How many revisions there are in all."""
        return sum(len(each.revisions) for each in self._message.records)

    def values(self, most: int) -> int:
        """Count the values in metadata; nothing behind ``most`` is looked at.

        Metadata that surely pass a limit of their own are never taken apart, so they do not count.
        """
        count = 0
        for each in _snapshots(self._message):
            if each.HasField("facet") and not _passes_limits(each):
                count += count_values(each.facet.metadata, most - count)
            if count > most:
                break
        return count

    def canonical(self) -> bytes | None:
        """Return the canonical form.

        ``None`` where a value has none, and where tags or the metadata of a facet surely pass their
        limit: those are not taken apart.
        """
        if any(map(_passes_limits, _snapshots(self._message))):
            return None
        try:
            return canonical_json(self._message)
        except ValueError:
            return None

    def records(self) -> Iterator[GivenRecord]:
        """Read the records, one after the other."""
        for each in self._message.records:
            yield GivenRecord(
                _head(each.record) if each.HasField("record") else None,
                tuple(map(_revision, each.revisions)),
            )


def _snapshots(message: transfer_pb2.Bundle) -> Iterator[Any]:
    """Return heads and revisions, whatever they hold."""
    for record in message.records:
        yield record.record
        yield from record.revisions


def _passes_limits(snapshot: Any) -> bool:
    if len(snapshot.tags) > TAGS_MAX:
        return True
    return bool(
        snapshot.HasField("facet") and snapshot.facet.metadata.ByteSize() > METADATA_WIRE_BYTES_MAX
    )


def bundle_message(bundle: Bundle) -> transfer_pb2.Bundle:
    """Write a bundle."""
    return transfer_pb2.Bundle(
        format=FORMAT,
        schema_version=SCHEMA_VERSION,
        project_id=bundle.project_id,
        agent_id=bundle.agent_id,
        records=[
            transfer_pb2.BundleRecord(
                record=record_message(bundle.project_id, chain.record),
                revisions=[revision_message(each) for each in chain.revisions],
            )
            for chain in bundle.chains
        ],
    )


@dataclass(frozen=True, slots=True)
class WrittenBundle:
    """A bundle as a message, and the bytes of its canonical form."""

    message: transfer_pb2.Bundle
    size: int


def written_bundle(bundle: Bundle) -> WrittenBundle:
    """Write and measure a bundle; where no request fits it, it has more bytes than any limit.

    Numbers in metadata take nearly three times as much on the wire.
    """
    message = bundle_message(bundle)
    fits = message.ByteSize() <= WIRE_BYTES_MAX
    return WrittenBundle(message, len(canonical_json(message)) if fits else sys.maxsize)


def _head(message: Any) -> GivenHead:
    return GivenHead(
        **_snapshot(message),
        project_id=message.project_id,
        update_time=_exact(message, "update_time"),
    )


def _revision(message: Any) -> GivenRevision:
    return GivenRevision(
        **_snapshot(message),
        reason=message.reason,
        change_kind=CHANGE_KINDS.word(message.change_kind),
        actor_fingerprint=message.actor_fingerprint,
    )


def _snapshot(message: Any) -> dict[str, Any]:
    return {
        "record_id": message.record_id,
        "agent_id": message.agent_id,
        "kind": KINDS.word(message.kind),
        "revision": message.revision,
        "revision_id": message.revision_id,
        "previous_revision_id": message.previous_revision_id,
        "content": ContentInput(
            type=message.type,
            title=message.title,
            content=message.content,
            rationale=message.rationale,
            importance=message.importance,
            tags=tuple(message.tags[: TAGS_MAX + 1]),
        ),
        "facet": _facet(message),
        "state": STATES.word(message.state),
        "trust": TRUSTS.word(message.trust),
        "source_run_id": message.source_run_id,
        "source_session_id": message.source_session_id,
        "promoted_decision_id": message.promoted_decision_id,
        "superseded_by_record_id": message.superseded_by_record_id,
        "snippet": message.snippet,
        "create_time": _exact(message, "create_time"),
    }


def _facet(message: Any) -> GivenFacet | None:
    given = facet_input(message)
    if given is None:
        return None
    facet = message.facet
    said = {name: getattr(given, name) for name in INPUT_FIELDS}
    said["expire_time"] = _exact(facet, "expire_time")
    return GivenFacet(
        **said,
        origin_tier=ORIGIN_TIERS.word(facet.origin_tier),
        corroboration=facet.corroboration,
        last_reinforce_time=_exact(facet, "last_reinforce_time"),
        flagged=facet.flagged,
        invalidate_time=_exact(facet, "invalidate_time"),
        invalidation_reason=facet.invalidation_reason,
        metadata_exact=given.metadata is TOO_LARGE or is_exact(facet.metadata),
    )


def _exact(message: Any, field: str) -> datetime | Unknown | None:
    """Read a time that may be absent; one that would have to be rounded has no meaning here."""
    if not message.HasField(field):
        return None
    stamp = getattr(message, field)
    return UNKNOWN if stamp.nanos % _MICROSECOND_NANOS else time_of(stamp)
