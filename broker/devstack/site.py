"""``python -m broker.devstack.site DIRECTORY``: what ``broker serve`` needs around it, over TLS.

PostgreSQL with a database and roles, the reference Projects & Config owner and Events service, an
issuer of tokens and an authority for certificates. Migrating and serving is left to the person at
the keyboard.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc

from broker.authority.issuers import KeysFile, TrustedIssuer
from broker.devstack import files, playground, tokens
from broker.devstack.authority import LocalAuthority
from broker.devstack.data import DataDirectory
from broker.devstack.database import Place, provision
from broker.devstack.errors import DevStackError
from broker.devstack.events import EventsOptions, EventsServer
from broker.devstack.memory import in_postgres
from broker.devstack.owner import OwnerServer, ProjectsConfigServicer
from broker.devstack.postgres import PostgresServer
from broker.devstack.processes.errors import ServerError
from broker.devstack.settings import StackSettings, to_toml
from broker.devstack.tokens import TokenIssuer
from broker.outbound import PeerSettings
from broker.server.app import stop_requested

ISSUER = "https://identity.site.invalid"
RESOURCE = "knowledge-1"
LISTEN, HEALTH, METRICS = "127.0.0.1:7400", "127.0.0.1:7402", "127.0.0.1:7403"
TOKEN_LIFETIME = timedelta(hours=12)
PEOPLE = ("olga", "rita")


async def site(directory: Path) -> None:
    """Runs everything but the broker until SIGINT or SIGTERM.

    Args:
        directory: Where everything is kept. It gets ``broker.toml``, ``migration-dsn``, a token
            for each of ``PEOPLE``, and ``tls/``; all of these are written anew at each start.

    Raises:
        DevStackError: It is in use, or cannot be used.
        ServerError: PostgreSQL does not start.
    """
    data = DataDirectory(directory)
    stop = stop_requested()
    with data.locked():
        playground.ensure(data.playground)
        authority = LocalAuthority(data.path / "tls")
        issuer = TokenIssuer(data.keys, ISSUER)
        servicer = ProjectsConfigServicer(data.playground, issuer.jwks_file, ISSUER)
        async with (
            PostgresServer(data.postgres) as server,
            OwnerServer(servicer, credentials=_credentials(authority)) as owner,
        ):
            place = replace(await provision(server, data.secrets()), resource_id=RESOURCE)
            options = _events(authority, owner.address, issuer.jwks_file, place)
            async with EventsServer(options) as events:
                peers = _Peers(owner.address, events.address)
                settings = _settings(data, authority, peers, issuer.jwks_file, place)
                files.replace(data.settings, to_toml(settings), files.PRIVATE)
                dsn = place.access.migrator_dsn
                files.replace(data.path / "migration-dsn", dsn, files.PRIVATE)
                for name in PEOPLE:
                    token = issuer.mint(name, lifetime=TOKEN_LIFETIME)
                    files.replace(data.path / f"{name}.token", token, files.PRIVATE)
                print(f"PostgreSQL and the owner run; settings: {data.settings}", flush=True)
                await stop.wait()


@dataclass(frozen=True)
class _Peers:
    """Where the services are that the broker calls."""

    owner: str
    events: str


def _events(authority: LocalAuthority, owner: str, jwks_file: Path, place: Place) -> EventsOptions:
    return EventsOptions(
        dsn=place.access.events_dsn,
        issuer=TrustedIssuer(
            issuer=ISSUER,
            audience=tokens.AUDIENCE,
            algorithms=frozenset({tokens.ALGORITHM}),
            keys=KeysFile(jwks_file),
        ),
        knowledge_audience=tokens.AUDIENCE,
        owner=PeerSettings(address=owner, root_ca_file=authority.ca_file),
        broker=PeerSettings(address=LISTEN, root_ca_file=authority.ca_file),
        credentials=_credentials(authority),
    )


def _settings(
    data: DataDirectory, authority: LocalAuthority, peers: _Peers, jwks_file: Path, place: Place
) -> dict[str, Any]:
    given = StackSettings(
        listen=LISTEN,
        owner_address=peers.owner,
        events_address=peers.events,
        jwks_file=jwks_file,
        place=place,
        memory=in_postgres(place),
        catalog=playground.read(data.playground),
    ).served()
    chain, key = authority.server
    given["server"] = {
        "listen": LISTEN,
        "tls_certificate_file": str(chain),
        "tls_key_file": str(key),
        "health_listen": HEALTH,
        "metrics_listen": METRICS,
    }
    given["issuers"][0]["issuer"] = ISSUER
    trusted = {"root_certificates_file": str(authority.ca_file)}
    given["owner"] = {"address": peers.owner, "streams": True, **trusted}
    given["events"] = {"address": peers.events, "audience": tokens.AUDIENCE, **trusted}
    return given


def _credentials(authority: LocalAuthority) -> grpc.ServerCredentials:
    chain, key = authority.server
    return grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())])


def main() -> None:
    """Runs a site in the directory that is named, or in ``.broker-site``."""
    try:
        asyncio.run(site(Path(*sys.argv[1:] or [".broker-site"])))
    except (DevStackError, ServerError, OSError) as error:
        sys.exit(f"site: {error}")


if __name__ == "__main__":
    main()
