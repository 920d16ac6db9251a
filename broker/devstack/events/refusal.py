"""How the Events service says no."""

from __future__ import annotations

from enum import Enum

import grpc

CODE_KEY = "x-events-code"
"""The trailing metadata that names the refusal."""

_UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
_DENIED = grpc.StatusCode.PERMISSION_DENIED
_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
_INTERNAL = grpc.StatusCode.INTERNAL


class Refusal(Enum):
    """Every reason, with the status of the call: who calls, the receipt, authority, the journal."""

    TOKEN_MISSING = ("caller_token_missing", _UNAUTHENTICATED)
    TOKEN_REJECTED = ("caller_token_rejected", _UNAUTHENTICATED)
    TENANT_SELECTOR = ("invalid_tenant_selector", _UNAUTHENTICATED)
    CALLER_INVALID = ("caller_identity_invalid", _DENIED)
    KEYS_UNAVAILABLE = ("identity_keys_unavailable", _UNAVAILABLE)
    REQUEST_INVALID = ("invalid_request", grpc.StatusCode.INVALID_ARGUMENT)

    RECEIPT_FORBIDDEN = ("accepted_effect_receipt_forbidden", _DENIED)
    RECEIPT_NOT_FOUND = ("accepted_effect_receipt_not_found", grpc.StatusCode.NOT_FOUND)
    RECEIPT_UNAVAILABLE = ("knowledge_receipt_unavailable", _UNAVAILABLE)
    BROKER_REJECTED = ("knowledge_receipt_authority_rejected", _INTERNAL)
    ANSWER_INVALID = ("knowledge_receipt_invalid", _INTERNAL)
    RECEIPT_INVALID = ("accepted_effect_receipt_invalid", _INTERNAL)
    CALLER_MISMATCH = ("accepted_effect_caller_mismatch", _DENIED)

    AUTHORITY_MISSING = ("missing_current_project_authority", _DENIED)
    WRITE_MISSING = ("missing_effective_writeprojects", _DENIED)
    AUTHORITY_UNAVAILABLE = ("projects_authority_unavailable", _UNAVAILABLE)
    AUTHORITY_INVALID = ("invalid_authority_response", _INTERNAL)

    RECEIPT_CONFLICT = ("accepted_effect_identity_conflict", grpc.StatusCode.ALREADY_EXISTS)
    FACT_UNAVAILABLE = ("project_fact_unavailable", _UNAVAILABLE)
    UNEXPECTED = ("admission_unavailable", _UNAVAILABLE)

    def __init__(self, code: str, status: grpc.StatusCode) -> None:
        self.code = code
        self.status = status


class RefusalError(Exception):
    """An effect that is not taken."""

    def __init__(self, refusal: Refusal) -> None:
        """Keeps the reason; there is nothing more to tell."""
        super().__init__(refusal.code)
        self.refusal = refusal
