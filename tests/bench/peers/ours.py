"""The services of the broker as a peer: everything but the wire between caller and broker.

It is put together as ``broker.wiring`` does it, from the settings of a broker that serves beside
it: the real provider, pins, checks and metrics. The owner is asked as always, or only once for each
question (``asks`` is ``owner`` or ``once``): then what is left is what a library does as well.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from broker import wiring
from broker.authority.checks import AuthoritySource, OwnerAuthority
from broker.authority.client import OwnerClient
from broker.authority.metered import MeteredOwner
from broker.binding.binder import Binder
from broker.binding.catalog import Catalog
from broker.config import Settings, load_settings
from broker.domain.call import Call, Caller, ProjectScope, RunScope
from broker.domain.requests import ContentInput, CreateRecord, GetRecord, ScopeInput, SearchRecords
from broker.openings import open_embeddings
from broker.owners.v1 import projects_config_service_pb2 as owners
from broker.services.access import AccessPath
from broker.services.entries import Entries
from broker.services.head_writer import HeadWriter
from broker.services.record_reads import RecordReads
from broker.services.record_search import RecordSearch
from broker.services.record_writes import RecordWrites
from broker.store.pins import PostgresPinStore
from broker.telemetry.metrics import Metrics
from providers.model import Kind
from tests.bench.peers.loop import Operation, PeerFailedError, lead
from tests.bench.texts import AGENT, ISSUER, RUN, TENANT, tags, text

CALL_SECONDS: Final = 30.0
FIRST: Final = 10**9
"""The number of the first text that is created here: nobody else in the bench says it."""
FOUND: Final = 10
READ, WRITTEN = (ScopeInput(name, RUN, AGENT) for name in ("read", "write"))


class AskedOnce:
    """Asks a source once for each question about a run, and gives the same answer ever after.

    A broker must never do that: it is here to leave a neighbour's cost out of a measurement.
    """

    def __init__(self, source: AuthoritySource) -> None:
        """Take the source."""
        self._source = source
        self._kept: dict[tuple[RunScope, str], owners.GetRunAuthorityResponse] = {}

    async def run_authority(
        self, call: Call, scope: RunScope, permission: str
    ) -> owners.GetRunAuthorityResponse:
        """Answer about a run."""
        key = (scope, permission)
        if key not in self._kept:
            self._kept[key] = await self._source.run_authority(call, scope, permission)
        return self._kept[key]

    async def project_authority(
        self, call: Call, scope: ProjectScope, permission: str
    ) -> owners.GetProjectAuthorityResponse:
        """Answer about a project."""
        return await self._source.project_authority(call, scope, permission)

    async def caller_authority(
        self, call: Call, permission: str
    ) -> owners.GetCallerAuthorityResponse:
        """Answer about a caller."""
        return await self._source.caller_authority(call, permission)


class OurPeer:
    """Reads, searches and writes records behind the checks."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._stack = AsyncExitStack()
        self._numbers = count()
        self._texts = count(FIRST)
        self._caller: Caller
        self._ids: list[str] = []
        self._reads: RecordReads
        self._searches: RecordSearch
        self._writes: RecordWrites

    async def start(self, given: Mapping[str, Any]) -> Mapping[str, Operation]:
        """See ``Peer``."""
        settings = load_settings(Path(given["settings"]))
        access = self._access(settings, asks=given["asks"])
        writer = HeadWriter(access, wiring.SystemClock(), wiring._new_id)
        self._reads, self._searches = RecordReads(access), RecordSearch(access)
        self._writes = RecordWrites(access, writer)
        self._ids = given["ids"]
        self._caller = Caller(
            issuer=ISSUER, subject=AGENT, bearer=given["bearer"], tenant_claim=TENANT
        )
        return {"create": self._create, "get": self._get, "search": self._search}

    async def stop(self) -> None:
        """See ``Peer``."""
        await self._stack.aclose()

    def _access(self, settings: Settings, *, asks: str) -> AccessPath:
        metrics = Metrics()
        engine = wiring._engine(settings, self._stack)
        entries = [wiring._entry(each, metrics, self._stack) for each in settings.providers]
        client = OwnerClient(wiring._peer(settings.owner))
        self._stack.push_async_callback(client.aclose)
        source: AuthoritySource = AskedOnce(client) if asks == "once" else client
        authority = OwnerAuthority(MeteredOwner(source, metrics.owner_call))
        makers = Entries(open_embeddings(settings.embeddings, metrics, self._stack))
        access = AccessPath(authority, Binder(Catalog(entries), PostgresPinStore(engine)), makers)
        self._stack.push_async_callback(access.drain)
        return access

    def _call(self) -> Call:
        deadline = asyncio.get_running_loop().time() + CALL_SECONDS
        return Call(self._caller, f"call-{next(self._numbers)}", deadline)

    async def _create(self, _: int) -> None:
        number = next(self._texts)
        given = ContentInput(
            type="note",
            title="",
            content=text(number),
            rationale="",
            importance=0.5,
            tags=tags(number),
        )
        request = CreateRecord(
            scope=WRITTEN,
            idempotency_key=str(uuid4()),
            kind=Kind.MEMORY,
            content=given,
            facet=None,
        )
        await self._writes.create(self._call(), request)

    async def _get(self, number: int) -> None:
        record_id = self._ids[number * 7 % len(self._ids)]
        await self._reads.get(self._call(), GetRecord(scope=READ, record_id=record_id))

    async def _search(self, number: int) -> None:
        """Look for a tag, as the store it is compared with is asked for one."""
        request = SearchRecords(
            scope=READ,
            query="",
            kinds=(),
            states=(),
            trusts=(),
            tags=tags(number)[:1],
            importance_min=None,
            importance_max=None,
            updated_from=None,
            updated_before=None,
            page_size=FOUND,
            page_token="",
            full=True,
        )
        found = await self._searches.search(self._call(), request)
        if len(found.records) != FOUND:
            raise PeerFailedError(f"search found {len(found.records)}")


if __name__ == "__main__":
    lead(OurPeer())
