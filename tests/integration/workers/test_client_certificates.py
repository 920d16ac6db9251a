"""``server.client_ca_file``: only clients with a certificate of that authority are served."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import trustme
from grpc import aio

from tests.fixtures.broker import Stand, records
from tests.fixtures.postgres import Database
from tests.fixtures.record_requests import create
from tests.integration.workers.crew import Crew, crew_of, settings_for

NAME = "broker.test"


@dataclass
class Guarded:
    """A broker that asks for certificates, and who signs for what."""

    crew: Crew
    server_ca: trustme.CA
    client_ca: trustme.CA

    async def outcome(self, certificate: trustme.LeafCert | None) -> grpc.StatusCode:
        """Create a record with this certificate; return what became of it."""
        key = chain = None
        if certificate is not None:
            key = certificate.private_key_pem.bytes()
            chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
        credentials = grpc.ssl_channel_credentials(self.server_ca.cert_pem.bytes(), key, chain)
        options = (("grpc.ssl_target_name_override", NAME), ("grpc.use_local_subchannel_pool", 1))
        async with aio.secure_channel(self.crew.broker.address, credentials, options) as channel:
            call = records(channel).CreateRecord(
                create(self.crew.project(), "key"), metadata=self.crew.metadata()
            )
            return await call.code()


@pytest.fixture(scope="module")
def authorities() -> tuple[trustme.CA, trustme.CA]:
    """Who signs the server's certificate, and who the clients'."""
    return trustme.CA(), trustme.CA()


@pytest.fixture
def guarded(
    authorities: tuple[trustme.CA, trustme.CA],
    stand: Stand,
    postgres_database: Database,
    tmp_path: Path,
) -> Iterator[Guarded]:
    """Two workers with a certificate, that ask for one."""
    server_ca, client_ca = authorities
    issued = server_ca.issue_cert(NAME)
    files = {name: tmp_path / f"{name}.pem" for name in ("key", "chain", "clients")}
    issued.private_key_pem.write_to_path(str(files["key"]))
    files["chain"].write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    client_ca.cert_pem.write_to_path(str(files["clients"]))
    settings = settings_for(
        stand,
        postgres_database,
        tls_key_file=str(files["key"]),
        tls_certificate_file=str(files["chain"]),
        client_ca_file=str(files["clients"]),
    )
    with crew_of(stand, postgres_database, settings, tmp_path) as crew:
        yield Guarded(crew, server_ca, client_ca)


async def test_only_the_right_certificate_is_served(guarded: Guarded) -> None:
    """A token alone is not enough, nor is a certificate that another authority signed."""
    assert await guarded.outcome(None) is grpc.StatusCode.UNAVAILABLE
    stranger = guarded.server_ca.issue_cert("client.test")
    assert await guarded.outcome(stranger) is grpc.StatusCode.UNAVAILABLE
    assert not guarded.crew.lines("call")
    right = guarded.client_ca.issue_cert("client.test")
    assert await guarded.outcome(right) is grpc.StatusCode.OK
