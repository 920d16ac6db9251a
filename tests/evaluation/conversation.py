"""Conversations to drive a broker with, and the files they come from.

Our own form is one JSON object in a file::

    {
      "title": "what it is about",
      "speakers": ["Ada", "Bo"],
      "sessions": [
        {
          "time": "2031-03-03T09:30:00+00:00",
          "turns": [{"id": "1:1", "speaker": "Ada", "text": "Good morning"}]
        }
      ],
      "queries": ["What did Ada say in the morning?"]
    }

Times are ISO 8601 with an offset and grow from session to session; ids are unique in the
conversation and have 1 to 64 ASCII letters, digits and ``. _ : -``; texts are not blank. The
``queries``, which may be absent, have at most 2,000 characters each.

The other form read here is that of the LoCoMo data set: a list of samples, each with a
``conversation`` of numbered sessions; the questions of its ``qa`` are the queries.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}\Z")
_LOCOMO_SESSION = re.compile(r"session_(\d+)\Z")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_QUERY_LENGTH_MAX = 2_000


class ConversationInvalidError(Exception):
    """A file does not hold what its form asks for. The message says where."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said at once."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """Turns in the order they were said."""

    time: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions in the order of time, and what may be asked about them."""

    title: str
    speakers: tuple[str, ...]
    sessions: tuple[Session, ...]
    queries: tuple[str, ...] = ()

    @property
    def turns(self) -> int:
        """How many turns there are in all sessions."""
        return sum(len(session.turns) for session in self.sessions)


def load_file(path: Path) -> list[Conversation]:
    """Return the conversations in a file of either form; none where it is of neither.

    Raises:
        ConversationInvalidError: It is of one of the forms and breaks its rules.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConversationInvalidError(f"{path.name} is not JSON") from error
    try:
        found = list(_read(content))
        for conversation in found:
            _check(conversation)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConversationInvalidError(f"{path.name}: {error!r}") from error
    return found


def load_folder(folder: Path) -> list[Conversation]:
    """Return every conversation in the JSON files of a folder, in the order of their names.

    Raises:
        ConversationInvalidError: There is none, or one breaks the rules of its form.
    """
    found = [each for path in sorted(folder.glob("*.json")) for each in load_file(path)]
    if not found:
        raise ConversationInvalidError(f"there is no conversation in {folder}")
    return found


def _read(content: Any) -> Iterator[Conversation]:
    match content:
        case {"title": str(), "speakers": [*_], "sessions": [*_]}:
            yield _ours(content)
        case {"conversation": dict()}:
            yield _locomo(content)
        case [*samples]:
            for sample in samples:
                yield from _read(sample)


def _ours(content: Mapping[str, Any]) -> Conversation:
    return Conversation(
        title=content["title"],
        speakers=tuple(content["speakers"]),
        sessions=tuple(
            Session(
                time=datetime.fromisoformat(session["time"]),
                turns=tuple(
                    Turn(turn["id"], turn["speaker"], turn["text"]) for turn in session["turns"]
                ),
            )
            for session in content["sessions"]
        ),
        queries=tuple(content.get("queries", ())),
    )


def _locomo(sample: Mapping[str, Any]) -> Conversation:
    content = sample["conversation"]
    numbers = sorted(int(found[1]) for key in content if (found := _LOCOMO_SESSION.match(key)))
    return Conversation(
        title=str(sample.get("sample_id", "locomo")),
        speakers=(content["speaker_a"], content["speaker_b"]),
        sessions=tuple(
            Session(
                time=datetime.strptime(content[f"session_{n}_date_time"], _LOCOMO_TIME).replace(
                    tzinfo=UTC
                ),
                turns=tuple(
                    Turn(turn["dia_id"], turn["speaker"], _with_caption(turn))
                    for turn in content[f"session_{n}"]
                ),
            )
            for n in numbers
            if content[f"session_{n}"]
        ),
        queries=tuple(each["question"] for each in sample.get("qa", ())),
    )


def _with_caption(turn: Mapping[str, str]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']}\n[picture: {caption}]" if caption else turn["text"]


def _check(conversation: Conversation) -> None:
    turns = [turn for session in conversation.sessions for turn in session.turns]
    if len({turn.id for turn in turns}) != len(turns):
        raise ValueError("a turn's id is there twice")
    for turn in turns:
        if not _ID.match(turn.id):
            raise ValueError(f"{turn.id!r} is no id")
        if turn.speaker not in conversation.speakers or not turn.text.strip():
            raise ValueError(f"turn {turn.id} has an unknown speaker or no text")
    for query in conversation.queries:
        if not query.strip() or len(query) > _QUERY_LENGTH_MAX:
            raise ValueError(f"{query[:40]!r} is no query")
    if any(session.time.tzinfo is None for session in conversation.sessions):
        raise ValueError("a session's time has no offset")
    for earlier, later in pairwise(session.time for session in conversation.sessions):
        if later < earlier:
            raise ValueError(f"a session at {later} follows one at {earlier}")
