"""Reads receipts back from the broker, and believes nothing else (004-80)."""

from __future__ import annotations

import grpc
from google.protobuf.message import DecodeError

from broker.api.v1 import effect_pb2, effect_service_pb2
from broker.devstack.events.callers import Callers
from broker.devstack.events.refusal import Refusal, RefusalError
from broker.domain.call import Caller
from broker.domain.fields import is_identifier
from broker.outbound import ANSWER_BYTES_MAX, PeerSettings, open_channel
from broker.owners.v1 import events_service_pb2 as pb

SCHEMA_VERSION = 1
EVENT_VERSION = 1

_METHOD = "/broker.api.v1.EffectService/GetAcceptedEffect"
_STATUSES = {
    grpc.StatusCode.UNAUTHENTICATED: Refusal.BROKER_REJECTED,
    grpc.StatusCode.PERMISSION_DENIED: Refusal.RECEIPT_FORBIDDEN,
    grpc.StatusCode.NOT_FOUND: Refusal.RECEIPT_NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.CANCELLED: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.FAILED_PRECONDITION: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.ABORTED: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.INTERNAL: Refusal.RECEIPT_UNAVAILABLE,
    grpc.StatusCode.UNKNOWN: Refusal.RECEIPT_UNAVAILABLE,
}
_RESOURCES = (
    effect_pb2.AUTHORIZATION_RESOURCE_TYPE_TENANT,
    effect_pb2.AUTHORIZATION_RESOURCE_TYPE_PROJECT,
)
_IDENTIFIERS = ("receipt_id", "project_id", "run_id", "effect_id", "record_id", "tenant_id")
_POSITIVE = (
    "record_version",
    "authorization_revision",
    "membership_revision",
    "project_revision",
    "project_configuration_revision",
)


class BrokerReceipts:
    """The broker at the one address that this service is told, never by a caller."""

    def __init__(self, broker: PeerSettings | None) -> None:
        """Describes the way; without one nothing can be read until ``reach``."""
        self._broker = broker
        self._channel: grpc.aio.Channel | None = None

    async def reach(self, broker: PeerSettings) -> None:
        """Goes to this address from now on."""
        await self.close()
        self._broker = broker

    async def close(self) -> None:
        """Closes the way; it opens again when it is needed."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def read(
        self,
        asked: pb.AdmitAcceptedEffectRequest,
        callers: Callers,
        *,
        request_id: str,
        seconds: float,
    ) -> effect_pb2.EffectReceipt:
        """Returns the receipt as the broker tells it to the holder of the token for knowledge.

        Raises:
            RefusalError: The broker refuses or cannot be asked, or what it tells is not this
                receipt.
        """
        request = effect_service_pb2.GetAcceptedEffectRequest(
            project_id=asked.project_id, run_id=asked.run_id, receipt_id=asked.receipt_id
        )
        content = await self._ask(request, callers.knowledge, request_id, seconds)
        if len(content) > ANSWER_BYTES_MAX:
            raise RefusalError(Refusal.ANSWER_INVALID)
        try:
            answer = effect_service_pb2.GetAcceptedEffectResponse.FromString(content)
        except DecodeError as error:
            raise RefusalError(Refusal.ANSWER_INVALID) from error
        if not answer.HasField("receipt"):
            raise RefusalError(Refusal.ANSWER_INVALID)
        if not (_is_whole(answer.receipt) and _is_of(answer.receipt, asked)):
            raise RefusalError(Refusal.RECEIPT_INVALID)
        return answer.receipt

    async def _ask(
        self,
        request: effect_service_pb2.GetAcceptedEffectRequest,
        caller: Caller,
        request_id: str,
        seconds: float,
    ) -> bytes:
        metadata = [("authorization", caller.bearer), ("x-request-id", request_id)]
        if caller.tenant_selector is not None:
            metadata.append(("x-tenant", caller.tenant_selector))
        # The status alone is kept: a text of the broker's, or a chain to it, could tell more.
        try:
            method: grpc.aio.UnaryUnaryMultiCallable[
                effect_service_pb2.GetAcceptedEffectRequest, bytes
            ] = self._open().unary_unary(
                _METHOD,
                request_serializer=effect_service_pb2.GetAcceptedEffectRequest.SerializeToString,
            )
            answer: bytes = await method(request, timeout=seconds, metadata=tuple(metadata))
        except grpc.aio.AioRpcError as error:
            refusal = _STATUSES.get(error.code(), Refusal.ANSWER_INVALID)
        else:
            return answer
        raise RefusalError(refusal)

    def _open(self) -> grpc.aio.Channel:
        if self._broker is None:
            raise RefusalError(Refusal.RECEIPT_UNAVAILABLE)
        if self._channel is None:
            self._channel = open_channel(self._broker)
        return self._channel


def require_own(receipt: effect_pb2.EffectReceipt, callers: Callers) -> None:
    """Refuses a receipt of another person, tenant or bounds than either token says.

    Raises:
        RefusalError: It is not the caller's.
    """
    for caller in callers.each:
        told = (
            receipt.issuer == caller.issuer,
            receipt.subject == caller.subject,
            {caller.tenant_claim, caller.tenant_selector} <= {None, receipt.tenant_id},
            receipt.bound_project_id == (caller.bound_project_id or ""),
            receipt.bound_run_id == (caller.bound_run_id or ""),
        )
        if not all(told):
            raise RefusalError(Refusal.CALLER_MISMATCH)


def _is_of(receipt: effect_pb2.EffectReceipt, asked: pb.AdmitAcceptedEffectRequest) -> bool:
    return (
        receipt.receipt_id == asked.receipt_id
        and receipt.project_id == asked.project_id
        and receipt.run_id == asked.run_id
        and receipt.schema_version == asked.schema_version
        and receipt.event_version == asked.event_version
    )


def _is_whole(receipt: effect_pb2.EffectReceipt) -> bool:
    on_project = receipt.authorization_resource_type == _RESOURCES[1]
    resource_id = receipt.project_id if on_project else receipt.tenant_id
    return (
        all(is_identifier(getattr(receipt, name)) for name in _IDENTIFIERS)
        and all(getattr(receipt, name) >= 1 for name in _POSITIVE)
        and receipt.authorization_resource_type in _RESOURCES
        and receipt.authorization_resource_id == resource_id
        and receipt.effect_id == receipt.record_id
        and receipt.bound_project_id in {"", receipt.project_id}
        and receipt.bound_run_id in {"", receipt.run_id}
        and bool(receipt.issuer and receipt.subject and receipt.context_revision)
        and receipt.HasField("accept_time")
    )
