"""The marker of a resource: written once, by the operator."""

import asyncio
from typing import Any

from azure.cosmos.exceptions import CosmosResourceExistsError

from providers.cosmos import errors, keys
from providers.cosmos.connections import Connections
from providers.cosmos.options import options_of
from providers.errors import NegotiationRefusedError, ResourceMismatchError
from providers.model import ResourceIdentity

_SECONDS = 30.0


def marker(resource: ResourceIdentity) -> dict[str, Any]:
    """Return the document that marks a resource."""
    return {
        "id": keys.MARKER_ID,
        "projectId": keys.MARKER_PARTITION,
        "doc": "marker",
        "resourceId": resource.resource_id,
        "generation": resource.generation,
    }


async def init_resource(address: str, resource_id: str, generation: int) -> None:
    """Write the marker into a container that has none.

    Args:
        address: ``cosmos+https://`` address of the container; see ``options_of``.
        resource_id: The name this resource is to have.
        generation: Counts from 1; the operator raises it when a backup is restored.

    Raises:
        NegotiationRefusedError: The marker is there and says the same; its ``fact`` is ``marker``.
            Nothing was written. Not retryable.
        ResourceMismatchError: There is a marker that says something else. Nothing was written. Not
            retryable.
        ProviderError: The account cannot be reached, or refused.
        ValueError: The address is none. Nothing was reached. Not retryable.
    """
    wanted = marker(ResourceIdentity(resource_id, generation))
    connections = Connections(options_of(address, resource_id, generation))
    try:
        async with asyncio.timeout(_SECONDS):
            container = (await connections.get()).container
            try:
                await container.create_item(wanted)
            except CosmosResourceExistsError:
                found = await container.read_item(keys.MARKER_ID, keys.MARKER_PARTITION)
            else:
                return
    except errors.DRIVER as error:
        raise errors.translate(error) from error
    finally:
        await connections.close()
    if all(found.get(name) == value for name, value in wanted.items()):
        raise NegotiationRefusedError("the resource has this marker already", fact="marker")
    raise ResourceMismatchError("the resource has another marker already")
