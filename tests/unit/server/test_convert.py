"""Messages and domain shapes: every field both ways, and odd input that never fails."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st

from broker.api.v1 import record_pb2, record_service_pb2
from broker.domain.facets import MASK_PATHS_MAX, METADATA_BYTES_MAX
from broker.domain.fields import TAGS_GIVEN_MAX
from broker.domain.requests import TOO_LARGE, UNKNOWN, ContentInput, FacetInput, ScopeInput
from broker.server import convert, vocabulary
from broker.server.vocabulary import Numbers
from broker.server.wellknown import put_struct, time_of
from providers.model import (
    BeliefType,
    ChangeKind,
    Content,
    DeliveryPolicy,
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    Portability,
    Record,
    Revision,
    Sensitivity,
    SourceType,
    State,
    Trust,
)

TIME = datetime(2026, 3, 4, 5, 6, 7, 890_123, tzinfo=UTC)

FACET = MemoryFacet(
    memory_kind=MemoryKind.EPISODE,
    delivery_policy=DeliveryPolicy.ALWAYS,
    namespace="n",
    subject="s",
    belief_type=BeliefType.USER_MODEL_ATTR,
    source="session-1",
    source_type=SourceType.WEB,
    origin_tier=OriginTier.EXTERNAL,
    sensitivity=Sensitivity.RESTRICTED,
    expire_time=TIME + timedelta(days=1),
    confidence=0.0,
    epoch="e",
    portability=Portability.LOCAL,
    metadata={"a": [1.0, None, {"b": True}], "c": {}, "d": [], "e": "text"},
    corroboration=3,
    last_reinforce_time=TIME + timedelta(days=2),
    flagged=True,
    invalidate_time=TIME + timedelta(days=3),
    invalidation_reason="because",
)

REVISION = Revision(
    record_id="r",
    agent_id="a",
    kind=Kind.DECISION,
    revision=7,
    revision_id="v7",
    previous_revision_id="v6",
    content=Content(
        type="t", title="ti", content="co", rationale="ra", importance=0.25, tags=("x", "y")
    ),
    facet=FACET,
    state=State.SUPERSEDED,
    trust=Trust.APPROVED,
    source_run_id="run",
    source_session_id="session",
    promoted_decision_id="d",
    superseded_by_record_id="s",
    reason="why",
    change_kind=ChangeKind.DECISION_SUPERSEDED,
    actor_fingerprint="f" * 64,
    create_time=TIME,
)

TABLES = [
    (vocabulary.KINDS, record_pb2.RecordKind, Kind),
    (vocabulary.STATES, record_pb2.RecordState, State),
    (vocabulary.TRUSTS, record_pb2.Trust, Trust),
    (vocabulary.CHANGE_KINDS, record_pb2.ChangeKind, ChangeKind),
    (vocabulary.MEMORY_KINDS, record_pb2.MemoryKind, MemoryKind),
    (vocabulary.DELIVERY_POLICIES, record_pb2.DeliveryPolicy, DeliveryPolicy),
    (vocabulary.BELIEF_TYPES, record_pb2.BeliefType, BeliefType),
    (vocabulary.SOURCE_TYPES, record_pb2.SourceType, SourceType),
    (vocabulary.ORIGIN_TIERS, record_pb2.OriginTier, OriginTier),
    (vocabulary.SENSITIVITIES, record_pb2.Sensitivity, Sensitivity),
    (vocabulary.PORTABILITIES, record_pb2.Portability, Portability),
]


@pytest.mark.parametrize(
    ("table", "wire", "words"), TABLES, ids=[row[2].__name__ for row in TABLES]
)
def test_every_value_of_the_wire_has_its_word(
    table: Numbers[Any], wire: Any, words: type[StrEnum]
) -> None:
    read = {number: table.word(number) for number in wire.values()}
    assert read.pop(0) is None
    assert list(read.values()) == list(words)
    assert all(table.number(word) == number for number, word in read.items())
    assert table.number(None) == 0
    assert table.word(9_999) is UNKNOWN
    assert table.word(-1) is UNKNOWN


def test_a_record_fills_every_field_of_its_message() -> None:
    message = convert.record_message("p", Record(REVISION, TIME - timedelta(days=9)))
    assert {field.name for field, _ in message.ListFields()} == {
        field.name for field in message.DESCRIPTOR.fields
    }
    assert (message.project_id, message.type, message.revision) == ("p", "t", 7)
    assert list(message.tags) == ["x", "y"]
    assert time_of(message.create_time) == TIME - timedelta(days=9)
    assert time_of(message.update_time) == TIME
    assert message.kind == record_pb2.RECORD_KIND_DECISION


def test_a_revision_fills_every_field_of_its_message() -> None:
    message = convert.revision_message(REVISION)
    assert {field.name for field, _ in message.ListFields()} == {
        field.name for field in message.DESCRIPTOR.fields
    }
    assert MessageToDict(message.facet) == MessageToDict(
        convert.record_message("p", Record(REVISION, TIME)).facet
    )


def test_what_is_absent_stays_absent() -> None:
    bare = replace(
        REVISION,
        previous_revision_id=None,
        content=replace(REVISION.content, title=None, rationale=None, importance=0.0, tags=()),
        facet=None,
        source_run_id=None,
        source_session_id=None,
        promoted_decision_id=None,
        superseded_by_record_id=None,
        reason=None,
        change_kind=None,
        actor_fingerprint=None,
    )
    revision = convert.revision_message(bare)
    assert not revision.HasField("facet")
    assert {field.name for field, _ in revision.ListFields()} == {
        *("record_id", "agent_id", "revision", "revision_id", "kind", "type", "content"),
        *("state", "trust", "create_time"),
    }
    with_empty_facet = convert.record_message("p", Record(replace(bare, facet=MemoryFacet()), TIME))
    assert with_empty_facet.HasField("facet")
    assert with_empty_facet.facet.ListFields() == []


def test_what_a_facet_says_comes_back_as_input() -> None:
    message = convert.record_message("p", Record(REVISION, TIME))
    read = convert.facet_input(record_service_pb2.CreateRecordRequest(facet=message.facet))
    assert read is not None
    for field in fields(FacetInput):
        assert getattr(read, field.name) == getattr(FACET, field.name), field.name


def test_an_empty_request_reads_as_nothing_given() -> None:
    request = record_service_pb2.UpdateRecordRequest()
    assert convert.scope_input(request.scope) == ScopeInput("", "", "")
    assert convert.content_input(request) == ContentInput(
        type="", title="", content="", rationale="", importance=None, tags=()
    )
    assert convert.facet_input(request) is None
    assert convert.mask_paths(request) is None
    request.facet.SetInParent()
    request.facet_mask.SetInParent()
    assert convert.facet_input(request) == FacetInput()
    assert convert.mask_paths(request) == ()
    request.facet_mask.paths.append("no.such path")
    assert convert.mask_paths(request) == ("no.such path",)


def test_an_importance_of_zero_is_a_value() -> None:
    request = record_service_pb2.CreateRecordRequest(importance=0.0)
    assert convert.content_input(request).importance == 0.0


def test_unknown_numbers_and_impossible_times_read_as_unknown() -> None:
    facet = ParseDict(
        dict.fromkeys(("memoryKind", "deliveryPolicy", "beliefType", "sourceType"), 99)
        | {"sensitivity": 99, "portability": 99},
        record_pb2.MemoryFacet(),
    )
    facet.expire_time.seconds = 2**62
    read = convert.facet_input(record_service_pb2.CreateRecordRequest(facet=facet))
    assert read is not None
    assert [field.name for field in fields(FacetInput) if getattr(read, field.name) is UNKNOWN] == [
        *("memory_kind", "delivery_policy", "belief_type", "source_type", "sensitivity"),
        *("expire_time", "portability"),
    ]


def test_lists_are_read_no_further_than_their_limits() -> None:
    """004-48: one request with a million entries must not keep the process from all others."""
    request = record_service_pb2.UpdateRecordRequest(tags=[""] * 1_000_000)
    assert len(convert.content_input(request).tags) == TAGS_GIVEN_MAX + 1
    request.facet_mask.paths.extend([""] * 1_000_000)
    assert len(convert.mask_paths(request) or ()) == MASK_PATHS_MAX + 1


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), JSON))
def test_metadata_within_its_limit_is_always_taken_apart(metadata: dict[str, Any]) -> None:
    """001-12: the bound of the wire refuses nothing that the bound of JSON takes."""
    size = len(orjson.dumps(metadata))
    assert _facet_of(metadata).metadata.ByteSize() <= 4 * size


@pytest.mark.parametrize("piece", [[], [[]], {}, {"": {}}, None, True, 0.0, "", {"": 0.0}, ["é"]])
def test_metadata_full_of_the_smallest_pieces(piece: Any) -> None:
    """001-12: taken apart up to 8 KiB of JSON, and not at all when a request is full of it."""
    full = {"k": [piece] * ((METADATA_BYTES_MAX - 8) // (len(orjson.dumps(piece)) + 1))}
    assert METADATA_BYTES_MAX - 20 <= len(orjson.dumps(full)) <= METADATA_BYTES_MAX
    request = record_service_pb2.CreateRecordRequest(facet=_facet_of(full))
    read = convert.facet_input(request)
    assert read is not None and read.metadata == full
    request.facet.metadata.CopyFrom(_facet_of({"k": full["k"] * 16}).metadata)
    read = convert.facet_input(request)
    assert read is not None and read.metadata is TOO_LARGE


def _facet_of(metadata: dict[str, Any]) -> record_pb2.MemoryFacet:
    facet = record_pb2.MemoryFacet()
    put_struct(facet.metadata, metadata)
    return facet


@given(st.binary(max_size=400))
def test_whatever_parses_converts(data: bytes) -> None:
    request = record_service_pb2.UpdateRecordRequest()
    try:
        request.ParseFromString(data)
    except Exception:  # noqa: BLE001 - only what parses matters here
        return
    convert.scope_input(request.scope)
    convert.content_input(request)
    convert.facet_input(request)
    convert.mask_paths(request)
