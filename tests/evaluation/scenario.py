"""Drives a broker with one conversation, and keeps account of what must come of it.

Every turn becomes a memory of its speaker's agent, in the run of its session. Memories are edited
over the revision that was seen; replies get lost and writes are sent again; editors race; a scribe,
who writes a share of the turns, is dismissed half way; a curator judges a share of the memories.
Calls run beside each other throughout. In the end every record is read back, see ``verify``, and
contexts are compiled from what is there, see ``contexts``.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from tests.evaluation.calls import Member, RefusedError, Tally, WriteRequest
from tests.evaluation.contexts import Contexts
from tests.evaluation.conversation import Conversation
from tests.evaluation.model import Known, Model
from tests.evaluation.plan import (
    Plan,
    Said,
    agent_id,
    edit_of,
    get_of,
    judgement_of,
    memory_of,
    note_of,
    run_id,
    said,
)
from tests.evaluation.scribe import Scribe
from tests.evaluation.site import Site
from tests.evaluation.verify import verify
from tests.evaluation.writing import Writer

T = TypeVar("T")
STALE = "REVISION_STALE"


@dataclass(frozen=True, slots=True)
class Report:
    """What was done and found. ``mismatches`` is empty where all was as it must be."""

    title: str
    turns: int
    records: int
    writes: int
    replays: int
    stale: int
    refused: int
    revisions: int
    checked: int
    filler: int
    compiled: int
    proved: int
    listed: int
    mismatches: tuple[str, ...]
    calls: int
    seconds: float


async def run(
    site: Site, project: str, conversation: Conversation, plan: Plan | None = None
) -> Report:
    """Run the scenario in a project nobody has used.

    Raises:
        RefusedError: A call was refused that must not be.
    """
    begun = time.monotonic()
    async with _drive(site, project, conversation, plan or Plan()) as drive:
        await drive.run()
        model, writer, tally = drive.model, drive.writer, drive.tally
        await verify(model, drive.everybody, drive.rival_scopes())
        contexts = Contexts(conversation, drive.plan, model, drive.writer, drive.everybody)
        kept = len(model.known)
        await contexts.run()
        rows = await site.rows(project)
        model.expect(rows.records == len(model.known), f"{rows.records} records are stored")
        model.expect(rows.revisions == model.revisions, f"{rows.revisions} revisions are stored")
        model.expect(rows.receipts == writer.writes, f"{rows.receipts} receipts are stored")
    return Report(
        title=conversation.title,
        turns=conversation.turns,
        records=kept,
        writes=writer.writes,
        replays=writer.replays,
        stale=tally.refusals[STALE],
        refused=drive.scribe.refused,
        revisions=model.revisions,
        checked=model.checked,
        filler=len(model.known) - kept,
        compiled=contexts.compiled,
        proved=contexts.proved,
        listed=contexts.listed,
        mismatches=tuple(model.mismatches),
        calls=tally.calls,
        seconds=time.monotonic() - begun,
    )


@asynccontextmanager
async def _drive(
    site: Site, project: str, conversation: Conversation, plan: Plan
) -> AsyncIterator["Drive"]:
    async with site.channel() as channel:
        tally = Tally(asyncio.Semaphore(plan.concurrency))

        def member(subject: str) -> Member:
            return Member(subject, channel, lambda: site.metadata(subject), tally)

        agents = {each: agent_id(conversation, each) for each in conversation.speakers}
        speakers = {each: member(f"member-of-{agent}") for each, agent in agents.items()}
        editors = [member(f"editor-{number}") for number in range(1, plan.editors + 1)]
        scribe, curator = member("scribe"), member("curator")
        subjects = [each.subject for each in (*speakers.values(), *editors, scribe)]
        runs = [run_id(number) for number in range(1, len(conversation.sessions) + 1)]
        await site.open_project(project, members=subjects, owners=[curator.subject], runs=runs)
        model, leaving = Model(project, site.issuer), Scribe(scribe, site)
        yield Drive(conversation, plan, model, tally, speakers, editors, curator, leaving)


class Drive:
    """One conversation on its way through a broker."""

    def __init__(
        self,
        conversation: Conversation,
        plan: Plan,
        model: Model,
        tally: Tally,
        speakers: dict[str, Member],
        editors: list[Member],
        curator: Member,
        scribe: Scribe,
    ) -> None:
        """Take everybody and everything that takes part."""
        self.model, self.tally, self.scribe = model, tally, scribe
        self.writer = Writer(model, plan)
        self._conversation, self.plan = conversation, plan
        self._speakers, self._editors, self._curator = speakers, editors, curator
        self._begun = 0

    @property
    def everybody(self) -> list[Member]:
        """Those who are members to the end."""
        return [*self._speakers.values(), *self._editors]

    def rival_scopes(self) -> dict[str, str]:
        """Return another agent for every agent."""
        agents = [agent_id(self._conversation, each) for each in self._speakers]
        return dict(zip(agents, [*agents[1:], "agent-0"], strict=True))

    async def run(self) -> None:
        """Do everything but the look at the outcome."""
        memories: list[Known] = []
        for session in said(self._conversation):
            made = await _all(self._turn(each) for each in session)
            await self._note(session[0])
            memories += made
            chosen = {id(each): each for each in (memories[0], *made[:: self.plan.edit_every])}
            await _all(self._edit(each, 1 + at % 3) for at, each in enumerate(chosen.values()))
        lengthened = self._edit(memories[0], self.plan.long_history - memories[0].head.revision)
        raced = [each for each in memories[:: self.plan.race_every] if each is not memories[0]]
        await _all([lengthened, *(self._race(each) for each in raced)])
        judged = memories[:: self.plan.judge_every]
        await _all(
            self.writer.write(self._curator, judgement_of(each, at))
            for at, each in enumerate(judged)
        )
        await self.writer.replay_all()
        await self.scribe.knock(self.model, self.writer)

    async def _turn(self, each: Said) -> Known:
        self._begun += 1
        if self._begun == self._conversation.turns // 2 + 1:
            await self.scribe.leave(self.model.project_id)
        session = self._conversation.sessions[each.session - 1]
        request = memory_of(self.model.project_id, self._conversation, session, each)
        if each.number % self.plan.scribe_every == 0:
            known = await self.scribe.write(self.model, self.writer, request)
            if known is not None:
                return known
        return await self.writer.write(self._speakers[each.turn.speaker], request)

    async def _note(self, first: Said) -> None:
        request = note_of(self.model.project_id, self._conversation, first.session)
        await self.writer.write(self._speakers[first.turn.speaker], request)

    async def _edit(self, known: Known, times: int) -> None:
        """Read and edit a memory some times, each edit by the next of the editors."""
        for _ in range(times):
            editor = self._editors[known.head.revision % len(self._editors)]
            read = await editor.get(get_of(known))
            self.model.same(read.record, known.record(), f"before an edit: {known.record_id}")
            key = f"edit:{known.record_id}:{known.head.revision}"
            await self.writer.write(editor, edit_of(known, key))

    async def _race(self, known: Known) -> None:
        """Let all editors change one memory; one wins each round, the others read and try again."""
        racing = list(self._editors)
        while racing:
            seen, record = known.head.revision, known.record()
            reads = await _all(each.get(get_of(known)) for each in racing)
            for read in reads:
                self.model.same(read.record, record, f"in a race: {known.record_id}")
            asked = [
                edit_of(known, f"race:{known.record_id}:{seen}:{each.subject}") for each in racing
            ]
            won = await _all(map(self._attempt, racing, asked))
            self.model.expect(sum(won) == 1, f"{sum(won)} won revision {seen} of a race")
            if not any(won):
                return
            racing = [each for each, winner in zip(racing, won, strict=True) if not winner]

    async def _attempt(self, editor: Member, request: WriteRequest) -> bool:
        """Write once; tell whether it won. A loser must learn the revision that won."""
        try:
            await self.writer.write_once(editor, request)
        except RefusedError as refused:
            if refused.reason != STALE:
                raise
            due = request.expected_revision + 1  # type: ignore[union-attr]
            self.model.expect(
                refused.current_revision == due,
                f"{request.idempotency_key}: stale at {refused.current_revision}, must be {due}",
            )
            return False
        return True


async def _all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Run it side by side; the first failure ends the rest."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_awaited(each)) for each in work]
    return [task.result() for task in tasks]


async def _awaited(work: Awaitable[T]) -> T:
    return await work
