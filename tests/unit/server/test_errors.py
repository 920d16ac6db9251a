"""The status table of the API, one row per reason, and per provider error."""

import pytest
from grpc import StatusCode

from broker.api.v1.error_reason_pb2 import ErrorReason
from broker.domain import errors as domain
from broker.domain.errors import Violation
from broker.domain.reasons import Reason
from broker.server.errors import MESSAGES, PROVIDER_REASONS, RULES, Refusal, refusal_of
from providers import errors as providers

CANARY = "canary-7f3a"

UNAUTHENTICATED, DENIED = StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED
UNAVAILABLE, PRECONDITION = StatusCode.UNAVAILABLE, StatusCode.FAILED_PRECONDITION
INVALID, NOT_FOUND, ABORTED = (
    StatusCode.INVALID_ARGUMENT,
    StatusCode.NOT_FOUND,
    StatusCode.ABORTED,
)

# reason, code, whether a retry helps
ROWS = [
    ("TOKEN_INVALID", UNAUTHENTICATED, False),
    ("TOKEN_REJECTED_BY_OWNER", UNAUTHENTICATED, False),
    ("KEYS_UNAVAILABLE", UNAVAILABLE, True),
    ("PERMISSION_MISSING", DENIED, False),
    ("TOKEN_BINDING_MISMATCH", DENIED, False),
    ("TOKEN_BOUND", DENIED, False),
    ("TOKEN_PURPOSE_BOUND", DENIED, False),
    ("SOURCE_NOT_ALLOWED", DENIED, False),
    ("AUTHORITY_CHANGED", DENIED, False),
    ("AUTHORITY_UNAVAILABLE", UNAVAILABLE, True),
    ("AUTHORITY_RESPONSE_INVALID", StatusCode.INTERNAL, False),
    ("RUN_SELECTION_INVALID", StatusCode.INTERNAL, False),
    ("RUN_SELECTION_NOT_FOUND", NOT_FOUND, False),
    ("PROVIDER_SELECTION_INVALID", PRECONDITION, False),
    ("PROVIDER_NEGOTIATION_FAILED", PRECONDITION, False),
    ("BINDING_MISSING", PRECONDITION, False),
    ("RUN_SELECTION_CHANGED", PRECONDITION, False),
    ("BINDING_MISMATCH", PRECONDITION, False),
    ("CAPABILITY_MISSING", PRECONDITION, False),
    ("RECORD_NOT_FOUND", NOT_FOUND, False),
    ("REVISION_NOT_FOUND", NOT_FOUND, False),
    ("REVISION_STALE", ABORTED, False),
    ("CONCURRENT_WRITE", ABORTED, True),
    ("FIELD_INVALID", INVALID, False),
    ("PAGE_TOKEN_INVALID", INVALID, False),
    ("STATE_NOT_ALLOWED", PRECONDITION, False),
    ("TOMBSTONED", PRECONDITION, False),
    ("REPLACEMENT_INVALID", PRECONDITION, False),
    ("REPLACEMENT_CYCLE", PRECONDITION, False),
    ("CHAIN_TOO_LONG", PRECONDITION, False),
    ("IDEMPOTENCY_KEY_REUSED", PRECONDITION, False),
    ("PROVIDER_UNAVAILABLE", UNAVAILABLE, True),
    ("STORAGE_UNAVAILABLE", UNAVAILABLE, True),
    ("OVERLOADED", UNAVAILABLE, True),
    ("COMMIT_OUTCOME_UNKNOWN", UNAVAILABLE, True),
    ("DEADLINE_EXCEEDED", StatusCode.DEADLINE_EXCEEDED, False),
    ("PROVIDER_THROTTLED", StatusCode.RESOURCE_EXHAUSTED, True),
    ("STORAGE_FULL", StatusCode.RESOURCE_EXHAUSTED, False),
    ("STORED_DATA_INVALID", StatusCode.DATA_LOSS, False),
    ("INTERNAL", StatusCode.INTERNAL, False),
    ("REPLY_TOO_LARGE", INVALID, False),
    ("CANCELLED", StatusCode.CANCELLED, False),
    ("EFFECT_NOT_FOUND", NOT_FOUND, False),
    ("BUNDLE_INVALID", INVALID, False),
    ("BUNDLE_UNSUPPORTED", INVALID, False),
    ("BUNDLE_SCOPE_MISMATCH", INVALID, False),
    ("BUNDLE_TOO_LARGE", INVALID, False),
    ("BUNDLE_CONFLICT", StatusCode.ALREADY_EXISTS, False),
    ("BUNDLE_INCOMPLETE", ABORTED, True),
    ("PROJECT_TOO_LARGE", PRECONDITION, False),
    ("LIMIT_NOT_NARROWING", INVALID, False),
    ("CONTEXT_CANDIDATE_OVERFLOW", PRECONDITION, False),
    ("CONTEXT_BUDGET_OVERFLOW", PRECONDITION, False),
    ("COMPILATION_NOT_FOUND", NOT_FOUND, False),
    ("WRITE_TOO_LARGE", INVALID, False),
    ("RECALL_SCOPE_TOO_LARGE", PRECONDITION, False),
    ("CONTENT_REFUSED", INVALID, False),
]

PROVIDER_ROWS: list[tuple[Exception, Reason, dict[str, str]]] = [
    (providers.ProviderUnavailableError(CANARY), Reason.PROVIDER_UNAVAILABLE, {}),
    (providers.ProviderTimeoutError(CANARY), Reason.PROVIDER_UNAVAILABLE, {}),
    (
        providers.OutcomeUnknownError(CANARY),
        Reason.COMMIT_OUTCOME_UNKNOWN,
        {"outcome": "unknown"},
    ),
    (
        providers.ProviderThrottledError(CANARY, retry_after_ms=1_234),
        Reason.PROVIDER_THROTTLED,
        {},
    ),
    (providers.StorageFullError(CANARY), Reason.STORAGE_FULL, {}),
    (providers.ResourceMismatchError(CANARY), Reason.BINDING_MISMATCH, {}),
    (
        providers.NegotiationRefusedError(CANARY, fact="schema"),
        Reason.PROVIDER_NEGOTIATION_FAILED,
        {"fact": "schema"},
    ),
    (
        providers.CapabilityMissingError("memory.records.search"),
        Reason.CAPABILITY_MISSING,
        {"capability": "memory.records.search"},
    ),
    (providers.StoredDataInvalidError(CANARY), Reason.STORED_DATA_INVALID, {}),
    (providers.WriteSetTooLargeError(CANARY), Reason.WRITE_TOO_LARGE, {}),
    (
        providers.RecallScopeTooLargeError(limit=2, observed=3),
        Reason.RECALL_SCOPE_TOO_LARGE,
        {"limit": "2", "observed": "3"},
    ),
    (providers.WriteSetInvalidError(CANARY), Reason.INTERNAL, {}),
    (providers.ProviderClosedError(CANARY), Reason.INTERNAL, {}),
    (providers.ProviderError(CANARY), Reason.INTERNAL, {}),
    (ValueError(CANARY), Reason.INTERNAL, {}),
    (TimeoutError(CANARY), Reason.INTERNAL, {}),
]


@pytest.mark.parametrize(("name", "code", "retryable"), ROWS, ids=[row[0] for row in ROWS])
def test_reason_has_the_code_of_the_api(name: str, code: StatusCode, retryable: bool) -> None:
    rule = RULES[Reason(name)]
    assert rule.code is code
    assert (rule.retry_ms is not None) is retryable


def test_every_reason_has_a_row_here_and_in_the_table() -> None:
    assert {row[0] for row in ROWS} == {reason.value for reason in Reason}
    assert set(RULES) == set(Reason)


def test_reasons_are_the_names_of_the_api() -> None:
    names = {name.removeprefix("ERROR_REASON_") for name in ErrorReason.keys()}  # noqa: SIM118
    assert names - {"UNSPECIFIED"} == {reason.value for reason in Reason}


def test_only_unavailable_is_retried_by_clients() -> None:
    helped = {rule.code for rule in RULES.values() if rule.retry_ms is not None}
    assert helped == {UNAVAILABLE, ABORTED, StatusCode.RESOURCE_EXHAUSTED}
    assert all(rule.retry_ms for rule in RULES.values() if rule.code is UNAVAILABLE)


@pytest.mark.parametrize(
    ("error", "reason", "metadata"),
    PROVIDER_ROWS,
    ids=[type(row[0]).__name__ for row in PROVIDER_ROWS],
)
def test_provider_errors_have_reasons_and_keep_their_text(
    error: Exception, reason: Reason, metadata: dict[str, str]
) -> None:
    refusal = refusal_of(error)
    assert refusal.reason is reason
    assert refusal.metadata == metadata
    assert CANARY not in refusal.message


def test_every_provider_error_has_a_row_here() -> None:
    kinds = {
        kind
        for kind in vars(providers).values()
        if isinstance(kind, type) and issubclass(kind, providers.ProviderError)
    }
    assert kinds <= {type(row[0]) for row in PROVIDER_ROWS}


def test_an_adapters_own_error_is_what_it_derives_from() -> None:
    class PoolExhaustedError(providers.ProviderUnavailableError):
        pass

    assert refusal_of(PoolExhaustedError()).reason is Reason.PROVIDER_UNAVAILABLE


def test_reasons_of_provider_errors_have_messages_of_their_own() -> None:
    assert set(MESSAGES) == {*PROVIDER_REASONS.values(), Reason.INTERNAL}


def test_a_throttled_call_waits_as_long_as_the_store_says() -> None:
    assert refusal_of(providers.ProviderThrottledError("", retry_after_ms=77)).retry_ms == 77
    assert refusal_of(providers.ProviderThrottledError("", retry_after_ms=-1)).retry_ms == 0


def test_delays_are_spread_around_the_tables() -> None:
    delays = {refusal_of(domain.OverloadedError("full")).retry_ms for _ in range(200)}
    assert len(delays) > 1
    assert all(delay is not None and 100 <= delay < 300 for delay in delays)


def test_broker_errors_carry_over() -> None:
    violations = (Violation("title", "must be at most 512 code points"),)
    refusal = refusal_of(domain.FieldInvalidError(violations))
    assert refusal.violations == violations
    assert refusal_of(domain.StaleRevisionError(7)).metadata == {"current_revision": "7"}
    assert refusal_of(domain.DeadlineExceededError(outcome_unknown=True)).metadata == {
        "outcome": "unknown"
    }
    assert isinstance(refusal_of(domain.BrokerError("a bug")), Refusal)


@pytest.mark.parametrize(
    "cause",
    [
        domain.BindingMissingError("no pin"),
        domain.RunSelectionChangedError("moved", metadata={"field": "provider_id"}),
        providers.ResourceMismatchError(CANARY),
        providers.ProviderThrottledError(CANARY, retry_after_ms=77),
        ValueError(CANARY),
    ],
)
def test_an_error_of_a_run_is_its_cause_and_names_the_run(cause: Exception) -> None:
    """004-69: reason, message and retry are the cause's; the run comes first in the metadata."""
    plain, told = refusal_of(cause), refusal_of(domain.OfRunError("run-7", cause))
    assert (told.reason, told.message) == (plain.reason, plain.message)
    assert (told.retry_ms is None) is (plain.retry_ms is None)
    assert list(told.metadata.items()) == [("run_id", "run-7"), *plain.metadata.items()]
