"""DiscoveryService on the wire: no rule of its own."""

from typing import Final, Protocol

from broker.api.v1 import discovery_service_pb2 as pb
from broker.api.v1 import discovery_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.requests import ProjectFound, SearchProject
from broker.server.app import ServedService
from broker.server.convert import optional_bound, record_message, search_fields
from broker.server.exchange import current_call

RUN_IDS_READ: Final = 501
"""One more than a request may name, so that the limit is seen to be passed."""


class ProjectSearchPort(Protocol):
    """What searches a project. Its refusals are BrokerErrors, ProviderErrors and OfRunErrors."""

    async def search(self, call: Call, request: SearchProject) -> ProjectFound:
        """Return a page of heads that fits into one reply."""
        ...


class DiscoveryServicer(discovery_service_pb2_grpc.DiscoveryServiceServicer):
    """Reads requests, asks the use case, writes replies."""

    def __init__(self, searches: ProjectSearchPort) -> None:
        """Ask ``searches``."""
        self._searches = searches

    async def SearchProject(
        self, request: pb.SearchProjectRequest, context: object
    ) -> pb.SearchProjectResponse:
        """Return a page of heads of all agents of a project (004-69)."""
        found = await self._searches.search(
            current_call(),
            SearchProject(
                project_id=request.project_id,
                run_ids=tuple(request.run_ids[:RUN_IDS_READ]),
                pinned_from=optional_bound(request, "pinned_from"),
                pinned_before=optional_bound(request, "pinned_before"),
                **search_fields(request),
            ),
        )
        return pb.SearchProjectResponse(
            hits=[
                pb.ProjectHit(
                    record=record_message(found.project_id, hit.record, full=found.full),
                    access_run_id=hit.access_run_id,
                )
                for hit in found.hits
            ],
            next_page_token=found.next_page_token,
        )


def discovery_service(searches: ProjectSearchPort) -> ServedService:
    """Return DiscoveryService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["DiscoveryService"],
        discovery_service_pb2_grpc.add_DiscoveryServiceServicer_to_server,
        DiscoveryServicer(searches),
    )
