"""What the stand-in for Cosmos DB tells of its account, and who can change that."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from broker.devstack.cosmos import CosmosServer
from broker.devstack.processes.errors import ServerError
from tests.fixtures.cosmos import Place, cosmos_client, raw_session


async def test_the_document_names_the_address_that_was_used(place: Place) -> None:
    """Wire fact: the SDK goes on with the URLs of the document, so they are those it came by."""
    for host in ("127.0.0.1", "localhost"):
        endpoint = place.server.endpoint.replace("127.0.0.1", host)
        told = await place.raw.send("GET", "", host=endpoint[len("https://") : -1])
        for name in ("readableLocations", "writableLocations"):
            assert told.body[name] == [{"name": "North", "databaseAccountEndpoint": endpoint}]


async def test_it_tells_what_a_test_lets_it_tell(place: Place) -> None:
    """004-34: consistency, regions and where writes go can all be read."""
    place.server.control.change_account(
        consistency="Session",
        readable=["North", "South"],
        writable=["North", "South"],
        multiple_writes=True,
    )
    told = (await place.raw.send("GET", "")).body
    assert told["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Session"}
    assert told["enableMultipleWriteLocations"] is True
    assert [each["name"] for each in told["readableLocations"]] == ["North", "South"]
    assert [each["name"] for each in told["writableLocations"]] == ["North", "South"]


async def test_an_account_keeps_its_name_and_settings(tmp_path: Path) -> None:
    """Another data directory is another account, with another key."""
    with CosmosServer(tmp_path / "a") as first, CosmosServer(tmp_path / "b") as second:
        assert first.key != second.key
        first.control.change_account(consistency="BoundedStaleness")
        names = [await name(first), await name(second)]
        assert len(set(names)) == 2
        first.stop()
        first.start()
        assert await name(first) == names[0]
        assert await level(first) == "BoundedStaleness"
        assert await level(second) == "Strong"


async def name(server: CosmosServer) -> object:
    return (await document(server))["id"]


async def level(server: CosmosServer) -> object:
    policy = (await document(server))["userConsistencyPolicy"]
    assert isinstance(policy, dict)
    return policy["defaultConsistencyLevel"]


async def document(server: CosmosServer) -> dict[str, object]:
    async with raw_session(server) as raw:
        body = (await raw.send("GET", "")).body
        assert isinstance(body, dict)
        return body


async def test_the_sdk_works_with_every_level(place: Place) -> None:
    """Also with Session, where it sends tokens and asks for partition key ranges."""
    for consistency in ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"):
        place.server.control.change_account(consistency=consistency)
        async with cosmos_client(place.server) as client:
            database = client.get_database_client(place.database.id)
            container = database.get_container_client(place.container.id)
            await container.create_item({"id": consistency, "projectId": "p"})
            found = container.query_items("SELECT VALUE c.id FROM c", partition_key="p")
            assert consistency in {str(each) async for each in found}


def test_an_unknown_setting_is_refused(cosmos: CosmosServer) -> None:
    with pytest.raises(ServerError, match="level"):
        cosmos.control.change_account(consistency="Linear")


def test_only_the_launchers_account_gives_orders(cosmos: CosmosServer) -> None:
    """A client of the service has no way to the control channel; one that is there may err."""
    assert stat.S_IMODE(cosmos.control.socket.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(cosmos.control.socket))
        connection.sendall(b'{"do": "guess", "with": {}}\n')
        assert b"not one that is known" in connection.makefile("rb").readline()
