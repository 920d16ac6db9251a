"""The edge over a real connection: deadlines, cancellation, overload."""

import asyncio
from typing import Any

import grpc
import pytest

from broker.api.v1 import record_service_pb2 as pb
from broker.domain.call import Call
from broker.server.admission import Admission
from broker.server.methods import METHODS, MethodPolicy
from tests.integration.server.edge import (
    AUTHORIZED,
    StubRecords,
    error_info,
    refused,
    running,
    until,
)

GET = pb.GetRecordRequest(record_id="r-1")
REQUESTS = {"GetRecord": GET, "UpdateRecord": pb.UpdateRecordRequest()}


# -------------------- deadlines, cancellation


async def hang(_call: Call, _request: Any) -> None:
    await asyncio.Event().wait()


async def test_deadlines_reach_the_use_case_defaulted_and_clamped() -> None:
    async with running() as edge:
        clock = asyncio.get_running_loop().time
        for name, timeout, expected in (
            ("GetRecord", None, 5),
            ("GetRecord", 600, 5),
            ("UpdateRecord", 600, 10),
        ):
            before = clock()
            await getattr(edge.stub, name)(REQUESTS[name], metadata=AUTHORIZED, timeout=timeout)
            deadline = edge.records.calls[-1][0].deadline
            assert before + expected <= deadline <= clock() + expected
        await edge.stub.UpdateRecord(REQUESTS["UpdateRecord"], metadata=AUTHORIZED, timeout=4)
        assert edge.records.calls[-1][0].deadline < clock() + 5


@pytest.mark.parametrize(("sent", "outcome"), [(False, "not_applied"), (True, "unknown")])
async def test_a_call_that_runs_out_of_time_says_whether_it_may_have_written(
    sent: bool, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def commit(call: Call, request: Any) -> None:
        call.commit_sent = sent
        await hang(call, request)

    brief = dict.fromkeys(METHODS, MethodPolicy(0.02))
    monkeypatch.setattr("broker.server.interceptors.METHODS", brief)
    async with running(StubRecords(commit)) as edge:
        error = await refused(edge.stub.UpdateRecord(pb.UpdateRecordRequest(), metadata=AUTHORIZED))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    info = error_info(error)
    assert (info.reason, info.metadata["outcome"]) == ("DEADLINE_EXCEEDED", outcome)


async def test_a_cancelled_call_stops_its_work_and_is_logged() -> None:
    stopped = asyncio.Event()

    async def work(call: Call, request: Any) -> None:
        try:
            await hang(call, request)
        finally:
            stopped.set()

    async with running(StubRecords(work)) as edge:
        call = edge.stub.GetRecord(GET, metadata=AUTHORIZED)
        await until(lambda: len(edge.records.calls) == 1)
        call.cancel()
        await stopped.wait()
        await until(lambda: edge.lines() != [])
        (line,) = edge.lines()
        assert (line["code"], line["reason"]) == ("CANCELLED", "CANCELLED")
        assert edge.admission.running == 0


# -------------------- overload


async def test_calls_wait_in_line_and_beyond_it_are_refused_with_a_hint() -> None:
    leave = asyncio.Event()

    async def work(_call: Call, _request: Any) -> None:
        await leave.wait()

    admission = Admission(running_max=2, queue_max=2)
    async with running(StubRecords(work), admission=admission) as edge:
        callers = [(("authorization", f"Bearer {name}"),) for name in "abcde"]
        calls = [edge.stub.GetRecord(GET, metadata=metadata) for metadata in callers[:4]]
        await until(lambda: (admission.running, admission.queued) == (2, 2))
        error = await refused(edge.stub.GetRecord(GET, metadata=callers[4]))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert error_info(error).reason == "OVERLOADED"
        assert int(dict(error.trailing_metadata() or ())["grpc-retry-pushback-ms"]) > 0
        assert len(edge.records.calls) == 2
        leave.set()
        assert len(await asyncio.gather(*calls)) == 4


async def test_a_call_in_line_that_runs_out_of_time_leaves_it() -> None:
    admission = Admission(running_max=1, queue_max=4)
    async with running(StubRecords(hang), admission=admission) as edge:
        holding = edge.stub.GetRecord(GET, metadata=AUTHORIZED)
        await until(lambda: admission.running == 1)
        error = await refused(edge.stub.GetRecord(GET, metadata=AUTHORIZED, timeout=0.05))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: admission.queued == 0)
        holding.cancel()
        await until(lambda: admission.running == 0)
