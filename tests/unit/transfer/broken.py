"""A bundle that is right, and ways to break it; a bundle is read as an import reads it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from broker.api.v1 import record_pb2, transfer_pb2
from broker.domain.errors import BundleInvalidError
from broker.domain.requests import ScopeInput
from broker.server.bundles import MessageBundle
from broker.transfer.bundle import Bundle
from broker.transfer.verify import check_counts, check_label, checked_bundle
from tests.fixtures.bundles import DECISION, START, bundle, chain, history, linked, revision

NOW: Final = START + timedelta(days=30)
SCOPE: Final = ScopeInput("p", "run-a", "agent-a")

Edit = Callable[[transfer_pb2.Bundle], object]


def facet(**changes: Any) -> record_pb2.MemoryFacet:
    """Return a facet with something in every field."""
    given: dict[str, Any] = {
        "memory_kind": record_pb2.MEMORY_KIND_FACT,
        "subject": "the sky",
        "source": "a window",
        "source_type": record_pb2.SOURCE_TYPE_OPERATOR,
        "origin_tier": record_pb2.ORIGIN_TIER_OPERATOR,
        "confidence": 0.25,
        "expire_time": NOW,
        "corroboration": 2,
        "last_reinforce_time": START,
        "flagged": True,
        "invalidate_time": START,
        "invalidation_reason": "rejected_untrue",
    }
    return record_pb2.MemoryFacet(**(given | changes))


def whole() -> transfer_pb2.Bundle:
    """Return a bundle that is right: a memory, a decision that was superseded, the one after."""
    memory = chain(
        "p",
        [
            revision("m", 1, facet=facet(), tags=["Blue", "sky"], title="t", rationale="r"),
            revision("m", 2, facet=facet(), reason="why", source_session_id="session"),
            revision(
                "m",
                3,
                facet=facet(),
                trust=record_pb2.TRUST_LEGACY,
                source_session_id="session",
            ),
        ],
    )
    return bundle("p", memory, linked("p", "a", "b"), history("p", "b", kind=DECISION))


def read(message: transfer_pb2.Bundle, now: datetime = NOW) -> Bundle:
    """Check a bundle as an import does."""
    source = MessageBundle(message, present=True)
    check_label(source, SCOPE)
    check_counts(source)
    return checked_bundle(source, now)


def faults(message: transfer_pb2.Bundle) -> dict[str, str]:
    """Return what a bundle is refused for, by path."""
    with pytest.raises(BundleInvalidError) as refused:
        read(message)
    return {each.field: each.rule for each in refused.value.violations}


def both(record: int, name: str, value: Any) -> Edit:
    """Change the last revision of a record and, alike, its head."""

    def edit(message: transfer_pb2.Bundle) -> None:
        entry = message.records[record]
        for each in (entry.record, entry.revisions[-1]):
            put(each, name, value)

    return edit


def put(message: Any, path: str, value: Any) -> None:
    """Set a field, also a repeated one or a message, also of a message inside."""
    *inside, name = path.split(".")
    for each in inside:
        message = getattr(message, each)
    message.ClearField(name)
    if isinstance(value, list):
        getattr(message, name).extend(value)
    elif isinstance(value, Timestamp):
        getattr(message, name).CopyFrom(value)
    elif value is not None:
        setattr(message, name, value)


def at(record: int, number: int, name: str, value: Any) -> Edit:
    """Change one revision alone."""
    return lambda message: put(message.records[record].revisions[number], name, value)


def head(record: int, name: str, value: Any) -> Edit:
    """Change a head alone."""
    return lambda message: put(message.records[record].record, name, value)


def time(moment: datetime, nanos: int = 0) -> Timestamp:
    """Return a time of the wire."""
    made = Timestamp()
    made.FromDatetime(moment)
    made.nanos += nanos
    return made


def deep(levels: int) -> dict[str, Any]:
    """Return objects inside each other."""
    return {"k": deep(levels - 1)} if levels > 1 else {"k": 1}


def metadata(value: dict[str, Any]) -> Edit:
    """Put metadata into the last revision of the memory, and its head."""

    def edit(message: transfer_pb2.Bundle) -> None:
        entry = message.records[0]
        for each in (entry.record, entry.revisions[-1]):
            each.facet.metadata.update(value)

    return edit


def odd(change: Callable[[Any], object]) -> Edit:
    """Put one value into metadata as no ``update`` would."""

    def edit(message: transfer_pb2.Bundle) -> None:
        entry = message.records[0]
        for each in (entry.record, entry.revisions[-1]):
            value = each.facet.metadata.fields["k"].list_value.values.add()
            value.string_value = "x"
            change(value)

    return edit


def delete(record: int, number: int) -> Edit:
    """Take a revision out."""
    return lambda message: message.records[record].revisions.pop(number)
