"""A real server on loopback with made-up use cases, and what tests need around it."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.any_pb2 import Any as PackedAny
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from broker.api.v1.record_service_pb2_grpc import RecordServiceStub
from broker.domain.call import Call, Caller
from broker.domain.errors import TokenInvalidError
from broker.domain.requests import (
    BatchGetRecords,
    ChangeRecord,
    CreateRecord,
    Found,
    GetRecord,
    GetRevision,
    ListRevisions,
    Read,
    ReadMany,
    RevisionsListed,
    SearchRecords,
    UpdateRecord,
    Written,
)
from broker.server.admission import Admission
from broker.server.app import EdgeServer, Listener
from broker.server.exchange import MetadataValue
from broker.server.interceptors import EdgeInterceptor
from broker.server.record_servicer import RecordPorts, record_service
from broker.telemetry.logs import configure_logging, logger
from broker.telemetry.metrics import Metrics
from providers.model import Content, Kind, Record, Revision, State, Trust

BEARER = "Bearer " + ".".join(["eyJhbGciOiJub25lIn0", "canary-token-body", "canary-signature"])
CANARY = "canary-content-7f3a"
AUTHORIZED = (("authorization", BEARER),)


def revision(text: str = "text", number: int = 1) -> Revision:
    """Make a revision with this content."""
    return Revision(
        record_id="r-1",
        agent_id="a",
        kind=Kind.MEMORY,
        revision=number,
        revision_id=f"rev-{number}",
        previous_revision_id=None,
        content=Content(
            type="note", title=None, content=text, rationale=None, importance=0.5, tags=()
        ),
        facet=None,
        state=State.ACTIVE,
        trust=Trust.PENDING,
        source_run_id="run",
        source_session_id=None,
        promoted_decision_id=None,
        superseded_by_record_id=None,
        reason=None,
        change_kind=None,
        actor_fingerprint=None,
        create_time=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    )


def record(text: str = "text") -> Record:
    """Make a head with this content."""
    head = revision(text)
    return Record(head, head.create_time)


Behaviour = Callable[[Call, Any], Awaitable[None]]


async def _at_once(_call: Call, _request: Any) -> None:
    return None


@dataclass
class StubRecords:
    """Use cases that run ``behaviour`` and then answer with a made-up record."""

    behaviour: Behaviour = _at_once
    calls: list[tuple[Call, Any]] = field(default_factory=list)
    listed: tuple[Revision, ...] = ()

    async def create(self, call: Call, request: CreateRecord) -> Written:
        await self._run(call, request)
        return Written("p", record(request.content.content), replayed=True)

    async def get(self, call: Call, request: GetRecord) -> Read:
        await self._run(call, request)
        return Read("p", record())

    async def update(self, call: Call, request: UpdateRecord) -> Written:
        await self._run(call, request)
        return Written("p", record(request.content.content), replayed=False)

    async def list_revisions(self, call: Call, request: ListRevisions) -> RevisionsListed:
        await self._run(call, request)
        return RevisionsListed(self.listed, "next", full=True)

    async def get_revision(self, call: Call, request: GetRevision) -> Revision:
        await self._run(call, request)
        return revision()

    async def change(self, call: Call, request: ChangeRecord) -> Written:
        await self._run(call, request)
        return Written("p", record(), replayed=False)

    archive = unarchive = supersede = restore = approve = reject = reopen = change

    async def batch_get(self, call: Call, request: BatchGetRecords) -> ReadMany:
        await self._run(call, request)
        return ReadMany("p", (record(),))

    async def search(self, call: Call, request: SearchRecords) -> Found:
        await self._run(call, request)
        return Found("p", (record(),), "", full=True)

    def ports(self) -> RecordPorts:
        """Stand in for every use case."""
        return RecordPorts(self, self, self, self)

    async def _run(self, call: Call, request: Any) -> None:
        self.calls.append((call, request))
        await self.behaviour(call, request)


class StubVerifier:
    """Accepts exactly one bearer; its first word after the scheme is the subject."""

    async def verify(
        self, authorization: Sequence[MetadataValue], tenant: Sequence[MetadataValue]
    ) -> Caller:
        match authorization:
            case [str(value)] if value.startswith("Bearer ") and len(tenant) <= 1:
                subject = value.removeprefix("Bearer ")
                return Caller("https://issuer.test", subject, value)
            case _:
                raise TokenInvalidError("send exactly one bearer token")


@dataclass
class Running:
    """A running server, a channel to it, and what it wrote."""

    server: EdgeServer
    port: int
    records: StubRecords
    admission: Admission
    metrics: Metrics
    channel: grpc.aio.Channel
    log: io.BytesIO

    @property
    def stub(self) -> Any:
        """The client of RecordService."""
        return RecordServiceStub(self.channel)

    def raw(self, method: str) -> Any:
        """Return a client of one method that sends and takes bytes."""
        return self.channel.unary_unary(method)

    def lines(self) -> list[dict[str, Any]]:
        """Parse what was logged."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@asynccontextmanager
async def running(
    records: StubRecords | None = None,
    *,
    admission: Admission | None = None,
    reflect: bool = False,
    credentials: tuple[grpc.ServerCredentials, grpc.ChannelCredentials] | None = None,
    channel_options: Sequence[tuple[str, Any]] = (),
    connection_age_s: float | None = None,
) -> AsyncIterator[Running]:
    """Start a server that is ready, and drain it at the end."""
    log = io.BytesIO()
    configure_logging(log)
    records = records or StubRecords()
    admission = admission or Admission()
    metrics = Metrics()
    server = EdgeServer(
        services=[record_service(records.ports())],
        interceptor=EdgeInterceptor(
            verifier=StubVerifier(), admission=admission, metrics=metrics, log=logger("edge")
        ),
        listener=Listener(
            address="127.0.0.1:0",
            credentials=credentials and credentials[0],
            connection_age_s=connection_age_s,
        ),
        reflect=reflect,
    )
    port = await server.start()
    server.ready()
    options: tuple[tuple[str, Any], ...] = (
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
    )
    target = f"127.0.0.1:{port}"
    options = (*options, *channel_options)
    async with (
        grpc.aio.secure_channel(target, credentials[1], options=options)
        if credentials
        else grpc.aio.insecure_channel(target, options=options)
    ) as channel:
        try:
            yield Running(server, port, records, admission, metrics, channel, log)
        finally:
            await server.drain(5)


def details_of(error: grpc.aio.AioRpcError) -> Status:
    """Decode the rich status of an error."""
    trailers = error.trailing_metadata()
    assert trailers is not None
    values = [value for key, value in trailers if key == "grpc-status-details-bin"]
    assert len(values) == 1
    assert isinstance(values[0], bytes)
    return Status.FromString(values[0])


def error_info(error: grpc.aio.AioRpcError) -> ErrorInfo:
    """Return the one ErrorInfo of an error."""
    infos = [info for info in map(_as_error_info, details_of(error).details) if info is not None]
    assert len(infos) == 1
    return infos[0]


def _as_error_info(detail: PackedAny) -> ErrorInfo | None:
    info = ErrorInfo()
    return info if detail.Unpack(info) else None


async def refused(call: Any) -> grpc.aio.AioRpcError:
    """Return the error a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until a condition holds; the test's own time limit bounds it."""
    while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of events
        await asyncio.sleep(0.001)
