"""A bundle as a whole: what is read of it, its label, and every limit on both sides."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2, transfer_pb2
from broker.domain.errors import (
    BundleInvalidError,
    BundleScopeMismatchError,
    BundleTooLargeError,
    BundleUnsupportedError,
)
from broker.server.bundles import MessageBundle
from broker.transfer.faults import FAULTS_MAX
from broker.transfer.given import GivenRecord
from broker.transfer.verify import check_label, checked_bundle
from providers.model import Kind, State, Trust
from tests.fixtures.bundles import DECISION, START, bundle, chain, history, revision
from tests.unit.transfer.broken import NOW, SCOPE, facet, faults, put, read, time, whole

M: Final = "bundle.records[0]"
REVISIONS: Final = f"{M}.revisions"


def test_what_is_right_is_read() -> None:
    """004-86: every field of every revision arrives as it was given."""
    read_bundle = read(whole())
    memory, superseded, serving = read_bundle.chains
    assert (read_bundle.project_id, read_bundle.agent_id) == ("p", "agent-a")
    first = memory.revisions[0]
    assert (first.content.title, first.content.tags) == ("t", ("Blue", "sky"))
    assert first.facet is not None and first.facet.flagged and first.facet.corroboration == 2
    assert memory.revisions[1].reason == "why"
    assert memory.revisions[1].source_session_id == "session"
    assert memory.record.current == memory.revisions[2]
    assert memory.record.current.trust is Trust.LEGACY
    assert memory.record.create_time == first.create_time
    assert superseded.record.current.state is State.SUPERSEDED
    assert superseded.record.current.superseded_by_record_id == "b"
    assert serving.record.current.kind is Kind.DECISION


def test_old_histories_may_not_know_where_they_come_from() -> None:
    """004-86, C11: no run, no session, no actor, no change kind in old revisions."""
    message = whole()
    message.records[0].record.source_run_id = "run-b"
    for each in message.records[0].revisions:
        for name in ("source_run_id", "source_session_id", "actor_fingerprint", "change_kind"):
            each.ClearField(name)
    oldest = read(message).chains[0].revisions[0]
    assert (oldest.source_run_id, oldest.actor_fingerprint, oldest.change_kind) == (None,) * 3


# -------------------- the label


@pytest.mark.parametrize(
    ("changes", "error", "path"),
    [
        ({"format": ""}, BundleUnsupportedError, "bundle.format"),
        ({"format": "agentweaver.knowledge-transfer.v2"}, BundleUnsupportedError, "bundle.format"),
        ({"schema_version": 0}, BundleUnsupportedError, "bundle.schema_version"),
        ({"schema_version": 2}, BundleUnsupportedError, "bundle.schema_version"),
        ({"project_id": "P"}, BundleScopeMismatchError, "bundle.project_id"),
        ({"agent_id": "agent-b"}, BundleScopeMismatchError, "bundle.agent_id"),
        ({"records": []}, BundleInvalidError, "bundle.records"),
    ],
)
def test_label(changes: dict[str, Any], error: type[Exception], path: str) -> None:
    """004-82, 004-85, 004-86, C10: format, version, scope; and an empty bundle."""
    message = whole()
    for name, value in changes.items():
        put(message, name, value)
    with pytest.raises(error, match=path):
        read(message)


def test_no_bundle() -> None:
    """004-86, C12: a request without one."""
    with pytest.raises(BundleInvalidError) as refused:
        check_label(MessageBundle(transfer_pb2.Bundle(), present=False), SCOPE)
    assert [each.field for each in refused.value.violations] == ["bundle"]


# -------------------- the limits

COUNTS: Final = {
    "24 records": ([1] * 24, None),
    "25 records": ([1] * 25, None),
    "26 records": ([1] * 26, "records"),
    "499 revisions": ([499], None),
    "500 revisions": ([500], None),
    "501 revisions": ([501], "revisions"),
    "25 x 20 revisions": ([20] * 25, None),
    "25 x 20 + 1 revisions": ([21] + [20] * 24, "revisions"),
    "26 records of 501 revisions": ([476] + [1] * 25, "records"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    """004-83: 25 records and 500 revisions are the most."""
    counts, limit = COUNTS[name]
    message = bundle("p", *(history("p", f"r{n}", count) for n, count in enumerate(counts)))
    if limit is None:
        assert len(read(message).chains) == len(counts)
        return
    with pytest.raises(BundleTooLargeError) as refused:
        read(message)
    most = {"records": "25", "revisions": "500"}[limit]
    assert refused.value.metadata == {"limit": limit, "max": most}


# -------------------- heads, lengths, times


@pytest.mark.parametrize(
    "name", [field.name for field in record_pb2.Record.DESCRIPTOR.fields if field.name != "snippet"]
)
def test_the_head_says_what_the_last_revision_says(name: str) -> None:
    """004-86: every field of a head is compared, and none may be missing."""
    message = whole()
    record = message.records[0].record
    other: dict[str, Any] = {
        "importance": 0.75,
        "tags": ["other"],
        "kind": DECISION,
        "state": record_pb2.RECORD_STATE_ARCHIVED,
        "trust": record_pb2.TRUST_APPROVED,
        "revision": 2,
        "create_time": time(NOW),
        "update_time": time(NOW),
    }
    if name == "facet":
        record.facet.subject = "another"
    else:
        put(record, name, other.get(name, "other"))
    told = faults(message)
    if name != "record_id":
        assert set(told) == {f"{M}.record.{name}"}
    else:
        assert f"{M}.record.{name}" in told


LENGTHS: Final = {
    "type": 64,
    "title": 512,
    "content": 40_000,
    "rationale": 8_000,
    "reason": 1_024,
    "record_id": 256,
    "revision_id": 256,
    "source_run_id": 256,
    "source_session_id": 256,
    "facet.namespace": 256,
    "facet.subject": 512,
    "facet.source": 256,
    "facet.epoch": 256,
    "facet.invalidation_reason": 256,
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(name: str) -> None:
    """004-48: one less, as many, and one too many."""
    for extra in (-1, 0, 1):
        message = bundle("p", history("p", "m", 1, facet=facet()))
        text = "x" * (LENGTHS[name] + extra)
        entry = message.records[0]
        if name != "reason":
            put(entry.record, name, text)
        put(entry.revisions[0], name, text)
        if extra == 1:
            assert set(faults(message)) == {f"{REVISIONS}[0].{name}"}
        else:
            assert len(read(message).chains) == 1


def test_tags_at_their_limits() -> None:
    """004-48: 32 tags of 64 code points."""
    for count, length, right in ((32, 64, True), (33, 64, False), (32, 65, False)):
        tags = sorted(f"{n:02}".ljust(length, "x") for n in range(count))
        message = bundle("p", history("p", "m", 1, tags=tags))
        if right:
            read(message)
        else:
            assert all(path.startswith(f"{REVISIONS}[0].tags") for path in faults(message))


def test_times_at_their_limits() -> None:
    """004-86: equal times are in order; 5 minutes ahead is the most."""
    made = [revision("m", n + 1, create_time=START) for n in range(2)]
    message = bundle("p", chain("p", made))
    most = timedelta(minutes=5)
    read(message, START - most)
    with pytest.raises(BundleInvalidError, match="5 min"):
        read(message, START - most - timedelta(microseconds=1))


def test_at_most_sixteen_faults_are_looked_for() -> None:
    """004-86: a bundle full of faults is not gone through to its end."""
    message = bundle("p", *(history("p", f"r{n}", 20, type="") for n in range(25)))
    told = faults(message)
    assert len(told) == FAULTS_MAX
    assert next(iter(told)) == "bundle.records[0].revisions[0].type"


def test_records_behind_sixteen_faults_are_not_read() -> None:
    """004-86: they cost nothing."""

    class Counted(MessageBundle):
        seen = 0

        def records(self) -> Iterator[GivenRecord]:
            for each in super().records():
                self.seen += 1
                yield each

    message = bundle("p", *(history("p", f"r{n}", 20, type="") for n in range(25)))
    source = Counted(message, present=True)
    with pytest.raises(BundleInvalidError):
        checked_bundle(source, NOW)
    assert source.seen == 1


def test_a_record_twice() -> None:
    """004-86: no id of a record or revision occurs twice."""
    message = bundle("p", history("p", "m"), history("p", "m"))
    assert set(faults(message)) == {
        "bundle.records[1].record.record_id",
        "bundle.records[1].revisions[0].revision_id",
    }


def test_nothing_of_the_values_is_told() -> None:
    """004-33: a fault names the path and the rule."""
    message = bundle(
        "p", history("p", "m", 1, content="canary\0", type="canary\x07", reason="\x07")
    )
    with pytest.raises(BundleInvalidError) as refused:
        read(message)
    assert "canary" not in str(refused.value) + str(refused.value.violations)
