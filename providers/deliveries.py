"""The request and result shapes of ``IMemoryProvider`` that deliver accepted effects.

Clauses that govern them stand in ``interface.py``.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from providers.model import AcceptedEffect, ProjectKey

LEASE_MS_MAX = 3_600_000
PENDING_LIMIT_MAX = 100
FACT_ID_LENGTH_MAX = 256
FACT_SEQUENCE_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What the events service answered: its fact, and that fact's place in the project (004-77).

    Raises:
        ValueError: ``fact_id`` is not 1-256 printable characters, or ``sequence`` is not 1 to
            2^63 - 1.
    """

    fact_id: str
    sequence: int

    def __post_init__(self) -> None:
        """Refuse what acknowledges nothing."""
        if not 1 <= len(self.fact_id) <= FACT_ID_LENGTH_MAX or not self.fact_id.isprintable():
            raise ValueError(f"fact_id is 1-{FACT_ID_LENGTH_MAX} printable characters")
        if not 1 <= self.sequence <= FACT_SEQUENCE_MAX:
            raise ValueError("sequence counts from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireRequest:
    """Asks for the delivery lease of one effect.

    Raises:
        ValueError: ``lease_ms`` is not 1-3,600,000 (one hour).
    """

    project: ProjectKey
    run_id: str
    receipt_id: str
    lease_ms: int

    def __post_init__(self) -> None:
        """Refuse a lease that ends at once, or that nobody would wait for."""
        if not 1 <= self.lease_ms <= LEASE_MS_MAX:
            raise ValueError(f"lease_ms is 1-{LEASE_MS_MAX}")


@dataclass(frozen=True, slots=True)
class Acquired:
    """The lease, or why there is none.

    ``effect`` is ``None`` when the run has no such effect, and only then. ``token`` is ``None``
    then too, and when the effect is delivered, leased, or behind an earlier one.
    ``acknowledgement`` is there exactly when it is delivered.
    """

    token: str | None
    effect: AcceptedEffect | None
    delivered: bool = False
    acknowledgement: Acknowledgement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """Names a lease that is to be acknowledged or released."""

    project: ProjectKey
    run_id: str
    receipt_id: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRequest:
    """Asks for one effect of one run."""

    project: ProjectKey
    run_id: str
    receipt_id: str


@dataclass(frozen=True, slots=True)
class EffectFound:
    """The effect and where its delivery stands.

    ``effect`` is ``None`` when the run has no such effect. ``last_code`` says why the last delivery
    that was given up failed; a delivered effect has none, and has its ``acknowledgement``.
    """

    effect: AcceptedEffect | None
    delivered: bool = False
    last_code: str | None = None
    acknowledgement: Acknowledgement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEffectsRequest:
    """Undelivered effects of one run in stream order, after a sequence.

    Raises:
        ValueError: ``limit`` is not 1-100, or ``after_sequence`` is below 0.
    """

    project: ProjectKey
    run_id: str
    after_sequence: int
    limit: int

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if not 1 <= self.limit <= PENDING_LIMIT_MAX:
            raise ValueError(f"limit is 1-{PENDING_LIMIT_MAX}")
        if self.after_sequence < 0:
            raise ValueError("after_sequence counts from 0")


@dataclass(frozen=True, slots=True)
class PendingEffects:
    """The page, and whether more follows."""

    effects: tuple[EffectFound, ...]
    more: bool


# -------------------- beside the contract: a receipt whose project is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscopedEffectRequest:
    """Asks for the effect with this receipt id that was accepted for this issuer and subject."""

    tenant_id: str
    receipt_id: str
    issuer: str
    subject: str


@dataclass(frozen=True, slots=True)
class UnscopedEffectFound:
    """The effect and the project it is in; ``project_id`` is ``None`` when there is none."""

    project_id: str | None
    found: EffectFound


@runtime_checkable
class UnscopedEffects(Protocol):
    """Finds a receipt whose project the caller cannot name (004-81): the native adapter alone.

    It is no part of ``IMemoryProvider`` and the one exception to clause G-2: its key is
    (tenant_id, receipt_id). The look-up itself compares tenant, receipt id, and the texts
    ``issuer`` and ``subject`` of the effect's receipt, byte for byte, so that what belongs to
    somebody else is never read. Of several, which only a receipt id that was not made at random
    allows, the first by project id is returned. Everything else is as in clauses G-3 to G-10.
    """

    async def unscoped_effect(
        self, request: UnscopedEffectRequest, *, timeout: float
    ) -> UnscopedEffectFound:
        """Return the effect, or nothing."""
