"""ProposalService on the wire: one screen per method, no rule of its own."""

from typing import Protocol

from broker.api.v1 import proposal_service_pb2 as pb
from broker.api.v1 import proposal_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.proposals import CreateProposal, Promoted, PromoteProposal
from broker.domain.requests import Written
from broker.server.app import ServedService
from broker.server.convert import content_input, record_message, scope_input
from broker.server.effect_servicer import delivery_message
from broker.server.exchange import current_call


class ProposalsPort(Protocol):
    """What creates and promotes. Refusals are BrokerErrors and ProviderErrors."""

    async def create(self, call: Call, request: CreateProposal) -> Written:
        """Create a proposal."""
        ...

    async def promote(self, call: Call, request: PromoteProposal) -> Promoted:
        """Turn a proposal into a decision."""
        ...


class ProposalServicer(proposal_service_pb2_grpc.ProposalServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, proposals: ProposalsPort) -> None:
        """Ask ``proposals``."""
        self._proposals = proposals

    async def CreateProposal(
        self, request: pb.CreateProposalRequest, context: object
    ) -> pb.CreateProposalResponse:
        """Create a proposal (004-46)."""
        written = await self._proposals.create(
            current_call(),
            CreateProposal(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                content=content_input(request),
            ),
        )
        return pb.CreateProposalResponse(
            proposal=record_message(written.project_id, written.record), replayed=written.replayed
        )

    async def PromoteProposal(
        self, request: pb.PromoteProposalRequest, context: object
    ) -> pb.PromoteProposalResponse:
        """Turn a proposal into a decision, and try to deliver that (004-70..78)."""
        promoted = await self._proposals.promote(
            current_call(),
            PromoteProposal(
                scope=scope_input(request.scope),
                idempotency_key=request.idempotency_key,
                proposal_id=request.proposal_id,
                expected_revision=request.expected_revision,
            ),
        )
        return pb.PromoteProposalResponse(
            proposal=record_message(promoted.project_id, promoted.proposal),
            decision=record_message(promoted.project_id, promoted.decision),
            receipt_id=promoted.receipt_id,
            replayed=promoted.replayed,
            delivery=delivery_message(promoted.delivery, promoted.project_id, promoted.receipt_id),
        )


def proposal_service(proposals: ProposalsPort) -> ServedService:
    """Return ProposalService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["ProposalService"],
        proposal_service_pb2_grpc.add_ProposalServiceServicer_to_server,
        ProposalServicer(proposals),
    )
