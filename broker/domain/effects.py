"""Accepted effects: the redacted receipt of a decision, and to whom it is told (004-72, 004-81)."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final

from broker.domain.authority import Authorized, GrantedOn, Permission
from broker.domain.call import Caller, RunScope
from broker.domain.errors import EffectNotFoundError
from providers.deliveries import EffectFound
from providers.errors import StoredDataInvalidError
from providers.model import AcceptedEffect, Revision

SCHEMA_VERSION: Final = 1
EVENT_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectReceipt:
    """Who accepted a decision, by what right, in what state of the project.

    It holds no content and no credential. ``authorization_*`` name the one grant of
    AccessPrivateKnowledge that counted (004-18).
    """

    receipt_id: str
    schema_version: int
    event_version: int
    project_id: str
    run_id: str
    effect_id: str
    record_id: str
    record_version: int
    issuer: str
    subject: str
    tenant_id: str
    bound_project_id: str | None
    bound_run_id: str | None
    authorization_resource_type: GrantedOn
    authorization_resource_id: str
    authorization_revision: int
    membership_revision: int
    project_revision: int
    project_configuration_revision: int
    context_revision: str
    accept_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEffect:
    """Project, run and receipt as the caller wrote them."""

    project_id: str
    run_id: str
    receipt_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPendingEffects:
    """Asks for a page of undelivered effects."""

    project_id: str
    run_id: str
    page_size: int
    page_token: str


@dataclass(frozen=True, slots=True)
class PendingListed:
    """A page of undelivered effects in stream order; an empty token is the end."""

    effects: tuple[EffectFound, ...]
    next_page_token: str


_APART: Final = frozenset({"receipt_id", "run_id", "accept_time"})
"""What the store keeps in places of its own; the rest is one document."""

_KEPT: Final = {field.name: field.type for field in fields(EffectReceipt)}.keys() - _APART
_NULLABLE: Final = frozenset({"bound_project_id", "bound_run_id"})
_NUMBERS: Final = frozenset(
    {
        "schema_version",
        "event_version",
        "record_version",
        "authorization_revision",
        "membership_revision",
        "project_revision",
        "project_configuration_revision",
    }
)


def accepted_effect(
    authorized: Authorized,
    *,
    decision: Revision,
    receipt_id: str,
    sequence: int,
    accept_time: datetime,
) -> AcceptedEffect:
    """Return the effect of a decision that was accepted by what a check says now."""
    caller, selection = authorized.call.caller, authorized.selected()
    grant = authorized.grants[Permission.ACCESS_PRIVATE_KNOWLEDGE]
    receipt = EffectReceipt(
        receipt_id=receipt_id,
        schema_version=SCHEMA_VERSION,
        event_version=EVENT_VERSION,
        project_id=selection.project_id,
        run_id=selection.run_id,
        effect_id=decision.record_id,
        record_id=decision.record_id,
        record_version=decision.revision,
        issuer=caller.issuer,
        subject=caller.subject,
        tenant_id=authorized.tenant_id,
        bound_project_id=caller.bound_project_id,
        bound_run_id=caller.bound_run_id,
        authorization_resource_type=grant.on,
        authorization_resource_id=grant.resource_id,
        authorization_revision=grant.role_revision,
        membership_revision=authorized.membership_revision,
        project_revision=selection.project_revision,
        project_configuration_revision=selection.project_configuration_revision,
        context_revision=selection.context_revision,
        accept_time=accept_time,
    )
    kept = {name: value for name, value in asdict(receipt).items() if name not in _APART}
    return AcceptedEffect(
        receipt_id=receipt_id,
        run_id=receipt.run_id,
        sequence=sequence,
        receipt=kept,
        accept_time=accept_time,
    )


def receipt_of(effect: AcceptedEffect) -> EffectReceipt:
    """Return the receipt that the store keeps.

    Raises:
        StoredDataInvalidError: a field is absent, unknown, or of another type.
    """
    kept: dict[str, Any] = dict(effect.receipt)
    if kept.keys() != _KEPT:
        raise StoredDataInvalidError("a receipt's fields are not those it must have")
    for name, value in kept.items():
        number = type(value) is int and value >= 1
        text = isinstance(value, str) or (value is None and name in _NULLABLE)
        if not (number if name in _NUMBERS else text):
            raise StoredDataInvalidError("a receipt's field has another type than it must have")
    try:
        kept["authorization_resource_type"] = GrantedOn(kept["authorization_resource_type"])
    except ValueError as error:
        raise StoredDataInvalidError("a receipt names an unknown type of resource") from error
    return EffectReceipt(
        receipt_id=effect.receipt_id,
        run_id=effect.run_id,
        accept_time=effect.accept_time,
        **kept,
    )


def check_its_caller(
    receipt: EffectReceipt, caller: Caller, tenant_id: str, scope: RunScope
) -> None:
    """Refuse a receipt to anybody but the caller who accepted, with the same bounds (004-81).

    Raises:
        EffectNotFoundError: the same as for one that does not exist. Not retryable.
    """
    asked = (
        scope.project_id,
        scope.run_id,
        tenant_id,
        caller.issuer,
        caller.subject,
        caller.bound_project_id,
        caller.bound_run_id,
    )
    kept = (
        receipt.project_id,
        receipt.run_id,
        receipt.tenant_id,
        receipt.issuer,
        receipt.subject,
        receipt.bound_project_id,
        receipt.bound_run_id,
    )
    if asked != kept:
        raise EffectNotFoundError
