"""Whom a broker calls: the Projects & Config owner and an Events service, a process each.

Run as a program it is one of them: it prints where it serves, until standard input ends. A line
there asks the owner how many calls it got. The owner is that of the development stack; it verifies
every token and reads rules from a file. The Events service takes every effect at once.

They share no process, since gRPC wakes every event loop of a process for each message of any.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import trustme
import uvloop

from broker.cli.garbage import settle
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
    """The processes, and where their services are."""

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
        self._shown = (str(tls.chain), str(tls.key))
        self._known = (str(self._playground), str(jwks))
        self._owner: Program | None = None
        self._events: Program | None = None
        self.owner, self.events = "", ""

    def start(self) -> None:
        """Start, and wait until both serve."""
        self._owner = Program(__name__, "owner", *self._shown, *self._known)
        self._events = Program(__name__, "events", *self._shown)
        self.owner, self.events = self._owner.line().strip(), self._events.line().strip()

    def asked(self) -> int:
        """Return how many calls the owner got so far."""
        assert self._owner is not None
        return int(self._owner.ask())

    def stop(self) -> None:
        """End them."""
        for program in (self._owner, self._events):
            if program is not None:
                program.stop()


async def _serve_owner(chain: str, key: str, document: str, jwks: str) -> None:
    servicer = ProjectsConfigServicer(Path(document), Path(jwks), issuer=ISSUER)
    credentials = server_credentials(Path(chain), Path(key))
    async with OwnerServer(servicer, credentials=credentials) as owner:
        _say_where(owner.address.rpartition(":")[2])
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            print(servicer.calls.total(), flush=True)


async def _serve_events(chain: str, key: str) -> None:
    events = GrantingEvents()
    thread = EventsThread(events, server_credentials(Path(chain), Path(key)))
    _say_where(events.port)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    thread.stop()


def _say_where(port: str | int) -> None:
    settle()
    print(f"localhost:{port}", flush=True)


SERVED: Mapping[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "owner": _serve_owner,
    "events": _serve_events,
}

if __name__ == "__main__":
    uvloop.run(SERVED[sys.argv[1]](*sys.argv[2:]))
