"""A real conversation through a real broker process: every record is as the model says."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from grpc import aio

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.evaluation.calls import Metadata
from tests.evaluation.conversation import load_file
from tests.evaluation.scenario import run
from tests.evaluation.site import Rows
from tests.fixtures.broker import Stand
from tests.fixtures.granting_owner import Context, Question
from tests.fixtures.identity import ISSUER

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

CONVERSATION = Path(__file__).resolve().parents[2] / "fixtures" / "conversation.json"


@dataclass
class StandSite:
    """The stand of the tests as a site. Its owner knows all projects; who left is kept here."""

    stand: Stand
    left: set[str] = field(default_factory=set)
    asked: Counter[str] = field(default_factory=Counter)
    bearers: dict[str, Metadata] = field(default_factory=dict)
    issuer: str = ISSUER

    def channel(self) -> aio.Channel:
        return self.stand.channel()

    def metadata(self, subject: str) -> Metadata:
        if subject not in self.bearers:
            self.bearers[subject] = self.stand.metadata(self.stand.identity.token(subject))
        return self.bearers[subject]

    async def open_project(
        self, project: str, *, members: Sequence[str], owners: Sequence[str], runs: Sequence[str]
    ) -> None:
        self.stand.owner.scripts[project] = self._answer

    async def dismiss(self, project: str, subject: str) -> None:
        self.left.add(subject)

    async def rows(self, project: str) -> Rows:
        tables = ("memory.records", "memory.revisions", "memory.receipts")
        return Rows(*[await self.stand.rows(table, project) for table in tables])

    async def _answer(
        self, question: Question, answer: owners.GetRunAuthorityResponse, _: Context
    ) -> bytes:
        self.asked[question.claims["sub"]] += 1
        if question.claims["sub"] in self.left:
            answer.context.ClearField("grants")
        return answer.SerializeToString()


@pytest.mark.timeout(300)
async def test_a_conversation_is_kept_as_it_was_written(stand: Stand) -> None:
    """004-15, 46, 51, 52, 55, 61-64, 68: edits, lost replies, races, histories, a dismissal.

    004-89, 90, 93, 97, 98, 100, 000-38: contexts, up to the most candidates, and their log.
    """
    (conversation,) = load_file(CONVERSATION)
    site = StandSite(stand)
    report = await run(site, stand.project(), conversation)
    assert report.mismatches == ()
    assert report.turns == conversation.turns >= 250
    assert report.records == report.checked == report.turns + len(conversation.sessions)
    assert report.revisions == report.writes > report.records
    assert report.filler > 500 and report.compiled > len(conversation.queries) > 0
    assert report.proved > 10 and report.listed > report.proved
    assert report.replays > 0 and report.stale > 0 and report.refused > 0
    assert min(site.asked.values()) > 0 and site.left == {"scribe"}
