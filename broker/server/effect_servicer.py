"""EffectService on the wire: one screen per method, no rule of its own."""

from dataclasses import dataclass
from typing import Protocol

from broker.api.v1 import effect_pb2, effect_service_pb2_grpc
from broker.api.v1 import effect_service_pb2 as pb
from broker.domain.call import Call
from broker.domain.delivery import DeliveryOutcome
from broker.domain.effects import (
    EVENT_VERSION,
    SCHEMA_VERSION,
    EffectReceipt,
    ListPendingEffects,
    NamedEffect,
    PendingListed,
)
from broker.server.app import ServedService
from broker.server.exchange import current_call
from broker.server.vocabulary import GRANTED_ON
from broker.server.wellknown import put_time
from providers.deliveries import EffectFound


class EffectsPort(Protocol):
    """What reads and delivers. Refusals of all ports are BrokerErrors and ProviderErrors."""

    async def get(self, call: Call, named: NamedEffect) -> EffectReceipt:
        """Return a receipt."""
        ...

    async def deliver(self, call: Call, named: NamedEffect) -> DeliveryOutcome:
        """Deliver a receipt."""
        ...

    async def list_pending(self, call: Call, request: ListPendingEffects) -> PendingListed:
        """Return a page of undelivered effects."""
        ...


class UnscopedEffectReadsPort(Protocol):
    """What reads receipts without naming their run."""

    async def get(self, call: Call, receipt_id: str) -> EffectReceipt:
        """Return a receipt."""
        ...


@dataclass(frozen=True, slots=True)
class EffectPorts:
    """The use cases of EffectService."""

    effects: EffectsPort
    unscoped: UnscopedEffectReadsPort


class EffectServicer(effect_service_pb2_grpc.EffectServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, ports: EffectPorts) -> None:
        """Ask the use cases."""
        self._effects = ports.effects
        self._unscoped = ports.unscoped

    async def GetAcceptedEffect(
        self, request: pb.GetAcceptedEffectRequest, context: object
    ) -> pb.GetAcceptedEffectResponse:
        """Return a receipt (004-81)."""
        receipt = await self._effects.get(current_call(), _named(request))
        return pb.GetAcceptedEffectResponse(receipt=receipt_message(receipt))

    async def DeliverAcceptedEffect(
        self, request: pb.DeliverAcceptedEffectRequest, context: object
    ) -> pb.DeliverAcceptedEffectResponse:
        """Deliver a receipt (004-75)."""
        outcome = await self._effects.deliver(current_call(), _named(request))
        return pb.DeliverAcceptedEffectResponse(
            delivery=delivery_message(outcome, request.project_id, request.receipt_id)
        )

    async def ListPendingEffects(
        self, request: pb.ListPendingEffectsRequest, context: object
    ) -> pb.ListPendingEffectsResponse:
        """Return a page of undelivered effects (004-73)."""
        listed = await self._effects.list_pending(
            current_call(),
            ListPendingEffects(
                project_id=request.project_id,
                run_id=request.run_id,
                page_size=request.page_size,
                page_token=request.page_token,
            ),
        )
        return pb.ListPendingEffectsResponse(
            effects=map(_pending_message, listed.effects), next_page_token=listed.next_page_token
        )

    async def GetUnscopedAcceptedEffect(
        self, request: pb.GetUnscopedAcceptedEffectRequest, context: object
    ) -> pb.GetUnscopedAcceptedEffectResponse:
        """Return a receipt without naming its run (004-81)."""
        receipt = await self._unscoped.get(current_call(), request.receipt_id)
        return pb.GetUnscopedAcceptedEffectResponse(receipt=receipt_message(receipt))


def _named(
    request: pb.GetAcceptedEffectRequest | pb.DeliverAcceptedEffectRequest,
) -> NamedEffect:
    return NamedEffect(
        project_id=request.project_id, run_id=request.run_id, receipt_id=request.receipt_id
    )


def receipt_message(receipt: EffectReceipt) -> effect_pb2.EffectReceipt:
    """Write a receipt: 21 fields, no content, no credential (004-72)."""
    message = effect_pb2.EffectReceipt(
        receipt_id=receipt.receipt_id,
        schema_version=receipt.schema_version,
        event_version=receipt.event_version,
        project_id=receipt.project_id,
        run_id=receipt.run_id,
        effect_id=receipt.effect_id,
        record_id=receipt.record_id,
        record_version=receipt.record_version,
        issuer=receipt.issuer,
        subject=receipt.subject,
        tenant_id=receipt.tenant_id,
        bound_project_id=receipt.bound_project_id or "",
        bound_run_id=receipt.bound_run_id or "",
        authorization_resource_type=GRANTED_ON.number(receipt.authorization_resource_type),
        authorization_resource_id=receipt.authorization_resource_id,
        authorization_revision=receipt.authorization_revision,
        membership_revision=receipt.membership_revision,
        project_revision=receipt.project_revision,
        project_configuration_revision=receipt.project_configuration_revision,
        context_revision=receipt.context_revision,
    )
    put_time(message.accept_time, receipt.accept_time)
    return message


def delivery_message(
    outcome: DeliveryOutcome, project_id: str, receipt_id: str
) -> effect_pb2.Delivery:
    """Write how a delivery came out."""
    said = outcome.acknowledgement
    if said is None:
        return effect_pb2.Delivery(
            state=effect_pb2.DELIVERY_STATE_PENDING,
            code=outcome.code or "",
            required_subject=outcome.required_subject,
            required_audience=outcome.required_audience,
        )
    return effect_pb2.Delivery(
        state=effect_pb2.DELIVERY_STATE_DELIVERED,
        acknowledgement=effect_pb2.DeliveryAcknowledgement(
            receipt_id=receipt_id,
            schema_version=SCHEMA_VERSION,
            event_version=EVENT_VERSION,
            fact_id=said.fact_id,
            project_id=project_id,
            sequence=said.sequence,
        ),
    )


def _pending_message(found: EffectFound) -> pb.PendingEffect:
    if found.effect is None:
        raise ValueError("a page holds effects only")
    message = pb.PendingEffect(
        receipt_id=found.effect.receipt_id,
        sequence=found.effect.sequence,
        last_delivery_code=found.last_code or "",
    )
    put_time(message.accept_time, found.effect.accept_time)
    return message


def effect_service(ports: EffectPorts) -> ServedService:
    """Return EffectService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["EffectService"],
        effect_service_pb2_grpc.add_EffectServiceServicer_to_server,
        EffectServicer(ports),
    )
