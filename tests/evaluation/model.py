"""What must be there after the calls: an independent account of records and their histories.

It is built from what was sent. Only what the broker alone can know, ids and times, is taken from
its replies, and must then stay as it was. It shares no code with the broker but the messages.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from broker.api.v1 import record_pb2 as records
from broker.api.v1 import record_service_pb2 as pb
from tests.evaluation.calls import Judgement

AGENT_SOURCES = frozenset(range(records.SOURCE_TYPE_AGENT, records.SOURCE_TYPE_ORCHESTRATION + 1))
_CONTENT = ("type", "title", "content", "rationale", "importance")
_JUDGED: dict[type[Message], dict[str, Any]] = {
    pb.ApproveRecordRequest: {
        "change_kind": records.CHANGE_KIND_APPROVED,
        "trust": records.TRUST_APPROVED,
    },
    pb.RejectRecordRequest: {
        "change_kind": records.CHANGE_KIND_REJECTED,
        "trust": records.TRUST_REJECTED,
    },
    pb.ArchiveRecordRequest: {
        "change_kind": records.CHANGE_KIND_ARCHIVED,
        "state": records.RECORD_STATE_ARCHIVED,
    },
}


@dataclass
class Known:
    """One record: its place, and its revisions from the first on."""

    project_id: str
    run_id: str
    revisions: list[records.Revision]

    @property
    def record_id(self) -> str:
        """Its id."""
        return self.revisions[0].record_id

    @property
    def agent_id(self) -> str:
        """Its agent."""
        return self.revisions[0].agent_id

    @property
    def head(self) -> records.Revision:
        """Its newest revision."""
        return self.revisions[-1]

    @property
    def scope(self) -> records.Scope:
        """Where to ask for it."""
        return records.Scope(project_id=self.project_id, run_id=self.run_id, agent_id=self.agent_id)

    def record(self, revision: records.Revision | None = None) -> records.Record:
        """Return it as it was at a revision, by default as it is now."""
        at = revision or self.head
        named = {each.name for each in records.Record.DESCRIPTOR.fields} - {"create_time"}
        shared = {each.name: value for each, value in at.ListFields() if each.name in named}
        return records.Record(
            project_id=self.project_id,
            create_time=self.revisions[0].create_time,
            update_time=at.create_time,
            **shared,
        )


@dataclass
class Model:
    """All records of one project. ``mismatches`` gathers what was not as it must be."""

    project_id: str
    issuer: str
    known: dict[str, Known] = field(default_factory=dict)
    mismatches: list[str] = field(default_factory=list)
    checked: int = 0

    @property
    def revisions(self) -> int:
        """How many revisions there are in all histories."""
        return sum(len(known.revisions) for known in self.known.values())

    def created(self, request: pb.CreateRecordRequest, subject: str, told: records.Record) -> Known:
        """Take in a create that was answered with a record, and compare the two."""
        revision = records.Revision(
            record_id=told.record_id,
            agent_id=request.scope.agent_id,
            revision=1,
            revision_id=told.revision_id,
            kind=request.kind,
            state=records.RECORD_STATE_ACTIVE,
            trust=_trust(request.kind),
            source_run_id=request.scope.run_id,
            change_kind=records.CHANGE_KIND_CREATED,
            actor_fingerprint=self.fingerprint(subject),
            create_time=told.update_time,
            **_content(request),
        )
        if request.HasField("facet"):
            revision.facet.CopyFrom(request.facet)
            revision.facet.origin_tier = _tier(request.facet.source_type)
        known = Known(self.project_id, request.scope.run_id, [revision])
        self.expect(told.record_id not in self.known, f"{told.record_id} was made twice")
        self.known[told.record_id] = known
        self.same(told, known.record(), f"reply to create {request.idempotency_key}")
        return known

    def updated(self, request: pb.UpdateRecordRequest, subject: str, told: records.Record) -> Known:
        """Take in an update that was answered with a record, and compare the two."""
        known = self.known[request.record_id]
        before = known.head
        after = records.Revision()
        after.CopyFrom(before)
        for name in (*_CONTENT, "tags"):
            after.ClearField(name)  # type: ignore[arg-type]
        after.MergeFrom(
            records.Revision(
                trust=_trust(before.kind),
                change_kind=records.CHANGE_KIND_UPDATED,
                **_content(request),
            )
        )
        for name in request.facet_mask.paths:
            after.facet.ClearField(name)  # type: ignore[arg-type]
            chosen = {each.name: value for each, value in request.facet.ListFields()}
            if name in chosen:
                after.facet.MergeFrom(records.MemoryFacet(**{name: chosen[name]}))
        return self._next(known, after, request, subject, told)

    def judged(self, request: Judgement, subject: str, told: records.Record) -> Known:
        """Take in an approval, a rejection or an archival that was answered with a record."""
        known = self.known[request.record_id]
        after = records.Revision()
        after.CopyFrom(known.head)
        after.MergeFrom(records.Revision(**_JUDGED[type(request)]))
        if after.trust == records.TRUST_REJECTED:
            after.facet.invalidate_time.CopyFrom(told.update_time)
            after.facet.invalidation_reason = "rejected"
        return self._next(known, after, request, subject, told)

    def _next(
        self,
        known: Known,
        after: records.Revision,
        request: pb.UpdateRecordRequest | Judgement,
        subject: str,
        told: records.Record,
    ) -> Known:
        """Make ``after`` the head once it has what every change sets."""
        before = known.head
        where = f"reply to {request.idempotency_key}"
        self.expect(before.revision == request.expected_revision, f"{where}: won at a stale head")
        after.revision, after.revision_id = before.revision + 1, told.revision_id
        after.previous_revision_id = before.revision_id
        after.actor_fingerprint, after.reason = self.fingerprint(subject), request.reason
        after.create_time.CopyFrom(told.update_time)
        known.revisions.append(after)
        self.same(told, known.record(), where)
        self.expect(
            before.create_time.ToNanoseconds() + 1_000 <= after.create_time.ToNanoseconds(),
            f"{where}: time did not grow",
        )
        return known

    def same(self, told: Message, wanted: Message, where: str) -> None:
        """Expect two messages to be equal in every field; strings are compared as they are."""
        if told != wanted:
            self.mismatches.append(f"{where}: {', '.join(_differences(told, wanted))}")

    def expect(self, holds: bool, otherwise: str) -> None:
        """Keep a sentence for the report unless something holds."""
        if not holds:
            self.mismatches.append(otherwise)

    def fingerprint(self, subject: str) -> str:
        """Return what the broker keeps of somebody who called."""
        return hashlib.sha256(f"{self.issuer}\n{subject}".encode()).hexdigest()


def plain_tags(tags: Iterable[str]) -> list[str]:
    """Return tags as they are kept: trimmed, each once whatever its case, sorted."""
    kept: list[str] = []
    for tag in sorted(each.strip() for each in tags):
        if tag.casefold() not in {each.casefold() for each in kept}:
            kept.append(tag)
    return sorted(kept, key=str.casefold)


def _content(request: pb.CreateRecordRequest | pb.UpdateRecordRequest) -> dict[str, Any]:
    said: dict[str, Any] = {name: getattr(request, name) for name in _CONTENT}
    if not request.HasField("importance"):
        said["importance"] = 0.5
    said["type"] = request.type.strip()
    return {**said, "tags": plain_tags(request.tags)}


def _trust(kind: records.RecordKind.ValueType) -> records.Trust.ValueType:
    if kind == records.RECORD_KIND_SESSION_CONTEXT:
        return records.TRUST_APPROVED
    return records.TRUST_PENDING


def _tier(source: records.SourceType.ValueType) -> records.OriginTier.ValueType:
    if source in AGENT_SOURCES:
        return records.ORIGIN_TIER_AGENT
    return records.ORIGIN_TIER_EXTERNAL


def _differences(told: Message, wanted: Message) -> Iterator[str]:
    """Name the fields that differ, and how, without the length of whole texts."""
    for field_ in wanted.DESCRIPTOR.fields:
        got, due = getattr(told, field_.name), getattr(wanted, field_.name)
        if got != due:
            yield f"{field_.name} is {str(got)[:80]!r}, must be {str(due)[:80]!r}"
