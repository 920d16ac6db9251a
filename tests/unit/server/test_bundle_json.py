"""The canonical form of a bundle: what is in it, what is not, and that it can be read back."""

import json
from datetime import timedelta

import pytest

from broker.api.v1 import record_pb2, transfer_pb2
from broker.server.app import REQUEST_BYTES_MAX
from broker.server.bundle_json import NoBundleError, canonical_json, read_json
from broker.server.bundles import MessageBundle, written_bundle
from broker.transfer.bundle import BYTES_MAX, RECORDS_MAX
from broker.transfer.verify import checked_bundle
from tests.fixtures.bundles import START, bundle, history, linked

WHOLE = bundle(
    "p",
    history("p", "m", 2, title="\u77e5 \U0001f600 \x01\u2028", importance=0.0, tags=["a", "b"]),
    linked("p", "a", "b"),
)


def test_the_very_bytes() -> None:
    """004-82: sorted keys, no white space, nothing unset, text as it is."""
    made = transfer_pb2.Bundle(format="f", schema_version=1, agent_id="\u77e5")
    record = made.records.add()
    record.record.kind = record_pb2.RECORD_KIND_MEMORY
    record.record.revision = 7
    record.record.create_time.FromJsonString("2026-03-14T15:09:26.535897Z")
    assert canonical_json(made) == (
        b'{"agentId":"\xe7\x9f\xa5","format":"f","records":[{"record":{'
        b'"createTime":"2026-03-14T15:09:26.535897Z","kind":"RECORD_KIND_MEMORY","revision":"7"}}],'
        b'"schemaVersion":1}'
    )


def test_there_and_back() -> None:
    """004-82: a file says all that the bundle says, in whatever layout it is."""
    content = canonical_json(WHOLE)
    assert read_json(content) == WHOLE
    assert read_json(json.dumps(json.loads(content), indent=2).encode()) == WHOLE
    assert canonical_json(read_json(content)) == content


def test_the_order_of_keys_of_metadata_does_not_count() -> None:
    """004-62, 004-82: what is equal has one form, so that it is one request."""
    made = []
    for names in (("b", "a"), ("a", "b")):
        facet = record_pb2.MemoryFacet()
        for name in names:
            facet.metadata[name] = 1
        made.append(canonical_json(bundle("p", history("p", "m", 1, facet=facet))))
    assert made[0] == made[1]


def test_unknown_fields_are_not_in_it() -> None:
    """004-82: neither measured nor kept."""
    raw = WHOLE.SerializeToString() + b"\xba\x3e\x05later"
    assert canonical_json(transfer_pb2.Bundle.FromString(raw)) == canonical_json(WHOLE)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_without_a_form(value: float) -> None:
    """004-86: such a bundle has none; its faults are found where they are."""
    facet = record_pb2.MemoryFacet()
    facet.metadata["k"] = value
    made = bundle("p", history("p", "m", 1, facet=facet))
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(made)
    assert MessageBundle(made, present=True).canonical() is None


def test_times_without_a_form() -> None:
    """004-86: the same for a time that is none."""
    made = bundle("p", history("p", "m"))
    made.records[0].record.create_time.seconds = 1 << 60
    assert MessageBundle(made, present=True).canonical() is None


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"null", b"{", b"\xff", b'{"x":1}', b'{"format":"a","format":"b"}']
)
def test_what_is_no_bundle(raw: bytes) -> None:
    """004-86: told, not read as an empty one; no field is dropped in silence."""
    with pytest.raises(NoBundleError):
        read_json(raw)


def test_what_no_request_takes_is_too_large() -> None:
    """004-83: zeros in metadata, below 1 MiB as JSON; what comes out must be able to go in."""
    facet = record_pb2.MemoryFacet()
    facet.metadata.update({"k": [0] * 2_000})
    sizes = {}
    for count in (30, 100):
        made = bundle("p", history("p", "m", count, facet=facet))
        read = checked_bundle(MessageBundle(made, present=True), START + timedelta(days=1))
        sizes[count] = (written_bundle(read).size, len(canonical_json(made)), made.ByteSize())
    assert sizes[30][0] == sizes[30][1]
    assert sizes[100][1] < BYTES_MAX < REQUEST_BYTES_MAX < sizes[100][2]
    assert sizes[100][0] > BYTES_MAX


def test_nothing_is_read_before_it_is_asked_for() -> None:
    """004-83: counting is cheap."""
    source = MessageBundle(WHOLE, present=True)
    assert (source.record_count, source.revision_count) == (2, 4)
    assert source.record_count < RECORDS_MAX
    assert [len(each.revisions) for each in source.records()] == [2, 2]
