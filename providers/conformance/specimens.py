"""Valid records, revisions and write sets in few words. Ids of revisions and keys are fresh."""

import struct
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import hypot
from typing import Any
from uuid import uuid4

from providers.deliveries import Acknowledgement
from providers.entries import RecallEntry, TermVector, Vector
from providers.model import (
    AcceptedEffect,
    BeliefType,
    ChangeKind,
    Claim,
    Content,
    DeliveryPolicy,
    HeadPut,
    IdempotencyReceipt,
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    Portability,
    ProjectKey,
    ReceiptKey,
    Record,
    Revision,
    RevisionRef,
    Sensitivity,
    SourceType,
    State,
    Tombstone,
    Trust,
    WriteSet,
)

START = datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC)
LINKED = {"state": State.SUPERSEDED, "change_kind": ChangeKind.DECISION_SUPERSEDED}


def digest(text: str) -> str:
    """Make 64 hex digits of a text: a fingerprint."""
    return sha256(text.encode()).hexdigest()


ACTOR = digest("actor")
OTHER_ACTOR = digest("another actor")


def fresh(what: str = "x") -> str:
    """Make an identifier that nobody has used."""
    return f"{what}-{uuid4().hex}"


def content(text: str = "The build needs Java 21.", **changes: Any) -> Content:
    """Say something."""
    said = Content(
        type="fact", title="Build", content=text, rationale=None, importance=0.5, tags=("build",)
    )
    return replace(said, **changes)


def empty_facet() -> MemoryFacet:
    """Make a facet that says nothing."""
    return MemoryFacet()


def facet(**changes: Any) -> MemoryFacet:
    """Make a facet with every field filled in."""
    full = MemoryFacet(
        memory_kind=MemoryKind.FACT,
        delivery_policy=DeliveryPolicy.ON_DEMAND,
        namespace="team/build",
        subject="the build",
        belief_type=BeliefType.PREFERENCE,
        source="https://example.test/a?b=c#d",
        source_type=SourceType.BACKGROUND_REPORT,
        origin_tier=OriginTier.AGENT,
        sensitivity=Sensitivity.INTERNAL,
        expire_time=START + timedelta(days=30, microseconds=1),
        confidence=0.1 + 0.2,
        epoch="2026-q1",
        portability=Portability.CONTEXTUAL,
        metadata={"ticket": "AB-1"},
        corroboration=3,
        last_reinforce_time=START + timedelta(microseconds=7),
        flagged=True,
        invalidate_time=START + timedelta(hours=1),
        invalidation_reason="superseded by fact",
    )
    return replace(full, **changes)


def memory(record_id: str, text: str = "The build needs Java 21.", **changes: Any) -> Record:
    """Make a new memory; ``changes`` are fields of its revision."""
    return _first(
        record_id,
        {
            "kind": Kind.MEMORY,
            "state": State.ACTIVE,
            "trust": Trust.PENDING,
            "change_kind": ChangeKind.CREATED,
            "content": content(text),
            **changes,
        },
    )


def decision(record_id: str, **changes: Any) -> Record:
    """Make a new accepted decision."""
    born = {"trust": Trust.APPROVED, "promoted_decision_id": None, **changes}
    return memory(record_id, kind=Kind.DECISION, **born)


def proposal(record_id: str, **changes: Any) -> Record:
    """Make a new proposal."""
    return memory(
        record_id,
        kind=Kind.PROPOSAL,
        state=State.PENDING,
        change_kind=ChangeKind.PROPOSAL_CREATED,
        source_run_id="run-1",
        **changes,
    )


def after(record: Record, text: str | None = None, **changes: Any) -> Record:
    """Make the record's next revision, linked to the one before."""
    now = record.current
    fields = {"change_kind": ChangeKind.UPDATED, **changes}
    if text is not None:
        fields["content"] = replace(now.content, content=text)
    following = replace(
        now,
        revision=now.revision + 1,
        revision_id=fresh("rev"),
        previous_revision_id=now.revision_id,
        create_time=now.create_time + timedelta(milliseconds=1),
    )
    return Record(replace(following, **fields), record.create_time)


def superseded(record: Record, by: str) -> Record:
    """Make the next revision of a decision, replaced by another."""
    return after(record, superseded_by_record_id=by, **LINKED)


def history(record_id: str, length: int, **changes: Any) -> tuple[Record, ...]:
    """Make a whole chain; the last one is the head."""
    chain = [memory(record_id, **changes)]
    while len(chain) < length:
        chain.append(after(chain[-1], f"text {len(chain) + 1}"))
    return tuple(chain)


def put(
    record: Record, *, over: int | Record | None = None, entry: RecallEntry | None = None
) -> HeadPut:
    """Put a head over a revision, over another head, or where there is none."""
    expected = over.current.revision if isinstance(over, Record) else over
    return HeadPut(record, expected, entry)


def entry(
    words: str = "", *, vector: Vector | None = None, length: int | None = None
) -> RecallEntry:
    """Make what recall finds a head by; each word is a term as often as it stands there."""
    terms = words.split()
    counts = {each: terms.count(each) for each in terms}
    return RecallEntry(TermVector(counts, len(terms) if length is None else length), vector)


def vector(*numbers: float, model: str = "m1") -> Vector:
    """Make an embedding that points where these numbers point."""
    length = hypot(*numbers)
    return Vector(model, struct.pack(f"<{len(numbers)}f", *(each / length for each in numbers)))


def receipt(
    *,
    key: str | None = None,
    actor: str = ACTOR,
    request: str = "a request",
    refs: Iterable[RevisionRef] = (),
    **changes: Any,
) -> IdempotencyReceipt:
    """Make a receipt; ``request`` stands for the normalised request."""
    made = IdempotencyReceipt(
        key=ReceiptKey(actor, fresh("key") if key is None else key),
        method="conformance.write",
        fingerprint=digest(request),
        refs=tuple(refs),
        create_time=START,
    )
    return replace(made, **changes)


def write(project: ProjectKey, *puts: HeadPut, **changes: Any) -> WriteSet:
    """Make a write set whose receipt refers to the heads; ``changes`` are its fields."""
    made = WriteSet(
        project=project, receipt=receipt(refs=[ref(each.record) for each in puts]), heads=puts
    )
    return replace(made, **changes)


def keyed(write_set: WriteSet, **receipt_changes: Any) -> WriteSet:
    """Give a write set another receipt over the same heads; see ``receipt``."""
    refs = [ref(each.record) for each in write_set.heads]
    return replace(write_set, receipt=receipt(refs=refs, **receipt_changes))


def create(project: ProjectKey, *records: Record, **changes: Any) -> WriteSet:
    """Make the write set that creates these records."""
    return write(project, *(put(each) for each in records), **changes)


def update(project: ProjectKey, record: Record, text: str = "Java 25.", **changes: Any) -> WriteSet:
    """Make the write set that follows this head."""
    return write(project, put(after(record, text), over=record), **changes)


def claiming(record_id: str, key: str, held_by: str | None = None) -> dict[str, tuple[Claim]]:
    """Name a claim as a field of a write set."""
    return {"claims": (Claim(key, record_id, held_by),)}


def tombstone(key: str, kind: str = "forgotten") -> Tombstone:
    """Make a tombstone."""
    return Tombstone(key, kind, START)


def effect(sequence: int, *, run_id: str = "run-1", decision_id: str = "d1") -> AcceptedEffect:
    """Make an accepted effect."""
    return AcceptedEffect(
        receipt_id=fresh("effect"),
        run_id=run_id,
        sequence=sequence,
        receipt={"schema_version": 1, "record_id": decision_id, "record_revision": 1},
        accept_time=START,
    )


def acknowledgement(sequence: int = 1) -> Acknowledgement:
    """Make what the events service answers."""
    return Acknowledgement(fresh("fact"), sequence)


def ref(record: Record) -> RevisionRef:
    """Name the revision that a head is at."""
    return RevisionRef(record.current.record_id, record.current.revision)


def _first(record_id: str, fields: dict[str, Any]) -> Record:
    blank: dict[str, Any] = {
        "agent_id": "a1",
        "revision": 1,
        "revision_id": fresh("rev"),
        "previous_revision_id": None,
        "facet": None,
        "source_run_id": None,
        "source_session_id": None,
        "promoted_decision_id": None,
        "superseded_by_record_id": None,
        "reason": None,
        "actor_fingerprint": ACTOR,
        "create_time": START,
    }
    current = Revision(record_id=record_id, **{**blank, **fields})
    return Record(current, current.create_time)
