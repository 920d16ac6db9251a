"""The store that a development stack keeps memory in, as the broker reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from broker.devstack import files
from broker.devstack.cosmos import CosmosServer
from broker.devstack.cosmos.containers import make_container
from broker.devstack.database import GENERATION, Place
from broker.devstack.provider import LISTINGS, Provider
from broker.devstack.redis import RedisServer
from providers.registry import cosmos_container

DATABASE, CONTAINER = "knowledge", "memory"
"""What they are called on the stand-in for Cosmos DB."""


@dataclass(frozen=True)
class MemoryStore:
    """One memory store.

    Attributes:
        adapter: The adapter's name.
        where: What it is, for people.
        resource_id: The identity of the store.
        generation: The generation of it.
        address: What an operator's commands reach it by; empty where somebody else has prepared it.
        reached_by: The options of the adapter, but for the identity.
    """

    adapter: str
    where: str
    resource_id: str
    generation: int
    address: str = field(repr=False)
    reached_by: Mapping[str, Any] = field(repr=False)

    def options(self) -> dict[str, Any]:
        """Returns the options of the adapter."""
        return {
            **self.reached_by,
            "resource_id": self.resource_id,
            "generation": self.generation,
        }


def in_postgres(place: Place) -> MemoryStore:
    """Returns the store in the database that keeps the broker's own schema too."""
    return MemoryStore(
        adapter=LISTINGS[Provider.POSTGRES].provider_id,
        where="PostgreSQL",
        resource_id=place.resource_id,
        generation=place.generation,
        address=place.access.migrator_dsn,
        reached_by={"dsn": place.access.runtime_dsn, "database_name": place.database},
    )


def in_redis(server: RedisServer, resource_id: str) -> MemoryStore:
    """Returns the store in a running server, which the broker enters as the runtime user.

    The address is the superuser's: who serves may not write a marker. That password is left beside
    the data, for people who look into the server.
    """
    file = server.data_dir / "superuser-password"
    files.replace(file, server.superuser_password, files.PRIVATE)
    secret = quote(server.superuser_password, safe="")
    trusted = urlencode({"ca_file": str(server.ca_file)})
    return MemoryStore(
        adapter=LISTINGS[Provider.REDIS].provider_id,
        where=f"{server.flavour.title()} on {server.endpoint}",
        resource_id=resource_id,
        generation=GENERATION,
        address=f"rediss://{server.superuser}:{secret}@localhost:{server.port}/0?{trusted}",
        reached_by={
            "endpoint": server.endpoint,
            "username": server.runtime_user,
            "password": server.runtime_password,
            "ca_file": str(server.ca_file),
        },
    )


async def in_cosmos(server: CosmosServer, resource_id: str) -> MemoryStore:
    """Returns the store in a running stand-in, with its container made where it is missing.

    Account keys have no lesser rights, so the broker has the same one as the operator.
    """
    await make_container(server, DATABASE, CONTAINER, cosmos_container())
    secret, trusted = quote(server.key, safe=""), urlencode({"ca_file": str(server.ca_file)})
    place = urlsplit(server.endpoint).netloc
    return MemoryStore(
        adapter=LISTINGS[Provider.COSMOS].provider_id,
        where=f"a STAND-IN for Azure Cosmos DB on {server.endpoint}",
        resource_id=resource_id,
        generation=GENERATION,
        address=f"cosmos+https://:{secret}@{place}/{DATABASE}/{CONTAINER}?{trusted}",
        reached_by={
            "endpoint": server.endpoint,
            "database": DATABASE,
            "container": CONTAINER,
            "key": server.key,
            "ca_file": str(server.ca_file),
        },
    )
