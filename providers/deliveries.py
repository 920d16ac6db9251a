"""The request and result shapes of ``IMemoryProvider`` that deliver accepted effects.

Clauses that govern them stand in ``interface.py``.
"""

from dataclasses import dataclass

from providers.model import AcceptedEffect, ProjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireRequest:
    """Asks for the delivery lease of one effect. ``lease_ms`` 1-3,600,000."""

    project: ProjectKey
    run_id: str
    receipt_id: str
    lease_ms: int


@dataclass(frozen=True, slots=True)
class Acquired:
    """The lease; ``token`` is ``None`` when delivered, leased, or behind an earlier effect."""

    token: str | None
    effect: AcceptedEffect | None
    delivered: bool = False


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

    ``effect`` is ``None`` when the run has no such effect.
    """

    effect: AcceptedEffect | None
    delivered: bool = False
    last_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEffectsRequest:
    """Undelivered effects of one run in stream order, after a sequence. ``limit`` 1-100."""

    project: ProjectKey
    run_id: str
    after_sequence: int
    limit: int


@dataclass(frozen=True, slots=True)
class PendingEffects:
    """The page, and whether more follows."""

    effects: tuple[EffectFound, ...]
    more: bool
