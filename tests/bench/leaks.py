"""Whether a broker's memory grows with the calls it served.

Calls of five sorts come in turn, some hundred of each, in projects that take turns as well, so that
no scope grows large. The workers' resident memory is read after each turn.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import Message

from broker.api.v1 import memory_service_pb2, record_pb2, record_service_pb2
from broker.devstack.provider import Provider
from tests.bench.calls import CREATE, GET, RECALL, SEARCH, UPDATE
from tests.bench.cases import CONCURRENCY, Ground
from tests.bench.seeds import number
from tests.bench.stand import BrokerStand
from tests.bench.texts import AGENT, RUN, query, tags, text

CALLS: Final = 200_000
SETTLED: Final = 20_000
"""After so many calls a broker has all that it keeps for good."""
EACH: Final = 200
SORTS: Final = 5
PROJECTS: Final = 50
AROUND: Final = 5
"""Over so many turns the median is taken: memory comes and goes."""
PAGE: Final = 10


@dataclass(frozen=True)
class Resident:
    """What the workers held in memory after so many calls, in bytes."""

    calls: int
    size: int


async def served(
    ground: Ground, calls: int, tell: Callable[[str], None], provider: Provider = Provider.POSTGRES
) -> list[Resident]:
    """Make so many calls, and return what was held after each turn."""
    names = [f"leak-{each:02}" for each in range(PROJECTS)]
    stand, found = BrokerStand(ground, provider, projects=names), list[Resident]()
    try:
        await stand.start()
        for turn, name in zip(range(0, calls, EACH * SORTS), cycle(names), strict=False):
            await _turn(stand, name)
            found.append(Resident(turn + EACH * SORTS, _resident(stand.pids)))
            if found[-1].calls % SETTLED == 0:
                tell(f"{found[-1].calls:,} calls: {found[-1].size / 2**20:.1f} MiB")
    finally:
        await stand.stop()
    return found


def growth(found: Sequence[Resident]) -> float | None:
    """Return what was held at the end over what was held when it had settled; None: too few calls.

    Each is the median of some turns.
    """
    early = [each.size for each in found if each.calls >= SETTLED][:AROUND]
    late = [each.size for each in found][-AROUND:]
    if not early or found[-1].calls < 2 * SETTLED:
        return None
    return statistics.median(late) / statistics.median(early)


async def _turn(stand: BrokerStand, name: str) -> None:
    scope = record_pb2.Scope(project_id=name, run_id=RUN, agent_id=AGENT)
    replies = await stand.answers(CREATE, list(_creates(scope)))
    ids = [
        record_service_pb2.CreateRecordResponse.FromString(each).record.record_id
        for each in replies
    ]
    turn: list[tuple[str, Iterator[Message]]] = [
        (UPDATE, _updates(scope, ids)),
        (GET, _gets(scope, ids)),
        (SEARCH, _searches(scope)),
        (RECALL, _recalls(scope)),
    ]
    for rpc, requests in turn:
        await stand.run(rpc, list(requests), CONCURRENCY)


def _said(scope: record_pb2.Scope) -> dict[str, Any]:
    each = number()
    return {
        "scope": scope,
        "idempotency_key": f"key-{each}",
        "type": "note",
        "content": text(each),
        "tags": tags(each),
    }


def _creates(scope: record_pb2.Scope) -> Iterator[Message]:
    kind = record_pb2.RECORD_KIND_MEMORY
    for _ in range(EACH):
        yield record_service_pb2.CreateRecordRequest(kind=kind, **_said(scope))


def _updates(scope: record_pb2.Scope, ids: Sequence[str]) -> Iterator[Message]:
    for record_id in ids:
        yield record_service_pb2.UpdateRecordRequest(
            record_id=record_id, expected_revision=1, importance=0.5, **_said(scope)
        )


def _gets(scope: record_pb2.Scope, ids: Sequence[str]) -> Iterator[Message]:
    for record_id in ids:
        yield record_service_pb2.GetRecordRequest(scope=scope, record_id=record_id)


def _searches(scope: record_pb2.Scope) -> Iterator[Message]:
    for _ in range(EACH):
        word = query(number()).split()[0]
        yield record_service_pb2.SearchRecordsRequest(scope=scope, query=word, page_size=PAGE)


def _recalls(scope: record_pb2.Scope) -> Iterator[Message]:
    mode = memory_service_pb2.RECALL_MODE_KEYWORD
    for _ in range(EACH):
        yield memory_service_pb2.RecallRequest(scope=scope, query=query(number()), mode=mode)


def _resident(pids: Sequence[int]) -> int:
    """Return what processes hold in memory, in bytes."""
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        (told,) = (line.split() for line in lines if line.startswith("VmRSS:"))
        total += int(told[1]) * 1024
    return total
