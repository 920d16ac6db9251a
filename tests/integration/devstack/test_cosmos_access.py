"""Who may talk to the stand-in for Cosmos DB, and how: TLS, signatures, tokens, headers."""

from __future__ import annotations

import base64
import secrets
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import aiohttp
import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from broker.devstack.cosmos import CosmosServer
from tests.fixtures.cosmos import Place, cosmos_client

OTHER_KEY = base64.b64encode(bytes(64)).decode()
READ: dict[str, Any] = {"x_ms_documentdb_partitionkey": '["p"]'}
LATER = "a minute later"


class Known:
    """A credential with one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._token, int(datetime.now(UTC).timestamp()) + 3600)

    async def close(self) -> None: ...

    async def __aenter__(self) -> Known:
        return self

    async def __aexit__(self, *_: object) -> None: ...


async def test_only_the_accounts_key_opens(place: Place) -> None:
    """004-34: the SDK with another key is refused from its first request on."""
    with pytest.raises(CosmosHttpResponseError) as refused:
        async with cosmos_client(place.server, credential=OTHER_KEY):
            pass
    assert refused.value.status_code == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"key": OTHER_KEY},
        {"signed": ("GET", "docs", "dbs/elsewhere/colls/things/docs/a")},
        {"signed": ("DELETE", "docs", "")},
        {"signed": ("GET", "colls", "")},
        {"x_ms_date": LATER},
        {"x_ms_date": None},
        {"authorization": None},
        {"authorization": "type%3Dmaster%26ver%3D1.0%26sig%3D"},
        {"authorization": "type%3Dresource%26ver%3D1.0%26sig%3Dabc"},
        {"authorization": "type%3Daad%26ver%3D1.0%26sig%3Dabc"},
        {"authorization": "type%3Daad%26ver%3D1.0%26sig%3D"},
    ],
    ids=str,
)
async def test_a_signature_covers_method_type_path_and_date(
    place: Place, changes: dict[str, Any]
) -> None:
    """004-34: each of them changed, or no signature at all, is 401."""
    await place.container.create_item({"id": "a", "projectId": "p"})
    link = f"{place.path}/docs/a"
    if "signed" in changes and not changes["signed"][2]:
        changes = {"signed": (*changes["signed"][:2], link)}
    if changes.get("x_ms_date") == LATER:
        moment = datetime.now(UTC) + timedelta(minutes=1)
        changes = {"x_ms_date": format_datetime(moment, usegmt=True)}
    assert (await place.raw.send("GET", link, **READ)).status == 200
    assert (await place.raw.send("GET", link, **(READ | changes))).status == 401


@pytest.mark.parametrize("minutes", [-16, 16])
async def test_a_signature_of_another_time_is_refused(place: Place, minutes: int) -> None:
    """A date more than 15 minutes away is 403, as the service does."""
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)
    assert (await place.raw.send("GET", "", date=date)).refusal == (403, 0)


async def test_names_are_signed_as_they_are(place: Place) -> None:
    """Ids that a URL has to quote reach the item that they name."""
    for item_id in ("a b", "50%", "é+ü", "记忆", "🙂", "a&b=c;d:e", "%41"):
        await place.container.create_item({"id": item_id, "projectId": "p"})
        assert (await place.container.read_item(item_id, "p"))["id"] == item_id


async def test_there_is_no_way_in_without_tls(cosmos: CosmosServer) -> None:
    """004-34: nothing is served in plaintext, and nobody else's certificate is shown."""
    plain = cosmos.endpoint.replace("https", "http")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(plain)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(cosmos.endpoint, ssl=ssl.create_default_context())


async def test_a_known_token_reads_and_writes_items_and_manages_nothing(place: Place) -> None:
    """A token counts only while the test says so, and is never enough to define resources."""
    token = secrets.token_urlsafe(16)
    with pytest.raises(CosmosHttpResponseError) as refused:
        async with cosmos_client(place.server, credential=Known(token)):
            pass
    assert refused.value.status_code == 401
    place.server.control.change_account(bearer=token)
    async with cosmos_client(place.server, credential=Known(token)) as client:
        database = client.get_database_client(place.database.id)
        container = database.get_container_client(place.container.id)
        await container.create_item({"id": "a", "projectId": "p"})
        assert (await container.read_item("a", "p"))["id"] == "a"
        with pytest.raises(CosmosHttpResponseError) as refused:
            await database.create_container("more", PartitionKey("/projectId"))
    assert (refused.value.status_code, refused.value.sub_status) == (403, 5300)


@pytest.mark.parametrize(
    "changes",
    [
        {"x_ms_version": None},
        {"x_ms_version": "2015-01-01"},
        {"x_ms_something_new": "1"},
        {"x_ms_documentdb_pre_trigger_include": "a"},
        {"x_ms_consistency_level": "Linear"},
        {"if_match": '"a"'},
        {"prefer": "return=all"},
    ],
    ids=str,
)
async def test_a_header_that_is_not_known_is_refused(place: Place, changes: dict[str, Any]) -> None:
    await place.container.create_item({"id": "a", "projectId": "p"})
    assert (await place.write("GET", "docs/a", **changes)).refusal == (400, 0)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "control"),
        ("GET", "dbs/a/users"),
        ("GET", "dbs/a/colls/b/sprocs"),
        ("GET", "dbs/a/colls/b/docs/c/attachments"),
        ("GET", "dbs/a/colls/b/pkranges/0"),
        ("GET", "dbs/a/colls/b/docs"),
        ("PATCH", "dbs/a/colls/b/docs/c"),
        ("PUT", "dbs/a"),
        ("DELETE", "dbs/a/colls/b/docs"),
        ("POST", "offers"),
        ("POST", ""),
    ],
)
async def test_a_request_that_is_not_known_is_refused(place: Place, method: str, path: str) -> None:
    """The test's control channel is no resource either."""
    assert (await place.raw.send(method, path)).refusal == (400, 0)


async def test_a_weaker_level_than_the_accounts_may_be_asked_for(place: Place) -> None:
    await place.container.create_item({"id": "a", "projectId": "p"})
    answer = await place.write("GET", "docs/a", x_ms_consistency_level="Eventual")
    assert answer.status == 200
    place.server.control.change_account(consistency="Session")
    answer = await place.write("GET", "docs/a", x_ms_consistency_level="BoundedStaleness")
    assert answer.refusal == (400, 0)
