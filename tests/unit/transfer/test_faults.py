"""What a bundle is refused for, by itself: one row for each rule of 004-86."""

from typing import Final

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from broker.api.v1 import record_pb2
from tests.fixtures.bundles import DECISION, START, STEP
from tests.unit.transfer.broken import (
    Edit,
    at,
    both,
    deep,
    delete,
    faults,
    head,
    metadata,
    odd,
    time,
    whole,
)

M, D = "bundle.records[0]", "bundle.records[1]"
REVISIONS: Final = f"{M}.revisions"
LAST: Final = f"{REVISIONS}[2]"
ROWS: Final[dict[str, tuple[Edit, set[str]]]] = {
    "a negative zero": (both(0, "importance", -0.0), {f"{LAST}.importance"}),
    "a negative zero in metadata": (metadata({"k": [{"l": -0.0}]}), {f"{LAST}.facet.metadata"}),
    "a null of another number": (
        odd(lambda k: setattr(k, "null_value", 5)),
        {f"{LAST}.facet.metadata"},
    ),
    "a value without a kind": (odd(lambda k: k.Clear()), {f"{LAST}.facet.metadata"}),
    "no head": (lambda m: m.records[0].ClearField("record"), {f"{M}.record"}),
    "no revisions": (lambda m: m.records[0].ClearField("revisions"), {REVISIONS}),
    "a record of another project": (head(0, "project_id", "q"), {f"{M}.record.project_id"}),
    "a revision of another agent": (at(0, 1, "agent_id", "agent-b"), {f"{REVISIONS}[1].agent_id"}),
    "a record of another agent": (
        both(0, "agent_id", "agent-b"),
        {f"{M}.record.agent_id", f"{LAST}.agent_id"},
    ),
    "a revision of another record": (at(0, 1, "record_id", "n"), {f"{REVISIONS}[1].record_id"}),
    "a revision id of another record": (
        both(2, "revision_id", "m.1"),
        {"bundle.records[2].revisions[0].revision_id"},
    ),
    "a gap": (
        delete(0, 1),
        {f"{REVISIONS}[1].revision", f"{REVISIONS}[1].previous_revision_id"},
    ),
    "not from the beginning": (
        delete(0, 0),
        {
            f"{REVISIONS}[0].revision",
            f"{REVISIONS}[0].previous_revision_id",
            f"{REVISIONS}[1].revision",
            f"{M}.record.create_time",
        },
    ),
    "newest first": (
        lambda m: m.records[1].revisions.reverse(),
        {
            *(f"{D}.revisions[{n}].revision" for n in (0, 1)),
            *(f"{D}.revisions[{n}].previous_revision_id" for n in (0, 1)),
            f"{D}.revisions[1].create_time",
            *(f"{D}.record.{name}" for name in ("create_time", "update_time", "revision")),
            *(f"{D}.record.{name}" for name in ("revision_id", "previous_revision_id", "state")),
            *(f"{D}.record.{name}" for name in ("superseded_by_record_id", "content")),
        },
    ),
    "a link that does not fit": (
        at(0, 1, "previous_revision_id", "m.9"),
        {f"{REVISIONS}[1].previous_revision_id"},
    ),
    "a link before the first": (
        at(0, 0, "previous_revision_id", "m.0"),
        {f"{REVISIONS}[0].previous_revision_id"},
    ),
    "an id that is none": (
        both(2, "revision_id", "a/b"),
        {
            "bundle.records[2].revisions[0].revision_id",
        },
    ),
    "a kind that changes": (
        at(0, 1, "kind", DECISION),
        {f"{REVISIONS}[1].kind", f"{REVISIONS}[2].kind"},
    ),
    "a proposal": (
        both(2, "kind", record_pb2.RECORD_KIND_PROPOSAL),
        {"bundle.records[2].revisions[0].kind"},
    ),
    "a session context": (
        both(2, "kind", record_pb2.RECORD_KIND_SESSION_CONTEXT),
        {"bundle.records[2].revisions[0].kind"},
    ),
    "no kind": (both(2, "kind", 0), {"bundle.records[2].revisions[0].kind"}),
    "an unknown kind": (both(2, "kind", 99), {"bundle.records[2].revisions[0].kind"}),
    **{
        f"state {state}": (at(0, 1, "state", state), {f"{REVISIONS}[1].state"})
        for state in (0, 1, 5, 6, 7, 99)
    },
    "a superseded memory": (at(0, 1, "state", 4), {f"{REVISIONS}[1].state"}),
    "superseded by nothing": (
        both(1, "superseded_by_record_id", ""),
        {f"{D}.revisions[1].superseded_by_record_id"},
    ),
    "active and superseded": (
        both(1, "state", 2),
        {f"{D}.revisions[1].superseded_by_record_id"},
    ),
    "a link on an archived revision": (
        at(1, 0, "superseded_by_record_id", "b"),
        {f"{D}.revisions[0].superseded_by_record_id"},
    ),
    "superseded by itself": (
        both(1, "superseded_by_record_id", "a"),
        {f"{D}.revisions[1].superseded_by_record_id"},
    ),
    "superseded by no id": (
        both(1, "superseded_by_record_id", "a b"),
        {f"{D}.revisions[1].superseded_by_record_id"},
    ),
    "a promoted decision": (
        at(0, 1, "promoted_decision_id", "b"),
        {f"{REVISIONS}[1].promoted_decision_id"},
    ),
    "no trust": (at(0, 1, "trust", 0), {f"{REVISIONS}[1].trust"}),
    "an unknown trust": (at(0, 1, "trust", 99), {f"{REVISIONS}[1].trust"}),
    "an unknown change": (at(0, 1, "change_kind", 99), {f"{REVISIONS}[1].change_kind"}),
    **{
        f"actor {actor!r}": (
            at(0, 1, "actor_fingerprint", actor),
            {f"{REVISIONS}[1].actor_fingerprint"},
        )
        for actor in ("AB" * 32, "a" * 63, "a" * 65, "a" * 64 + "\n", "g" * 64)
    },
    "a run that is none": (at(0, 1, "source_run_id", "a b"), {f"{REVISIONS}[1].source_run_id"}),
    "a session that is none": (
        at(0, 1, "source_session_id", "a b"),
        {f"{REVISIONS}[1].source_session_id"},
    ),
    "a reason with control characters": (at(0, 1, "reason", "\x07"), {f"{REVISIONS}[1].reason"}),
    "a snippet": (at(0, 1, "snippet", "the"), {f"{REVISIONS}[1].snippet"}),
    "a snippet of a head": (head(0, "snippet", "the"), {f"{M}.record.snippet"}),
    "blank content": (at(0, 1, "content", " "), {f"{REVISIONS}[1].content"}),
    "no type": (at(0, 1, "type", ""), {f"{REVISIONS}[1].type"}),
    "a type that is not trimmed": (at(0, 1, "type", "note "), {f"{REVISIONS}[1].type"}),
    "importance above 1": (at(0, 1, "importance", 1.5), {f"{REVISIONS}[1].importance"}),
    "importance that is no number": (
        at(0, 1, "importance", float("nan")),
        {f"{REVISIONS}[1].importance"},
    ),
    "tags that are not sorted": (at(0, 1, "tags", ["b", "a"]), {f"{REVISIONS}[1].tags"}),
    "tags that are not trimmed": (at(0, 1, "tags", ["a "]), {f"{REVISIONS}[1].tags"}),
    "a tag twice": (at(0, 1, "tags", ["A", "a"]), {f"{REVISIONS}[1].tags"}),
    "NUL": (at(0, 1, "content", "a\0"), {f"{REVISIONS}[1].content"}),
    "no time": (at(0, 1, "create_time", None), {f"{REVISIONS}[1].create_time"}),
    "a time that is none": (
        at(0, 1, "create_time", Timestamp(seconds=1 << 50)),
        {f"{REVISIONS}[1].create_time"},
    ),
    "a time of nanoseconds": (
        at(0, 1, "create_time", time(START + 2 * STEP, nanos=1)),
        {f"{REVISIONS}[1].create_time"},
    ),
    "time that goes back": (
        at(0, 1, "create_time", time(START)),
        {f"{REVISIONS}[1].create_time"},
    ),
    "a head made at another time": (
        head(0, "create_time", time(START)),
        {f"{M}.record.create_time"},
    ),
    "a head changed at another time": (
        head(0, "update_time", time(START)),
        {f"{M}.record.update_time"},
    ),
    "an unknown origin": (at(0, 1, "facet.origin_tier", 9), {f"{REVISIONS}[1].facet.origin_tier"}),
    "an unknown kind of memory": (
        at(0, 1, "facet.memory_kind", 99),
        {f"{REVISIONS}[1].facet.memory_kind"},
    ),
    "fewer than no corroborations": (
        at(0, 1, "facet.corroboration", -1),
        {f"{REVISIONS}[1].facet.corroboration"},
    ),
    "confidence above 1": (
        at(0, 1, "facet.confidence", 2.0),
        {f"{REVISIONS}[1].facet.confidence"},
    ),
    **{
        f"{name} of nanoseconds": (
            at(0, 1, f"facet.{name}", time(START, nanos=1)),
            {f"{REVISIONS}[1].facet.{name}"},
        )
        for name in ("expire_time", "last_reinforce_time", "invalidate_time")
    },
    "metadata nested too deep": (metadata(deep(17)), {f"{LAST}.facet.metadata"}),
    "metadata with too many keys": (
        metadata({f"k{n}": 1 for n in range(65)}),
        {f"{LAST}.facet.metadata"},
    ),
    "metadata too long": (metadata({"k": "x" * 8_192}), {f"{LAST}.facet.metadata"}),
    "metadata with infinity": (metadata({"k": float("inf")}), {f"{LAST}.facet.metadata"}),
}


@pytest.mark.parametrize("name", ROWS)
def test_fault(name: str) -> None:
    """004-48, 004-86, C12, C13: the fault is named by its path, and nothing else is."""
    edit, paths = ROWS[name]
    message = whole()
    edit(message)
    assert set(faults(message)) == paths
