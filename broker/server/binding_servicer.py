"""BindingService on the wire: one screen per method, no rule of its own."""

import hashlib
from typing import Final, Protocol

from broker.api.v1 import binding_service_pb2 as pb
from broker.api.v1 import binding_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.ports import Pin, ProviderInfo
from broker.server.app import ServedService
from broker.server.exchange import current_call
from broker.server.wellknown import put_time

HASH_LENGTH: Final = 24
"""Hexadecimal digits of a resource's hash that callers see (004-33)."""


class BindingReadsPort(Protocol):
    """What reads pins and the catalog."""

    async def get_binding(self, call: Call, project_id: str, run_id: str) -> Pin:
        """Return the pin of a run."""
        ...

    async def list_providers(self, call: Call, project_id: str) -> tuple[ProviderInfo, ...]:
        """Return the catalog."""
        ...


class BindingServicer(binding_service_pb2_grpc.BindingServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, reads: BindingReadsPort) -> None:
        """Ask ``reads``."""
        self._reads = reads

    async def GetBinding(
        self, request: pb.GetBindingRequest, context: object
    ) -> pb.GetBindingResponse:
        """Return the pin of a run (004-28)."""
        pin = await self._reads.get_binding(current_call(), request.project_id, request.run_id)
        return pb.GetBindingResponse(binding=binding_message(pin))

    async def ListProviders(
        self, request: pb.ListProvidersRequest, context: object
    ) -> pb.ListProvidersResponse:
        """Return the catalog (004-32)."""
        providers = await self._reads.list_providers(current_call(), request.project_id)
        return pb.ListProvidersResponse(providers=map(provider_message, providers))


def binding_message(pin: Pin) -> pb.Binding:
    """Write a pin; of the resource only the hash of its id is told (004-33)."""
    digest = hashlib.sha256(pin.resource.resource_id.encode()).hexdigest()
    message = pb.Binding(
        tenant_id=pin.tenant_id,
        project_id=pin.project_id,
        run_id=pin.run_id,
        project_revision=pin.project_revision,
        project_configuration_revision=pin.project_configuration_revision,
        context_revision=pin.context_revision,
        provider_id=pin.provider_id,
        adapter_version=pin.adapter_version,
        options_schema_version=pin.options_schema_version,
        options_revision=pin.options_revision,
        resource_id_hash=digest[:HASH_LENGTH],
        resource_generation=pin.resource.generation,
        capabilities=sorted(pin.capabilities),
    )
    if pin.create_time is not None:
        put_time(message.create_time, pin.create_time)
    return message


def provider_message(info: ProviderInfo) -> pb.Provider:
    """Write one entry of the catalog."""
    return pb.Provider(
        provider_id=info.provider_id,
        adapter_version=info.adapter_version,
        options_schema_version=info.options_schema_version,
        options_revision=info.options_revision,
        hosting=info.hosting,
        advertised_capabilities=info.advertised,
        enabled=info.enabled,
    )


def binding_service(reads: BindingReadsPort) -> ServedService:
    """Return BindingService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["BindingService"],
        binding_service_pb2_grpc.add_BindingServiceServicer_to_server,
        BindingServicer(reads),
    )
