"""All that ``make bench`` measures, and with how many calls in each round."""

from collections.abc import Mapping, Sequence
from typing import Final

from broker.devstack.provider import Provider
from tests.bench import floors, pgbench, redis_floor
from tests.bench.calls import MEASURED, BrokerCase
from tests.bench.cases import Ground, Plan
from tests.bench.echo import EchoCase
from tests.bench.peers.cases import peer_plans
from tests.bench.stand import BrokerStand

CALLS: Final[Mapping[str, int]] = {
    "create": 400,
    "update": 400,
    "get": 600,
    "search": 320,
    "recall": 80,
    "compile 10": 200,
    "compile 100": 120,
    "compile 1000": 32,
    "promote": 120,
    "export": 160,
}
"""How many calls of the broker a round makes: a second or two of each."""
SLOWER: Final = {"redis: recall": 32}
"""Those that take long, by the name of the case."""
OTHERS: Final = {1: 80, 64: 960}
"""At which other concurrencies create and get are measured, and with how many calls."""
ALONE: Final = 16
"""How many recalls are made one after the other."""
ECHOES, RAW, RAW_READS, RAW_RECALLS, EVALS = 2_400, 1_280, 2_400, 160, 6_400
MISSING: Final = "{} is not on this machine"
_SORTS: Final = (
    ("gRPC echo",),
    ("commit", "EVALSHA", "create", "update", "put", "add"),
    ("read", "get"),
    ("search",),
    ("recall",),
)
"""Words of the labels of what is compared with each other."""


def plans(ground: Ground) -> tuple[list[Plan], list[str]]:
    """Return all plans, and what is not among them, and why."""
    native = BrokerStand(ground, Provider.POSTGRES)
    redis = BrokerStand(ground, Provider.REDIS)
    pair = BrokerStand(ground, Provider.POSTGRES, workers=2)
    tools, missing = _tools(ground)
    listed = [
        Plan(EchoCase("gRPC echo", ground), ECHOES),
        *_raw(native),
        *tools,
        *_broker("postgres", native),
        Plan(_case("postgres, 2 workers", "create", pair), CALLS["create"]),
        *_broker("redis", redis),
        *peer_plans(ground, native),
    ]
    return sorted(listed, key=lambda plan: sort_of(plan.label)), missing


def sort_of(label: str) -> int:
    """Return what a line is sorted by: what is compared with each other is run within a minute."""
    name = label.rpartition(": ")[2].partition(",")[0]
    return next((at for at, words in enumerate(_SORTS) if name in words), len(_SORTS))


def wanted(listed: Sequence[Plan], words: Sequence[str]) -> list[Plan]:
    """Return the plans whose labels hold one of the words; all of them where there is none."""
    return [each for each in listed if not words or any(word in each.label for word in words)]


def _raw(stand: BrokerStand) -> list[Plan]:
    recall = floors.SqlCase("asyncpg: recall", stand, floors.recalls, filled="recall")
    return [
        Plan(floors.SqlCase("asyncpg: commit", stand, floors.commits), RAW),
        Plan(floors.SqlCase("asyncpg: read", stand, floors.loads, filled="read"), RAW_READS),
        Plan(recall, RAW_RECALLS),
        Plan(recall, ALONE, 1),
    ]


def _tools(ground: Ground) -> tuple[list[Plan], list[str]]:
    """Return the plans of other people's programs, as far as they are here."""
    listed = [Plan(redis_floor.RedisCommitCase("redis provider: commit", ground), RAW)]
    missing = []
    if (program := pgbench.program()) is not None:
        listed.append(Plan(pgbench.PgbenchCase("pgbench: commit", ground, program), RAW))
    else:
        missing.append(MISSING.format("pgbench"))
    if (program := redis_floor.program()) is not None:
        case = redis_floor.RedisBenchmarkCase("redis-benchmark: EVALSHA", ground, program)
        listed.append(Plan(case, EVALS))
    else:
        missing.append(MISSING.format("redis-benchmark"))
    return listed, missing


def _broker(name: str, stand: BrokerStand) -> list[Plan]:
    cases = {call: _case(name, call, stand) for call in MEASURED}
    listed = [Plan(case, SLOWER.get(case.name, CALLS[call])) for call, case in cases.items()]
    for concurrency, calls in OTHERS.items():
        listed += [Plan(cases[call], calls, concurrency) for call in ("create", "get")]
    return [*listed, Plan(cases["recall"], ALONE, 1)]


def _case(name: str, call: str, stand: BrokerStand) -> BrokerCase:
    return BrokerCase(f"{name}: {call}", stand, *MEASURED[call])
