"""A refusal as a gRPC status: code, message and trailing metadata, never more than 4 KiB."""

from collections.abc import Iterator, Mapping
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status

from broker.domain.errors import Violation
from broker.server.errors import Refusal
from broker.server.exchange import REQUEST_ID_KEY

DOMAIN: Final = "knowledge-broker"
BYTES_MAX: Final = 4_096
VIOLATIONS_MAX: Final = 16
MESSAGE_BYTES_MAX: Final = 512
METADATA_ENTRIES_MAX: Final = 8
METADATA_BYTES_MAX: Final = 128
RUN_ID_BYTES_MAX: Final = 256
"""An identifier goes out whole."""
FIELD_BYTES_MAX: Final = 128
RULE_BYTES_MAX: Final = 256

DETAILS_KEY: Final = "grpc-status-details-bin"
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
NEVER: Final = "-1"

Trailers = tuple[tuple[str, str | bytes], ...]


def status_of(refusal: Refusal, request_id: str) -> tuple[grpc.StatusCode, str, Trailers]:
    """Return what ends a call: its code, its message and its trailing metadata.

    The details hold exactly one ErrorInfo, and BadRequest, PreconditionFailure and RetryInfo where
    they fit. Violations are left out from the end where message and details would pass 4 KiB.
    """
    rule = refusal.rule
    message = _cut(refusal.message, MESSAGE_BYTES_MAX)
    details = _encode(refusal, message, request_id)
    trailers: list[tuple[str, str | bytes]] = [
        (DETAILS_KEY, details),
        (REQUEST_ID_KEY, request_id),
    ]
    if rule.pushback:
        delay = refusal.retry_ms
        trailers.append((PUSHBACK_KEY, NEVER if delay is None else str(delay)))
    return rule.code, message, tuple(trailers)


def _encode(refusal: Refusal, message: str, request_id: str) -> bytes:
    room = BYTES_MAX - len(message.encode())
    violations = refusal.violations[:VIOLATIONS_MAX]
    while True:
        status = Status(
            code=refusal.rule.code.value[0],
            message=message,
            details=map(_pack, _details(refusal, violations, message, request_id)),
        )
        encoded = status.SerializeToString()
        if len(encoded) <= room or not violations:
            return encoded
        violations = violations[:-1]


def _details(
    refusal: Refusal, violations: tuple[Violation, ...], message: str, request_id: str
) -> Iterator[Message]:
    yield ErrorInfo(
        reason=refusal.reason,
        domain=DOMAIN,
        metadata={**_bounded(refusal.metadata), "request_id": request_id},
    )
    if violations:
        yield BadRequest(
            field_violations=[
                BadRequest.FieldViolation(
                    field=_cut(violation.field, FIELD_BYTES_MAX),
                    description=_cut(violation.rule, RULE_BYTES_MAX),
                )
                for violation in violations
            ]
        )
    if refusal.rule.code is grpc.StatusCode.FAILED_PRECONDITION:
        yield PreconditionFailure(
            violations=[PreconditionFailure.Violation(type=refusal.reason, description=message)]
        )
    if refusal.retry_ms is not None:
        seconds, milliseconds = divmod(refusal.retry_ms, 1_000)
        yield RetryInfo(retry_delay=Duration(seconds=seconds, nanos=milliseconds * 1_000_000))


def _pack(detail: Message) -> PackedAny:
    packed = PackedAny()
    packed.Pack(detail)
    return packed


def _bounded(metadata: Mapping[str, str]) -> dict[str, str]:
    entries = list(metadata.items())[:METADATA_ENTRIES_MAX]
    return {
        _cut(key, 64): _cut(value, RUN_ID_BYTES_MAX if key == "run_id" else METADATA_BYTES_MAX)
        for key, value in entries
    }


def _cut(text: str, bytes_max: int) -> str:
    """Return text that is valid UTF-8 and within a number of bytes."""
    encoded = text.encode("utf-8", "replace")
    return encoded[:bytes_max].decode("utf-8", "ignore")
