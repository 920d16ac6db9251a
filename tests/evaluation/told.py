"""What a context must hold: an independent account of visibility, and of the text around it.

It follows from the model of the records and the request alone, and shares no code with the broker
but the messages.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from broker.api.v1 import context_service_pb2 as pb
from broker.api.v1 import record_pb2 as records
from tests.evaluation.model import Known, Model

ITEMS, TOKENS, CHARACTERS_PER_TOKEN, LISTED_MAX = 20, 4_000, 4, 1_000
BEGIN, END = "<<<BEGIN_UNTRUSTED_CONTEXT ", "<<<END_UNTRUSTED_CONTEXT "
SHARED = "cross-team"
_TRUST = {records.TRUST_PENDING: "pending", records.TRUST_APPROVED: "approved"}
_PARTS = {"schema", "decisions", "memory", "session"}
_PROSE = ("title", "content", "rationale")


def candidates(model: Model, scope: records.Scope) -> dict[str, Known]:
    """Return the records that a context of this agent and run is chosen from."""
    return {each.record_id: each for each in model.known.values() if _is_candidate(each, scope)}


def visible(model: Model, asked: pb.CompileContextRequest) -> dict[str, Known]:
    """Return the records that a context must tell or leave out: of session notes the newest."""
    found = candidates(model, asked.scope)
    notes = [each for each in found.values() if _is_note(each.head)]
    notes.sort(key=lambda each: each.revisions[0].create_time.ToNanoseconds())
    for older in notes[:-1]:
        del found[older.record_id]
    if not asked.HasField("include_pending") or asked.include_pending:
        return found
    approved = records.TRUST_APPROVED
    return {key: each for key, each in found.items() if each.head.trust == approved}


def judge(
    model: Model,
    asked: pb.CompileContextRequest,
    told: pb.CompileContextResponse,
    where: str,
    *,
    due: Mapping[str, Known] | None = None,
) -> None:
    """Compare a context with what the model knows; ``due`` is what was visible when it was made."""
    known = visible(model, asked) if due is None else due
    _judge_choice(model, told, known, where)
    items = asked.max_items if asked.HasField("max_items") else ITEMS
    tokens = asked.max_tokens if asked.HasField("max_tokens") else TOKENS
    memories = sum(each.kind == pb.CONTEXT_ITEM_KIND_MEMORY for each in told.items)
    model.expect(memories <= items, f"{where}: {memories} memories entered, {items} may")
    used = pb.ContextBudget(tokens=tokens, items=items, characters_used=len(told.text))
    model.same(told.budget, used, f"{where}, budget")
    room = tokens * CHARACTERS_PER_TOKEN
    model.expect(len(told.text) <= room, f"{where}: {len(told.text)} characters, {room} fit")
    model.expect(
        told.HasField("text") == bool(known),
        f"{where}: {len(known)} visible, text {told.text!r:.40}",
    )
    if told.text:
        _judge_text(model, asked.scope.agent_id, told, known, where)


def _judge_choice(
    model: Model, told: pb.CompileContextResponse, due: Mapping[str, Known], where: str
) -> None:
    """Every visible record is told or left out, once, at its head; no other is named."""
    named: list[pb.ContextItem | pb.OmittedItem] = [*told.items, *told.omitted]
    for each in named:
        known = due.get(each.record_id)
        if known is None:
            model.expect(False, f"{where}: {each.record_id} is not visible")
            continue
        head = known.head
        kind = "session note" if _is_note(head) else "memory"
        is_note = each.kind == pb.CONTEXT_ITEM_KIND_SESSION_CONTEXT
        is_memory = each.kind == pb.CONTEXT_ITEM_KIND_MEMORY
        model.expect(
            is_note if _is_note(head) else is_memory,
            f"{where}: {each.record_id} is a {kind}",
        )
        model.expect(each.revision == head.revision, f"{where}: {each.record_id} is out of date")
    for item in told.items:
        if item.record_id in due:
            right = item.revision_id == due[item.record_id].head.revision_id
            model.expect(right, f"{where}: {item.record_id} has another revision's id")
    count = told.omitted_memory_count + told.omitted_session_count
    model.expect(
        len(told.omitted) == min(count, LISTED_MAX),
        f"{where}: {len(told.omitted)} are listed of {count} left out",
    )
    once = len({each.record_id for each in named})
    model.expect(once == len(named), f"{where}: {len(named) - once} are named twice")
    missed = len(due) - len(told.items) - count
    model.expect(missed == 0, f"{where}: {missed} visible records are neither told nor left out")
    causes = {each.cause for each in told.omitted}
    model.expect(set(told.causes) == causes, f"{where}: the causes are {sorted(causes)}")


def _judge_text(
    model: Model,
    agent_id: str,
    told: pb.CompileContextResponse,
    due: Mapping[str, Known],
    where: str,
) -> None:
    payload = _payload(told.text)
    if payload is None:
        model.expect(False, f"{where}: the text is not one block of JSON")
        return
    memories, session = payload["memory"], payload["session"]
    held = [
        *[("DECISION", each["record_id"], each["revision_id"]) for each in payload["decisions"]],
        *[("MEMORY", each["record_id"], each["revision_id"]) for each in memories],
        *([] if session is None else [("SESSION_CONTEXT", "", session["revision_id"])]),
    ]
    listed = []
    for item in told.items:
        kind = pb.ContextItemKind.Name(item.kind).removeprefix("CONTEXT_ITEM_KIND_")
        record_id = "" if item.kind == pb.CONTEXT_ITEM_KIND_SESSION_CONTEXT else item.record_id
        listed.append((kind, record_id, item.revision_id))
    model.expect(held == listed, f"{where}: the items are not what the text holds, in order")
    for item, each in zip(told.items, [*memories, *([session] if session else [])], strict=False):
        if item.record_id in due:
            wanted = _rendered(due[item.record_id].head, agent_id)
            wrong = [name for name in each | wanted if each.get(name) != wanted.get(name)]
            model.expect(not wrong, f"{where}: {item.record_id} is told with another {wrong}")


def _payload(text: str) -> Any:
    """Return what is between the markers; ``None`` where the frame is not as it must be."""
    lines = text.split("\n")
    begins = [at for at, line in enumerate(lines) if line.startswith(BEGIN)]
    ends = [at for at, line in enumerate(lines) if line.startswith(END)]
    if (len(begins), len(ends), text.count(BEGIN), text.count(END)) != (1, 1, 1, 1):
        return None
    begin, end = begins[0], ends[0]
    if end != begin + 2 or end != len(lines) - 1:
        return None
    digest = hashlib.sha256(lines[begin + 1].encode()).hexdigest()[:16]
    if (lines[begin], lines[end]) != (f"{BEGIN}{digest}>>>", f"{END}{digest}>>>"):
        return None
    try:
        payload = json.loads(lines[begin + 1])
    except ValueError:
        return None
    return payload if isinstance(payload, dict) and payload.keys() == _PARTS else None


def _rendered(head: records.Revision, agent_id: str) -> dict[str, Any]:
    """Return what a text must say of a record."""
    said: dict[str, Any] = {name: getattr(head, name) for name in _PROSE if getattr(head, name)}
    said["revision"], said["revision_id"] = head.revision, head.revision_id
    said["stored"] = head.create_time.ToDatetime().date().isoformat()
    if _is_note(head):
        return said
    own = head.agent_id == agent_id
    return said | {
        "record_id": head.record_id,
        "label": head.type if own else f"{head.type} from {head.agent_id}",
        "trust": _TRUST.get(head.trust, "none"),
        "origin": "agent" if head.facet.origin_tier == records.ORIGIN_TIER_AGENT else "external",
    }


def _is_candidate(known: Known, scope: records.Scope) -> bool:
    head = known.head
    own, approved = head.agent_id == scope.agent_id, head.trust == records.TRUST_APPROVED
    if head.state != records.RECORD_STATE_ACTIVE:
        return False
    if _is_note(head):
        return own and approved and head.source_run_id == scope.run_id
    shared = any(tag.lower() == SHARED for tag in head.tags)
    return (approved and (own or shared)) or (own and head.trust == records.TRUST_PENDING)


def _is_note(head: records.Revision) -> bool:
    return head.kind == records.RECORD_KIND_SESSION_CONTEXT
