"""RecordService on the wire: one screen per method, no rule of its own."""

from dataclasses import dataclass
from typing import Protocol

from broker.api.v1 import record_pb2, record_service_pb2_grpc
from broker.api.v1 import record_service_pb2 as pb
from broker.domain.call import Call
from broker.domain.fields import BATCH_MAX
from broker.domain.requests import (
    BatchGetRecords,
    ChangeRecord,
    CreateRecord,
    Found,
    GetRecord,
    GetRevision,
    ListRevisions,
    Read,
    ReadMany,
    RejectRecord,
    RestoreRecord,
    RevisionsListed,
    SearchRecords,
    SupersedeDecision,
    UpdateRecord,
    Written,
)
from broker.server.app import ServedService
from broker.server.convert import (
    asks_full,
    change_fields,
    change_request,
    content_input,
    facet_input,
    mask_paths,
    record_message,
    revision_message,
    scope_input,
    search_fields,
)
from broker.server.exchange import current_call
from broker.server.vocabulary import KINDS, REJECT_KINDS
from providers.model import Revision


class RecordWritesPort(Protocol):
    """What creates and edits. Refusals of all ports are BrokerErrors and ProviderErrors."""

    async def create(self, call: Call, request: CreateRecord) -> Written:
        """Create a memory or a session context."""
        ...

    async def update(self, call: Call, request: UpdateRecord) -> Written:
        """Replace a record's content."""
        ...


class RecordChangesPort(Protocol):
    """What changes state and trust."""

    async def archive(self, call: Call, request: ChangeRecord) -> Written:
        """Put a record aside."""
        ...

    async def unarchive(self, call: Call, request: ChangeRecord) -> Written:
        """Take a record back."""
        ...

    async def supersede(self, call: Call, request: SupersedeDecision) -> Written:
        """Replace a decision."""
        ...

    async def restore(self, call: Call, request: RestoreRecord) -> Written:
        """Bring an earlier revision back."""
        ...

    async def approve(self, call: Call, request: ChangeRecord) -> Written:
        """Confirm a record."""
        ...

    async def reject(self, call: Call, request: RejectRecord) -> Written:
        """Refuse a record."""
        ...

    async def reopen(self, call: Call, request: ChangeRecord) -> Written:
        """Take trust back to pending."""
        ...


class RecordReadsPort(Protocol):
    """What reads by id."""

    async def get(self, call: Call, request: GetRecord) -> Read:
        """Return a head."""
        ...

    async def batch_get(self, call: Call, request: BatchGetRecords) -> ReadMany:
        """Return several heads, all or none."""
        ...

    async def list_revisions(self, call: Call, request: ListRevisions) -> RevisionsListed:
        """Return a page of history that fits into one reply."""
        ...

    async def get_revision(self, call: Call, request: GetRevision) -> Revision:
        """Return one revision."""
        ...


class RecordSearchPort(Protocol):
    """What searches."""

    async def search(self, call: Call, request: SearchRecords) -> Found:
        """Return a page of heads that fits into one reply."""
        ...


@dataclass(frozen=True, slots=True)
class RecordPorts:
    """The use cases of RecordService."""

    writes: RecordWritesPort
    changes: RecordChangesPort
    reads: RecordReadsPort
    searches: RecordSearchPort


class RecordServicer(record_service_pb2_grpc.RecordServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, ports: RecordPorts) -> None:
        """Ask the use cases."""
        self._writes = ports.writes
        self._changes = ports.changes
        self._reads = ports.reads
        self._searches = ports.searches

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
        return pb.CreateRecordResponse(record=_record(written), replayed=written.replayed)

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
        return pb.UpdateRecordResponse(record=_record(written), replayed=written.replayed)

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
                full=asks_full(request.view),
            ),
        )
        return pb.ListRevisionsResponse(
            revisions=[revision_message(each, full=listed.full) for each in listed.revisions],
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

    async def BatchGetRecords(
        self, request: pb.BatchGetRecordsRequest, context: object
    ) -> pb.BatchGetRecordsResponse:
        """Return several heads, all or none (004-56)."""
        read = await self._reads.batch_get(
            current_call(),
            BatchGetRecords(
                scope=scope_input(request.scope),
                record_ids=tuple(request.record_ids[: BATCH_MAX + 1]),
            ),
        )
        return pb.BatchGetRecordsResponse(
            records=[record_message(read.project_id, record) for record in read.records]
        )

    async def SearchRecords(
        self, request: pb.SearchRecordsRequest, context: object
    ) -> pb.SearchRecordsResponse:
        """Return a page of heads, those updated last first (004-66, 004-67)."""
        found = await self._searches.search(
            current_call(),
            SearchRecords(scope=scope_input(request.scope), **search_fields(request)),
        )
        return pb.SearchRecordsResponse(
            records=[
                record_message(found.project_id, record, full=found.full)
                for record in found.records
            ],
            next_page_token=found.next_page_token,
        )

    async def ArchiveRecord(
        self, request: pb.ArchiveRecordRequest, context: object
    ) -> pb.ArchiveRecordResponse:
        """Put a record aside (004-47)."""
        written = await self._changes.archive(current_call(), change_request(request))
        return pb.ArchiveRecordResponse(record=_record(written), replayed=written.replayed)

    async def UnarchiveRecord(
        self, request: pb.UnarchiveRecordRequest, context: object
    ) -> pb.UnarchiveRecordResponse:
        """Take a record back (004-47)."""
        written = await self._changes.unarchive(current_call(), change_request(request))
        return pb.UnarchiveRecordResponse(record=_record(written), replayed=written.replayed)

    async def SupersedeDecision(
        self, request: pb.SupersedeDecisionRequest, context: object
    ) -> pb.SupersedeDecisionResponse:
        """Replace a decision (004-57..60)."""
        written = await self._changes.supersede(
            current_call(),
            SupersedeDecision(
                **change_fields(request), replacement_record_id=request.replacement_record_id
            ),
        )
        return pb.SupersedeDecisionResponse(record=_record(written), replayed=written.replayed)

    async def RestoreRecord(
        self, request: pb.RestoreRecordRequest, context: object
    ) -> pb.RestoreRecordResponse:
        """Bring an earlier revision back as a new head (004-52)."""
        written = await self._changes.restore(
            current_call(),
            RestoreRecord(**change_fields(request), source_revision=request.source_revision),
        )
        return pb.RestoreRecordResponse(record=_record(written), replayed=written.replayed)

    async def ApproveRecord(
        self, request: pb.ApproveRecordRequest, context: object
    ) -> pb.ApproveRecordResponse:
        """Confirm a record (004-54)."""
        written = await self._changes.approve(current_call(), change_request(request))
        return pb.ApproveRecordResponse(record=_record(written), replayed=written.replayed)

    async def RejectRecord(
        self, request: pb.RejectRecordRequest, context: object
    ) -> pb.RejectRecordResponse:
        """Refuse a record (002-16)."""
        written = await self._changes.reject(
            current_call(),
            RejectRecord(
                **change_fields(request), reject_kind=REJECT_KINDS.word(request.reject_kind)
            ),
        )
        return pb.RejectRecordResponse(record=_record(written), replayed=written.replayed)

    async def ReopenRecord(
        self, request: pb.ReopenRecordRequest, context: object
    ) -> pb.ReopenRecordResponse:
        """Take trust back to pending (000-24)."""
        written = await self._changes.reopen(current_call(), change_request(request))
        return pb.ReopenRecordResponse(record=_record(written), replayed=written.replayed)


def _record(written: Written) -> record_pb2.Record:
    return record_message(written.project_id, written.record)


def record_service(ports: RecordPorts) -> ServedService:
    """Return RecordService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["RecordService"],
        record_service_pb2_grpc.add_RecordServiceServicer_to_server,
        RecordServicer(ports),
    )
