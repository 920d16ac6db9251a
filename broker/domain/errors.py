"""Every refusal the broker can give, as a type.

What each is on the wire stands in the one table of the edge.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Violation:
    """One bad field: its path in the request, and the rule with its limit. Never the value."""

    field: str
    rule: str


class BrokerError(Exception):
    """Base of all refusals.

    ``message`` says what is wrong and what to do, without content, identifiers or input.
    ``metadata`` goes to the caller as it is: only enum names, numbers and the broker's own names.
    """

    reason: Reason = Reason.INTERNAL

    def __init__(self, message: str, *, metadata: Mapping[str, str] | None = None) -> None:
        """Keep the message and the metadata for the caller."""
        super().__init__(message)
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})


class TokenInvalidError(BrokerError):
    """No usable token (004-03).

    Absent, repeated, malformed, expired, or of a foreign issuer, audience or algorithm.
    """

    reason = Reason.TOKEN_INVALID


class TokenRejectedByOwnerError(BrokerError):
    """The owner does not accept the caller's token."""

    reason = Reason.TOKEN_REJECTED_BY_OWNER


class KeysUnavailableError(BrokerError):
    """The issuer's keys are unreachable and those known are too old. Retryable."""

    reason = Reason.KEYS_UNAVAILABLE


class PermissionMissingError(BrokerError):
    """The caller lacks a permission, or does not know the project (004-05..09)."""

    reason = Reason.PERMISSION_MISSING

    def __init__(self, permission: str) -> None:
        """Name the permission that is missing."""
        super().__init__(f"the caller lacks {permission} here", metadata={"permission": permission})


class TokenBindingMismatchError(BrokerError):
    """The token is bound to another project or run (004-10)."""

    reason = Reason.TOKEN_BINDING_MISMATCH


class TokenBoundError(BrokerError):
    """The method needs a token that is bound to no project and no run."""

    reason = Reason.TOKEN_BOUND


class TokenPurposeBoundError(BrokerError):
    """The token is bound to a purpose (004-11)."""

    reason = Reason.TOKEN_PURPOSE_BOUND


class SourceNotAllowedError(BrokerError):
    """The caller may not claim this source type."""

    reason = Reason.SOURCE_NOT_ALLOWED


class AuthorityChangedError(BrokerError):
    """The caller's identity changed between the two checks (004-17)."""

    reason = Reason.AUTHORITY_CHANGED


class AuthorityUnavailableError(BrokerError):
    """The owner is unreachable, too slow or overloaded (004-14). Retryable."""

    reason = Reason.AUTHORITY_UNAVAILABLE


class AuthorityResponseInvalidError(BrokerError):
    """The owner's answer about the caller is malformed or does not fit the request (004-13)."""

    reason = Reason.AUTHORITY_RESPONSE_INVALID


class RunSelectionInvalidError(BrokerError):
    """The owner's run selection is malformed or does not fit the request."""

    reason = Reason.RUN_SELECTION_INVALID


class RunSelectionNotFoundError(BrokerError):
    """The run has no accepted selection."""

    reason = Reason.RUN_SELECTION_NOT_FOUND


class ProviderSelectionInvalidError(BrokerError):
    """Not exactly one exclusive memory candidate that equals the catalog (004-21..23, 26)."""

    reason = Reason.PROVIDER_SELECTION_INVALID


class ProviderNegotiationFailedError(BrokerError):
    """The provider's live resource is not fit (004-27)."""

    reason = Reason.PROVIDER_NEGOTIATION_FAILED


class BindingMissingError(BrokerError):
    """The run is not pinned, and this method does not pin (004-29, 004-30)."""

    reason = Reason.BINDING_MISSING


class RunSelectionChangedError(BrokerError):
    """The run selection differs from the pin or changed during the call (004-17, 004-29)."""

    reason = Reason.RUN_SELECTION_CHANGED


class BindingMismatchError(BrokerError):
    """The live resource differs from the pin (004-29)."""

    reason = Reason.BINDING_MISMATCH


class CapabilityNotNegotiatedError(BrokerError):
    """The pin does not hold the capability this method needs."""

    reason = Reason.CAPABILITY_MISSING

    def __init__(self, capability: str) -> None:
        """Name the capability."""
        super().__init__(
            f"the run's provider was not negotiated for {capability}",
            metadata={"capability": capability},
        )


class RecordNotFoundError(BrokerError):
    """Absent, of another project or of another agent: one answer for all (004-56)."""

    reason = Reason.RECORD_NOT_FOUND

    def __init__(self) -> None:
        """Say the same for every cause."""
        super().__init__("no such record")


class RevisionNotFoundError(BrokerError):
    """The record has no such revision."""

    reason = Reason.REVISION_NOT_FOUND

    def __init__(self) -> None:
        """Say that the record exists and the revision does not."""
        super().__init__("the record has no such revision")


class StaleRevisionError(BrokerError):
    """The head is not at the expected revision (004-55)."""

    reason = Reason.REVISION_STALE

    def __init__(self, current: int) -> None:
        """Tell the current revision."""
        super().__init__(
            "the record changed since it was read; read it again",
            metadata={"current_revision": str(current)},
        )


class ConcurrentWriteError(BrokerError):
    """Other writers won every attempt within the deadline. Retryable."""

    reason = Reason.CONCURRENT_WRITE


class FieldInvalidError(BrokerError):
    """One or more fields break a rule (004-48). Names each field and its limit."""

    reason = Reason.FIELD_INVALID

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        """Keep all violations; the edge sends at most 16."""
        super().__init__(f"{violations[0].field}: {violations[0].rule}")
        self.violations = violations


class ContentRefusedError(FieldInvalidError):
    """A text holds what is not kept: something secret, or nothing but a model's reasoning (002-03).

    Each violation names the field and the rule, never the text; the metadata tell the first one.
    """

    reason = Reason.CONTENT_REFUSED

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        """Keep all violations; the edge sends at most 16."""
        super().__init__(violations)
        first = violations[0]
        self.message = f"{first.field}: refused by the rule {first.rule}"
        self.metadata = {"field": first.field, "rule": first.rule}


class BundleInvalidError(FieldInvalidError):
    """A bundle breaks one or more rules (004-86). Names each fault by its path in the bundle."""

    reason = Reason.BUNDLE_INVALID


class PageTokenInvalidError(BrokerError):
    """The page token is malformed or belongs to another request."""

    reason = Reason.PAGE_TOKEN_INVALID

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__("page_token does not belong to this request; start again without it")


class StateNotAllowedError(BrokerError):
    """The record's kind, state or trust forbids the change."""

    reason = Reason.STATE_NOT_ALLOWED


class TombstonedError(BrokerError):
    """The content was removed on purpose and may not come back."""

    reason = Reason.TOMBSTONED


class IdempotencyKeyReusedError(BrokerError):
    """The key was used by another request (004-62)."""

    reason = Reason.IDEMPOTENCY_KEY_REUSED

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__("idempotency_key was used by another request; take a new one")


class StorageUnavailableError(BrokerError):
    """The broker's own store is down (004-101). Nothing was written. Retryable."""

    reason = Reason.STORAGE_UNAVAILABLE


class OverloadedError(BrokerError):
    """The admission queue is full; nothing was done. Retryable."""

    reason = Reason.OVERLOADED


class DeadlineExceededError(BrokerError):
    """The call's time ran out; ``outcome`` tells whether a write may have happened."""

    reason = Reason.DEADLINE_EXCEEDED

    def __init__(self, *, outcome_unknown: bool) -> None:
        """Say whether a write may have happened."""
        super().__init__(
            "the deadline passed",
            metadata={"outcome": "unknown" if outcome_unknown else "not_applied"},
        )


class ReplyTooLargeError(BrokerError):
    """One item alone exceeds the largest reply."""

    reason = Reason.REPLY_TOO_LARGE


class ReplacementInvalidError(BrokerError):
    """The replacement is no decision of the agent, or leads to none that serves (004-58)."""

    reason = Reason.REPLACEMENT_INVALID


class ReplacementCycleError(BrokerError):
    """The replacement leads back to the record (004-58)."""

    reason = Reason.REPLACEMENT_CYCLE


class ChainTooLongError(BrokerError):
    """More than 64 replacements in a row (004-58)."""

    reason = Reason.CHAIN_TOO_LONG


class EffectNotFoundError(BrokerError):
    """Absent, or not the caller's: one answer for all (004-81)."""

    reason = Reason.EFFECT_NOT_FOUND

    def __init__(self) -> None:
        """Say the same for every cause."""
        super().__init__("no such accepted effect")


class BundleUnsupportedError(BrokerError):
    """The bundle's format or schema version is not known here (004-82)."""

    reason = Reason.BUNDLE_UNSUPPORTED


class BundleScopeMismatchError(BrokerError):
    """The bundle is of another project or agent than the scope (004-86)."""

    reason = Reason.BUNDLE_SCOPE_MISMATCH


class BundleTooLargeError(BrokerError):
    """More records, revisions or bytes than a bundle may hold (004-83)."""

    reason = Reason.BUNDLE_TOO_LARGE


class BundleConflictError(BrokerError):
    """A record or revision of the bundle is there already (004-87)."""

    reason = Reason.BUNDLE_CONFLICT


class BundleIncompleteError(BrokerError):
    """The records changed while they were exported (004-85). Retryable."""

    reason = Reason.BUNDLE_INCOMPLETE


class ProjectTooLargeError(BrokerError):
    """More runs or resources than one search may cover (004-69)."""

    reason = Reason.PROJECT_TOO_LARGE


class OfRunError(Exception):
    """What went wrong with one run in a call about many.

    Callers get the cause, retryable or not as it is by itself, with the run's id as ``run_id``.
    """

    def __init__(self, run_id: str, cause: Exception) -> None:
        """Take the run, whose id the caller may know, and the error about it."""
        super().__init__(str(cause))
        self.run_id = run_id
        self.cause = cause
