"""How often owner and store are asked for each kind of call, and what is forwarded to the owner."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from grpc import aio

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.broker import Stand
from tests.fixtures.granting_owner import Question
from tests.fixtures.record_calls import (
    BATCH,
    BINDING_RPCS,
    CHANGES,
    CREATE,
    EXPORT,
    GET,
    IMPORT,
    LIST,
    NAMING,
    READS,
    REVISION,
    RPCS,
    SEARCH,
    TRANSFERS,
    UPDATE,
    Metadata,
    outcomes,
    request,
    send,
)
from tests.fixtures.seeds import seed
from tests.fixtures.stand_records import provider_operations

pytestmark = pytest.mark.memories("postgres", "redis")

OK: Final = ("OK", "")


@dataclass
class Run:
    """A project whose run has a pin and one record."""

    stand: Stand
    channel: aio.Channel
    project: str
    record: str = ""

    async def cost(
        self, rpc: str, told: tuple[str, str] = OK, **changes: Any
    ) -> tuple[int, dict[str, int]]:
        """Make a call; return how often the owner and the provider were asked for it."""
        asked, worked = len(self.questions), provider_operations(self.stand)
        given = {"record_id": self.record} | changes
        reply = await send(
            self.channel, rpc, request(rpc, self.project, **given), self.stand.metadata()
        )
        assert outcomes({rpc: reply}) == {rpc: told}
        if rpc == CREATE:
            self.record = reply.record.record_id
        return len(self.questions) - asked, dict(provider_operations(self.stand) - worked)

    @property
    def questions(self) -> list[Question]:
        """What the owner was asked."""
        return self.stand.owner.questions[self.project]


@pytest.fixture
async def run(stand: Stand) -> AsyncIterator[Run]:
    """A pinned run."""
    async with stand.channel() as channel:
        made = Run(stand, channel, stand.project())
        await made.cost(CREATE)
        yield made


def created_by(stand: Stand) -> dict[str, int]:
    """Return what is asked of the provider for a memory that nothing stands in the way of."""
    return {"commit": 1} if stand.creates_unseen else {"load": 1, "commit": 1}


READ_BY: Final = {SEARCH: {"search": 1}, LIST: {"revisions": 1}, EXPORT: {"export": 1}}
"""What is asked of the provider, where it is not a load."""


@pytest.mark.parametrize("rpc", [*RPCS, *TRANSFERS])
async def test_first_use(stand: Stand, rpc: str) -> None:
    """004-15, 004-28: the first use of a run negotiates once more; the owner is asked no more."""
    async with stand.channel() as channel:
        fresh = Run(stand, channel, stand.project(), record="absent")
        told = ("NOT_FOUND", "RECORD_NOT_FOUND") if rpc in NAMING else OK
        questions, work = await fresh.cost(rpc, told)
    assert questions == 2
    assert work.pop("negotiate") == 1
    writes = {CREATE: created_by(stand), IMPORT: {"load": 1, "commit": 1}}
    assert work == (writes | READ_BY).get(rpc, {"load": 1})
    assert await stand.rows("knowledge.pins", fresh.project) == 1


async def test_bindings(run: Run) -> None:
    """004-01, 004-30, 004-32: two questions each; a pin and the catalog are nothing of a store."""
    for rpc in BINDING_RPCS:
        assert await run.cost(rpc) == (2, {})
        assert await run.cost(rpc) == (2, {})


@pytest.mark.parametrize("rpc", CHANGES)
async def test_one_change(stand: Stand, rpc: str) -> None:
    """004-15, 004-62: a change is a write like others, and so are its replay and its refusal."""
    async with stand.channel() as channel:
        run = Run(stand, channel, stand.project())
        named = await seed(stand, channel, rpc, run.project)
        stale = named | {"expected_revision": 9, "idempotency_key": "key-stale"}
        told = ("ABORTED", "REVISION_STALE")
        assert await run.cost(rpc, told, **stale) == (2, {"load": 1})
        assert await run.cost(rpc, **named) == (2, {"load": 1, "commit": 1})
        assert await run.cost(rpc, **named) == (3, {"load": 2})
        reused = ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
        assert await run.cost(rpc, reused, **named, reason="other") == (3, {"load": 2})


async def test_transfers(run: Run) -> None:
    """004-15, 004-82, 004-88: a read, a write, its replay, and one that only checks."""
    assert await run.cost(EXPORT) == (2, {"export": 1})
    assert await run.cost(IMPORT, validate_only=True) == (2, {"load": 1})
    assert await run.cost(IMPORT) == (2, {"load": 1, "commit": 1})
    assert await run.cost(IMPORT) == (3, {"load": 2})
    there = ("ALREADY_EXISTS", "BUNDLE_CONFLICT")
    assert await run.cost(IMPORT, there, validate_only=True) == (2, {"load": 1})


async def test_one_write(run: Run) -> None:
    """004-15, B1, B2: an uncontended write asks the owner twice and the store twice at most."""
    twice = (2, {"load": 1, "commit": 1})
    made = await run.cost(CREATE, idempotency_key="another", content="another")
    assert made == (2, created_by(run.stand))
    assert await run.cost(UPDATE, content="another") == twice
    changed: dict[str, Any] = {"idempotency_key": "key-3", "expected_revision": 2}
    assert await run.cost(UPDATE, content="changed", **changed) == twice


async def test_one_read(run: Run) -> None:
    """004-15: a read asks the owner twice and the store once."""
    assert await run.cost(GET) == (2, {"load": 1})
    assert await run.cost(REVISION) == (2, {"load": 1})
    assert await run.cost(BATCH) == (2, {"load": 1})
    assert await run.cost(LIST) == (2, {"revisions": 1})
    assert await run.cost(SEARCH) == (2, {"search": 1})


async def test_one_replay(run: Run) -> None:
    """004-62, 004-63: a replay asks the owner once more, and writes nothing."""
    replayed = {"commit": 1, "load": 1} if run.stand.creates_unseen else {"load": 2}
    assert await run.cost(CREATE) == (3, replayed)
    await run.cost(UPDATE)
    assert await run.cost(UPDATE) == (3, {"load": 2})


async def test_refused_writes(run: Run) -> None:
    """004-55, 004-56, 004-62: a refused write commits nothing."""
    assert await run.cost(UPDATE, ("ABORTED", "REVISION_STALE"), expected_revision=9) == (
        2,
        {"load": 1},
    )
    assert await run.cost(UPDATE, ("NOT_FOUND", "RECORD_NOT_FOUND"), record_id="absent") == (
        2,
        {"load": 1},
    )
    reused = ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
    assert await run.cost(UPDATE, reused, idempotency_key="key-1") == (3, {"load": 2})


@pytest.mark.parametrize("rpc", [*READS, EXPORT])
async def test_nothing_is_cached(run: Run, rpc: str) -> None:
    """004-01, B1: the same read twice asks the owner four times, and the store twice."""
    first, second = await run.cost(rpc), await run.cost(rpc)
    assert first == second
    assert first[0] + second[0] == 4
    assert sum(first[1].values()) == 1


async def test_a_refusal_is_not_cached(run: Run) -> None:
    """004-01, 004-16: who may enter again, enters at once."""
    from tests.fixtures.authority_rows import bent, granting

    denied = ("PERMISSION_DENIED", "PERMISSION_MISSING")
    run.stand.owner.scripts[run.project] = bent(granting())
    assert await run.cost(GET, denied) == (1, {})
    del run.stand.owner.scripts[run.project]
    assert await run.cost(GET) == (2, {"load": 1})
    run.stand.owner.scripts[run.project] = bent(granting())
    assert await run.cost(GET, denied) == (1, {})


# -------------------- what the owner is told


def forwarded(question: Question) -> list[tuple[str, str | bytes]]:
    """Return the metadata of a question but gRPC's own name."""
    return sorted(pair for pair in question.metadata if pair[0] != "user-agent")


async def test_what_is_forwarded(run: Run) -> None:
    """004-02, B1: the bearer byte for byte, tenant, request id; nothing else of the caller's."""
    run.questions.clear()
    bearer = f"bEaReR {run.stand.identity.token()}"
    says: Metadata = [
        ("authorization", bearer),
        ("x-tenant", "tenant-a"),
        ("x-request-id", "request-1"),
        ("cookie", "session=1"),
        ("x-forwarded-for", "10.0.0.1"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("baggage", "tenant=b"),
        ("cache-control", "max-age=60"),
        ("x-anything-bin", b"\x00\x01"),
    ]
    asked = request(GET, run.project, record_id=run.record)
    assert outcomes({GET: await send(run.channel, GET, asked, says)}) == {GET: OK}
    first, second = run.questions
    assert forwarded(first) == [
        ("authorization", bearer),
        ("x-request-id", "request-1"),
        ("x-tenant", "tenant-a"),
    ]
    assert forwarded(second) == forwarded(first)
    assert "grpc-python" in str(dict(first.metadata)["user-agent"])
    for question in (first, second):
        asked_of = owners.GetRunAuthorityRequest(project_id=run.project, run_id="run-a")
        assert question.request == asked_of


async def test_nothing_is_made_up(run: Run) -> None:
    """004-02: no tenant where none was sent; one request id for both questions of a call."""
    run.questions.clear()
    await run.cost(GET)
    await run.cost(GET)
    for question in run.questions:
        assert [key for key, _ in forwarded(question)] == ["authorization", "x-request-id"]
    ids = Counter(dict(question.metadata)["x-request-id"] for question in run.questions)
    assert list(ids.values()) == [2, 2]


async def test_callers_are_not_mixed(run: Run) -> None:
    """004-02: of many calls at once each asks with its own token."""
    run.questions.clear()
    tokens = {f"request-{n}": run.stand.identity.token(f"actor-{n}") for n in range(12)}
    replies = await asyncio.gather(
        *(
            send(
                run.channel,
                GET,
                request(GET, run.project, record_id=run.record),
                run.stand.metadata(token, x_request_id=name),
            )
            for name, token in tokens.items()
        )
    )
    assert set(outcomes(dict(zip(tokens, replies, strict=True))).values()) == {OK}
    asked = Counter(
        (dict(question.metadata)["x-request-id"], dict(question.metadata)["authorization"])
        for question in run.questions
    )
    assert asked == {(name, f"Bearer {token}"): 2 for name, token in tokens.items()}
