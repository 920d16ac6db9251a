"""Compiles the contexts of a conversation's agents and runs, and checks them and their log.

Once without a query for each agent in each run, then once for each query. In the end one agent's
candidates are brought to the most that are allowed, and one beyond.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import grpc

from broker.api.v1 import context_service_pb2 as pb
from broker.api.v1 import record_pb2 as records
from broker.api.v1 import record_service_pb2
from tests.evaluation.calls import Member, RefusedError
from tests.evaluation.conversation import Conversation
from tests.evaluation.model import Known, Model
from tests.evaluation.plan import Plan, agent_id, filler_of, run_id
from tests.evaluation.told import candidates, judge, visible
from tests.evaluation.writing import Writer

OVERFLOW = "CONTEXT_CANDIDATE_OVERFLOW"
PAGE_SIZES = (100, 7, 1)


@dataclass(frozen=True, slots=True)
class Told:
    """A context that was compiled and logged."""

    member: Member
    asked: pb.CompileContextRequest
    reply: pb.CompileContextResponse

    @property
    def named(self) -> set[tuple[str, int]]:
        """The revisions that entered."""
        return {(each.record_id, each.revision) for each in self.reply.items}


class Contexts:
    """The contexts of one project. Counts those compiled, those proved and those listed."""

    def __init__(
        self,
        conversation: Conversation,
        plan: Plan,
        model: Model,
        writer: Writer,
        members: Sequence[Member],
    ) -> None:
        """Compile what ``model`` knows; ``members`` take turns."""
        self.compiled = self.proved = self.listed = 0
        self._conversation, self._plan = conversation, plan
        self._model, self._writer, self._members = model, writer, members
        self._told: list[Told] = []

    async def run(self) -> None:
        """Compile, fill up, and look at the log."""
        asked = list(requests(self._model.project_id, self._conversation))
        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(asked):
                group.create_task(self._compile(request, number))
        if self._plan.candidates:
            await self._fill(asked[0].scope)
        async with asyncio.TaskGroup() as group:
            for told in self._told[:: self._plan.prove_every]:
                group.create_task(self._prove(told))
            group.create_task(self._trace("", 0, PAGE_SIZES[0]))
            entered = sorted({each for told in self._told for each in told.named})
            for at, (record_id, revision) in enumerate(entered[:: self._plan.trace_every]):
                size = PAGE_SIZES[at % len(PAGE_SIZES)]
                group.create_task(self._trace(record_id, revision, size))

    async def _compile(self, asked: pb.CompileContextRequest, number: int) -> None:
        """Compile once; every few contexts once more, some of these without an entry in the log."""
        where = f"context {number}"
        due = visible(self._model, asked)
        reply = await self._logged(asked, number, due, where)
        if number % self._plan.repeat_every:
            return
        again = pb.CompileContextRequest()
        again.CopyFrom(asked)
        again.dry_run = number % (2 * self._plan.repeat_every) != 0
        second = await self._logged(again, number + 1, due, f"{where}, again")
        same = (second.text, list(second.items)) == (reply.text, list(reply.items))
        self._model.expect(same, f"{where}: another text for the same request")

    async def _logged(
        self, asked: pb.CompileContextRequest, number: int, due: dict[str, Known], where: str
    ) -> pb.CompileContextResponse:
        member = self._members[number % len(self._members)]
        reply = await member.compile(asked)
        self.compiled += 1
        judge(self._model, asked, reply, where, due=due)
        is_logged = bool(reply.compilation_id)
        due_in_log = bool(due) and not asked.dry_run
        self._model.expect(is_logged == due_in_log, f"{where}: id {reply.compilation_id!r}")
        if is_logged:
            self._told.append(Told(member, asked, reply))
        return reply

    async def _fill(self, scope: records.Scope) -> None:
        """Bring the candidates to the most, compile, go one beyond, and take it back."""
        most, member = self._plan.candidates, self._members[0]
        room = most - len(candidates(self._model, scope))
        async with asyncio.TaskGroup() as group:
            for number in range(room):
                group.create_task(self._writer.write_once(member, filler_of(scope, number)))
        asked = pb.CompileContextRequest(scope=scope)
        first = await self._at_most(asked, 0)
        one_more = await self._writer.write_once(member, filler_of(scope, room))
        due = {"what": "candidates", "limit": str(most), "observed": str(most + 1)}
        try:
            await member.compile(asked)
        except RefusedError as refused:
            told = {name: refused.metadata.get(name) for name in due}
            status = (refused.code, refused.reason)
            right = status == (grpc.StatusCode.FAILED_PRECONDITION, OVERFLOW) and told == due
            self._model.expect(right, f"{most + 1} candidates: {refused}")
        else:
            self._model.expect(False, f"{most + 1} candidates were compiled")
        away = record_service_pb2.ArchiveRecordRequest(
            scope=scope,
            idempotency_key=f"archive:{one_more.record_id}",
            record_id=one_more.record_id,
            expected_revision=one_more.head.revision,
        )
        await self._writer.write_once(member, away)
        second = await self._at_most(asked, 1)
        self._model.expect(first.text == second.text, f"another text of {most} candidates")

    async def _at_most(
        self, asked: pb.CompileContextRequest, number: int
    ) -> pb.CompileContextResponse:
        due, most = visible(self._model, asked), self._plan.candidates
        return await self._logged(asked, number, due, f"{most} candidates, {number + 1}")

    async def _prove(self, told: Told) -> None:
        reply, scope = told.reply, told.asked.scope
        where = f"compilation {reply.compilation_id}"
        proof = await told.member.compilation(
            pb.GetCompilationRequest(
                project_id=scope.project_id,
                run_id=scope.run_id,
                compilation_id=reply.compilation_id,
            )
        )
        self.proved += 1
        judge_proof(self._model, told, proof, where)

    async def _trace(self, record_id: str, revision: int, size: int) -> None:
        """List the compilations that a revision entered, or all, page by page."""
        asked = pb.ListCompilationsRequest(
            project_id=self._model.project_id,
            record_id=record_id,
            revision=revision,
            page_size=size,
        )
        found: list[pb.CompilationSummary] = []
        while True:
            page = await self._members[len(found) % len(self._members)].compilations(asked)
            found += page.compilations
            asked.page_token = page.next_page_token
            count = len(page.compilations)
            self._model.expect(0 < count <= size, f"{count} compilations on a page of {size}")
            if not page.next_page_token or not count or len(found) > len(self._told):
                break
        self.listed += len(found)
        judge_list(self._model, self._told, (record_id, revision), found)


def requests(project: str, conversation: Conversation) -> Iterator[pb.CompileContextRequest]:
    """Yield a request without a query for each agent and run, and one for each query."""
    runs = [run_id(number) for number in range(1, len(conversation.sessions) + 1)]
    agents = [agent_id(conversation, each) for each in conversation.speakers]
    scopes = [
        records.Scope(project_id=project, run_id=run, agent_id=agent)
        for run, agent in product(runs, agents)
    ]
    for scope in scopes:
        yield pb.CompileContextRequest(scope=scope)
    for number, query in enumerate(conversation.queries):
        asked = pb.CompileContextRequest(scope=scopes[number % len(scopes)], query=query)
        match number % 4:
            case 1:
                asked.max_tokens, asked.skip_oversized = 300 + number % 100, number % 8 == 1
            case 2:
                asked.include_pending = False
            case 3:
                asked.max_items = 1 + number % 5
        yield asked


def judge_proof(model: Model, told: Told, proof: pb.GetCompilationResponse, where: str) -> None:
    """Compare what the log holds of a context with the context."""
    reply, scope = told.reply, told.asked.scope
    summary = pb.CompilationSummary(
        compilation_id=reply.compilation_id,
        project_id=scope.project_id,
        run_id=scope.run_id,
        agent_id=scope.agent_id,
        actor_fingerprint=model.fingerprint(told.member.subject),
        query_hash=_sha256(told.asked.query) if told.asked.HasField("query") else "",
        budget=reply.budget,
        text_hash=_sha256(reply.text),
        render_version=1,
        item_count=len(reply.items),
        compile_time=proof.compilation.compile_time,
    )
    model.same(proof.compilation, summary, where)
    model.expect(list(proof.items) == list(reply.items), f"{where}: other items")
    model.expect(list(proof.omitted) == list(reply.omitted), f"{where}: others left out")
    model.expect(proof.verdict == pb.VERDICT_VERIFIED, f"{where}: verdict {proof.verdict}")
    model.expect(proof.text == reply.text, f"{where}: another text")


def judge_list(
    model: Model,
    told: Sequence[Told],
    revision: tuple[str, int],
    found: Sequence[pb.CompilationSummary],
) -> None:
    """Compare the compilations listed for a revision, or for none, with those that named it."""
    where = f"compilations of {revision[0] or 'all records'}"
    due = sorted(
        each.reply.compilation_id for each in told if not revision[0] or revision in each.named
    )
    listed = sorted(each.compilation_id for each in found)
    model.expect(listed == due, f"{where}: {len(listed)} listed, {len(due)} due, or not the same")
    times = [each.compile_time.ToNanoseconds() for each in found]
    model.expect(times == sorted(times, reverse=True), f"{where}: not the newest first")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
