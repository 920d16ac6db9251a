"""TransferService on the wire: one screen per method, no rule of its own."""

from typing import Protocol

from broker.api.v1 import transfer_service_pb2 as pb
from broker.api.v1 import transfer_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.fields import BATCH_MAX
from broker.server.app import ServedService
from broker.server.bundles import MessageBundle, WrittenBundle
from broker.server.convert import record_message, scope_input
from broker.server.exchange import current_call
from broker.transfer.given import ExportRecords, Imported, ImportRecords


class TransferPort(Protocol):
    """What exports and imports. Refusals are BrokerErrors and ProviderErrors."""

    async def export(self, call: Call, request: ExportRecords) -> WrittenBundle:
        """Return whole histories, as they are replied."""
        ...

    async def import_(self, call: Call, request: ImportRecords) -> Imported:
        """Write every record of a bundle, or none."""
        ...


class TransferServicer(transfer_service_pb2_grpc.TransferServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, transfers: TransferPort) -> None:
        """Ask the use cases."""
        self._transfers = transfers

    async def ExportRecords(
        self, request: pb.ExportRecordsRequest, context: object
    ) -> pb.ExportRecordsResponse:
        """Return whole histories, all of one moment (004-82, 004-85)."""
        written = await self._transfers.export(
            current_call(),
            ExportRecords(
                scope=scope_input(request.scope),
                record_ids=tuple(request.record_ids[: BATCH_MAX + 1]),
            ),
        )
        return pb.ExportRecordsResponse(bundle=written.message)

    async def ImportRecords(
        self, request: pb.ImportRecordsRequest, context: object
    ) -> pb.ImportRecordsResponse:
        """Write every record of a bundle, or none (004-86, 004-87, 004-88)."""
        imported = await self._transfers.import_(
            current_call(),
            ImportRecords(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                bundle=MessageBundle(request.bundle, present=request.HasField("bundle")),
                validate_only=request.validate_only,
            ),
        )
        return pb.ImportRecordsResponse(
            records=[
                record_message(imported.project_id, record, full=False)
                for record in imported.records
            ],
            replayed=imported.replayed,
        )


def transfer_service(transfers: TransferPort) -> ServedService:
    """Return TransferService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["TransferService"],
        transfer_service_pb2_grpc.add_TransferServiceServicer_to_server,
        TransferServicer(transfers),
    )
