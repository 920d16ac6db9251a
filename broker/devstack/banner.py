"""What ``broker dev`` prints when it is ready: where it is, and commands to try it with.

Every command works when it is pasted into bash, also twice: the same idempotency key gives the
same reply.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from broker.devstack.data import DataDirectory
from broker.devstack.memory import MemoryStore
from broker.devstack.tokens import TokenIssuer

LIFETIME = timedelta(hours=12)
MEMBER = "olga"
OUTSIDER = "rita"
SERVICE = "broker.api.v1.RecordService"

_FACTS = "Accepted decisions become facts of the Events service on {} (PostgreSQL schema events)."
_SCOPE = {"project_id": "atlas", "run_id": "run-1", "agent_id": "agent-1"}
_MEMORY = {"type": "learning", "content": "The staging database is refreshed on Mondays."}
_UPDATE = {
    "type": "learning",
    "content": "The staging database is refreshed on Tuesdays.",
    "importance": 0.9,
}
_RECORD_ID = "$RECORD_ID"

STAND_IN = """\
################################################################################
#  THIS IS NOT AZURE COSMOS DB.
#  Memory is kept by a stand-in of this repository: a small server that speaks
#  as much of the protocol as the adapter needs. It proves nothing about:
#    - speed, request charges, and when an account refuses for being too busy;
#    - copies, regions, failover, and partitions that grow full or split;
#    - identities, role assignments, rotated keys and firewalls;
#    - how the service builds its indexes.
#  No account was ever tried. broker/devstack/cosmos/__init__.py says the rest.
################################################################################"""
"""What a stack says first and last whose memory is in the stand-in for Cosmos DB."""


@dataclass(frozen=True)
class Step:
    """One command with the words above it."""

    title: str
    command: str


@dataclass(frozen=True)
class _Call:
    title: str
    method: str
    request: dict[str, Any]
    token: str = "$TOKEN"  # noqa: S105 (a shell variable)
    keep: Path | None = None


def banner(
    address: str,
    data: DataDirectory,
    issuer: TokenIssuer,
    memory: MemoryStore,
    *,
    events: str | None = None,
) -> str:
    """Returns the text that tells a newcomer what to do.

    Args:
        address: Host and port of the broker.
        data: The directory of the stack.
        issuer: Signs the tokens that are printed.
        memory: Where records are kept.
        events: Host and port of the Events service, if there is one.
    """
    hours = int(LIFETIME.total_seconds() // 3600)
    lines = [
        f"\nThe broker serves on {address} (gRPC, no TLS, this machine only).",
        f"Memory is kept in {memory.where} (adapter {memory.adapter}).",
        f"Who may do what: {data.playground} (edit it, the next call obeys)",
        *([_FACTS.format(events)] if events else []),
        f"\n# The programs, and tokens of {MEMBER} and {OUTSIDER} for {hours} hours:",
        *(step.command for step in variables(issuer)),
    ]
    for tool, found in (("buf", buf_steps), ("grpcurl", grpcurl_steps)):
        lines.append(f"\n# --- With {tool}")
        lines.extend(f"# {step.title}\n{step.command}" for step in found(address, data))
    lines.append("\nCtrl-C stops everything; the data stay.\n")
    return "\n".join(lines)


def variables(issuer: TokenIssuer) -> list[Step]:
    """Returns the assignments that the other commands build on."""
    programs = Path(sys.executable).parent
    path = f'export PATH={shlex.quote(str(programs))}:"$PATH"'
    return [
        *([Step("programs", path)] if (programs / "buf").exists() else []),
        *(
            Step(subject, f"export {name}={shlex.quote(issuer.mint(subject, lifetime=LIFETIME))}")
            for name, subject in (("TOKEN", MEMBER), ("OUTSIDER_TOKEN", OUTSIDER))
        ),
    ]


def buf_steps(address: str, data: DataDirectory) -> list[Step]:
    """Returns the tour as ``buf curl`` commands."""
    return list(
        _steps(
            data,
            lambda call: (
                "buf curl --protocol grpc --http2-prior-knowledge"
                f' --header "authorization: Bearer {call.token}"'
                f" --data {_quoted(call.request)} http://{address}/{SERVICE}/{call.method}"
            ),
        )
    )


def grpcurl_steps(address: str, data: DataDirectory) -> list[Step]:
    """Returns the tour as ``grpcurl`` commands."""
    return list(
        _steps(
            data,
            lambda call: (
                "grpcurl -plaintext"
                f' -H "authorization: Bearer {call.token}"'
                f" -d {_quoted(call.request)} {address} {SERVICE}/{call.method}"
            ),
        )
    )


def _steps(data: DataDirectory, command: Callable[[_Call], str]) -> Iterator[Step]:
    for call in _tour(data.memory):
        text = command(call)
        if call.keep is None:
            yield Step(call.title, text)
        else:
            kept = shlex.quote(str(call.keep))
            pick = r"""sed -n 's/.*"record_*[Ii]d": *"\([^"]*\)".*/\1/p'"""
            yield Step(call.title, f"{text} | tee {kept}")
            yield Step("Remember its id:", f"export RECORD_ID=$({pick} {kept})")


def _tour(kept: Path) -> list[_Call]:
    one = {"scope": _SCOPE, "record_id": _RECORD_ID}
    create = {
        "scope": _SCOPE,
        "idempotency_key": "tour-create",
        "kind": "RECORD_KIND_MEMORY",
        **_MEMORY,
    }
    update = {**one, "idempotency_key": "tour-update", "expected_revision": 1, **_UPDATE}
    return [
        _Call("Create a memory:", "CreateRecord", create, keep=kept),
        _Call("Get it:", "GetRecord", one),
        _Call("Update it; refused when it is not at revision 1 any more:", "UpdateRecord", update),
        _Call("List its revisions:", "ListRevisions", one),
        _Call(
            f"{OUTSIDER} has no authority over knowledge, and is refused:",
            "GetRecord",
            one,
            token="$OUTSIDER_TOKEN",  # noqa: S106 (a shell variable)
        ),
    ]


def _quoted(request: dict[str, Any]) -> str:
    """Quotes a request for bash, leaving the one variable in it to be filled in."""
    text = shlex.quote(json.dumps(request))
    return text.replace(_RECORD_ID, f"'\"{_RECORD_ID}\"'")
