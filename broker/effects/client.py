"""Calls the Events service: one RPC for each delivery, with the caller's own token (004-76, 77)."""

from contextlib import suppress
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from broker.domain.call import Call
from broker.domain.delivery import DeliveryCode
from broker.domain.effects import EffectReceipt
from broker.outbound import ANSWER_BYTES_MAX, PeerSettings, open_channel
from broker.owners.v1 import events_service_pb2 as events
from providers.deliveries import Acknowledgement

_METHOD: Final = "/broker.owners.v1.EventsService/AdmitAcceptedEffect"

_CODES: Final = {
    grpc.StatusCode.UNAUTHENTICATED: DeliveryCode.AUDIENCE_REQUIRED,
    grpc.StatusCode.PERMISSION_DENIED: DeliveryCode.FORBIDDEN,
    grpc.StatusCode.ALREADY_EXISTS: DeliveryCode.CONFLICT,
    grpc.StatusCode.INVALID_ARGUMENT: DeliveryCode.CONTRACT_REJECTED,
    grpc.StatusCode.UNIMPLEMENTED: DeliveryCode.CONTRACT_REJECTED,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeliveryCode.TIMEOUT,
    grpc.StatusCode.RESOURCE_EXHAUSTED: DeliveryCode.EVENTS_UNAVAILABLE,
    grpc.StatusCode.CANCELLED: DeliveryCode.EVENTS_UNAVAILABLE,
    grpc.StatusCode.INTERNAL: DeliveryCode.EVENTS_UNAVAILABLE,
    grpc.StatusCode.UNKNOWN: DeliveryCode.EVENTS_UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS: DeliveryCode.EVENTS_UNAVAILABLE,
}
"""What a status stands for; UNAVAILABLE is looked at more closely, all others are REJECTED."""


class EventsClient:
    """The Events service at its one configured address. Fulfils ``EventsPort``.

    One channel serves all calls at the same time. Construct it inside a running event loop and
    close it there.

    Raises:
        OSError: a certificate file cannot be read.
    """

    def __init__(self, settings: PeerSettings) -> None:
        self._timeout_s = settings.timeout_s
        self._channel = open_channel(settings)
        self._admit: aio.UnaryUnaryMultiCallable[events.AdmitAcceptedEffectRequest, bytes] = (
            self._channel.unary_unary(
                _METHOD, request_serializer=events.AdmitAcceptedEffectRequest.SerializeToString
            )
        )

    async def admit(
        self, call: Call, receipt: EffectReceipt, authorization: str, *, timeout: float
    ) -> Acknowledgement | DeliveryCode:
        """Hand over what names a receipt, once; see ``EventsPort``."""
        request = events.AdmitAcceptedEffectRequest(
            receipt_id=receipt.receipt_id,
            schema_version=receipt.schema_version,
            event_version=receipt.event_version,
            project_id=receipt.project_id,
            run_id=receipt.run_id,
        )
        try:
            answer = await self._admit(
                request,
                timeout=min(self._timeout_s, timeout),
                metadata=_metadata(call, authorization),
            )
        except aio.AioRpcError as error:
            return _code(error)
        except aio.UsageError:
            return DeliveryCode.TRANSPORT_UNAVAILABLE  # the channel was closed
        return _acknowledgement(answer, request)

    async def aclose(self) -> None:
        """Close the channel; calls in flight fail as unavailable."""
        await self._channel.close()


def _metadata(call: Call, authorization: str) -> tuple[tuple[str, str], ...]:
    caller = call.caller
    sent = [("authorization", authorization), ("x-request-id", call.request_id)]
    if authorization != caller.bearer:
        sent.append(("x-knowledge-authorization", caller.bearer))
    if caller.tenant_selector is not None:
        sent.append(("x-tenant", caller.tenant_selector))
    return tuple(sent)


def _code(error: aio.AioRpcError) -> DeliveryCode:
    """Return what a status stands for. The service's text is not looked at: it may repeat a token.

    A channel that reaches nobody and a service that cannot answer both end as UNAVAILABLE; what the
    service itself says comes with trailing metadata.
    """
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        said = bool(error.trailing_metadata())
        return DeliveryCode.EVENTS_UNAVAILABLE if said else DeliveryCode.TRANSPORT_UNAVAILABLE
    return _CODES.get(error.code(), DeliveryCode.REJECTED)


def _acknowledgement(
    answer: bytes, asked: events.AdmitAcceptedEffectRequest
) -> Acknowledgement | DeliveryCode:
    """Accept an answer only if it is about what was asked, and names a fact and its place."""
    with suppress(DecodeError, ValueError):
        if len(answer) <= ANSWER_BYTES_MAX:
            said = events.AdmitAcceptedEffectResponse.FromString(answer)
            same = (
                said.receipt_id == asked.receipt_id
                and said.schema_version == asked.schema_version
                and said.event_version == asked.event_version
                and said.project_id == asked.project_id
            )
            if same and said.fact_id.isprintable():
                return Acknowledgement(said.fact_id, said.sequence)
    return DeliveryCode.ACKNOWLEDGEMENT_INVALID
