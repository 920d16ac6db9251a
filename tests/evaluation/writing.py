"""Writes whose replies get lost: the same key again gives the same reply and writes nothing."""

import asyncio
import random
from dataclasses import dataclass

from broker.api.v1 import record_service_pb2 as pb
from tests.evaluation.calls import Member, WriteRequest, WriteResponse
from tests.evaluation.model import Known, Model
from tests.evaluation.plan import Plan

HANG_UP_SECONDS_MAX = 0.02


@dataclass(frozen=True, slots=True)
class Done:
    """A write that was answered."""

    member: Member
    request: WriteRequest
    reply: WriteResponse


class Writer:
    """Sends writes, some of them twice, and tells the model. Counts what was really written."""

    def __init__(self, model: Model, plan: Plan) -> None:
        """Tell ``model``; ``plan`` says which writes are sent again."""
        self.writes = 0
        self.replays = 0
        self._model, self._plan = model, plan
        self._numbers = 0
        self._moments = random.Random(plan.seed)
        self._kept: list[Done] = []

    async def write(self, member: Member, request: WriteRequest) -> Known:
        """Write, and lose the reply where the plan says so."""
        self._numbers += 1
        if self._numbers % self._plan.hang_up_every == 0:
            return await self._hang_up(member, request)
        if self._numbers % self._plan.collide_every == 0:
            return await self._collide(member, request)
        if self._numbers % self._plan.retry_every == 0:
            return await self._retry(member, request)
        return await self.write_once(member, request)

    async def write_once(self, member: Member, request: WriteRequest) -> Known:
        """Write under a key that was not used before.

        Raises:
            RefusedError: The broker refused it.
        """
        reply = await member.write(request)
        self._model.expect(not reply.replayed, f"{request.idempotency_key}: replayed at once")
        return self._take(Done(member, request, reply))

    async def replay_all(self) -> None:
        """Send the writes that were kept once more, now that their records have moved on."""
        async with asyncio.TaskGroup() as group:
            for done in self._kept:
                group.create_task(self._again(done))

    async def _retry(self, member: Member, request: WriteRequest) -> Known:
        done = Done(member, request, await member.write(request))
        known = self._take(done)
        await self._again(done)
        self._kept.append(done)
        return known

    async def _collide(self, member: Member, request: WriteRequest) -> Known:
        replies = await asyncio.gather(member.write(request), member.write(request))
        first, second = sorted(replies, key=lambda reply: reply.replayed)
        known = self._take(Done(member, request, first))
        self._judge(first, second, f"{request.idempotency_key}, sent twice at once")
        self._model.expect(not first.replayed, f"{request.idempotency_key}: nobody wrote it")
        return known

    async def _hang_up(self, member: Member, request: WriteRequest) -> Known:
        moment = self._moments.uniform(0.0, HANG_UP_SECONDS_MAX)
        await member.write_and_leave(request, after=moment)
        done = Done(member, request, await member.write(request))
        self.replays += done.reply.replayed
        known = self._take(done)
        await self._again(done)
        return known

    async def _again(self, done: Done) -> None:
        reply = await done.member.write(done.request)
        self._judge(done.reply, reply, f"{done.request.idempotency_key}, sent again")

    def _judge(self, first: WriteResponse, again: WriteResponse, where: str) -> None:
        self.replays += again.replayed
        self._model.expect(again.replayed, f"{where}: not replayed")
        self._model.same(again.record, first.record, where)

    def _take(self, done: Done) -> Known:
        """Count it and let the model know; what the model makes of it is compared there."""
        self.writes += 1
        subject, told = done.member.subject, done.reply.record
        match done.request:
            case pb.CreateRecordRequest():
                return self._model.created(done.request, subject, told)
            case pb.UpdateRecordRequest():
                return self._model.updated(done.request, subject, told)
            case judgement:
                return self._model.judged(judgement, subject, told)
