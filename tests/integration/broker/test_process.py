"""A broker process among its peers: how it ends, what health says, TLS, and several providers."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest
import trustme
from google.protobuf.message import Message
from grpc import aio

from tests.fixtures.broker import Stand, records
from tests.fixtures.broker_log import complaints
from tests.fixtures.key_server import KeyServer, body
from tests.fixtures.memory import Memory
from tests.fixtures.own_broker import (
    NOT_SERVING,
    SERVING,
    Settings,
    gate,
    health,
    health_becomes,
    own_broker,
    patient,
)
from tests.fixtures.postgres import Database, PostgresBackend
from tests.fixtures.record_requests import Refused, create, get, new_record, outcome, refused
from tests.fixtures.tcp_proxy import TcpProxy, proxy_to_dsn


@pytest.fixture(params=["postgres", "redis", "cosmos"])
def another(request: pytest.FixtureRequest, postgres_backend: PostgresBackend) -> Iterator[Memory]:
    """One more memory: in another database, or in Redis."""
    stand: Stand = request.getfixturevalue(f"{request.param}_stand")
    database = asyncio.run(postgres_backend.database())
    yield stand.memory.beside(database)
    asyncio.run(postgres_backend.drop(database))


# -------------------- the end


async def test_sigterm_in_the_middle_of_calls_loses_no_reply(
    stand: Stand, postgres_database: Database, tmp_path: Path
) -> None:
    """004-101: calls in flight get their replies, new ones go elsewhere, the exit code is 0."""

    with own_broker(stand, tmp_path, postgres_database, patient) as own:
        project = own.project()
        async with own.channel() as channel:
            stub = records(channel)
            held = gate(own, project, 2)
            writes = [
                asyncio.ensure_future(
                    stub.CreateRecord(create(project, f"key-{n}"), metadata=own.metadata())
                )
                for n in range(12)
            ]
            await held.holds(12)
            await health_becomes(channel, SERVING)
            stopping = asyncio.create_task(asyncio.to_thread(own.broker.stop))
            await health_becomes(channel, NOT_SERVING)
            late = await refused(stub.CreateRecord(create(project), metadata=own.metadata()))
            assert late.code is grpc.StatusCode.UNAVAILABLE
            held.open = True
            replies = await asyncio.gather(*writes)
            assert {reply.replayed for reply in replies} == {False}
            assert await stopping == 0
            gone = await refused(stub.CreateRecord(create(project), metadata=own.metadata()))
            assert gone.code is grpc.StatusCode.UNAVAILABLE
        assert await own.rows("memory.records", project) == 12
        assert complaints(own.broker) == []
    await own.memory.check_whole()


# -------------------- live and ready


@pytest.fixture
def ways(postgres_database: Database) -> Iterator[dict[str, TcpProxy]]:
    """Proxies to the broker's own store and to its provider; both are one database."""
    with (
        proxy_to_dsn(postgres_database.runtime_dsn) as store,
        proxy_to_dsn(postgres_database.runtime_dsn) as provider,
    ):
        yield {"store": store, "provider": provider}


def lead(settings: Settings, ways: dict[str, TcpProxy], database: Database) -> None:
    """Let a broker reach its databases through proxies."""
    settings["store"]["dsn"] = ways["store"].dsn(database.runtime_dsn)
    settings["providers"][0]["options"]["dsn"] = ways["provider"].dsn(database.runtime_dsn)


async def test_a_start_without_peers_is_live_and_not_ready(
    stand: Stand, postgres_database: Database, ways: dict[str, TcpProxy], tmp_path: Path
) -> None:
    """004-101: nothing answers at first; each peer's absence has its own reason, then it serves."""
    issuer = KeyServer(tmp_path)

    def alone(settings: Settings) -> None:
        lead(settings, ways, postgres_database)
        trusted = settings["issuers"][0]
        del trusted["jwks_file"]
        trusted |= {"jwks_url": issuer.url, "jwks_ca_file": str(issuer.ca_file)}

    for way in ways.values():
        way.refuse()
    async with issuer.running():
        with own_broker(stand, tmp_path, postgres_database, alone) as own:
            await _peers_come_one_by_one(own, issuer, ways)


async def _peers_come_one_by_one(own: Stand, issuer: KeyServer, ways: dict[str, TcpProxy]) -> None:
    async with own.channel() as channel:
        stub, project = records(channel), own.project()

        async def told() -> Refused:
            return await refused(stub.CreateRecord(create(project), metadata=own.metadata()))

        assert await health(channel) == NOT_SERVING
        reasons = [await told()]
        issuer.answer = body(own.identity.jwks_file.read_bytes())
        async with asyncio.timeout(30):
            while (await told()).reason == reasons[0].reason:  # fetched again every few seconds
                continue
        reasons.append(await told())
        assert await health(channel) == NOT_SERVING
        ways["store"].heal()
        reasons.append(await told())
        ways["provider"].heal()
        await health_becomes(channel, SERVING)
        made = await stub.CreateRecord(create(project), metadata=own.metadata())
    assert not made.replayed
    assert [reason.reason for reason in reasons] == [
        "KEYS_UNAVAILABLE",
        "STORAGE_UNAVAILABLE",
        "PROVIDER_UNAVAILABLE",
    ]
    assert {(each.code, each.retry) for each in reasons} == {(grpc.StatusCode.UNAVAILABLE, True)}
    assert await asyncio.to_thread(own.broker.stop) == 0


async def test_health_tells_when_a_peer_goes_and_comes_back(
    stand: Stand, postgres_database: Database, ways: dict[str, TcpProxy], tmp_path: Path
) -> None:
    """004-101: not ready while the store or a provider is away, by refusal or by silence."""
    with own_broker(
        stand,
        tmp_path,
        postgres_database,
        lambda settings: lead(settings, ways, postgres_database),
    ) as own:
        async with own.channel() as channel:
            await health_becomes(channel, SERVING)
            ways["store"].refuse()
            await health_becomes(channel, NOT_SERVING)
            ways["store"].heal()
            await health_becomes(channel, SERVING)
            ways["provider"].blackhole()
            await health_becomes(channel, NOT_SERVING)
            ways["provider"].heal()
            await health_becomes(channel, SERVING)
            await new_record(own, channel)
        assert own.broker.stop() == 0
        told = [json.loads(line) for line in own.broker.log().splitlines()]
        states = [line for line in told if line.get("event") == "readiness"]
        assert [(line["state"], line.get("what")) for line in states] == [
            ("serving", None),
            ("not_serving", "store"),
            ("serving", None),
            ("not_serving", "provider/native"),
            ("serving", None),
        ]


# -------------------- TLS


async def test_the_listener_speaks_tls_and_nothing_else(
    stand: Stand, postgres_database: Database, tmp_path: Path
) -> None:
    """Architecture 6.5: a certificate of ours is taken, plaintext and strangers are not."""
    authority, stranger = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    pem.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    key.write_bytes(certificate.private_key_pem.bytes())

    def guarded(settings: Settings) -> None:
        settings["server"] |= {"tls_certificate_file": str(pem), "tls_key_file": str(key)}

    with own_broker(stand, tmp_path, postgres_database, guarded) as own:
        target = f"localhost:{own.broker.address.rpartition(':')[2]}"
        project = own.project()
        for trusted, expected in ((authority, None), (stranger, "UNAVAILABLE")):
            credentials = grpc.ssl_channel_credentials(trusted.cert_pem.bytes())
            async with aio.secure_channel(target, credentials) as channel:
                came = await outcome(
                    records(channel).CreateRecord(create(project), metadata=own.metadata())
                )
                assert (came.code.name if isinstance(came, Refused) else None) == expected
        async with own.channel() as channel:
            plain = await refused(
                records(channel).CreateRecord(create(project), metadata=own.metadata())
            )
        assert plain.code is grpc.StatusCode.UNAVAILABLE
        assert own.broker.stop() == 0


@pytest.mark.parametrize("trusted", [True, False])
async def test_postgresql_is_reached_over_verified_tls(
    stand: Stand, postgres_database: Database, tmp_path: Path, trusted: bool
) -> None:
    """Architecture 6.5: sslmode=verify-full works for pins and provider alike, and verifies."""
    authority, stranger = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    (authority if trusted else stranger).issue_cert("localhost").configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))

    with proxy_to_dsn(postgres_database.runtime_dsn, context) as proxy:
        plain = proxy.dsn(postgres_database.runtime_dsn.partition("?")[0])
        plain = plain.replace("127.0.0.1", "localhost")
        dsn = f"{plain}?sslmode=verify-full&sslrootcert={quote(str(ca_file))}"

        def far(settings: Settings) -> None:
            settings["store"]["dsn"] = settings["providers"][0]["options"]["dsn"] = dsn

        with own_broker(stand, tmp_path, postgres_database, far) as own:
            async with own.channel() as channel:
                await health_becomes(channel, SERVING if trusted else NOT_SERVING)
                call = records(channel).CreateRecord(create(own.project()), metadata=own.metadata())
                came = await outcome(call)
                reason = came.reason if isinstance(came, Refused) else "OK"
                assert reason == ("OK" if trusted else "STORAGE_UNAVAILABLE")
            assert own.broker.stop() == 0


# -------------------- two providers


async def test_two_providers_keep_to_their_own_stores(
    stand: Stand, postgres_database: Database, another: Memory, tmp_path: Path
) -> None:
    """004-26, 004-28, 004-32: pinned by run; when one is away nobody falls back to the other."""
    with another.way() as proxy:
        entry = another.entry() | {"provider_id": "second", "options_revision": "options-v2"}
        entry["options"] |= {"pool_size": 3} | another.through(proxy)

        def two(settings: Settings) -> None:
            settings["providers"].append(entry)

        with own_broker(stand, tmp_path, postgres_database, two) as own:
            async with own.channel() as channel:
                await _keep_apart(own, channel, another, proxy)
            assert own.broker.stop() == 0
    for memory in (own.memory, another):
        await memory.check_whole()


async def _keep_apart(own: Stand, channel: aio.Channel, other: Memory, proxy: TcpProxy) -> None:
    stub, left, right = records(channel), own.project(), own.project()
    select_second(own, right)
    made = {
        project: (await stub.CreateRecord(create(project), metadata=own.metadata())).record
        for project in (left, right)
    }
    assert await placed(own, other, left, right) == [{left}, {right}]

    proxy.refuse()
    for request in (create(right, "another"), create(right, "third", run="run-b")):
        told = await refused(stub.CreateRecord(request, metadata=own.metadata()))
        assert (told.code, told.reason) == (
            grpc.StatusCode.UNAVAILABLE,
            "PROVIDER_UNAVAILABLE",
        )
    still = await stub.GetRecord(get(made[left]), metadata=own.metadata())
    assert still.record == made[left]
    # Nor does a selection that moved to the provider that answers bring the run there.
    del own.owner.scripts[right]
    moved = await refused(stub.GetRecord(get(made[right]), metadata=own.metadata()))
    assert (moved.code, moved.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "RUN_SELECTION_CHANGED",
    )
    assert await placed(own, other, left, right) == [{left}, {right}]

    proxy.heal()
    select_second(own, right)
    again = await stub.GetRecord(get(made[right]), metadata=own.metadata())
    assert again.record == made[right]
    pinned = "SELECT provider_id || ' ' || options_revision FROM knowledge.pins "
    pins = [
        await own.database.fetchval(f"{pinned} WHERE project_id = $1", project)
        for project in (left, right)
    ]
    assert pins == ["native options-v1", "second options-v2"]


def select_second(own: Stand, project: str) -> None:
    """Let the owner select the second provider for a project."""

    async def second(_: Any, answer: Any, __: Any) -> bytes:
        candidate = answer.selection.providers[0].candidates[0]
        candidate.provider_id, candidate.options_revision = "second", "options-v2"
        message: Message = answer
        return message.SerializeToString()

    own.owner.scripts[project] = second


async def placed(own: Stand, other: Memory, *projects: str) -> list[set[str]]:
    """Return the projects that have records in each of the two memories."""
    return [
        {project for project in projects if await memory.count("records", project)}
        for memory in (own.memory, other)
    ]
