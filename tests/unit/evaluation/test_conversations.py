"""The forms of conversations: what is read, and what is refused."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.conversation import (
    ConversationInvalidError,
    Turn,
    load_file,
    load_folder,
)

OWN = Path(__file__).resolve().parents[2] / "fixtures" / "conversation.json"


def ours(**changes: Any) -> dict[str, Any]:
    turns = [
        {"id": "1:1", "speaker": "Ada", "text": "Hello"},
        {"id": "1:2", "speaker": "Bo", "text": "Hello\n\tyou"},
    ]
    sessions = [
        {"time": "2031-03-03T09:30:00+01:00", "turns": turns},
        {"time": "2031-03-04T09:30:00+01:00", "turns": []},
    ]
    return {"title": "greetings", "speakers": ["Ada", "Bo"], "sessions": sessions} | changes


def locomo() -> dict[str, Any]:
    first = {"speaker": "Ada", "dia_id": "D1:1", "text": "Look", "blip_caption": "a heron"}
    return {
        "sample_id": "sample-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Later"}],
            "session_10_date_time": "12:48 am on 1 February, 2031",
            "session_2": [first],
            "session_2_date_time": "1:56 pm on 8 January, 2031",
            "session_11_date_time": "1:56 pm on 8 March, 2031",
        },
        "qa": [{"question": "Who looked?", "answer": "Ada"}],
    }


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_our_form(tmp_path: Path) -> None:
    (read,) = load_file(write(tmp_path, "a.json", ours()))
    assert (read.title, read.speakers, read.turns) == ("greetings", ("Ada", "Bo"), 2)
    assert read.sessions[0].turns[1] == Turn("1:2", "Bo", "Hello\n\tyou")
    assert read.queries == ()
    (asked,) = load_file(write(tmp_path, "a.json", ours(queries=["Who?", "Why?"])))
    assert asked.queries == ("Who?", "Why?")
    zone = timezone(timedelta(hours=1))
    assert read.sessions[1].time == datetime(2031, 3, 4, 9, 30, tzinfo=zone)


def test_the_form_of_locomo(tmp_path: Path) -> None:
    (read, _) = load_file(write(tmp_path, "a.json", [locomo(), locomo()]))
    assert (read.title, read.speakers, read.turns) == ("sample-1", ("Ada", "Bo"), 2)
    assert read.queries == ("Who looked?",)
    first, second = read.sessions
    assert first.turns == (Turn("D1:1", "Ada", "Look\n[picture: a heron]"),)
    assert second.time == datetime(2031, 2, 1, 0, 48, tzinfo=UTC)


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    write(tmp_path, "b.json", ours())
    write(tmp_path, "a.json", locomo())
    write(tmp_path, "c.json", {"neither": 1})
    (tmp_path / "notes.txt").write_text("no conversation", encoding="utf-8")
    assert [each.title for each in load_folder(tmp_path)] == ["sample-1", "greetings"]


def turn(**changes: Any) -> list[dict[str, Any]]:
    said = {"id": "1:1", "speaker": "Ada", "text": "Hello"} | changes
    return [{"time": "2031-03-03T09:30:00+01:00", "turns": [said]}]


@pytest.mark.parametrize(
    "content",
    [
        ours(sessions=turn(speaker="Cy")),
        ours(sessions=turn(text=" \n")),
        ours(sessions=turn(text=7)),
        ours(sessions=turn(id="a b")),
        ours(sessions=turn(id="a" * 65)),
        ours(sessions=turn() + turn()),
        ours(sessions=[{"turns": []}]),
        ours(sessions=[{"time": "yesterday", "turns": []}]),
        ours(sessions=[{"time": "2031-03-03T09:30:00", "turns": []}]),
        ours(sessions=list(reversed(ours()["sessions"]))),
        ours(queries=[" "]),
        ours(queries=["x" * 2_001]),
        ours(queries=[7]),
    ],
)
def test_what_breaks_the_form_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(ConversationInvalidError, match=r"a\.json"):
        load_file(write(tmp_path, "a.json", content))


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConversationInvalidError, match="no conversation"):
        load_folder(tmp_path)
    (tmp_path / "a.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConversationInvalidError, match="not JSON"):
        load_folder(tmp_path)


def test_our_own_conversation_has_what_it_is_for() -> None:
    (own,) = load_file(OWN)
    texts = [turn.text for session in own.sessions for turn in session.turns]
    assert len(own.speakers) == 2 and len(own.sessions) >= 10 and own.turns >= 300
    assert len(set(texts)) == len(texts)
    assert len(own.queries) >= 20
    assert sum(len(text) > 1_500 for text in texts) >= 3
    assert any(text != text.strip() for text in texts)
    for part in ("```", "https://", "€", "\r\n", "\t", "e\u0308", "👩‍👧", "また", "שלום"):
        assert any(part in text for text in texts), part
