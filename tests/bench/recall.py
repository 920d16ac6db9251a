"""``make bench-recall DATA=<folder>``: how many of the turns that answer a question are recalled.

The folder holds conversations in the form of LoCoMo. Each is remembered turn by turn by one agent
of a broker, through gRPC: the speaker as its title, then text, caption of an image and date of the
session; declared, since what is measured is recall and not what is a duplicate. Each question is
recalled over the turns of its own conversation. Recall at k is the share of a question's evidence
among the first k; MRR is one over the place of the first of it. Nothing is fitted to a
conversation.

Prints one line for each mode: words alone, and words and vectors.
"""

import argparse
import asyncio
import json
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from grpc import aio

from broker.api.v1 import memory_service_pb2 as pb
from broker.api.v1 import memory_service_pb2_grpc, record_pb2
from broker.devstack.provider import Provider
from tests.evaluation.stack import DevelopmentSite, development_site

BATCH: Final = 12
FIRST: Final = 10
AT_ONCE: Final = 4
MEMBER: Final = "reader"
TRIES: Final = 5
BUSY: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
_EVIDENCE: Final = re.compile(r"D:?(\d+):(\d+)")
_SESSION: Final = re.compile(r"session_(\d+)\Z")


@dataclass(frozen=True)
class Turn:
    """One turn: its id, its session, who speaks, and the text that is remembered."""

    id: str
    session: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """All turns in order, and all questions that have an answer in them."""

    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Figures:
    """Means over questions."""

    at_5: float
    at_10: float
    mrr: float

    def __str__(self) -> str:
        return f"recall@5 {self.at_5:.3f}  recall@10 {self.at_10:.3f}  MRR {self.mrr:.3f}"


def load(folder: Path) -> Iterator[Conversation]:
    """Read every conversation of every JSON file of a folder."""
    for file in sorted(folder.glob("*.json")):
        for sample in json.loads(file.read_text(encoding="utf-8")):
            yield _conversation(sample)


def _conversation(sample: dict[str, Any]) -> Conversation:
    told = sample["conversation"]
    numbers = sorted(int(found[1]) for key in told if (found := _SESSION.match(key)))
    turns = tuple(
        Turn(
            id=f"D{number}:{place}",
            session=f"session-{number}",
            speaker=turn["speaker"],
            text=_text(turn, told, number),
        )
        for number in numbers
        for place, turn in ((_place(turn), turn) for turn in told[f"session_{number}"])
    )
    ids = {turn.id for turn in turns}
    questions = (
        Question(each["question"], frozenset(_evidence(each)) & ids) for each in sample["qa"]
    )
    return Conversation(turns, tuple(each for each in questions if each.evidence))


def _place(turn: dict[str, Any]) -> int:
    return int(turn["dia_id"].rpartition(":")[2])


def _text(turn: dict[str, Any], told: dict[str, Any], number: int) -> str:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['text']}{caption} ({told[f'session_{number}_date_time']})"


def _evidence(question: dict[str, Any]) -> Iterator[str]:
    for named in question.get("evidence", ()):
        for session, place in _EVIDENCE.findall(named):
            yield f"D{int(session)}:{int(place)}"


class Reader:
    """Remembers one conversation as one agent, and recalls from it."""

    def __init__(self, site: DevelopmentSite, channel: aio.Channel, project: str) -> None:
        """Take a project that is open."""
        self._stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        self._metadata = site.metadata(MEMBER)
        self._scope = record_pb2.Scope(project_id=project, run_id="run", agent_id=MEMBER)
        self._turns: dict[str, str] = {}

    async def remember(self, turns: Sequence[Turn]) -> None:
        """Remember all turns, in order."""
        for begin in range(0, len(turns), BATCH):
            part = turns[begin : begin + BATCH]
            reply = await self._stub.BatchRemember(
                pb.BatchRememberRequest(
                    scope=self._scope,
                    idempotency_key=secrets.token_hex(8),
                    memories=[_memory(turn) for turn in part],
                    dedup=pb.DedupOptions(mode=pb.DEDUP_MODE_DECLARED),
                ),
                metadata=self._metadata,
            )
            for turn, done in zip(part, reply.remembered, strict=True):
                self._turns[done.record.record_id] = turn.id

    async def places(self, question: Question, mode: pb.RecallMode.ValueType) -> list[str]:
        """Return the ids of the first turns that are recalled."""
        asked = pb.RecallRequest(scope=self._scope, query=question.text, limit=FIRST, mode=mode)
        for _ in range(TRIES - 1):
            try:
                reply = await self._stub.Recall(asked, metadata=self._metadata)
                break
            except aio.AioRpcError as error:  # a busy machine: what is measured is not time
                if error.code() not in BUSY:
                    raise
        else:
            reply = await self._stub.Recall(asked, metadata=self._metadata)
        return [self._turns[each.record.record_id] for each in reply.results]


def _memory(turn: Turn) -> pb.MemoryInput:
    facet = record_pb2.MemoryFacet(
        source=turn.session, source_type=record_pb2.SOURCE_TYPE_CONVERSATION
    )
    return pb.MemoryInput(title=turn.speaker, content=turn.text, facet=facet)


def figures(found: Sequence[tuple[Question, list[str]]]) -> Figures:
    """Return the means over questions and what was recalled for them."""

    def mean(values: Iterator[float]) -> float:
        return sum(values) / len(found)

    return Figures(
        at_5=mean(_share(question, ids[:5]) for question, ids in found),
        at_10=mean(_share(question, ids[:10]) for question, ids in found),
        mrr=mean(_reciprocal(question, ids) for question, ids in found),
    )


def _share(question: Question, ids: list[str]) -> float:
    return len(question.evidence & set(ids)) / len(question.evidence)


def _reciprocal(question: Question, ids: list[str]) -> float:
    places = (place for place, each in enumerate(ids, 1) if each in question.evidence)
    return 1.0 / next(places, float("inf"))


async def measure(
    site: DevelopmentSite, conversations: Sequence[Conversation]
) -> dict[str, Figures]:
    """Remember every conversation and recall every question, in each mode."""
    modes = {"words": pb.RECALL_MODE_KEYWORD, "words and vectors": pb.RECALL_MODE_HYBRID}
    found: dict[str, list[tuple[Question, list[str]]]] = {name: [] for name in modes}
    async with site.channel() as channel:
        for number, conversation in enumerate(conversations):
            project = f"conversation-{number}"
            await site.open_project(project, members=[MEMBER], owners=[], runs=["run"])
            reader = Reader(site, channel, project)
            await reader.remember(conversation.turns)
            for name, mode in modes.items():
                found[name] += await _recalled(reader, conversation.questions, mode)
    return {name: figures(each) for name, each in found.items()}


async def _recalled(
    reader: Reader, questions: Sequence[Question], mode: pb.RecallMode.ValueType
) -> list[tuple[Question, list[str]]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(question: Question) -> tuple[Question, list[str]]:
        async with places:
            return question, await reader.places(question, mode)

    return await asyncio.gather(*map(one, questions))


def _lack(folder: Path | None) -> str:
    if folder is None:
        return "A folder of conversations is needed"
    if not folder.is_dir():
        return f"There is no folder {folder}"
    return f"There is no conversation in a *.json of {folder}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0, or 2 without conversations."""
    parser = argparse.ArgumentParser(prog="make bench-recall", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--provider", type=Provider, choices=[*Provider], default=Provider.POSTGRES)
    given = parser.parse_args(arguments)
    conversations = [] if given.folder is None else list(load(given.folder))
    if not conversations:
        print(f"{_lack(given.folder)}: make bench-recall DATA=<folder>", file=sys.stderr)
        return 2
    questions = sum(len(each.questions) for each in conversations)
    print(
        f"{len(conversations)} conversations, {questions} questions, on {given.provider}",
        flush=True,
    )
    with development_site(given.provider, embeddings=True) as site:
        for name, each in asyncio.run(measure(site, conversations)).items():
            print(f"{name:18}  {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
