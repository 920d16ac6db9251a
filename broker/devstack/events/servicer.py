"""Takes an effect: who calls, what the broker says, what the owner says, and only then the fact."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast
from uuid import uuid4

import grpc

from broker.api.v1 import effect_pb2
from broker.devstack.events.authority import CurrentAuthority
from broker.devstack.events.callers import CallerVerifier
from broker.devstack.events.receipts import (
    EVENT_VERSION,
    SCHEMA_VERSION,
    BrokerReceipts,
    require_own,
)
from broker.devstack.events.refusal import CODE_KEY, Refusal, RefusalError
from broker.domain.fields import is_identifier
from broker.owners.v1 import events_service_pb2 as pb
from broker.owners.v1 import events_service_pb2_grpc as pb_grpc
from broker.telemetry.logs import describe, logger

SECONDS_MAX = 5.0
"""The most one call may take, also where its caller would wait longer."""

Context = grpc.aio.ServicerContext[Any, Any]


class Keeper(Protocol):
    """Where facts are kept. ``broker.devstack.events.journal.Journal`` is one."""

    async def admit(self, receipt: effect_pb2.EffectReceipt) -> pb.AdmitAcceptedEffectResponse:
        """Keeps a receipt as a fact, once."""
        ...


class EventsServicer(pb_grpc.EventsServiceServicer):
    """The service. Each call is verified anew: nothing that was true before counts."""

    def __init__(
        self,
        callers: CallerVerifier,
        receipts: BrokerReceipts,
        authority: CurrentAuthority,
        journal: Keeper,
    ) -> None:
        """Puts it together; what it is given stays its giver's to close."""
        self._callers, self._receipts = callers, receipts
        self._authority, self._journal = authority, journal

    async def AdmitAcceptedEffect(
        self, request: pb.AdmitAcceptedEffectRequest, context: Context
    ) -> pb.AdmitAcceptedEffectResponse:
        """Makes an accepted effect a fact (004-80)."""
        try:
            return await self._admit(request, context)
        except RefusalError as error:
            refusal = error.refusal
        except Exception as error:  # noqa: BLE001 (a caller learns as little of any of them)
            refusal = _unexpected(Refusal.UNEXPECTED, error)
        context.set_code(refusal.status)
        context.set_details(refusal.code)
        context.set_trailing_metadata(((CODE_KEY, refusal.code),))
        return pb.AdmitAcceptedEffectResponse()

    async def _admit(
        self, request: pb.AdmitAcceptedEffectRequest, context: Context
    ) -> pb.AdmitAcceptedEffectResponse:
        clock, metadata = asyncio.get_running_loop(), context.invocation_metadata() or ()
        deadline = clock.time() + _seconds(context)
        callers = await self._callers.verify(metadata)
        _require_form(request)
        request_id = _request_id(metadata)
        receipt = await self._receipts.read(
            request, callers, request_id=request_id, seconds=deadline - clock.time()
        )
        require_own(receipt, callers)
        await self._authority.require_write(
            callers.events, receipt, request_id=request_id, seconds=deadline - clock.time()
        )
        return await self._keep(receipt)

    async def _keep(self, receipt: effect_pb2.EffectReceipt) -> pb.AdmitAcceptedEffectResponse:
        try:
            return await self._journal.admit(receipt)
        except RefusalError:
            raise
        except Exception as error:  # noqa: BLE001 (the journal may fail in any way)
            refusal = _unexpected(Refusal.FACT_UNAVAILABLE, error)
        raise RefusalError(refusal)


def _seconds(context: Context) -> float:
    left = cast("float | None", context.time_remaining())  # none where the caller sets no deadline
    return SECONDS_MAX if left is None else min(SECONDS_MAX, left)


def _require_form(request: pb.AdmitAcceptedEffectRequest) -> None:
    ids = (request.receipt_id, request.project_id, request.run_id)
    versions = (request.schema_version, request.event_version)
    if not all(map(is_identifier, ids)) or versions != (SCHEMA_VERSION, EVENT_VERSION):
        raise RefusalError(Refusal.REQUEST_INVALID)


def _request_id(metadata: Any) -> str:
    """The id of the broker's call, or one of its own where that cannot be handed on."""
    given = [value for key, value in metadata if key == "x-request-id"]
    match given:
        case [str(value)] if is_identifier(value):
            return value
        case _:
            return str(uuid4())


def _unexpected(refusal: Refusal, error: Exception) -> Refusal:
    """Logs what kind of failure it was, and nothing that it says (004-79)."""
    logger("events").warning("effect_not_admitted", reason=refusal.code, **describe(error))
    return refusal
