"""What a record keeps of its facet and content through every RPC, and what an update changes."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from broker.api.v1 import record_pb2
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import bent, granting, projects_grant
from tests.fixtures.broker import Stand
from tests.fixtures.identity import ISSUER
from tests.fixtures.record_calls import (
    CREATE,
    GET,
    LIST,
    REVISION,
    UPDATE,
    Refused,
    request,
    send,
)
from tests.fixtures.stand_records import stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

OPERATOR: Final = record_pb2.SOURCE_TYPE_OPERATOR
MANUAL: Final = record_pb2.SOURCE_TYPE_MANUAL
AGENT: Final = record_pb2.SOURCE_TYPE_AGENT
EXTERNAL_TIER: Final = record_pb2.ORIGIN_TIER_EXTERNAL
AGENT_TIER: Final = record_pb2.ORIGIN_TIER_AGENT
OPERATOR_TIER: Final = record_pb2.ORIGIN_TIER_OPERATOR
PENDING: Final = record_pb2.TRUST_PENDING
APPROVED: Final = record_pb2.TRUST_APPROVED
NOT_ALLOWED: Final = ("PERMISSION_DENIED", "SOURCE_NOT_ALLOWED")
READER: Final = projects_grant(
    owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE, owners.PERMISSION_READ_RUN_SELECTION
)
"""Grants all but WriteProjects."""


def whole_facet() -> record_pb2.MemoryFacet:
    """Return a facet in which every field a caller may give is given."""
    made = record_pb2.MemoryFacet(
        memory_kind=record_pb2.MEMORY_KIND_FACT,
        delivery_policy=record_pb2.DELIVERY_POLICY_ON_DEMAND,
        namespace="n\u00e4mespace",
        subject="s\U0001f308bject",
        belief_type=record_pb2.BELIEF_TYPE_PREFERENCE,
        source="session-1",
        source_type=record_pb2.SOURCE_TYPE_EXTRACTED,
        sensitivity=record_pb2.SENSITIVITY_RESTRICTED,
        expire_time=Timestamp(seconds=4_000_000_000, nanos=123_456_000),
        confidence=0.0,
        epoch="epoch-1",
        portability=record_pb2.PORTABILITY_LOCAL,
    )
    made.metadata.update(
        {
            "text": "\u2028</script>",
            "number": 1.5,
            "huge": 1e300,
            "yes": True,
            "nothing": None,
            "list": [1, "two", {"three": []}],
            "": {},
        }
    )
    return made


class Keeper:
    """Makes, edits and reads the one record of a project."""

    def __init__(self, stand: Stand, channel: aio.Channel) -> None:
        """Take a fresh project."""
        self.stand, self.channel = stand, channel
        self.project = stand.project()
        self.record = record_pb2.Record()

    async def call(self, rpc: str, claims: dict[str, Any] | None = None, **changes: Any) -> Any:
        """Call about the record."""
        given = {
            "record_id": self.record.record_id,
            "expected_revision": self.record.revision,
            "idempotency_key": f"key-{rpc}-{self.record.revision}",
            **changes,
        }
        token = self.stand.identity.token(**(claims or {}))
        reply = await send(
            self.channel, rpc, request(rpc, self.project, **given), self.stand.metadata(token)
        )
        if not isinstance(reply, Refused) and rpc in {CREATE, UPDATE}:
            self.record = reply.record
        return reply

    async def told(self, rpc: str, claims: dict[str, Any] | None = None, **changes: Any) -> Any:
        """Return code and reason of a refusal, and prove that nothing was written."""
        kept = await stored(self.stand, [self.project])
        reply = await self.call(rpc, claims, **changes)
        assert isinstance(reply, Refused), reply
        assert await stored(self.stand, [self.project]) == kept
        return reply.code, reply.reason

    def bound(self) -> dict[str, Any]:
        """Return the claims of a token that is bound to the project."""
        return {"project_id": self.project}


@pytest.fixture
async def keeper(stand: Stand) -> AsyncIterator[Keeper]:
    """A project without records."""
    async with stand.channel() as channel:
        yield Keeper(stand, channel)


def sourced(source_type: Any, **more: Any) -> dict[str, Any]:
    """Return an update that states a source type."""
    facet = record_pb2.MemoryFacet(source_type=source_type, **more)
    return {"facet": facet, "facet_mask": FieldMask(paths=["source_type"])}


# -------------------- round trips


async def test_every_field_of_a_facet(keeper: Keeper) -> None:
    """004-52, 001-12: what was given comes back the same from every RPC."""
    given = whole_facet()
    fields = record_pb2.MemoryFacet.DESCRIPTOR.fields_by_name
    output = {"origin_tier", "corroboration", "last_reinforce_time", "flagged"}
    output |= {"invalidate_time", "invalidation_reason"}
    assert {field.name for field, _ in given.ListFields()} == set(fields) - output
    await keeper.call(CREATE, facet=given)
    wanted = whole_facet()
    wanted.origin_tier = AGENT_TIER
    assert keeper.record.facet == wanted
    assert (await keeper.call(GET)).record == keeper.record
    await keeper.call(UPDATE, content="other", reason="because")
    assert keeper.record.facet == wanted
    assert (await keeper.call(GET)).record == keeper.record
    page = (await keeper.call(LIST)).revisions
    assert [entry.facet for entry in page] == [wanted, wanted]
    for entry in page:
        assert (await keeper.call(REVISION, revision=entry.revision)).revision == entry


async def test_no_facet_stays_none(keeper: Keeper) -> None:
    """004-52: nothing stated is not the same as an empty statement."""
    await keeper.call(CREATE)
    assert not keeper.record.HasField("facet")
    await keeper.call(UPDATE)
    assert not keeper.record.HasField("facet")
    await keeper.call(CREATE, facet=record_pb2.MemoryFacet(), idempotency_key="other")
    assert keeper.record.HasField("facet")
    assert keeper.record.facet.origin_tier == EXTERNAL_TIER


async def test_output_only_fields_are_ignored(keeper: Keeper) -> None:
    """000-08, 004-47, R4: nobody flags, corroborates or raises a memory by saying so."""
    claimed = record_pb2.MemoryFacet(
        subject="s",
        origin_tier=OPERATOR_TIER,
        corroboration=9,
        flagged=True,
        invalidation_reason="x",
        last_reinforce_time=Timestamp(seconds=1),
        invalidate_time=Timestamp(seconds=1),
    )
    await keeper.call(CREATE, facet=claimed)
    assert keeper.record.facet == record_pb2.MemoryFacet(subject="s", origin_tier=EXTERNAL_TIER)


async def test_an_update_is_one_revision(keeper: Keeper) -> None:
    """004-20, 004-47, 004-52: replaced are six fields; the rest of the record follows."""
    first = (
        await keeper.call(
            CREATE, title="t", rationale="r", tags=["b", " A ", "a"], content="one", importance=0.9
        )
    ).record
    assert list(first.tags) == ["A", "b"]
    second = (
        await keeper.call(UPDATE, content="two", importance=0.0, reason="why", run="run-b")
    ).record
    assert (second.title, second.rationale, list(second.tags)) == ("", "", [])
    assert (second.content, second.importance, second.revision) == ("two", 0.0, 2)
    assert (second.state, second.trust) == (first.state, PENDING)
    assert (second.source_run_id, second.create_time) == ("run-a", first.create_time)
    assert second.previous_revision_id == first.revision_id != second.revision_id
    assert second.update_time.ToNanoseconds() > first.update_time.ToNanoseconds()
    entry = (await keeper.call(REVISION, revision=2)).revision
    assert (entry.reason, entry.change_kind) == ("why", record_pb2.CHANGE_KIND_UPDATED)
    actor = hashlib.sha256(f"{ISSUER}\nactor-a".encode()).hexdigest()
    assert entry.actor_fingerprint == actor
    old = (await keeper.call(REVISION, revision=1)).revision
    assert (old.content, old.title, list(old.tags)) == ("one", "t", ["A", "b"])


# -------------------- facet masks


MASKS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "facet_without_mask": ({"facet": record_pb2.MemoryFacet()}, "facet_mask"),
    "empty_mask": (
        {"facet": record_pb2.MemoryFacet(), "facet_mask": FieldMask()},
        "facet_mask",
    ),
    **{
        f"mask_of_{path}": (
            {"facet_mask": FieldMask(paths=["subject", path])},
            "facet_mask.paths[1]",
        )
        for path in ("origin_tier", "flagged", "metadata.key", "*", "", "Subject", "facet")
    },
}


@pytest.mark.parametrize("name", MASKS)
async def test_mask_that_is_refused(keeper: Keeper, name: str) -> None:
    """004-48: a facet comes with a mask, and a mask names what a caller may give."""
    changes, field = MASKS[name]
    await keeper.call(CREATE)
    reply = await keeper.call(UPDATE, **changes)
    assert isinstance(reply, Refused)
    assert list(reply.violations) == [field]


async def test_only_masked_fields_change(keeper: Keeper) -> None:
    """004-52: the others are kept, also where the request holds something else or bad for them."""
    await keeper.call(CREATE, facet=whole_facet())
    given = record_pb2.MemoryFacet(subject="new", namespace="a\nb", source_type=OPERATOR)
    given.memory_kind = 99  # type: ignore[assignment]  # a value of a later release
    paths = ["subject", "epoch", "confidence", "subject"]
    await keeper.call(UPDATE, keeper.bound(), facet=given, facet_mask=FieldMask(paths=paths))
    wanted = whole_facet()
    wanted.origin_tier = AGENT_TIER
    wanted.subject = "new"
    wanted.ClearField("epoch")
    wanted.ClearField("confidence")
    assert keeper.record.facet == wanted
    again = await keeper.call(
        UPDATE,
        expected_revision=1,
        idempotency_key="key-UpdateRecord-1",
        facet=record_pb2.MemoryFacet(subject="new"),
        facet_mask=FieldMask(paths=paths[:3]),
    )
    assert again.replayed, "what is ignored is no part of the request"


async def test_a_mask_alone_clears(keeper: Keeper) -> None:
    """004-52: a named field that is unset is cleared; lowering sensitivity has to be named."""
    await keeper.call(CREATE, facet=whole_facet())
    await keeper.call(UPDATE, facet_mask=FieldMask(paths=["metadata", "sensitivity"]))
    wanted = whole_facet()
    wanted.origin_tier = AGENT_TIER
    wanted.ClearField("metadata")
    wanted.ClearField("sensitivity")
    assert keeper.record.facet == wanted


# -------------------- who may claim to be an operator


@pytest.mark.parametrize("source_type", [OPERATOR, MANUAL])
async def test_operator(keeper: Keeper, source_type: Any) -> None:
    """004-08, 000-08: an unbound token with WriteProjects makes an approved operator memory."""
    facet = record_pb2.MemoryFacet(source_type=source_type)
    for claims in (keeper.bound(), keeper.bound() | {"run_id": "run-a"}):
        assert await keeper.told(CREATE, claims, facet=facet) == NOT_ALLOWED
        assert len(keeper.stand.owner.questions[keeper.project]) == 1
        keeper.stand.owner.questions[keeper.project].clear()
    await keeper.call(CREATE, facet=facet)
    assert (keeper.record.trust, keeper.record.facet.origin_tier) == (APPROVED, OPERATOR_TIER)
    assert await keeper.told(UPDATE, keeper.bound(), **sourced(source_type)) == NOT_ALLOWED


@pytest.mark.parametrize("at", [None, 1, 2])
async def test_operator_without_write_projects(keeper: Keeper, at: int | None) -> None:
    """004-08, 004-16: WriteProjects has to be there at both checks; zero rows otherwise."""
    facet = record_pb2.MemoryFacet(source_type=OPERATOR)
    await keeper.call(CREATE, idempotency_key="key-0")
    scripts, questions = keeper.stand.owner.scripts, keeper.stand.owner.questions
    scripts[keeper.project] = bent(granting(READER), at=at)
    for rpc, changes in ((CREATE, {"facet": facet}), (UPDATE, sourced(OPERATOR))):
        questions[keeper.project].clear()
        assert await keeper.told(rpc, **changes) == NOT_ALLOWED
        assert len(questions[keeper.project]) == (2 if at == 2 else 1)


async def test_write_projects_on_the_tenant(keeper: Keeper) -> None:
    """004-08: WriteProjects counts on the caller's tenant too."""
    tenant = (owners.RESOURCE_TYPE_TENANT, "tenant-a", (owners.PERMISSION_WRITE_PROJECTS,))
    keeper.stand.owner.scripts[keeper.project] = bent(granting(READER, tenant))
    await keeper.call(CREATE, facet=record_pb2.MemoryFacet(source_type=OPERATOR))
    assert keeper.record.trust == APPROVED


async def test_source_not_allowed_before_the_selection(keeper: Keeper) -> None:
    """004-14: judged with the fields, so an absent selection is not told."""
    keeper.stand.owner.scripts[keeper.project] = bent(lambda answer: answer.ClearField("selection"))
    facet = record_pb2.MemoryFacet(source_type=OPERATOR)
    assert await keeper.told(CREATE, keeper.bound(), facet=facet) == NOT_ALLOWED
    facet.subject = "a\nb"
    told = await keeper.told(CREATE, keeper.bound(), facet=facet)
    assert told == ("INVALID_ARGUMENT", "FIELD_INVALID")


async def test_an_edit_never_raises_a_tier(keeper: Keeper) -> None:
    """000-08, 004-47: a tier follows the lowest of who wrote, whatever is claimed later."""
    await keeper.call(CREATE, facet=record_pb2.MemoryFacet(source_type=AGENT))
    await keeper.call(UPDATE, **sourced(OPERATOR))
    assert (keeper.record.facet.origin_tier, keeper.record.trust) == (AGENT_TIER, PENDING)
    await keeper.call(UPDATE, **sourced(record_pb2.SOURCE_TYPE_WEB))
    assert keeper.record.facet.origin_tier == EXTERNAL_TIER
    await keeper.call(UPDATE, **sourced(MANUAL))
    assert keeper.record.facet.origin_tier == EXTERNAL_TIER


async def test_who_edits_an_operator_memory(keeper: Keeper) -> None:
    """000-08, 004-47: an edit by anyone else lowers it; one that changes nothing does not."""
    await keeper.call(CREATE, facet=record_pb2.MemoryFacet(source_type=OPERATOR))
    await keeper.call(UPDATE, keeper.bound(), reason="nothing")
    assert (keeper.record.facet.origin_tier, keeper.record.trust) == (OPERATOR_TIER, APPROVED)
    await keeper.call(UPDATE, content="other")
    assert (keeper.record.facet.origin_tier, keeper.record.trust) == (OPERATOR_TIER, PENDING)
    keeper.stand.owner.questions[keeper.project].clear()
    keeper.stand.owner.scripts[keeper.project] = bent(granting(READER), at=2)
    await keeper.call(UPDATE, content="a third")
    assert keeper.record.facet.origin_tier == AGENT_TIER
