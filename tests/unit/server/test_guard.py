"""The inner layers, each by itself: deadline, token, admission."""

import asyncio
from collections.abc import Sequence

import pytest

from broker.domain.call import Call, Caller
from broker.domain.errors import (
    DeadlineExceededError,
    FieldInvalidError,
    OverloadedError,
    TokenInvalidError,
)
from broker.server.admission import Admission, Cost
from broker.server.exchange import Exchange, Headers, MetadataValue, current_call
from broker.server.guard import Admitted, Authenticated, Deadlines
from broker.server.methods import READ, WRITE, Line
from broker.telemetry.metrics import Metrics
from tests.unit.server.calls import FakeContext, answer, caller, exchange

# -------------------- deadline


@pytest.mark.parametrize(
    ("policy", "remaining", "seconds"),
    [(READ, None, 5), (WRITE, None, 10), (READ, 1.5, 1.5), (READ, 60, 5), (WRITE, 0.0, 0)],
)
async def test_a_deadline_is_the_methods_or_the_callers_where_sooner(
    policy: object, remaining: float | None, seconds: float
) -> None:
    assert policy in {READ, WRITE}
    call = exchange(FakeContext(remaining=remaining), WRITE if policy == WRITE else READ)
    before = asyncio.get_running_loop().time()
    await Deadlines()(answer, call)
    after = asyncio.get_running_loop().time()
    assert call.deadline is not None
    assert before + seconds <= call.deadline <= after + seconds


@pytest.mark.parametrize(("sent", "outcome"), [(False, "not_applied"), (True, "unknown")])
async def test_at_the_deadline_the_outcome_depends_on_the_commit(sent: bool, outcome: str) -> None:
    async def hang(call: Exchange) -> bytes:
        call.call = Call(caller(), "id", 0.0, commit_sent=sent)
        await asyncio.Event().wait()
        return b""

    with pytest.raises(DeadlineExceededError) as raised:
        await Deadlines()(hang, exchange(FakeContext(remaining=0.01)))
    assert raised.value.metadata == {"outcome": outcome}


async def test_a_time_out_of_something_else_is_not_the_deadline() -> None:
    async def fail(_exchange: Exchange) -> bytes:
        raise TimeoutError("a driver's")

    with pytest.raises(TimeoutError):
        await Deadlines()(fail, exchange())


# -------------------- token


class Verifier:
    def __init__(self) -> None:
        self.seen: tuple[list[MetadataValue], list[MetadataValue]] | None = None

    async def verify(
        self, authorization: Sequence[MetadataValue], tenant: Sequence[MetadataValue]
    ) -> Caller:
        self.seen = list(authorization), list(tenant)
        if not authorization:
            raise TokenInvalidError("no token")
        return caller()


async def served_by(verifier: Verifier, *metadata: tuple[str, str | bytes]) -> Exchange:
    call = exchange()
    call.headers, call.deadline, call.request_id = Headers.read(metadata), 9.0, "id"
    await Authenticated(verifier)(answer, call)
    return call


async def test_the_verifier_sees_every_value_in_order() -> None:
    verifier = Verifier()
    await served_by(
        verifier,
        ("authorization", "a"),
        ("x-tenant", "t"),
        ("authorization-bin", b"b"),
        ("x-other", "o"),
        ("authorization", "c"),
        ("x-tenant-bin", b"u"),
    )
    assert verifier.seen == (["a", b"b", "c"], ["t", b"u"])


async def test_the_call_is_there_for_whoever_serves() -> None:
    seen = []

    async def look(_exchange: Exchange) -> bytes:
        seen.append(current_call())
        return b""

    call = exchange()
    call.headers, call.deadline = Headers(authorization=["a"]), 9.0
    await asyncio.create_task(_run(Authenticated(Verifier()), look, call))
    assert seen == [call.call]
    with pytest.raises(LookupError):
        current_call()


async def _run(layer: Authenticated, step: object, call: Exchange) -> None:
    await layer(step, call)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x-events-authorization", "x-knowledge-authorization"])
async def test_credentials_for_others_are_refused_after_the_token(name: str) -> None:
    with pytest.raises(FieldInvalidError) as raised:
        await served_by(Verifier(), ("authorization", "a"), (name, "Bearer x"))
    assert [violation.field for violation in raised.value.violations] == [name]
    with pytest.raises(TokenInvalidError):
        await served_by(Verifier(), (f"{name}-bin", b"x"))


# -------------------- admission


async def admitted(admission: Admission, metrics: Metrics, who: Caller) -> bytes:
    call = exchange()
    call.call = Call(who, "id", 9.0)
    return await Admitted({Line.MAIN: admission}, metrics)(answer, call)


async def test_a_slot_is_taken_and_given_back() -> None:
    admission = Admission()
    assert await admitted(admission, Metrics(), caller()) == b"reply"
    assert admission.running == 0


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        (caller("s"), caller("s"), True),
        (caller("s"), caller("t"), False),
        (caller("s", "tenant"), caller("t", "tenant"), True),
        (caller("s"), caller("t", "s"), False),
    ],
)
async def test_callers_of_one_tenant_share_or_else_one_subject_does(
    first: Caller, second: Caller, share: bool
) -> None:
    admission, metrics = Admission(running_max=2, queue_max=1), Metrics()
    hold = exchange()
    hold.call = Call(first, "id", 9.0)
    leave = asyncio.Event()

    async def stay(_exchange: Exchange) -> bytes:
        await leave.wait()
        return b""

    holding = asyncio.create_task(_hold(admission, metrics, stay, hold))
    await asyncio.sleep(0)
    other = asyncio.create_task(admitted(admission, metrics, second))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert other.done() is not share
    leave.set()
    await asyncio.gather(holding, other)


async def _hold(admission: Admission, metrics: Metrics, step: object, call: Exchange) -> None:
    await Admitted({Line.MAIN: admission}, metrics)(step, call)  # type: ignore[arg-type]


async def test_a_refusal_is_counted() -> None:
    admission, metrics = Admission(running_max=1, queue_max=1), Metrics()
    await admission.enter("other", Cost.LIGHT)
    waiting = asyncio.ensure_future(admission.enter("another", Cost.LIGHT))
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await admitted(admission, metrics, caller())
    value = metrics.registry.get_sample_value("broker_admission_refusals_total", {"limit": "queue"})
    assert value == 1
    waiting.cancel()
