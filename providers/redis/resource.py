"""The marker of a resource: written once, by the operator."""

import asyncio

from providers.errors import NegotiationRefusedError, ResourceMismatchError
from providers.model import ResourceIdentity
from providers.redis import errors, keys
from providers.redis.connections import Connections, Link
from providers.redis.options import options_of

_SECONDS = 30.0


async def init_resource(address: str, resource_id: str, generation: int) -> None:
    """Write the marker into a database that has none.

    Args:
        address: ``rediss://`` address of the database; see ``options_of``.
        resource_id: The name this resource is to have.
        generation: Counts from 1; the operator raises it when a backup is restored.

    Raises:
        NegotiationRefusedError: The marker is there and says the same; its ``fact`` is ``marker``.
            Nothing was written. Not retryable.
        ResourceMismatchError: There is a marker that says something else. Nothing was written. Not
            retryable.
        ProviderError: The server cannot be reached, or refused.
        ValueError: The address is none. Nothing was reached. Not retryable.
    """
    options = options_of(address, resource_id, generation)
    name = keys.marker_key(options.key_prefix)
    connections = Connections(options, Link.load_scripts)
    resource = ResourceIdentity(resource_id, generation)
    value = keys.marker_value(resource)
    try:
        async with asyncio.timeout(_SECONDS):
            async with connections.fresh() as link:
                written, found = await link.exchange([("SET", name, value, "NX"), ("GET", name)])
    except errors.DRIVER as error:
        raise errors.translate(error) from errors.bare(error)
    finally:
        await connections.close()
    for reply in (written, found):
        if isinstance(reply, Exception):
            raise errors.translate(reply) from errors.bare(reply)
    if written is not None:
        return
    if found == value:
        raise NegotiationRefusedError("the resource has this marker already", fact="marker")
    raise ResourceMismatchError("the resource has another marker already")
