"""Whom a broker calls: the Projects & Config owner and an Events service, in one process of theirs.

Run as a program it serves both until standard input ends, and prints where, as JSON; a line there
asks how many calls the owner got. The owner is that of the development stack; it verifies every
token and reads rules from a file. The Events service takes every effect at once.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import trustme
import uvloop

from broker.devstack.owner import OwnerServer, ProjectsConfigServicer
from broker.devstack.provider import LISTINGS, Provider
from tests.bench.program import Program
from tests.bench.texts import AGENT, ISSUER, PROJECTS, RUN, RUNS, TENANT, WRITTEN
from tests.fixtures.granting_events import EventsThread, GrantingEvents
from tests.fixtures.memory import CAPABILITIES


class Authority:
    """The authority of a bench: the certificates of all its servers are of it."""

    def __init__(self, directory: Path) -> None:
        """Make it, and one certificate that all servers show."""
        self.ca_file = directory / "ca.pem"
        self.chain, self.key = directory / "server.pem", directory / "server.key"
        made = trustme.CA()
        made.cert_pem.write_to_path(str(self.ca_file))
        certificate = made.issue_cert("localhost", "127.0.0.1")
        self.chain.write_bytes(b"".join(each.bytes() for each in certificate.cert_chain_pems))
        self.key.write_bytes(certificate.private_key_pem.bytes())

    def credentials(self) -> grpc.ServerCredentials:
        """Return what a gRPC server shows."""
        return server_credentials(self.chain, self.key)


def server_credentials(chain: Path, key: Path) -> grpc.ServerCredentials:
    """Return what a gRPC server shows that has these files."""
    return grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())])


def playground(provider: Provider, projects: Sequence[str] = PROJECTS) -> str:
    """Return who there is and what they may do, with this provider in the catalog."""
    listing = LISTINGS[provider]
    entry = {
        "adapter_version": "1.0.0",
        "options_revision": listing.options_revision,
        "hosting": listing.hosting,
        "capabilities": list(CAPABILITIES),
    }
    content: Mapping[str, Any] = {
        "catalog": {listing.provider_id: entry},
        "tenants": {TENANT: {"projects": {name: _project(name) for name in projects}}},
    }
    return json.dumps(content)


def _project(name: str) -> Mapping[str, Any]:
    runs = RUNS if name == WRITTEN else (RUN,)
    return {"members": {AGENT: "owner"}, "runs": {run: {} for run in runs}}


class Neighbours:
    """The process, and where its services are."""

    def __init__(self, content: str, directory: Path, jwks: Path, tls: Authority) -> None:
        """Say what it is to know; nothing is started.

        Args:
            content: What ``playground`` gave.
            directory: Where that is put.
            jwks: The keys of the tokens.
            tls: What its servers show.
        """
        self._playground = directory / "playground.yaml"
        self._playground.write_text(content, encoding="utf-8")
        self._files = (self._playground, jwks, tls.chain, tls.key)
        self._process: Program | None = None
        self.owner, self.events = "", ""

    def start(self) -> None:
        """Start, and wait until both serve."""
        self._process = Program(__name__, *map(str, self._files))
        self.owner, self.events = json.loads(self._process.line())

    def asked(self) -> int:
        """Return how many calls the owner got so far."""
        assert self._process is not None
        return int(self._process.ask())

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stop()


async def _serve(document: str, jwks: str, chain: str, key: str) -> None:
    credentials = server_credentials(Path(chain), Path(key))
    servicer = ProjectsConfigServicer(Path(document), Path(jwks), issuer=ISSUER)
    owner, events = OwnerServer(servicer, credentials=credentials), GrantingEvents()
    thread = EventsThread(events, credentials)
    async with owner:
        gc.freeze()
        there = [f"localhost:{owner.address.rpartition(':')[2]}", f"localhost:{events.port}"]
        print(json.dumps(there), flush=True)
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            print(servicer.calls.total(), flush=True)
    thread.stop()


if __name__ == "__main__":
    uvloop.run(_serve(*sys.argv[1:]))
