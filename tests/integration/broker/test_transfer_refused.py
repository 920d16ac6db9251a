"""What is not imported: the right refusal, and not one row (004-83, 004-86, 004-87)."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2, transfer_pb2
from broker.server.bundle_json import canonical_json
from tests.fixtures.authority_rows import bent, granting
from tests.fixtures.broker import Stand
from tests.fixtures.bundles import DECISION, MEMORY, bundle, history, linked
from tests.fixtures.decisions import decisions
from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import EXPORT, IMPORT, Refused, request, send
from tests.fixtures.stand_records import provider_operations, stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

THERE: Final = {"tenant": "tenant-b"}
BYTES_MAX: Final = 1_048_576

Make = Callable[[str], transfer_pb2.Bundle]


async def refused(desk: Desk, made: transfer_pb2.Bundle, **changes: Any) -> Refused:
    """Import; require the refusal, and that nothing was written; the key stays free."""
    await desk.made("pin")
    kept = await stored(desk.stand, [desk.project])
    told = await desk.told(IMPORT, bundle=made, **changes)
    assert await stored(desk.stand, [desk.project]) == kept
    checked = await desk.told(IMPORT, bundle=made, validate_only=True, **changes)
    assert (checked.reason, checked.metadata) == (told.reason, told.metadata)
    good = bundle(desk.project, history(desk.project, "good"))
    assert not (await desk.done(IMPORT, bundle=good, **changes)).replayed
    return told


def many(project: str, *counts: int, **changes: Any) -> transfer_pb2.Bundle:
    """Return a bundle of so many records with so many revisions."""
    return bundle(
        project, *(history(project, f"r{n:02}", each, **changes) for n, each in enumerate(counts))
    )


def valued(count: int) -> record_pb2.MemoryFacet:
    """Return a facet whose metadata hold so many values."""
    made = record_pb2.MemoryFacet()
    made.metadata.update({"a": [{}] * (count - 1)})
    return made


def sized(project: str, size: int, filler: str = "x") -> transfer_pb2.Bundle:
    """Return a bundle whose canonical form has exactly so many bytes.

    All but one record are filled with the filler, and the last one fills up what is left.
    """

    def filled(length: int) -> transfer_pb2.Bundle:
        return many(project, *[1] * 25, content=filler * length, reason="x")

    # Each text is there twice: in the head and in the revision.
    weight = (len(canonical_json(filled(2))) - len(canonical_json(filled(1)))) // 50
    room = size - len(canonical_json(filled(1)))
    made = filled(room // (50 * weight))
    short = size - len(canonical_json(made))
    last = made.records[-1]
    for each in (last.record, last.revisions[0]):
        each.content += "x" * (short // 2)
    last.revisions[0].reason += "x" * (short % 2)
    assert len(canonical_json(made)) == size
    return made


# -------------------- conflicts


async def test_into_the_source(desk: Desk) -> None:
    """004-87, P6, B4.11: it never merges."""
    await decisions(desk.stand, desk.project, 2)
    made = (await desk.done(EXPORT)).bundle
    told = await refused(desk, made)
    assert (told.code, told.reason) == ("ALREADY_EXISTS", "BUNDLE_CONFLICT")
    assert told.metadata == {"index": "0"}


@pytest.mark.parametrize("agent", ["agent-a", "agent-b"])
async def test_one_collision_in_25(desk: Desk, agent: str) -> None:
    """004-87: one record that is there, of whatever agent, refuses all."""
    there = await desk.made("there", agent=agent)
    records = [history(desk.project, f"r{n:02}") for n in range(24)]
    records.insert(17, history(desk.project, there.record_id))
    told = await refused(desk, bundle(desk.project, *records))
    assert (told.reason, told.metadata) == ("BUNDLE_CONFLICT", {"index": "17"})
    assert there.record_id not in told.text()


async def test_a_revision_id_of_another_record(desk: Desk) -> None:
    """004-87: told by the commit, so validate_only cannot know it; and told at once."""
    there = await desk.made("there")
    record = history(desk.project, "r")
    for each in (record.record, record.revisions[0]):
        each.revision_id = there.revision_id
    made = bundle(desk.project, history(desk.project, "q"), record)
    kept = await stored(desk.stand, [desk.project])
    before = provider_operations(desk.stand)
    told = await desk.told(IMPORT, bundle=made)
    assert (told.reason, told.metadata) == ("BUNDLE_CONFLICT", {"index": "1"})
    assert (provider_operations(desk.stand) - before)["commit"] == 1
    assert await stored(desk.stand, [desk.project]) == kept


# -------------------- links


async def test_links_that_lead_nowhere(desk: Desk) -> None:
    """004-87, C14, P7: absent, of another agent, a memory; also where they were taken back."""
    (foreign,) = await decisions(desk.stand, desk.project, 1, agent="agent-b")
    memory = await desk.made("memory")
    for n, target in enumerate(("absent", foreign, memory.record_id)):
        for restored in (False, True):
            made = bundle(
                desk.project,
                history(desk.project, f"m{n}{restored}"),
                linked(desk.project, f"a{n}{restored}", target, restored=restored),
            )
            told = await desk.told(IMPORT, bundle=made, idempotency_key=f"{n}{restored}")
            assert (told.code, told.reason) == ("FAILED_PRECONDITION", "REPLACEMENT_INVALID")
            assert told.metadata == {"index": "1"}
            assert "bundle.records[1].revisions[1].superseded_by_record_id" in told.message
    assert await desk.stand.rows("memory.records", desk.project) == 2


async def test_a_link_to_a_decision_that_is_there(desk: Desk) -> None:
    """004-87: of the same agent it is right, and stays a link of the past."""
    (there,) = await decisions(desk.stand, desk.project, 1)
    made = bundle(desk.project, linked(desk.project, "a", there))
    await desk.done(IMPORT, bundle=made)
    assert (await desk.head("a")).superseded_by_record_id == ""


@pytest.mark.parametrize("long_ago", [False, True])
async def test_a_cycle(desk: Desk, long_ago: bool) -> None:
    """004-87: wherever in a history links ever led back; taken back first, they do not."""
    project = desk.project
    first = linked(project, "a", "b", restored=long_ago)
    made = bundle(project, first, linked(project, "b", "a", restored=long_ago))
    told = await refused(desk, made)
    assert (told.code, told.reason) == ("FAILED_PRECONDITION", "REPLACEMENT_CYCLE")
    after = bundle(
        project,
        linked(project, "a", "b", restored=True),
        linked(project, "b", "a", begin=5),
    )
    await desk.done(IMPORT, bundle=after, idempotency_key="after")


# -------------------- form and size


def gap(project: str) -> transfer_pb2.Bundle:
    """Return a history without its second revision."""
    made = many(project, 1, 3)
    del made.records[1].revisions[1]
    return made


def of(change: Callable[[transfer_pb2.Bundle], object]) -> Make:
    """Return a bundle of two records with a change."""

    def make(project: str) -> transfer_pb2.Bundle:
        made = many(project, 1, 2)
        change(made)
        return made

    return make


INVALID: Final = "BUNDLE_INVALID"
FORM: Final[dict[str, tuple[Make, str, Any]]] = {
    "a gap": (
        gap,
        INVALID,
        {
            "bundle.records[1].revisions[1].revision",
            "bundle.records[1].revisions[1].previous_revision_id",
        },
    ),
    "a self-link": (
        lambda project: bundle(project, linked(project, "a", "a", restored=True)),
        INVALID,
        {"bundle.records[0].revisions[1].superseded_by_record_id"},
    ),
    "no records": (bundle, INVALID, {"bundle.records"}),
    "no revisions": (
        of(lambda made: made.records[1].ClearField("revisions")),
        INVALID,
        {"bundle.records[1].revisions"},
    ),
    "an empty revision": (
        of(lambda made: made.records[0].revisions[0].ClearField("content")),
        INVALID,
        {"bundle.records[0].revisions[0].content", "bundle.records[0].record.content"},
    ),
    "a time out of range": (
        of(lambda made: setattr(made.records[0].revisions[0].create_time, "seconds", 1 << 60)),
        INVALID,
        {
            "bundle.records[0].revisions[0].create_time",
            "bundle.records[0].record.create_time",
            "bundle.records[0].record.update_time",
        },
    ),
    "relabelled inside": (
        of(lambda made: setattr(made.records[0].record, "agent_id", "agent-b")),
        INVALID,
        {"bundle.records[0].record.agent_id"},
    ),
    "relabelled": (
        of(lambda made: setattr(made, "agent_id", "agent-b")),
        "BUNDLE_SCOPE_MISMATCH",
        {"field": "agent_id"},
    ),
    "of another project": (
        of(lambda made: setattr(made, "project_id", "another")),
        "BUNDLE_SCOPE_MISMATCH",
        {"field": "project_id"},
    ),
    "another format": (of(lambda made: setattr(made, "format", "x")), "BUNDLE_UNSUPPORTED", {}),
    "another version": (
        of(lambda made: setattr(made, "schema_version", 2)),
        "BUNDLE_UNSUPPORTED",
        {},
    ),
    "26 records": (
        lambda project: many(project, *[1] * 26),
        "BUNDLE_TOO_LARGE",
        {"limit": "records", "max": "25"},
    ),
    "501 revisions": (
        lambda project: many(project, 501),
        "BUNDLE_TOO_LARGE",
        {"limit": "revisions", "max": "500"},
    ),
    "more than 20,000 values": (
        lambda project: many(project, 8, 1, facet=valued(2_000)),
        "BUNDLE_TOO_LARGE",
        {"limit": "values", "max": "20000"},
    ),
    "1 MiB + 1": (
        lambda project: sized(project, BYTES_MAX + 1),
        "BUNDLE_TOO_LARGE",
        {"limit": "bytes", "max": "1048576"},
    ),
}


@pytest.mark.memories("postgres", "redis")
@pytest.mark.parametrize("name", FORM)
async def test_form_and_size(desk: Desk, name: str) -> None:
    """004-82, 004-83, 004-85, 004-86, C10, C12, C13: the reason, the path or limit, zero rows."""
    make, reason, says = FORM[name]
    told = await refused(desk, make(desk.project))
    assert (told.code, told.reason) == ("INVALID_ARGUMENT", reason)
    assert (set(told.violations) if reason == INVALID else told.metadata) == says


async def test_no_bundle_and_no_key(desk: Desk) -> None:
    """004-61, 004-86: a request without a bundle, and without a key, also where it only checks."""
    empty = request(IMPORT, desk.project)
    empty.ClearField("bundle")
    told = await send(desk.channel, IMPORT, empty, desk.stand.metadata())
    assert (told.reason, set(told.violations)) == (INVALID, {"bundle"})
    for validate_only in (False, True):
        told = await desk.told(IMPORT, idempotency_key="", validate_only=validate_only)
        assert (told.reason, set(told.violations)) == ("FIELD_INVALID", {"idempotency_key"})


async def test_as_many_values_as_fit(desk: Desk) -> None:
    """004-83: 20,000 in heads and revisions go in; with those on top they are more than go out."""
    made = many(desk.project, 9, facet=valued(2_000))
    await desk.done(IMPORT, bundle=made)
    told = await desk.told(EXPORT)
    assert (told.reason, told.metadata["limit"]) == ("BUNDLE_TOO_LARGE", "values")


async def test_at_most_sixteen_faults_are_told(desk: Desk) -> None:
    """004-86: of a bundle full of faults the first, and soon."""
    told = await refused(desk, many(desk.project, *[20] * 25, type=""))
    assert len(told.violations) == 16


async def test_a_bundle_full_of_the_smallest_pieces(desk: Desk) -> None:
    """004-83: metadata that pass their limit are not taken apart."""
    facet = record_pb2.MemoryFacet()
    facet.metadata.update({"k": [[]] * 200_000})
    made = bundle(desk.project, history(desk.project, "m", revision=1, facet=facet))
    told = await desk.told(IMPORT, bundle=made)
    assert told.violations == {
        "bundle.records[0].revisions[0].facet.metadata": "must be at most 8192 bytes as JSON"
    }


# -------------------- as much as fits

FILLERS: Final = {"ASCII": "x", "CJK": "\u77e5", "emoji": "\U0001f600", "control": "\x01"}


@pytest.mark.parametrize("name", FILLERS)
async def test_a_full_bundle(desk: Desk, name: str) -> None:
    """004-83, B.11.8: 25 records of 1 MiB in one import; what comes back is what was given."""
    made = sized(desk.project, BYTES_MAX, FILLERS[name])
    await desk.done(IMPORT, bundle=made)
    for each in made.records:
        assert (await desk.revision_one(each.record.record_id)) == each.revisions[0]


@pytest.mark.parametrize("shape", [(20,) * 25, (500,)])
async def test_as_many_revisions_as_fit(desk: Desk, shape: tuple[int, ...]) -> None:
    """004-83, 004-84: 500 revisions in one import; on top of them there are more than fit back."""
    made = many(desk.project, *shape)
    replied = await desk.done(IMPORT, bundle=made)
    assert [each.revision for each in replied.records] == [each + 1 for each in shape]
    kinds = {each.record.kind for each in made.records}
    assert kinds == {MEMORY}
    rows = await desk.stand.rows("memory.revisions", desk.project)
    assert rows == 500 + len(shape)
    told = await desk.told(EXPORT)
    assert told.metadata == {"limit": "revisions", "max": "500"}


# -------------------- at once, and in between


@pytest.mark.parametrize("keys", [1, 6])
async def test_racing_imports(desk: Desk, keys: int) -> None:
    """004-62, 004-87: of the same bundle at once one is written; one key gives one reply."""
    made = many(desk.project, *[4] * 10)
    replies = await asyncio.gather(
        *(desk.call(IMPORT, bundle=made, idempotency_key=f"key-{n % keys}") for n in range(6))
    )
    done = [each for each in replies if not isinstance(each, Refused)]
    assert len([each for each in done if not each.replayed]) == 1
    if keys == 1:
        assert len(done) == 6
        assert len({tuple(head.revision_id for head in each.records) for each in done}) == 1
    else:
        assert {each.reason for each in replies if each not in done} == {"BUNDLE_CONFLICT"}
    assert await desk.stand.rows("memory.revisions", desk.project) == 50
    assert await desk.stand.rows("memory.receipts", desk.project) == 1


@pytest.mark.parametrize("validate_only", [False, True])
async def test_authority_withdrawn_in_between(desk: Desk, validate_only: bool) -> None:
    """004-15, 004-16, B3: refused, whatever the store would have said, and not one row."""
    await desk.made("pin")
    kept = await stored(desk.stand, [desk.project])
    for made in (many(desk.project, 1), bundle(desk.project, linked(desk.project, "a", "absent"))):
        desk.stand.owner.questions[desk.project].clear()
        desk.stand.owner.scripts[desk.project] = bent(granting(), at=2)
        told = await desk.told(IMPORT, bundle=made, validate_only=validate_only)
        del desk.stand.owner.scripts[desk.project]
        assert told.reason == "PERMISSION_MISSING"
    assert await stored(desk.stand, [desk.project]) == kept


async def test_rights_come_before_the_bundle(desk: Desk) -> None:
    """004-05: who may not enter is not told what is wrong with a bundle, nor costs its reading."""
    desk.stand.owner.scripts[desk.project] = bent(granting())
    told = await desk.told(IMPORT, bundle=many(desk.project, *[1] * 26), idempotency_key="")
    assert told.reason == "PERMISSION_MISSING"


async def test_tenants_are_independent(stand: Stand, desk: Desk) -> None:
    """004-12, 004-28: the same bundle into the same ids of two tenants."""
    made = many(desk.project, 2, 2, kind=DECISION)
    for claims in ({}, THERE):
        assert not (await desk.done(IMPORT, claims, bundle=made)).replayed
        assert len((await desk.done(EXPORT, claims)).bundle.records) == 2
    assert await stand.rows("memory.records", desk.project) == 4
