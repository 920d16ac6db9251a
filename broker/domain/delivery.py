"""How a delivery to the Events service comes out, in words that callers and the store keep."""

from dataclasses import dataclass
from enum import StrEnum

from providers.deliveries import Acknowledgement


class DeliveryCode(StrEnum):
    """Why an effect is not delivered yet (004-78)."""

    OUTBOX_MISSING = "accepted_effect_outbox_missing"
    OUTBOX_INVALID = "accepted_effect_outbox_invalid"
    RECEIPT_INVALID = "accepted_effect_receipt_invalid"
    BUSY = "accepted_effect_delivery_busy"
    FENCED = "accepted_effect_acknowledgment_fenced"
    TIMEOUT = "accepted_effect_delivery_timeout"
    CANCELLED = "accepted_effect_delivery_cancelled"
    STORAGE_UNAVAILABLE = "accepted_effect_storage_unavailable"
    STORAGE_TIMEOUT = "accepted_effect_storage_timeout"
    PROVIDER_UNAVAILABLE = "accepted_effect_provider_unavailable"
    TOKEN_INVALID = "invalid_events_token"  # noqa: S105 - a code
    AUDIENCE_REQUIRED = "events_audience_required"
    FORBIDDEN = "events_forbidden"
    CONFLICT = "events_conflict"
    CONTRACT_REJECTED = "events_contract_rejected"
    REJECTED = "events_rejected"
    EVENTS_UNAVAILABLE = "events_unavailable"
    TRANSPORT_UNAVAILABLE = "events_transport_unavailable"
    ACKNOWLEDGEMENT_INVALID = "events_acknowledgment_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """Delivered, with its acknowledgement; or pending, with a code.

    ``required_subject`` and ``required_audience`` say what token the Events service wants, where
    the code is AUDIENCE_REQUIRED.
    """

    acknowledgement: Acknowledgement | None = None
    code: DeliveryCode | None = None
    required_subject: str = ""
    required_audience: str = ""
