"""THE table: every refusal and what it is on the wire (AIP-193)."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from grpc import StatusCode

from broker.domain.errors import BrokerError, FieldInvalidError, OfRunError, Violation
from broker.domain.reasons import Reason
from providers.errors import (
    CapabilityMissingError,
    NegotiationRefusedError,
    OutcomeUnknownError,
    ProviderError,
    ProviderThrottledError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    RecallScopeTooLargeError,
    ResourceMismatchError,
    StorageFullError,
    StoredDataInvalidError,
    WriteSetTooLargeError,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What one reason is on the wire.

    ``retry_ms`` is about when to try again, in milliseconds (RetryInfo); ``None``: a retry cannot
    help. ``pushback`` tells retrying gRPC clients the same delay in a trailer, or never to retry.
    """

    code: StatusCode
    retry_ms: int | None = None
    pushback: bool = False


RULES: Final[Mapping[Reason, Rule]] = {
    Reason.TOKEN_INVALID: Rule(StatusCode.UNAUTHENTICATED),
    Reason.TOKEN_REJECTED_BY_OWNER: Rule(StatusCode.UNAUTHENTICATED),
    Reason.KEYS_UNAVAILABLE: Rule(StatusCode.UNAVAILABLE, retry_ms=1_000),
    Reason.PERMISSION_MISSING: Rule(StatusCode.PERMISSION_DENIED),
    Reason.TOKEN_BINDING_MISMATCH: Rule(StatusCode.PERMISSION_DENIED),
    Reason.TOKEN_BOUND: Rule(StatusCode.PERMISSION_DENIED),
    Reason.TOKEN_PURPOSE_BOUND: Rule(StatusCode.PERMISSION_DENIED),
    Reason.SOURCE_NOT_ALLOWED: Rule(StatusCode.PERMISSION_DENIED),
    Reason.AUTHORITY_CHANGED: Rule(StatusCode.PERMISSION_DENIED),
    Reason.AUTHORITY_UNAVAILABLE: Rule(StatusCode.UNAVAILABLE, retry_ms=500),
    Reason.AUTHORITY_RESPONSE_INVALID: Rule(StatusCode.INTERNAL),
    Reason.RUN_SELECTION_INVALID: Rule(StatusCode.INTERNAL),
    Reason.RUN_SELECTION_NOT_FOUND: Rule(StatusCode.NOT_FOUND),
    Reason.PROVIDER_SELECTION_INVALID: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.PROVIDER_NEGOTIATION_FAILED: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.BINDING_MISSING: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.RUN_SELECTION_CHANGED: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.BINDING_MISMATCH: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.CAPABILITY_MISSING: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.RECORD_NOT_FOUND: Rule(StatusCode.NOT_FOUND),
    Reason.REVISION_NOT_FOUND: Rule(StatusCode.NOT_FOUND),
    Reason.REVISION_STALE: Rule(StatusCode.ABORTED),
    Reason.CONCURRENT_WRITE: Rule(StatusCode.ABORTED, retry_ms=50),
    Reason.FIELD_INVALID: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.PAGE_TOKEN_INVALID: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.STATE_NOT_ALLOWED: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.TOMBSTONED: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.REPLACEMENT_INVALID: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.REPLACEMENT_CYCLE: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.CHAIN_TOO_LONG: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.IDEMPOTENCY_KEY_REUSED: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.PROVIDER_UNAVAILABLE: Rule(StatusCode.UNAVAILABLE, retry_ms=500),
    Reason.STORAGE_UNAVAILABLE: Rule(StatusCode.UNAVAILABLE, retry_ms=500),
    Reason.OVERLOADED: Rule(StatusCode.UNAVAILABLE, retry_ms=200, pushback=True),
    Reason.COMMIT_OUTCOME_UNKNOWN: Rule(StatusCode.UNAVAILABLE, retry_ms=200),
    Reason.DEADLINE_EXCEEDED: Rule(StatusCode.DEADLINE_EXCEEDED),
    Reason.PROVIDER_THROTTLED: Rule(StatusCode.RESOURCE_EXHAUSTED, retry_ms=1_000),
    Reason.STORAGE_FULL: Rule(StatusCode.RESOURCE_EXHAUSTED, pushback=True),
    Reason.STORED_DATA_INVALID: Rule(StatusCode.DATA_LOSS),
    Reason.INTERNAL: Rule(StatusCode.INTERNAL),
    Reason.REPLY_TOO_LARGE: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.CANCELLED: Rule(StatusCode.CANCELLED),
    Reason.EFFECT_NOT_FOUND: Rule(StatusCode.NOT_FOUND),
    Reason.BUNDLE_INVALID: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.BUNDLE_UNSUPPORTED: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.BUNDLE_SCOPE_MISMATCH: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.BUNDLE_TOO_LARGE: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.BUNDLE_CONFLICT: Rule(StatusCode.ALREADY_EXISTS),
    Reason.BUNDLE_INCOMPLETE: Rule(StatusCode.ABORTED, retry_ms=50),
    Reason.PROJECT_TOO_LARGE: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.LIMIT_NOT_NARROWING: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.CONTEXT_CANDIDATE_OVERFLOW: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.CONTEXT_BUDGET_OVERFLOW: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.COMPILATION_NOT_FOUND: Rule(StatusCode.NOT_FOUND),
    Reason.WRITE_TOO_LARGE: Rule(StatusCode.INVALID_ARGUMENT),
    Reason.RECALL_SCOPE_TOO_LARGE: Rule(StatusCode.FAILED_PRECONDITION),
    Reason.CONTENT_REFUSED: Rule(StatusCode.INVALID_ARGUMENT),
}

PROVIDER_REASONS: Final[Mapping[type[ProviderError], Reason]] = {
    ProviderUnavailableError: Reason.PROVIDER_UNAVAILABLE,
    ProviderTimeoutError: Reason.PROVIDER_UNAVAILABLE,
    OutcomeUnknownError: Reason.COMMIT_OUTCOME_UNKNOWN,
    ProviderThrottledError: Reason.PROVIDER_THROTTLED,
    StorageFullError: Reason.STORAGE_FULL,
    StoredDataInvalidError: Reason.STORED_DATA_INVALID,
    ResourceMismatchError: Reason.BINDING_MISMATCH,
    NegotiationRefusedError: Reason.PROVIDER_NEGOTIATION_FAILED,
    CapabilityMissingError: Reason.CAPABILITY_MISSING,
    WriteSetTooLargeError: Reason.WRITE_TOO_LARGE,
    RecallScopeTooLargeError: Reason.RECALL_SCOPE_TOO_LARGE,
}
"""The reasons of provider errors. Those not here are bugs of ours: INTERNAL."""

MESSAGES: Final[Mapping[Reason, str]] = {
    Reason.PROVIDER_UNAVAILABLE: "the memory provider is not reachable; nothing was written",
    Reason.COMMIT_OUTCOME_UNKNOWN: "the write may have happened; try again with the same key",
    Reason.PROVIDER_THROTTLED: "the memory provider is too busy; nothing was written",
    Reason.STORAGE_FULL: "the memory provider has no room left; nothing was written",
    Reason.STORED_DATA_INVALID: "stored data fails its check",
    Reason.BINDING_MISMATCH: "the live resource is not the one this run is pinned to",
    Reason.PROVIDER_NEGOTIATION_FAILED: "the live resource is not fit to keep memory",
    Reason.CAPABILITY_MISSING: "the run's provider cannot do this",
    Reason.WRITE_TOO_LARGE: "the memory provider takes less in one piece; nothing was written",
    Reason.RECALL_SCOPE_TOO_LARGE: "the agent has more memories than are looked through at once",
    Reason.INTERNAL: "an internal error; tell the operator the request id",
}
"""What callers read where the error's own text is for operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One refusal, ready to be put into words of the wire."""

    reason: Reason
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    retry_ms: int | None = None

    @property
    def rule(self) -> Rule:
        """The row of the table."""
        return RULES[self.reason]


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal an error stands for. Whatever is not expected is INTERNAL."""
    if isinstance(error, OfRunError):
        told = refusal_of(error.cause)
        return replace(told, metadata={"run_id": error.run_id, **told.metadata})
    if isinstance(error, BrokerError):
        return Refusal(
            reason=error.reason,
            message=error.message,
            metadata=error.metadata,
            violations=error.violations if isinstance(error, FieldInvalidError) else (),
            retry_ms=_spread(RULES[error.reason].retry_ms),
        )
    reason = _provider_reason(type(error))
    return Refusal(
        reason=reason,
        message=MESSAGES[reason],
        metadata=_provider_metadata(error),
        retry_ms=(
            max(0, error.retry_after_ms)
            if isinstance(error, ProviderThrottledError)
            else _spread(RULES[reason].retry_ms)
        ),
    )


def _provider_reason(kind: type[Exception]) -> Reason:
    for ancestor in kind.__mro__:
        if issubclass(ancestor, ProviderError) and ancestor in PROVIDER_REASONS:
            return PROVIDER_REASONS[ancestor]
    return Reason.INTERNAL


def _provider_metadata(error: Exception) -> dict[str, str]:
    match error:
        case OutcomeUnknownError():
            return {"outcome": "unknown"}
        case CapabilityMissingError():
            return {"capability": error.capability}
        case RecallScopeTooLargeError():
            return {"limit": str(error.limit), "observed": str(error.observed)}
        case NegotiationRefusedError():
            return {"fact": error.fact}
        case _:
            return {}


def _spread(delay_ms: int | None) -> int | None:
    """Vary a delay by half of it, so that callers refused together do not come back together."""
    if delay_ms is None:
        return None
    return delay_ms // 2 + random.randrange(delay_ms)  # noqa: S311 - no secret
