"""Calls as one member makes them: counted, bounded, and with refusals as types."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from broker.api.v1 import context_service_pb2 as contexts
from broker.api.v1 import record_service_pb2 as pb
from broker.api.v1.context_service_pb2_grpc import ContextServiceStub
from broker.api.v1.record_service_pb2_grpc import RecordServiceStub

Reply = TypeVar("Reply")
Metadata = Sequence[tuple[str, str]]
Judgement = pb.ApproveRecordRequest | pb.RejectRecordRequest | pb.ArchiveRecordRequest
WriteRequest = pb.CreateRecordRequest | pb.UpdateRecordRequest | Judgement
WriteResponse = (
    pb.CreateRecordResponse
    | pb.UpdateRecordResponse
    | pb.ApproveRecordResponse
    | pb.RejectRecordResponse
    | pb.ArchiveRecordResponse
)
SECONDS_MAX = 60.0


class RefusedError(Exception):
    """The broker said no."""

    def __init__(self, code: grpc.StatusCode, info: ErrorInfo) -> None:
        super().__init__(f"{code.name} {info.reason} {dict(info.metadata)}")
        self.code = code
        self.reason = info.reason
        self.metadata = dict(info.metadata)

    @property
    def current_revision(self) -> int:
        """The head's revision that REVISION_STALE names; 0 where none is named."""
        return int(self.metadata.get("current_revision", "0"))


@dataclass
class Tally:
    """What all members did together. ``gate`` bounds how many calls run at once."""

    gate: asyncio.Semaphore
    calls: int = 0
    refusals: Counter[str] = field(default_factory=Counter)


class Member:
    """Somebody with a token."""

    def __init__(
        self,
        subject: str,
        channel: aio.Channel,
        metadata: Callable[[], Metadata],
        tally: Tally,
    ) -> None:
        """Call as ``subject``; ``metadata`` gives the credentials of each call."""
        self.subject = subject
        self._metadata, self._tally = metadata, tally
        self._stub, self._contexts = RecordServiceStub(channel), ContextServiceStub(channel)

    async def write(self, request: WriteRequest) -> WriteResponse:
        """Send a create, an update or a judgement."""
        return await self._call(self._method(request), request)

    async def write_and_leave(self, request: WriteRequest, *, after: float) -> None:
        """Send a write and hang up after some seconds, without a look at what came of it."""
        async with self._tally.gate:
            self._tally.calls += 1
            call = self._method(request)(request, metadata=self._metadata(), timeout=SECONDS_MAX)
            await asyncio.wait({asyncio.ensure_future(_ended(call))}, timeout=after)
            call.cancel()

    async def get(self, request: pb.GetRecordRequest) -> pb.GetRecordResponse:
        """Read a head."""
        return await self._call(self._stub.GetRecord, request)

    async def revisions(self, request: pb.ListRevisionsRequest) -> pb.ListRevisionsResponse:
        """Read a page of history."""
        return await self._call(self._stub.ListRevisions, request)

    async def revision(self, request: pb.GetRevisionRequest) -> pb.GetRevisionResponse:
        """Read one revision."""
        return await self._call(self._stub.GetRevision, request)

    async def compile(
        self, request: contexts.CompileContextRequest
    ) -> contexts.CompileContextResponse:
        """Compile a context."""
        return await self._call(self._contexts.CompileContext, request)

    async def compilations(
        self, request: contexts.ListCompilationsRequest
    ) -> contexts.ListCompilationsResponse:
        """Read a page of the log of compilations."""
        return await self._call(self._contexts.ListCompilations, request)

    async def compilation(
        self, request: contexts.GetCompilationRequest
    ) -> contexts.GetCompilationResponse:
        """Read one compilation and its proof."""
        return await self._call(self._contexts.GetCompilation, request)

    def _method(self, request: WriteRequest) -> Callable[..., Any]:
        name: str = request.DESCRIPTOR.name
        method: Callable[..., Any] = getattr(self._stub, name.removesuffix("Request"))
        return method

    async def _call(self, method: Callable[..., Awaitable[Reply]], request: Any) -> Reply:
        async with self._tally.gate:
            self._tally.calls += 1
            try:
                return await method(request, metadata=self._metadata(), timeout=SECONDS_MAX)
            except aio.AioRpcError as error:
                refused = RefusedError(error.code(), _info(error))
                self._tally.refusals[refused.reason] += 1
                raise refused from error


async def _ended(call: Awaitable[object]) -> None:
    try:
        await call
    except (aio.AioRpcError, asyncio.CancelledError):
        return


def _info(error: aio.AioRpcError) -> ErrorInfo:
    """Return the ErrorInfo of an error; an empty one where gRPC itself made the error."""
    info = ErrorInfo()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                detail.Unpack(info)
    return info
