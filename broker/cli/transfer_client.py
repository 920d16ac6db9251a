"""Exports to files and imports from them, as a client of a broker."""

import os
import secrets
import stat
import sys
from collections.abc import AsyncIterator, Iterable, Sized
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from broker.api.v1 import record_pb2, transfer_pb2, transfer_service_pb2, transfer_service_pb2_grpc
from broker.config import read_secret
from broker.outbound import PeerSettings, open_channel
from broker.server.bundle_json import NoBundleError, canonical_json, read_json
from broker.server.status import DETAILS_KEY

TIMEOUT_S: Final = 25.0
"""Longer than a broker takes, so that its own refusal comes first."""
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a file to import, which may be indented; the broker measures the bundle itself."""
STANDARD: Final = Path("-")


class TransferError(Exception):
    """Nothing was moved; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Which broker, as whom, and which agent's records."""

    peer: PeerSettings
    token_file: Path
    tenant: str | None
    project: str
    run: str
    agent: str

    @property
    def scope(self) -> record_pb2.Scope:
        """The scope of the call."""
        return record_pb2.Scope(project_id=self.project, run_id=self.run, agent_id=self.agent)

    def metadata(self) -> list[tuple[str, str]]:
        """Return what the call says of its caller.

        Raises:
            OSError, ValueError: the file holds no token.
            TransferError: no header can say the token or the tenant.
        """
        token = _sayable(read_secret(self.token_file), f"the token in {self.token_file}")
        pairs = [("authorization", f"Bearer {token}")]
        if self.tenant is not None:
            pairs.append(("x-tenant", _sayable(self.tenant, "--tenant")))
        return pairs


def _sayable(value: str, what: str) -> str:
    """Return what a header can say; the refusal does not repeat it."""
    if not (value.isascii() and value.isprintable()):
        raise TransferError(f"{what} must be one line of printable ASCII characters")
    return value


async def export(account: Account, record_ids: Iterable[str], output: Path) -> None:
    """Write a bundle in canonical form to a file, or to standard output for ``-``.

    Raises:
        TransferError: the broker refused, or the output is there and no regular file.
        OSError, ValueError: a file cannot be used.
    """
    if output != STANDARD:
        check_output(output)
    request = transfer_service_pb2.ExportRecordsRequest(
        scope=account.scope, record_ids=list(record_ids)
    )
    async with _service(account) as service:
        reply = await service.ExportRecords(request, metadata=account.metadata(), timeout=TIMEOUT_S)
    content = canonical_json(reply.bundle)
    if output == STANDARD:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    write_private(output, content)
    sys.stdout.write(f"exported {_count(reply.bundle.records)} to {output}\n")


async def import_(account: Account, source: Path, key: str, *, validate_only: bool) -> None:
    """Import the bundle of a file, or of standard input for ``-``, and say what was written.

    Raises:
        TransferError: the file holds no bundle, or the broker refused.
        OSError, ValueError: a file cannot be used.
    """
    request = transfer_service_pb2.ImportRecordsRequest(
        scope=account.scope,
        idempotency_key=key,
        bundle=read_bundle(source),
        validate_only=validate_only,
    )
    async with _service(account) as service:
        reply = await service.ImportRecords(request, metadata=account.metadata(), timeout=TIMEOUT_S)
    did = "would import" if validate_only else "imported before" if reply.replayed else "imported"
    sys.stdout.write(f"{did}: {_count(reply.records)}\n")
    for record in reply.records:
        sys.stdout.write(f"{record.record_id} revision {record.revision}\n")


def read_bundle(source: Path) -> transfer_pb2.Bundle:
    """Read the bundle of a file.

    Raises:
        TransferError: it holds none, or more than 16 MiB.
        OSError: it cannot be read.
    """
    if source == STANDARD:
        content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    else:
        with source.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise TransferError(f"{source} has more than {FILE_BYTES_MAX} bytes")
    try:
        return read_json(content)
    except NoBundleError as error:
        raise TransferError(f"{source} holds no bundle: {error}") from error


def check_output(file: Path) -> None:
    """Refuse to replace anything but a regular file; links are not followed.

    Raises:
        TransferError: a device, a FIFO, a link or a directory is there.
        OSError: nobody can tell.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(file.lstat().st_mode):
            raise TransferError(f"{file} is no regular file; - is standard output")


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all; one that is there goes.

    Raises:
        TransferError: what is there is no regular file.
        OSError: it cannot be written.
    """
    check_output(file)
    unfinished = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(file)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


@asynccontextmanager
async def _service(
    account: Account,
) -> AsyncIterator["transfer_service_pb2_grpc.TransferServiceAsyncStub"]:
    """Open a stub; what the broker refuses becomes a TransferError."""
    async with open_channel(account.peer) as channel:
        try:
            yield transfer_service_pb2_grpc.TransferServiceStub(channel)
        except aio.AioRpcError as error:
            raise TransferError(_told(error)) from error


def _count(records: Sized) -> str:
    return "1 record" if len(records) == 1 else f"{len(records)} records"


def _told(error: aio.AioRpcError) -> str:
    """Return what a refusal says: reason, message, metadata, and the fields that are wrong."""
    trailers = dict(error.trailing_metadata() or ())
    raw = trailers.get(DETAILS_KEY)
    text = error.details() or "no details"
    if not isinstance(raw, bytes):
        return f"{error.code().name}: {text}"
    info, bad = ErrorInfo(), BadRequest()
    for packed in Status.FromString(raw).details:
        packed.Unpack(info)
        packed.Unpack(bad)
    said = ", ".join(f"{key}={value}" for key, value in sorted(info.metadata.items()))
    lines = [f"{info.reason}: {text} ({said})"]
    lines += [f"  {each.field}: {each.description}" for each in bad.field_violations]
    return "\n".join(lines)
