"""A plain client of the memory protocol: remember, recall, recall by tags, forget, update.

    async with connect("127.0.0.1:50051", token, project="p", run="r", agent="a") as memory:
        await memory.remember("Deploys are frozen on Fridays", tags=["ops"])
        for found in await memory.recall("when may I deploy?"):
            print(found.content)

Every write makes its idempotency key once and keeps it over all attempts, so that a retry never
writes twice. Refusals are ``grpc.aio.AioRpcError``; ``reason_of`` says which.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
import uuid_utils
from google.protobuf import json_format
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from broker.api.v1 import (
    memory_service_pb2,
    memory_service_pb2_grpc,
    record_pb2,
    record_service_pb2,
    record_service_pb2_grpc,
)
from broker.outbound import PeerSettings, open_channel

T = TypeVar("T")

STALE_ATTEMPTS_MAX: Final = 5
"""How often a write is made anew because others changed the memory between read and write."""

_FULL: Final = record_pb2.RECORD_VIEW_FULL


class MemoryNotFoundError(KeyError):
    """There is no such memory of this agent (003-06)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory.

    Attributes:
        id: The record's id.
        content: Its text.
        tags: Its tags.
        importance: 0.0 to 1.0.
        metadata: The caller's own data.
        source: Where it came from.
        created_at: When it was first stored, UTC.
        revision: Its revision, from 1.
        score: How well it fits a query; comparable inside one answer only. ``None``: no query.
        trust: Who stands behind it, such as ``agent, pending``. Empty: not told.
    """

    id: str
    content: str
    tags: tuple[str, ...]
    importance: float
    metadata: Mapping[str, Any]
    source: str
    created_at: datetime
    revision: int
    score: float | None = None
    trust: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a memory: its ``id``, and ``created``, ``skipped`` or ``superseded``."""

    id: str
    action: str


def reason_of(error: aio.AioRpcError) -> str:
    """Return the reason of a refusal as ``ErrorReason`` names it; empty: no broker gave it."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                info = ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return ""


@asynccontextmanager
async def connect(
    address: str,
    token: str | Callable[[], str],
    *,
    project: str,
    run: str,
    agent: str,
    tenant: str | None = None,
    root_ca_file: Path | None = None,
) -> AsyncIterator["MemoryClient"]:
    """Connect to a broker, and close the connection in the end.

    Args:
        address: ``host:port``. TLS, but for a loopback address without ``root_ca_file``.
        token: A bearer token, or what returns one for each call.
        project: The project whose memories are meant.
        run: The run whose pinned provider gives access.
        agent: The agent whose memories are meant.
        tenant: The tenant, where the token is good for several.
        root_ca_file: The root certificates; ``None``: those gRPC brings.

    Raises:
        ValueError: the address is no ``host:port``.
        OSError: the certificates cannot be read.
    """
    channel = open_channel(_peer(address, root_ca_file), service_config=_service_config())
    scope = record_pb2.Scope(project_id=project, run_id=run, agent_id=agent)
    async with channel:
        yield MemoryClient(channel, token, scope, tenant)


class MemoryClient:
    """The five verbs for one agent. Safe for concurrent calls on one event loop."""

    def __init__(
        self,
        channel: aio.Channel,
        token: str | Callable[[], str],
        scope: record_pb2.Scope,
        tenant: str | None = None,
    ) -> None:
        """Take an open channel, which its owner closes."""
        self._memories = memory_service_pb2_grpc.MemoryServiceStub(channel)
        self._records = record_service_pb2_grpc.RecordServiceStub(channel)
        self._token = token
        self._scope = scope
        self._tenant = tenant

    async def remember(
        self,
        content: str,
        *,
        tags: Iterable[str] = (),
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
    ) -> Kept:
        """Keep a memory; one that is known already is not kept twice (003-01).

        Args:
            content: 1-40,000 code points.
            tags: At most 32; a text by itself is a TypeError.
            importance: 0.0 to 1.0; ``None``: 0.5.
            metadata: At most 64 keys, 8 KiB as JSON.
            source: Where it came from, such as a session.
        """
        memory = memory_service_pb2.MemoryInput(
            content=content,
            tags=_listed(tags),
            importance=importance,
            facet=record_pb2.MemoryFacet(source=source, source_type=record_pb2.SOURCE_TYPE_AGENT),
        )
        if metadata is not None:
            memory.facet.metadata.update(dict(metadata))
        reply = await self._call(
            self._memories.Remember,
            memory_service_pb2.RememberRequest(
                scope=self._scope, idempotency_key=_key(), memory=memory
            ),
        )
        done = reply.remembered
        name = memory_service_pb2.RememberAction.Name(done.action)
        return Kept(done.record.record_id, name.removeprefix("REMEMBER_ACTION_").lower())

    async def recall(self, query: str, *, limit: int = 5) -> Sequence[Memory]:
        """Return the memories that fit a query, the best first (003-03). ``limit`` 1-50."""
        reply = await self._call(
            self._memories.Recall,
            memory_service_pb2.RecallRequest(
                scope=self._scope, query=query, limit=limit, view=_FULL
            ),
        )
        return [
            _memory(each.record, score=each.score, trust=each.trust_label) for each in reply.results
        ]

    async def recall_by_tags(self, tags: Iterable[str], *, limit: int = 10) -> Sequence[Memory]:
        """Return the memories that have all tags, the most important first (003-04)."""
        reply = await self._call(
            self._memories.RecallByTags,
            memory_service_pb2.RecallByTagsRequest(
                scope=self._scope,
                filter=memory_service_pb2.RecallFilter(tags_all=_listed(tags)),
                limit=limit,
                view=_FULL,
            ),
        )
        return [_memory(each) for each in reply.records]

    async def forget(self, memory_id: str) -> bool:
        """Forget a memory; tell whether it was there (003-05)."""

        async def once() -> bool:
            try:
                record = await self._get(memory_id)
            except MemoryNotFoundError:
                return False
            reply = await self._call(
                self._memories.Forget,
                memory_service_pb2.ForgetRequest(
                    scope=self._scope,
                    idempotency_key=_key(),
                    record_id=memory_id,
                    expected_revision=record.revision,
                ),
            )
            return bool(reply.found)

        return await _over_changes(once)

    async def update(self, memory_id: str, content: str) -> Memory:
        """Replace the text of a memory; all else is kept (003-06).

        Raises:
            MemoryNotFoundError: there is none.
        """

        async def once() -> Memory:
            record = await self._get(memory_id)
            reply = await self._call(
                self._records.UpdateRecord,
                record_service_pb2.UpdateRecordRequest(
                    scope=self._scope,
                    idempotency_key=_key(),
                    record_id=memory_id,
                    expected_revision=record.revision,
                    type=record.type,
                    title=record.title,
                    content=content,
                    rationale=record.rationale,
                    importance=record.importance,
                    tags=record.tags,
                ),
            )
            return _memory(reply.record)

        return await _over_changes(once)

    async def _get(self, memory_id: str) -> record_pb2.Record:
        try:
            reply = await self._call(
                self._records.GetRecord,
                record_service_pb2.GetRecordRequest(scope=self._scope, record_id=memory_id),
            )
        except aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise MemoryNotFoundError(memory_id) from error
            raise
        record: record_pb2.Record = reply.record
        return record

    async def _call(self, method: Any, request: Any) -> Any:
        token = self._token if isinstance(self._token, str) else self._token()
        metadata = [("authorization", f"Bearer {token}")]
        if self._tenant is not None:
            metadata.append(("x-tenant", self._tenant))
        return await method(request, metadata=metadata)


async def _over_changes(once: Callable[[], Awaitable[T]]) -> T:
    """Read and write again where others wrote between the two."""
    for _ in range(STALE_ATTEMPTS_MAX - 1):
        try:
            return await once()
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ABORTED:
                raise
    return await once()


def _memory(record: record_pb2.Record, *, score: float | None = None, trust: str = "") -> Memory:
    facet = record.facet
    return Memory(
        id=record.record_id,
        content=record.content,
        tags=tuple(record.tags),
        importance=record.importance,
        metadata=json_format.MessageToDict(facet.metadata),
        source=facet.source,
        created_at=record.create_time.ToDatetime(tzinfo=UTC),
        revision=record.revision,
        score=score,
        trust=trust,
    )


def _peer(address: str, root_ca_file: Path | None) -> PeerSettings:
    try:
        plain = PeerSettings(address=address, plaintext_loopback=True)
    except ValueError:
        return PeerSettings(address=address, root_ca_file=root_ca_file)
    return (
        plain if root_ca_file is None else PeerSettings(address=address, root_ca_file=root_ca_file)
    )


def _service_config() -> str:
    return (resources.files("broker") / "client_service_config.json").read_text("utf-8")


def _listed(tags: Iterable[str]) -> list[str]:
    if isinstance(tags, str):
        raise TypeError("tags is a text; give a list of tags")
    return list(tags)


def _key() -> str:
    return str(uuid_utils.uuid7())
