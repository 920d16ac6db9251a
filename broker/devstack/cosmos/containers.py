"""Databases and containers on the stand-in, made through the vendor's SDK as an operator would."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
from azure.core.exceptions import AzureError
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.transport import AioHttpTransport, HttpRequest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from broker.devstack.cosmos.server import CosmosServer
from broker.devstack.processes.errors import ServerError


async def make_container(
    server: CosmosServer, database: str, container: str, definition: Mapping[str, Any]
) -> None:
    """Makes a database and a container unless they are there; what is there stays as it is.

    Args:
        server: A running stand-in.
        database: The database's name.
        container: The container's name.
        definition: Partition key and indexing policy, in the form of the service.

    Raises:
        ServerError: The stand-in refused, or cannot be reached.
    """
    trusted = ssl.create_default_context(cafile=str(server.ca_file))
    connector = aiohttp.TCPConnector(ssl=trusted)
    (path,) = definition["partitionKey"]["paths"]
    try:
        async with (
            aiohttp.ClientSession(connector=connector, auto_decompress=False) as session,
            CosmosClient(
                server.endpoint,
                server.key,
                transport=AioHttpTransport(session=session, session_owner=False),
                raw_request_hook=_check_certificate,
                enable_endpoint_discovery=False,
            ) as client,
        ):
            made = await client.create_database_if_not_exists(database)
            await made.create_container_if_not_exists(
                container, PartitionKey(path), indexing_policy=dict(definition["indexingPolicy"])
            )
    except AzureError as error:
        raise ServerError(f"cannot make the container {container}: {error}") from error


def _check_certificate(request: PipelineRequest[HttpRequest]) -> None:
    """Has the connector check it: the SDK checks none of 127.0.0.1 by itself."""
    request.context.options.update(connection_verify=True, connection_cert=None)
