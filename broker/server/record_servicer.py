"""RecordService on the wire: one screen per method, no rule of its own."""

from typing import Protocol

from broker.api.v1 import record_service_pb2 as pb
from broker.api.v1 import record_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.requests import (
    CreateRecord,
    GetRecord,
    GetRevision,
    ListRevisions,
    Read,
    RevisionsListed,
    UpdateRecord,
    Written,
)
from broker.server.app import ServedService
from broker.server.convert import (
    content_input,
    facet_input,
    mask_paths,
    record_message,
    revision_message,
    scope_input,
)
from broker.server.exchange import current_call
from broker.server.vocabulary import KINDS
from providers.model import Revision


class RecordWritesPort(Protocol):
    """The writes. Refusals are BrokerErrors and ProviderErrors."""

    async def create(self, call: Call, request: CreateRecord) -> Written:
        """Create a memory or a session context."""
        ...

    async def update(self, call: Call, request: UpdateRecord) -> Written:
        """Replace a record's content."""
        ...


class RecordReadsPort(Protocol):
    """The reads. Refusals are BrokerErrors and ProviderErrors."""

    async def get(self, call: Call, request: GetRecord) -> Read:
        """Return a head."""
        ...

    async def list_revisions(self, call: Call, request: ListRevisions) -> RevisionsListed:
        """Return a page of history that fits into one reply."""
        ...

    async def get_revision(self, call: Call, request: GetRevision) -> Revision:
        """Return one revision."""
        ...


class RecordServicer(record_service_pb2_grpc.RecordServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, writes: RecordWritesPort, reads: RecordReadsPort) -> None:
        """Ask ``writes`` and ``reads``."""
        self._writes = writes
        self._reads = reads

    async def CreateRecord(
        self, request: pb.CreateRecordRequest, context: object
    ) -> pb.CreateRecordResponse:
        """Create a memory or a session context (004-46, 004-62)."""
        written = await self._writes.create(
            current_call(),
            CreateRecord(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                kind=KINDS.word(request.kind),
                content=content_input(request),
                facet=facet_input(request),
            ),
        )
        return pb.CreateRecordResponse(
            record=record_message(written.project_id, written.record), replayed=written.replayed
        )

    async def GetRecord(
        self, request: pb.GetRecordRequest, context: object
    ) -> pb.GetRecordResponse:
        """Return a head (004-56)."""
        read = await self._reads.get(
            current_call(),
            GetRecord(scope=scope_input(request.scope), record_id=request.record_id),
        )
        return pb.GetRecordResponse(record=record_message(read.project_id, read.record))

    async def UpdateRecord(
        self, request: pb.UpdateRecordRequest, context: object
    ) -> pb.UpdateRecordResponse:
        """Replace a record's content over the revision the caller saw (004-55, 004-62)."""
        written = await self._writes.update(
            current_call(),
            UpdateRecord(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                record_id=request.record_id,
                expected_revision=request.expected_revision,
                content=content_input(request),
                reason=request.reason,
                facet=facet_input(request),
                facet_mask=mask_paths(request),
            ),
        )
        return pb.UpdateRecordResponse(
            record=record_message(written.project_id, written.record), replayed=written.replayed
        )

    async def ListRevisions(
        self, request: pb.ListRevisionsRequest, context: object
    ) -> pb.ListRevisionsResponse:
        """Return a page of history, newest first (004-52)."""
        listed = await self._reads.list_revisions(
            current_call(),
            ListRevisions(
                scope=scope_input(request.scope),
                record_id=request.record_id,
                page_size=request.page_size,
                page_token=request.page_token,
            ),
        )
        return pb.ListRevisionsResponse(
            revisions=map(revision_message, listed.revisions),
            next_page_token=listed.next_page_token,
        )

    async def GetRevision(
        self, request: pb.GetRevisionRequest, context: object
    ) -> pb.GetRevisionResponse:
        """Return one revision (004-52)."""
        revision = await self._reads.get_revision(
            current_call(),
            GetRevision(
                scope=scope_input(request.scope),
                record_id=request.record_id,
                revision=request.revision,
            ),
        )
        return pb.GetRevisionResponse(revision=revision_message(revision))


def record_service(writes: RecordWritesPort, reads: RecordReadsPort) -> ServedService:
    """Return RecordService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["RecordService"],
        record_service_pb2_grpc.add_RecordServiceServicer_to_server,
        RecordServicer(writes, reads),
    )
