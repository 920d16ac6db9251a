"""The judge of contexts notices: a planted error in a reply, a proof or a list is a mismatch."""

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.api.v1 import context_service_pb2 as pb
from broker.api.v1 import record_pb2 as records
from tests.evaluation.calls import Member
from tests.evaluation.contexts import Told, judge_list, judge_proof, requests
from tests.evaluation.conversation import Conversation, Session
from tests.evaluation.model import Known, Model
from tests.evaluation.told import candidates, judge, visible

BEGUN = datetime(2031, 3, 3, 23, 30, tzinfo=UTC)
SCOPE = records.Scope(project_id="project", run_id="run", agent_id="agent")
ASKED = pb.CompileContextRequest(scope=SCOPE, query="what", max_items=2, max_tokens=500)
MEMBER = cast("Member", SimpleNamespace(subject="subject"))
MEMORY = pb.CONTEXT_ITEM_KIND_MEMORY
NOTE = pb.CONTEXT_ITEM_KIND_SESSION_CONTEXT


def known(record_id: str, **changes: Any) -> Known:
    said: dict[str, Any] = {
        "agent_id": "agent",
        "kind": records.RECORD_KIND_MEMORY,
        "state": records.RECORD_STATE_ACTIVE,
        "trust": records.TRUST_PENDING,
        "type": "turn",
        "content": f"text of {record_id}",
        "source_run_id": "run",
        "facet": records.MemoryFacet(origin_tier=records.ORIGIN_TIER_AGENT),
    }
    revisions = []
    for number in (1, 2):
        revision = records.Revision(
            record_id=record_id,
            revision=number,
            revision_id=f"{record_id}-{number}",
            **said | changes,
        )
        revision.create_time.FromDatetime(BEGUN + timedelta(minutes=number))
        revisions.append(revision)
    return Known("project", "run", revisions)


APPROVED = {"trust": records.TRUST_APPROVED}
SESSION = {**APPROVED, "kind": records.RECORD_KIND_SESSION_CONTEXT}
FOREIGN = {**APPROVED, "agent_id": "other", "tags": ["Cross-Team"]}
ARCHIVED = records.RECORD_STATE_ARCHIVED
HIDDEN: dict[str, dict[str, Any]] = {
    "archived": {"state": ARCHIVED},
    "rejected": {"trust": records.TRUST_REJECTED},
    "foreign-pending": {**FOREIGN, "trust": records.TRUST_PENDING},
    "foreign-apart": {**FOREIGN, "tags": ["turn"]},
    "foreign-archived": {**FOREIGN, "state": ARCHIVED},
    "foreign-note": {**SESSION, "agent_id": "other", "tags": ["cross-team"]},
    "note-elsewhere": {**SESSION, "source_run_id": "run-2"},
}


def model() -> Model:
    """Know two memories, a foreign one and a note that are visible, and others that are not."""
    found = [known("own"), known("pending", title="t", rationale="r"), known("foreign", **FOREIGN)]
    found += [known("note", **SESSION)]
    found += [known(name, **changes) for name, changes in HIDDEN.items()]
    return Model("project", "https://issuer.test", {each.record_id: each for each in found})


def rendered(record_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "record_id": record_id,
        "revision": 2,
        "revision_id": f"{record_id}-2",
        "stored": "2031-03-03",
        "label": "turn",
        "trust": "pending",
        "origin": "agent",
        "content": f"text of {record_id}",
    } | changes


def held() -> dict[str, Any]:
    """What the text of the right reply holds."""
    pending = rendered("pending", title="t", rationale="r")
    foreign = rendered("foreign", label="turn from other", trust="approved")
    note = rendered("note")
    for name in ("record_id", "label", "trust", "origin"):
        del note[name]
    return {"schema": "s", "decisions": [], "memory": [pending, foreign], "session": note}


def framed(payload: str) -> str:
    digest = hashlib.sha256(payload.encode()).hexdigest()[:16]
    begin, end = "<<<BEGIN_UNTRUSTED_CONTEXT", "<<<END_UNTRUSTED_CONTEXT"
    return f"# Heading\nRule.\n{begin} {digest}>>>\n{payload}\n{end} {digest}>>>"


def item(record_id: str, kind: pb.ContextItemKind.ValueType = MEMORY) -> pb.ContextItem:
    return pb.ContextItem(kind=kind, record_id=record_id, revision=2, revision_id=f"{record_id}-2")


def told() -> pb.CompileContextResponse:
    """The right reply to ``ASKED``."""
    cause = pb.OMISSION_CAUSE_ITEM_LIMIT
    reply = pb.CompileContextResponse(
        text=framed(json.dumps(held())),
        items=[item("pending"), item("foreign"), item("note", NOTE)],
        omitted=[pb.OmittedItem(kind=MEMORY, record_id="own", revision=2, cause=cause)],
        omitted_memory_count=1,
        causes=[cause],
        compilation_id="compilation",
    )
    reply.budget.CopyFrom(pb.ContextBudget(tokens=500, items=2, characters_used=len(reply.text)))
    return reply


Change = Callable[[pb.CompileContextResponse], object]


def retold(text: str, reply: pb.CompileContextResponse) -> None:
    reply.text = text
    reply.budget.characters_used = len(text)


def altered(name: str, value: Any, index: int = 0) -> Change:
    """Tell another value of one memory."""

    def change(reply: pb.CompileContextResponse) -> None:
        payload = held()
        payload["memory"][index][name] = value
        retold(framed(json.dumps(payload)), reply)

    return change


def shuffled(reply: pb.CompileContextResponse) -> None:
    payload = held()
    payload["memory"].reverse()
    retold(framed(json.dumps(payload)), reply)


def in_place_of_own(name: str) -> Change:
    """Name a record that is not visible."""
    return lambda reply: setattr(reply.omitted[0], "record_id", name)


def twice(reply: pb.CompileContextResponse) -> None:
    reply.omitted[0].record_id = "pending"


def forgotten(reply: pb.CompileContextResponse) -> None:
    del reply.omitted[:], reply.causes[:]
    reply.omitted_memory_count = 0


def uncounted(reply: pb.CompileContextResponse) -> None:
    reply.omitted_memory_count = 0


CHANGES: dict[str, Change] = {
    **{f"told {name}": in_place_of_own(name) for name in [*HIDDEN, "unknown"]},
    "twice": twice,
    "forgotten": forgotten,
    "uncounted": uncounted,
    "old revision": lambda reply: setattr(reply.items[0], "revision", 1),
    "old revision's id": lambda reply: setattr(reply.items[0], "revision_id", "pending-1"),
    "left out at an old one": lambda reply: setattr(reply.omitted[0], "revision", 1),
    "kind": lambda reply: setattr(reply.omitted[0], "kind", NOTE),
    "causes": lambda reply: reply.causes.append(pb.OMISSION_CAUSE_BUDGET),
    "characters": lambda reply: setattr(reply.budget, "characters_used", 7),
    "tokens": lambda reply: setattr(reply.budget, "tokens", 501),
    "items": lambda reply: setattr(reply.budget, "items", 3),
    "no text": lambda reply: reply.ClearField("text"),
    "too long": lambda reply: retold(reply.text.replace("Rule", "R" * 2_000), reply),
    "digest": lambda reply: retold(reply.text.replace("text of", "text on"), reply),
    "second begin": lambda reply: retold(
        reply.text.replace("Rule.", "<<<BEGIN_UNTRUSTED_CONTEXT x>>>"), reply
    ),
    "second end": lambda reply: retold(
        reply.text.replace("Rule.", "see <<<END_UNTRUSTED_CONTEXT x>>>"), reply
    ),
    "no end": lambda reply: retold(reply.text.rpartition("\n")[0], reply),
    "something behind": lambda reply: retold(f"{reply.text}\n", reply),
    "two lines": lambda reply: retold(framed(json.dumps(held(), indent=1)), reply),
    "no JSON": lambda reply: retold(framed(json.dumps(held())[:-1]), reply),
    "no object": lambda reply: retold(framed("[]"), reply),
    "another part": lambda reply: retold(framed(json.dumps(held() | {"more": 1})), reply),
    "order": shuffled,
    "content": altered("content", "text of  pending"),
    "title": altered("title", "T"),
    "rationale": altered("rationale", ""),
    "stored": altered("stored", "2031-03-04"),
    "label": altered("label", "turn", index=1),
    "trust": altered("trust", "approved"),
    "origin": altered("origin", "operator"),
    "more": altered("importance", 1),
}


def test_the_right_reply_is_right() -> None:
    knows = model()
    judge(knows, ASKED, told(), "here")
    assert knows.mismatches == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_planted_error_is_a_mismatch(change: Change) -> None:
    knows, reply = model(), told()
    change(reply)
    judge(knows, ASKED, reply, "here")
    assert knows.mismatches and all(each.startswith("here") for each in knows.mismatches)


def test_more_memories_than_asked_for_are_a_mismatch() -> None:
    knows, reply, asked = model(), told(), pb.CompileContextRequest()
    asked.CopyFrom(ASKED)
    asked.max_items = reply.budget.items = 1
    judge(knows, asked, reply, "here")
    assert knows.mismatches == ["here: 2 memories entered, 1 may"]


def test_what_is_visible() -> None:
    knows = model()
    assert set(candidates(knows, SCOPE)) == {"own", "pending", "foreign", "note"}
    asked = pb.CompileContextRequest(scope=SCOPE, include_pending=False)
    assert set(visible(knows, asked)) == {"foreign", "note"}
    newer = known("newer", **SESSION)
    newer.revisions[0].create_time.FromDatetime(BEGUN + timedelta(hours=1))
    knows.known["newer"] = newer
    assert "note" in candidates(knows, SCOPE)
    assert set(visible(knows, ASKED)) == {"own", "pending", "foreign", "newer"}


def proof() -> pb.GetCompilationResponse:
    """The right proof of ``told``."""
    reply = told()
    given = pb.GetCompilationResponse(
        compilation=pb.CompilationSummary(
            compilation_id="compilation",
            project_id="project",
            run_id="run",
            agent_id="agent",
            actor_fingerprint=hashlib.sha256(b"https://issuer.test\nsubject").hexdigest(),
            query_hash=hashlib.sha256(b"what").hexdigest(),
            budget=reply.budget,
            text_hash=hashlib.sha256(reply.text.encode()).hexdigest(),
            render_version=1,
            item_count=3,
        ),
        items=reply.items,
        omitted=reply.omitted,
        verdict=pb.VERDICT_VERIFIED,
        text=reply.text,
    )
    given.compilation.compile_time.FromDatetime(BEGUN)
    return given


def disproofs() -> Iterator[Callable[[pb.GetCompilationResponse], object]]:
    yield lambda proof: setattr(proof, "verdict", pb.VERDICT_MISMATCH)
    yield lambda proof: setattr(proof, "text", "another")
    yield lambda proof: setattr(proof.items[0], "revision", 1)
    yield lambda proof: setattr(proof.omitted[0], "revision", 1)
    yield lambda proof: setattr(proof.compilation, "query_hash", "")
    yield lambda proof: setattr(proof.compilation, "text_hash", "")
    yield lambda proof: setattr(proof.compilation, "actor_fingerprint", "")
    yield lambda proof: setattr(proof.compilation, "item_count", 2)
    yield lambda proof: proof.compilation.ClearField("compile_time")
    yield lambda proof: setattr(proof.compilation.budget, "tokens", 1)


def test_the_right_proof_is_right() -> None:
    knows = model()
    judge_proof(knows, Told(MEMBER, ASKED, told()), proof(), "here")
    assert knows.mismatches == []


@pytest.mark.parametrize("change", list(disproofs()))
def test_a_proof_that_differs_is_a_mismatch(
    change: Callable[[pb.GetCompilationResponse], object],
) -> None:
    knows, given = model(), proof()
    change(given)
    judge_proof(knows, Told(MEMBER, ASKED, told()), given, "here")
    assert len(knows.mismatches) == 1


def summary(compilation_id: str, second: int) -> pb.CompilationSummary:
    made = pb.CompilationSummary(compilation_id=compilation_id)
    made.compile_time.FromDatetime(BEGUN + timedelta(seconds=second))
    return made


@pytest.mark.parametrize(
    ("found", "record_id", "mismatches"),
    [
        ([("two", 2), ("one", 1)], "", 0),
        ([("one", 1)], "pending", 0),
        ([], "own", 0),
        ([("one", 1)], "", 1),
        ([("one", 1), ("two", 2)], "", 1),
        ([("two", 2), ("one", 1)], "pending", 1),
        ([("one", 1), ("one", 1)], "pending", 1),
        ([], "pending", 1),
    ],
)
def test_lists(found: list[tuple[str, int]], record_id: str, mismatches: int) -> None:
    knows = model()
    one, two = told(), told()
    one.compilation_id, two.compilation_id = "one", "two"
    del two.items[:]
    log = [Told(MEMBER, ASKED, each) for each in (one, two)]
    judge_list(knows, log, (record_id, 2), [summary(*each) for each in found])
    assert len(knows.mismatches) == mismatches


def test_every_agent_in_every_run_is_asked_for_and_every_query() -> None:
    sessions = (Session(BEGUN, ()), Session(BEGUN, ()))
    queries = tuple(f"query {number}" for number in range(9))
    asked = list(requests("project", Conversation("t", ("Ada", "Bo"), sessions, queries)))
    places = [(each.scope.run_id, each.scope.agent_id) for each in asked]
    assert len(set(places[:4])) == 4 and not any(each.HasField("query") for each in asked[:4])
    assert [each.query for each in asked[4:]] == list(queries)
    for name in ("max_tokens", "max_items", "include_pending"):
        assert any(each.HasField(name) for each in asked)
