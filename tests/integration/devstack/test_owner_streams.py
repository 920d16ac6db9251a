"""The reference owner, asked by a stream that stays open: each answer is of its own moment."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count

import grpc
import jwt
import pytest

from broker.devstack import playground
from broker.devstack.owner import watched
from broker.owners.v1 import projects_config_service_pb2 as pb
from tests.fixtures.owner import Asker, OwnerStand

ATLAS = "atlas"
KNOWLEDGE = pb.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE


class Stream:
    """An open stream of olga's, with the questions that she asks in it."""

    def __init__(self, ask: Asker) -> None:
        self._numbers = count(1)
        self._rpc = ask.stub.StreamRunAuthority(metadata=ask.metadata("olga"))

    async def ask(self, run: str = "run-1") -> pb.GetRunAuthorityResponse:
        number = next(self._numbers)
        question = pb.StreamRunAuthorityRequest(project_id=ATLAS, run_id=run, number=number)
        await self._rpc.write(question)
        answer = await self._rpc.read()
        assert isinstance(answer, pb.StreamRunAuthorityResponse), await self._rpc.code()
        assert answer.number == number
        return answer.authority

    async def refused(self) -> grpc.StatusCode:
        """Ask, and return the status that the stream ends with."""
        await self._rpc.write(pb.StreamRunAuthorityRequest(project_id=ATLAS, run_id="run-1"))
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await self._rpc.read()
        return error.value.code()

    def end(self) -> None:
        self._rpc.cancel()


@pytest.fixture
async def stream(stand: OwnerStand, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stream]:
    """A stream to an owner whose files are not read while their status stays."""
    monkeypatch.setattr(watched, "_SETTLES_NS", -1)
    async with grpc.aio.insecure_channel(stand.server.address) as channel:
        opened = Stream(Asker(stand, channel))
        yield opened
        opened.end()


def _grant(stand: OwnerStand, role: str) -> None:
    playground.grant(stand.file, subject="olga", role=role, tenant="acme", project=ATLAS)


def _held(answer: pb.GetRunAuthorityResponse) -> set[int]:
    (grant,) = answer.context.grants
    return {each.permission for each in grant.permissions}


async def test_a_change_of_rights_is_seen_by_the_next_question(
    stand: OwnerStand, stream: Stream
) -> None:
    """004-01, 004-16: also one that is taken back, and then rights that are taken away."""
    first = await stream.ask()
    assert KNOWLEDGE in _held(first)
    assert await stream.ask() == first
    for _ in range(3):
        _grant(stand, "metadata-reader")
        assert KNOWLEDGE not in _held(await stream.ask())
        _grant(stand, "owner")
        assert KNOWLEDGE in _held(await stream.ask())
    playground.revoke(stand.file, subject="olga", tenant="acme", project=ATLAS)
    assert await stream.refused() is grpc.StatusCode.PERMISSION_DENIED


async def test_each_question_is_told_of_its_own_run(stream: Stream) -> None:
    """One after the other, an absent one too: none is told what was told before."""
    for run in ("run-1", "run-2", "no-run", "run-1", "no-run", "run-2"):
        answer = await stream.ask(run)
        assert answer.selection.run_id == ("" if run == "no-run" else run)
        assert answer.selection.run_limits.HasField("max_prompt_tokens") == (run == "run-2")
        assert answer.HasField("selection") == (run != "no-run")


async def test_keys_that_changed_are_seen_by_the_next_question(
    stand: OwnerStand, stream: Stream
) -> None:
    """004-03."""
    await stream.ask()
    stand.tokens.rotate()
    await stream.ask()
    stand.tokens.rotate(keep_old=False)
    assert await stream.refused() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_token_that_ended_is_refused_the_next_question(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-03: an open stream is no right."""
    await stream.ask()
    await stream.ask()
    ends = time.time() + timedelta(hours=2).total_seconds()
    monkeypatch.setattr("broker.devstack.owner.identity.time.time", lambda: ends)
    monkeypatch.setattr("broker.devstack.owner.identity.jwt.decode", _expired)
    assert await stream.refused() is grpc.StatusCode.UNAUTHENTICATED


def _expired(*_: object, **_more: object) -> None:
    """Find what every token is in time."""
    raise jwt.ExpiredSignatureError
