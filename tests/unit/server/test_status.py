"""What a refusal looks like on the wire, and that it is never too large."""

from typing import TypeVar

import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.errors import (
    FieldInvalidError,
    OverloadedError,
    RecordNotFoundError,
    StateNotAllowedError,
    Violation,
)
from broker.domain.reasons import Reason
from broker.server.errors import RULES, Refusal, refusal_of
from broker.server.status import BYTES_MAX, VIOLATIONS_MAX, Trailers, status_of
from providers.errors import ProviderThrottledError, StorageFullError

_Detail = TypeVar("_Detail", bound=Message)


def decoded(trailers: Trailers) -> Status:
    value = dict(trailers)["grpc-status-details-bin"]
    assert isinstance(value, bytes)
    return Status.FromString(value)


def found(status: Status, kind: type[_Detail]) -> list[_Detail]:
    details = []
    for packed in status.details:
        detail = kind()
        if packed.Unpack(detail):
            details.append(detail)
    return details


@pytest.mark.parametrize("reason", list(Reason))
def test_every_refusal_has_exactly_one_error_info(reason: Reason) -> None:
    refusal = Refusal(reason=reason, message="what is wrong", retry_ms=RULES[reason].retry_ms)
    code, message, trailers = status_of(refusal, "id-1")
    status = decoded(trailers)
    (info,) = found(status, ErrorInfo)
    assert (info.reason, info.domain) == (reason.value, "knowledge-broker")
    assert dict(info.metadata) == {"request_id": "id-1"}
    assert (status.code, status.message) == (code.value[0], message)
    assert dict(trailers)["x-request-id"] == "id-1"
    assert bool(found(status, RetryInfo)) is (RULES[reason].retry_ms is not None)
    assert bool(found(status, PreconditionFailure)) is (code is StatusCode.FAILED_PRECONDITION)


def test_violations_are_named_in_order() -> None:
    error = FieldInvalidError((Violation("title", "too long"), Violation("tags[3]", "blank")))
    _, message, trailers = status_of(refusal_of(error), "id")
    (bad,) = found(decoded(trailers), BadRequest)
    assert [(v.field, v.description) for v in bad.field_violations] == [
        ("title", "too long"),
        ("tags[3]", "blank"),
    ]
    assert message == "title: too long"


def test_at_most_sixteen_violations_are_sent() -> None:
    error = FieldInvalidError(tuple(Violation(f"tags[{n}]", "blank") for n in range(32)))
    _, _, trailers = status_of(refusal_of(error), "id")
    (bad,) = found(decoded(trailers), BadRequest)
    assert [v.field for v in bad.field_violations] == [f"tags[{n}]" for n in range(VIOLATIONS_MAX)]


def test_a_forbidden_state_is_a_precondition() -> None:
    error = StateNotAllowedError("it is archived", metadata={"state": "archived"})
    _, _, trailers = status_of(refusal_of(error), "id")
    status = decoded(trailers)
    (info,) = found(status, ErrorInfo)
    (failure,) = found(status, PreconditionFailure)
    assert info.metadata["state"] == "archived"
    assert [v.type for v in failure.violations] == ["STATE_NOT_ALLOWED"]


def test_an_overloaded_client_is_told_when_to_come_back() -> None:
    refusal = refusal_of(OverloadedError("full", metadata={"limit": "queue"}))
    _, _, trailers = status_of(refusal, "id")
    (retry,) = found(decoded(trailers), RetryInfo)
    pushback = dict(trailers)["grpc-retry-pushback-ms"]
    assert pushback == str(refusal.retry_ms) == str(retry.retry_delay.ToMilliseconds())


def test_a_full_store_tells_clients_never_to_retry() -> None:
    _, _, trailers = status_of(refusal_of(StorageFullError("full")), "id")
    assert dict(trailers)["grpc-retry-pushback-ms"] == "-1"


def test_a_throttled_call_is_given_the_stores_delay() -> None:
    _, _, trailers = status_of(refusal_of(ProviderThrottledError("", retry_after_ms=1_250)), "id")
    (retry,) = found(decoded(trailers), RetryInfo)
    assert retry.retry_delay.ToMilliseconds() == 1_250


def test_absent_records_give_the_same_bytes_for_the_same_request_id() -> None:
    first = status_of(refusal_of(RecordNotFoundError()), "id")
    assert first == status_of(refusal_of(RecordNotFoundError()), "id")


def test_a_run_id_is_never_cut() -> None:
    """004-69: whoever is told of a run must be able to leave it out."""
    metadata = {"run_id": "r" * 256, "other": "o" * 256}
    refusal = Refusal(reason=Reason.BINDING_MISSING, message="no pin", metadata=metadata)
    _, _, trailers = status_of(refusal, "id")
    (info,) = found(decoded(trailers), ErrorInfo)
    assert (info.metadata["run_id"], info.metadata["other"]) == ("r" * 256, "o" * 128)


TEXT = st.text(st.characters(codec=None), max_size=6_000)


@given(
    message=TEXT,
    metadata=st.dictionaries(TEXT, TEXT, max_size=12),
    violations=st.lists(st.builds(Violation, TEXT, TEXT), max_size=20),
    reason=st.sampled_from(list(Reason)),
)
def test_no_refusal_is_larger_than_the_limit(
    message: str, metadata: dict[str, str], violations: list[Violation], reason: Reason
) -> None:
    refusal = Refusal(
        reason=reason,
        message=message,
        metadata=metadata,
        violations=tuple(violations),
        retry_ms=10**9,
    )
    _, sent, trailers = status_of(refusal, "r" * 128)
    details = dict(trailers)["grpc-status-details-bin"]
    assert len(sent.encode()) + len(details) <= BYTES_MAX
    (info,) = found(decoded(trailers), ErrorInfo)
    assert info.metadata["request_id"] == "r" * 128
