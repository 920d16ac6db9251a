"""MemoryService on the wire: one screen per method, no rule of its own."""

from dataclasses import dataclass
from typing import Protocol

from broker.api.v1 import memory_service_pb2 as pb
from broker.api.v1 import memory_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.memories import (
    Forget,
    Forgotten,
    Recall,
    RecallByTags,
    Recollected,
    Remember,
    RememberedAll,
    Tagged,
)
from broker.server.app import ServedService
from broker.server.convert import asks_full, record_message, scope_input
from broker.server.exchange import current_call
from broker.server.memory_convert import (
    arm_message,
    dedup_input,
    filter_input,
    memory_inputs,
    recollection_message,
    remembered_message,
)
from broker.server.vocabulary import RECALL_MODES
from broker.server.wellknown import time_of


class RememberingPort(Protocol):
    """What takes memories in. Refusals of all ports are BrokerErrors and ProviderErrors."""

    async def remember(self, call: Call, request: Remember) -> RememberedAll:
        """Take memories in, all of them or none."""
        ...


class RecallingPort(Protocol):
    """What gives memories back."""

    async def recall(self, call: Call, request: Recall) -> Recollected:
        """Find memories by a query."""
        ...

    async def by_tags(self, call: Call, request: RecallByTags) -> Tagged:
        """Return memories by tags."""
        ...


class ForgettingPort(Protocol):
    """What forgets."""

    async def forget(self, call: Call, request: Forget) -> Forgotten:
        """Forget a memory."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """The use cases of MemoryService."""

    remembering: RememberingPort
    recalling: RecallingPort
    forgetting: ForgettingPort


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, ports: MemoryPorts) -> None:
        """Ask the use cases."""
        self._ports = ports

    async def Remember(self, request: pb.RememberRequest, context: object) -> pb.RememberResponse:
        """Take one memory in (001-01, 003-01)."""
        done = await self._ports.remembering.remember(
            current_call(),
            Remember(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                memories=memory_inputs([request.memory]),
                dedup=dedup_input(request.dedup),
                batch=False,
            ),
        )
        return pb.RememberResponse(
            remembered=remembered_message(done.project_id, done.remembered[0]),
            vectors=arm_message(done.vectors),
            replayed=done.replayed,
        )

    async def BatchRemember(
        self, request: pb.BatchRememberRequest, context: object
    ) -> pb.BatchRememberResponse:
        """Take several memories in, all of them or none (000-19)."""
        done = await self._ports.remembering.remember(
            current_call(),
            Remember(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                memories=memory_inputs(request.memories),
                dedup=dedup_input(request.dedup),
                batch=True,
            ),
        )
        return pb.BatchRememberResponse(
            remembered=[remembered_message(done.project_id, each) for each in done.remembered],
            vectors=arm_message(done.vectors),
            replayed=done.replayed,
        )

    async def Recall(self, request: pb.RecallRequest, context: object) -> pb.RecallResponse:
        """Find memories by a query (003-03)."""
        found = await self._ports.recalling.recall(
            current_call(),
            Recall(
                scope=scope_input(request.scope),
                query=request.query,
                limit=request.limit,
                mode=RECALL_MODES.word(request.mode),
                filter=filter_input(request.filter),
                as_of=time_of(request.as_of) if request.HasField("as_of") else None,
                include_superseded=request.include_superseded,
                full=asks_full(request.view),
            ),
        )
        return pb.RecallResponse(
            results=[
                recollection_message(found.project_id, each, full=found.full)
                for each in found.results
            ],
            arms=[arm_message(each) for each in found.arms],
        )

    async def RecallByTags(
        self, request: pb.RecallByTagsRequest, context: object
    ) -> pb.RecallByTagsResponse:
        """Return memories by tags, the most important first (003-04)."""
        found = await self._ports.recalling.by_tags(
            current_call(),
            RecallByTags(
                scope=scope_input(request.scope),
                filter=filter_input(request.filter),
                limit=request.limit,
                full=asks_full(request.view),
            ),
        )
        return pb.RecallByTagsResponse(
            records=[
                record_message(found.project_id, each, full=found.full) for each in found.records
            ],
            more=found.more,
        )

    async def Forget(self, request: pb.ForgetRequest, context: object) -> pb.ForgetResponse:
        """Forget a memory (003-05)."""
        done = await self._ports.forgetting.forget(
            current_call(),
            Forget(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                record_id=request.record_id,
                expected_revision=request.expected_revision,
                reason=request.reason,
            ),
        )
        return pb.ForgetResponse(found=done.found, replayed=done.replayed)


def memory_service(ports: MemoryPorts) -> ServedService:
    """Return MemoryService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["MemoryService"],
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server,
        MemoryServicer(ports),
    )
