"""What a signed payload says, and whether it holds now."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.authority.faults import Fault, refusal
from broker.authority.issuers import TrustedIssuer
from broker.authority.syntax import is_label
from broker.domain.fields import is_identifier

SUBJECT_MAX = 256
AUDIENCES_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims the broker reads, checked for their form only. Times are seconds since 1970."""

    issuer: str
    subject: str
    audiences: frozenset[str]
    expires: float
    issued: float
    not_before: float | None
    project: str | None
    run: str | None
    tenant: str | None
    purpose: str | None


def read_claims(payload: dict[str, Any], trusted: TrustedIssuer) -> Claims:
    """Read the payload of a token whose signature verified.

    Raises:
        TokenInvalidError: a claim is absent, doubled or malformed (004-10, 004-12). Not retryable.
    """
    subject = payload.get("sub")
    if not isinstance(subject, str) or not is_label(subject, SUBJECT_MAX):
        raise refusal(Fault.SUBJECT)
    expires, issued, not_before = _times(payload)
    names = trusted.claims
    project = _only(payload, (names.project,), is_identifier)
    run = _only(payload, (names.run,), is_identifier)
    if run is not None and project is None:
        raise refusal(Fault.RUN_WITHOUT_PROJECT)
    return Claims(
        issuer=trusted.issuer,
        subject=subject,
        audiences=_audiences(payload),
        expires=expires,
        issued=issued,
        not_before=not_before,
        project=project,
        run=run,
        tenant=_only(payload, names.tenant, is_identifier),
        purpose=_only(payload, names.purpose, is_label),
    )


def check_claims(claims: Claims, trusted: TrustedIssuer, now: float) -> None:
    """Check what depends on the audience and the time; called on every call, cached or not.

    A token is good from ``iat`` and ``nbf`` minus the leeway until just before ``exp`` plus it.

    Raises:
        TokenInvalidError: for another audience, expired, or not valid yet. Not retryable.
    """
    if trusted.audience not in claims.audiences:
        raise refusal(Fault.AUDIENCE)
    if now >= claims.expires + trusted.leeway_s:
        raise refusal(Fault.EXPIRED)
    begins = max(claims.issued, claims.not_before or claims.issued)
    if now < begins - trusted.leeway_s:
        raise refusal(Fault.NOT_YET)


def _times(payload: dict[str, Any]) -> tuple[float, float, float | None]:
    expires, issued = _time(payload.get("exp")), _time(payload.get("iat"))
    not_before = _time(payload["nbf"]) if "nbf" in payload else None
    if expires is None or issued is None:
        raise refusal(Fault.TIMES)
    if "nbf" in payload and not_before is None:
        raise refusal(Fault.TIMES)
    return expires, issued, not_before


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 2**53 else None


def _audiences(payload: dict[str, Any]) -> frozenset[str]:
    value = payload.get("aud")
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not 0 < len(listed) <= AUDIENCES_MAX:
        raise refusal(Fault.AUDIENCE)
    if not all(isinstance(audience, str) for audience in listed):
        raise refusal(Fault.AUDIENCE)
    return frozenset(listed)


def _only(
    payload: dict[str, Any], names: tuple[str, ...], accepts: Callable[[str], bool]
) -> str | None:
    found = [payload[name] for name in names if name in payload]
    if not found:
        return None
    if len(found) > 1 or not isinstance(found[0], str) or not accepts(found[0]):
        raise refusal(Fault.BOUNDS)
    return found[0]
