"""The calls of the broker that are measured. Requests are made before the time is taken."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from broker.api.v1 import (
    context_service_pb2,
    memory_service_pb2,
    proposal_service_pb2,
    record_pb2,
    record_service_pb2,
    transfer_service_pb2,
)
from tests.bench.cases import Sample
from tests.bench.seeds import number
from tests.bench.stand import BrokerStand
from tests.bench.texts import AGENT, COMPILED, RUN, RUNS, WRITTEN, query, tags, text

Make = Callable[[BrokerStand, int], Awaitable[Sequence[Message]]]
CREATE, UPDATE = "RecordService/CreateRecord", "RecordService/UpdateRecord"
GET, SEARCH = "RecordService/GetRecord", "RecordService/SearchRecords"
RECALL, COMPILE = "MemoryService/Recall", "ContextService/CompileContext"
PROPOSE, PROMOTE = "ProposalService/CreateProposal", "ProposalService/PromoteProposal"
EXPORT = "TransferService/ExportRecords"
EXPORTED = 10
PAGE = 10


@dataclass
class BrokerCase:
    """One RPC through gRPC.

    Attributes:
        name: What it is called.
        stand: The broker; several cases may share it.
        rpc: Service and method.
        make: Makes the requests of a run, before its time is taken.
    """

    name: str
    stand: BrokerStand
    rpc: str
    make: Make

    async def start(self) -> None:
        """See ``Case``."""
        await self.stand.start()

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``."""
        requests = await self.make(self.stand, calls)
        return await self.stand.run(self.rpc, requests, concurrency)

    async def stop(self) -> None:
        """See ``Case``."""
        await self.stand.stop()


def _scope(project: str, run: str = RUN) -> record_pb2.Scope:
    return record_pb2.Scope(project_id=project, run_id=run, agent_id=AGENT)


def _said(run: str = RUN) -> dict[str, Any]:
    each = number()
    return {
        "scope": _scope(WRITTEN, run),
        "idempotency_key": f"key-{each}",
        "content": text(each),
        "tags": tags(each),
    }


async def creates(_: BrokerStand, calls: int) -> list[record_service_pb2.CreateRecordRequest]:
    """Make memories, each with a text of its own."""
    kind = record_pb2.RECORD_KIND_MEMORY
    return [
        record_service_pb2.CreateRecordRequest(kind=kind, type="note", **_said())
        for _ in range(calls)
    ]


async def updates(stand: BrokerStand, calls: int) -> list[record_service_pb2.UpdateRecordRequest]:
    """Change records that were just made, each once."""
    replies = await stand.answers(CREATE, await creates(stand, calls))
    ids = [record_service_pb2.CreateRecordResponse.FromString(each).record for each in replies]
    return [
        record_service_pb2.UpdateRecordRequest(
            record_id=each.record_id, expected_revision=1, type="note", importance=0.5, **_said()
        )
        for each in ids
    ]


async def gets(stand: BrokerStand, calls: int) -> list[record_service_pb2.GetRecordRequest]:
    """Read records in turn."""
    ids = await stand.seeded("read")
    return [
        record_service_pb2.GetRecordRequest(
            scope=_scope("read"), record_id=ids[each * 7 % len(ids)]
        )
        for each in range(calls)
    ]


async def searches(stand: BrokerStand, calls: int) -> list[record_service_pb2.SearchRecordsRequest]:
    """Look for a word that stands in many texts, and take a page."""
    await stand.seeded("read")
    return [
        record_service_pb2.SearchRecordsRequest(
            scope=_scope("read"), query=query(each).split()[0], page_size=PAGE
        )
        for each in range(calls)
    ]


async def recalls(stand: BrokerStand, calls: int) -> list[memory_service_pb2.RecallRequest]:
    """Recall by words what fits best."""
    await stand.seeded("recall")
    return [
        memory_service_pb2.RecallRequest(
            scope=_scope("recall"), query=query(each), mode=memory_service_pb2.RECALL_MODE_KEYWORD
        )
        for each in range(calls)
    ]


def compiles(candidates: int) -> Make:
    """Compile a context of so many candidates."""
    name = f"compile-{candidates}"

    async def make(
        stand: BrokerStand, calls: int
    ) -> list[context_service_pb2.CompileContextRequest]:
        await stand.seeded(name)
        return [context_service_pb2.CompileContextRequest(scope=_scope(name)) for _ in range(calls)]

    return make


async def promotes(
    stand: BrokerStand, calls: int
) -> list[proposal_service_pb2.PromoteProposalRequest]:
    """Promote proposals that were just made, of one run after the other."""
    runs = [RUNS[each % len(RUNS)] for each in range(calls)]
    asked = [
        proposal_service_pb2.CreateProposalRequest(type="scope", title="A proposal", **_said(run))
        for run in runs
    ]
    replies = await stand.answers(PROPOSE, asked)
    made = [proposal_service_pb2.CreateProposalResponse.FromString(each) for each in replies]
    return [
        proposal_service_pb2.PromoteProposalRequest(
            scope=_scope(WRITTEN, run),
            idempotency_key=f"key-{number()}",
            proposal_id=each.proposal.record_id,
            expected_revision=1,
        )
        for run, each in zip(runs, made, strict=True)
    ]


async def exports(
    stand: BrokerStand, calls: int
) -> list[transfer_service_pb2.ExportRecordsRequest]:
    """Export some records, others each time."""
    ids = await stand.seeded("read")
    return [
        transfer_service_pb2.ExportRecordsRequest(
            scope=_scope("read"),
            record_ids=[ids[(each * EXPORTED + at) % len(ids)] for at in range(EXPORTED)],
        )
        for each in range(calls)
    ]


MEASURED: Mapping[str, tuple[str, Make]] = {
    "create": (CREATE, creates),
    "update": (UPDATE, updates),
    "get": (GET, gets),
    "search": (SEARCH, searches),
    "recall": (RECALL, recalls),
    **{f"compile {each}": (COMPILE, compiles(each)) for each in COMPILED},
    "promote": (PROMOTE, promotes),
    "export": (EXPORT, exports),
}
"""All calls that are measured, by name: the RPC, and what makes its requests."""
