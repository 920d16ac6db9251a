"""The model notices: a reply or a read that differs anywhere from what was sent is a mismatch."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from broker.api.v1 import record_pb2 as records
from broker.api.v1 import record_service_pb2 as pb
from tests.evaluation.calls import Judgement
from tests.evaluation.model import Known, Model, plain_tags

BEGUN = datetime(2031, 3, 3, 9, 30, tzinfo=UTC)
CREATE = pb.CreateRecordRequest(
    scope=records.Scope(project_id="project", run_id="run", agent_id="agent"),
    idempotency_key="key",
    kind=records.RECORD_KIND_MEMORY,
    type=" turn ",
    content="déjà vu\n",
    tags=["b", "A", " b ", "B"],
    facet=records.MemoryFacet(source="s", source_type=records.SOURCE_TYPE_CHAT),
)


def told() -> records.Record:
    """The right reply to ``CREATE``."""
    record = records.Record(
        record_id="record",
        project_id="project",
        agent_id="agent",
        kind=records.RECORD_KIND_MEMORY,
        type="turn",
        content="déjà vu\n",
        importance=0.5,
        tags=["A", "B"],
        state=records.RECORD_STATE_ACTIVE,
        trust=records.TRUST_PENDING,
        revision=1,
        revision_id="revision-1",
        source_run_id="run",
        facet=records.MemoryFacet(
            source="s",
            source_type=records.SOURCE_TYPE_CHAT,
            origin_tier=records.ORIGIN_TIER_AGENT,
        ),
    )
    record.create_time.FromDatetime(BEGUN)
    record.update_time.FromDatetime(BEGUN)
    return record


def made() -> tuple[Model, Known]:
    model = Model("project", "https://issuer.test")
    known = model.created(CREATE, "subject", told())
    assert model.mismatches == []
    return model, known


Change = Callable[[records.Record], object]
CHANGES: dict[str, Change] = {
    "content": lambda record: setattr(record, "content", "de\u0301ja\u0300 vu\n"),
    "trimmed": lambda record: setattr(record, "content", "déjà vu"),
    "type": lambda record: setattr(record, "type", " turn "),
    "title": lambda record: setattr(record, "title", "x"),
    "rationale": lambda record: setattr(record, "rationale", "x"),
    "importance": lambda record: setattr(record, "importance", 0.5000001),
    "tags": lambda record: record.tags.append("c"),
    "agent": lambda record: setattr(record, "agent_id", "agent-2"),
    "project": lambda record: setattr(record, "project_id", "project-2"),
    "run": lambda record: setattr(record, "source_run_id", "run-2"),
    "kind": lambda record: setattr(record, "kind", records.RECORD_KIND_DECISION),
    "state": lambda record: setattr(record, "state", records.RECORD_STATE_ARCHIVED),
    "trust": lambda record: setattr(record, "trust", records.TRUST_APPROVED),
    "revision": lambda record: setattr(record, "revision", 2),
    "link": lambda record: setattr(record, "previous_revision_id", "x"),
    "successor": lambda record: setattr(record, "superseded_by_record_id", "x"),
    "tier": lambda record: setattr(record.facet, "origin_tier", records.ORIGIN_TIER_OPERATOR),
    "source": lambda record: setattr(record.facet, "source", "x"),
    "source_type": lambda record: setattr(record.facet, "source_type", records.SOURCE_TYPE_MANUAL),
    "facet": lambda record: record.ClearField("facet"),
    "create_time": lambda record: record.create_time.FromDatetime(BEGUN - timedelta(days=1)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_reply_that_differs_is_a_mismatch(change: Change) -> None:
    model = Model("project", "https://issuer.test")
    reply = told()
    change(reply)
    model.created(CREATE, "subject", reply)
    assert len(model.mismatches) == 1


def test_an_update_follows_from_what_was_sent() -> None:
    model, known = made()
    request = pb.UpdateRecordRequest(
        scope=CREATE.scope,
        record_id="record",
        expected_revision=1,
        type="turn",
        title="now with a title",
        content="déjà vu",
        importance=0.0,
        reason="why",
        facet=records.MemoryFacet(subject="vu", source="not named in the mask"),
        facet_mask=FieldMask(paths=["subject", "confidence"]),
    )
    reply = told()
    reply.ClearField("tags")
    reply.revision, reply.revision_id, reply.previous_revision_id = 2, "revision-2", "revision-1"
    reply.title, reply.content, reply.importance = "now with a title", "déjà vu", 0.0
    reply.facet.subject = "vu"
    reply.update_time.FromDatetime(BEGUN + timedelta(microseconds=1))
    model.updated(request, "another", reply)
    assert model.mismatches == []
    first, second = known.revisions
    assert (second.reason, second.change_kind) == ("why", records.CHANGE_KIND_UPDATED)
    assert first.actor_fingerprint != second.actor_fingerprint
    request.expected_revision = 2
    reply.revision, reply.revision_id, reply.previous_revision_id = 3, "revision-3", "revision-2"
    model.updated(request, "another", reply)
    assert model.mismatches == [f"reply to {request.idempotency_key}: time did not grow"]


def test_a_record_that_was_made_twice_is_a_mismatch() -> None:
    model, _ = made()
    model.created(CREATE, "subject", told())
    assert model.mismatches == ["record was made twice"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], []),
        (["b", "a"], ["a", "b"]),
        ([" a", "A "], ["A"]),
        (["ß", "Zoo", "ss"], ["ss", "Zoo"]),
    ],
)
def test_tags(given: list[str], kept: list[str]) -> None:
    assert plain_tags(given) == kept


JUDGEMENTS: list[tuple[type[Judgement], dict[str, int]]] = [
    (
        pb.ApproveRecordRequest,
        {"trust": records.TRUST_APPROVED, "change_kind": records.CHANGE_KIND_APPROVED},
    ),
    (
        pb.RejectRecordRequest,
        {"trust": records.TRUST_REJECTED, "change_kind": records.CHANGE_KIND_REJECTED},
    ),
    (
        pb.ArchiveRecordRequest,
        {"state": records.RECORD_STATE_ARCHIVED, "change_kind": records.CHANGE_KIND_ARCHIVED},
    ),
]


@pytest.mark.parametrize(("asked", "becomes"), JUDGEMENTS)
def test_a_judgement_changes_what_it_judges(
    asked: type[Judgement], becomes: dict[str, int]
) -> None:
    model, known = made()
    reply = told()
    reply.revision, reply.revision_id, reply.previous_revision_id = 2, "revision-2", "revision-1"
    reply.update_time.FromDatetime(BEGUN + timedelta(seconds=1))
    for name in becomes.keys() & {"trust", "state"}:
        setattr(reply, name, becomes[name])
    if asked is pb.RejectRecordRequest:
        reply.facet.invalidate_time.CopyFrom(reply.update_time)
        reply.facet.invalidation_reason = "rejected"
    request = asked(record_id="record", expected_revision=1, reason="why")
    model.judged(request, "another", reply)
    assert model.mismatches == []
    assert {name: getattr(known.head, name) for name in becomes} == becomes
    model, _ = made()
    reply.trust, reply.state = records.TRUST_LEGACY, records.RECORD_STATE_PROMOTED
    model.judged(request, "another", reply)
    assert len(model.mismatches) == 1
