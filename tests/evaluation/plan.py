"""What a scenario does with a conversation, and the requests that it sends."""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from broker.api.v1 import record_pb2 as records
from broker.api.v1 import record_service_pb2 as pb
from tests.evaluation.calls import Judgement
from tests.evaluation.conversation import Conversation, Session, Turn
from tests.evaluation.model import Known


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything. ``x_every`` is n for "every n-th".

    Attributes:
        concurrency: Calls that run at once, at most.
        edit_every: Memories that are edited, one to three times each.
        retry_every: Writes that are sent twice with the same key, one after the other.
        collide_every: Writes that are sent twice with the same key, at once.
        hang_up_every: Writes whose caller goes away and sends them again.
        race_every: Memories that all editors want to change at once.
        editors: How many race.
        scribe_every: Turns that are written by the member who is dismissed half way.
        long_history: Edits of the first memory in the end; more than fit a default page.
        judge_every: Memories that are approved, rejected or archived once all edits are done.
        repeat_every: Contexts that are compiled twice.
        prove_every: Compilations that are proved.
        trace_every: Records whose compilations are listed, of those that entered any.
        candidates: How many the candidates of one agent are brought to, which is the most that one
            context may have; 0: they are left as they are.
        seed: Of the moments when callers hang up.
    """

    concurrency: int = 16
    edit_every: int = 5
    retry_every: int = 6
    collide_every: int = 10
    hang_up_every: int = 13
    race_every: int = 40
    editors: int = 5
    scribe_every: int = 4
    long_history: int = 53
    judge_every: int = 6
    repeat_every: int = 6
    prove_every: int = 4
    trace_every: int = 12
    candidates: int = 1_000
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Said:
    """A turn with its place in the conversation. ``number`` counts from 1 through all sessions."""

    number: int
    session: int
    turn: Turn


def said(conversation: Conversation) -> Iterator[list[Said]]:
    """Yield the turns of each session with their places."""
    number = 0
    for index, session in enumerate(conversation.sessions, start=1):
        placed = [Said(number + at, index, turn) for at, turn in enumerate(session.turns, 1)]
        number += len(placed)
        yield placed


def run_id(session: int) -> str:
    """Return the run of a session, counted from 1."""
    return f"run-{session}"


def agent_id(conversation: Conversation, speaker: str) -> str:
    """Return the agent of a speaker; names may hold what ids may not."""
    return f"agent-{conversation.speakers.index(speaker) + 1}"


def memory_of(
    project: str, conversation: Conversation, session: Session, each: Said
) -> pb.CreateRecordRequest:
    """Return the request that makes a turn a memory of its speaker's agent."""
    turn, metadata = each.turn, Struct()
    metadata.update({"turn": turn.id, "time": session.time.isoformat(), "number": each.number})
    request = pb.CreateRecordRequest(
        scope=records.Scope(
            project_id=project,
            run_id=run_id(each.session),
            agent_id=agent_id(conversation, turn.speaker),
        ),
        idempotency_key=f"turn:{turn.id}",
        kind=records.RECORD_KIND_MEMORY,
        type=" turn ",
        title=f"{turn.speaker}, {session.time:%Y-%m-%d}",
        content=turn.text,
        rationale="" if each.number % 3 else f"said in session {each.session}",
        tags=[f" session-{each.session}", turn.speaker, turn.speaker.upper(), "Größe", "turn"],
        facet=records.MemoryFacet(
            memory_kind=records.MEMORY_KIND_EPISODE,
            source=f"{conversation.title[:150]}/{turn.id}",
            source_type=records.SOURCE_TYPE_CONVERSATION,
            metadata=metadata,
        ),
    )
    if each.number % 4:  # the others take the default
        request.importance = each.number % 11 / 10
    if each.number % 5 < 3:
        request.tags.append("Cross-Team")
    return request


def note_of(project: str, conversation: Conversation, session: int) -> pb.CreateRecordRequest:
    """Return the request that keeps a note on a session for the agent that spoke first in it."""
    turns = conversation.sessions[session - 1].turns
    return pb.CreateRecordRequest(
        scope=records.Scope(
            project_id=project,
            run_id=run_id(session),
            agent_id=agent_id(conversation, turns[0].speaker),
        ),
        idempotency_key=f"note:{session}",
        kind=records.RECORD_KIND_SESSION_CONTEXT,
        type="summary",
        content=f"{len(turns)} turns, from «{turns[0].text[:60]}» on",
        importance=0.0,
    )


def edit_of(known: Known, key: str) -> pb.UpdateRecordRequest:
    """Return the next edit of a record: what it changes goes by the revision that was seen."""
    head = known.head
    request = pb.UpdateRecordRequest(
        scope=known.scope,
        idempotency_key=key,
        record_id=known.record_id,
        expected_revision=head.revision,
        type=head.type,
        title=head.title,
        content=head.content,
        rationale=head.rationale,
        importance=head.importance,
        tags=head.tags,
    )
    match head.revision % 3:
        case 1:
            request.content = f"{known.revisions[0].content}\n— edit {head.revision} ✎"
            request.reason = f"corrected, édition {head.revision}"
        case 2:
            request.title, request.importance = "", 1.0 - head.importance
            request.ClearField("tags")
            request.tags.extend([f"edit-{head.revision}", "Edited", " edited "])
        case _:
            request.facet.subject = f"subject {head.revision}"
            request.facet.source = "ignored: the mask does not name it"
            request.facet_mask.CopyFrom(FieldMask(paths=["subject", "confidence"]))
    return request


def judgement_of(known: Known, number: int) -> Judgement:
    """Return an approval, as every other one is, a rejection or an archival of a record."""
    made: tuple[type[Judgement], ...] = (
        pb.ApproveRecordRequest,
        pb.RejectRecordRequest,
        pb.ApproveRecordRequest,
        pb.ArchiveRecordRequest,
    )
    return made[number % len(made)](
        scope=known.scope,
        idempotency_key=f"judge:{known.record_id}",
        record_id=known.record_id,
        expected_revision=known.head.revision,
        reason=f"judged as number {number}",
    )


def filler_of(scope: records.Scope, number: int) -> pb.CreateRecordRequest:
    """Return one of the memories that are put beside a conversation to make it long."""
    return pb.CreateRecordRequest(
        scope=scope,
        idempotency_key=f"filler:{number}",
        kind=records.RECORD_KIND_MEMORY,
        type="filler",
        content=f"Note {number}: "
        + " ".join(f"item{number * 7 + at}" for at in range(number % 40)),
        importance=number % 13 / 13,
        tags=[f"batch-{number % 10}"],
        facet=records.MemoryFacet(source_type=records.SOURCE_TYPE_AGENT),
    )


def get_of(known: Known) -> pb.GetRecordRequest:
    """Return the request for a record's head."""
    return pb.GetRecordRequest(scope=known.scope, record_id=known.record_id)


def list_of(known: Known, size: int, token: str = "") -> pb.ListRevisionsRequest:
    """Return the request for a page of a record's history."""
    return pb.ListRevisionsRequest(
        view=records.RECORD_VIEW_FULL,
        scope=known.scope,
        record_id=known.record_id,
        page_size=size,
        page_token=token,
    )


def revision_of(known: Known, revision: int) -> pb.GetRevisionRequest:
    """Return the request for one revision of a record."""
    return pb.GetRevisionRequest(scope=known.scope, record_id=known.record_id, revision=revision)
