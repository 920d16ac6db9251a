"""Fields over the wire: every limit, what a refusal names, and how requests are read."""

from typing import Any, Final

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.record_calls import (
    BATCH,
    BINDING_RPCS,
    CREATE,
    GET,
    LIST,
    NAMING,
    REVISION,
    RPCS,
    SEARCH_PROJECT,
    TRANSFERS,
    UPDATE,
    Refused,
    method,
    raw,
    refused,
    request,
    scope,
    send,
)

pytestmark = pytest.mark.memories("postgres", "redis")

FIELDS: Final = ("INVALID_ARGUMENT", "FIELD_INVALID")
IDENTIFIER: Final = "must be 1-256 ASCII letters, digits, . _ : -"
KEY: Final = "must be 1-128 ASCII letters, digits, . _ : -"
HIGHEST: Final = 2**63 - 1
SKY: Final = "\U0001f308"
"""One code point, four bytes."""


def facet(**fields: Any) -> record_pb2.MemoryFacet:
    """Return a facet; ``metadata`` is given as a mapping."""
    metadata = fields.pop("metadata", None)
    made = record_pb2.MemoryFacet(**fields)
    if metadata is not None:
        made.metadata.update(metadata)
    return made


def text(field: str, limit: int) -> dict[str, tuple[Any, ...]]:
    """Return good and bad values of a text: a field, the good ones, the bad ones, the rule."""
    rule = f"must be at most {limit} code points"
    good = [{field: SKY * (limit - 1)}, {field: SKY * limit}]
    return {f"{field}_length": (good, [{field: SKY * (limit + 1)}], field, rule)}


def in_facet(field: str, good: list[Any], bad: list[Any], rule: str) -> dict[str, tuple[Any, ...]]:
    """Return good and bad values of a field of the facet."""
    return {
        f"facet.{field}: {rule}": (
            [{"facet": facet(**{field: value})} for value in good],
            [{"facet": facet(**{field: value})} for value in bad],
            f"facet.{field}",
            rule,
        )
    }


def alike(field: str, good: list[Any], bad: list[Any], rule: str) -> dict[str, tuple[Any, ...]]:
    """Return good and bad values of any field."""
    return {
        f"{field}: {rule}": (
            [{field: value} for value in good],
            [{field: value} for value in bad],
            field.partition("[")[0],
            rule,
        )
    }


def tags(good: list[Any], bad: list[Any], field: str, rule: str) -> dict[str, tuple[Any, ...]]:
    """Return good and bad lists of tags."""
    return {
        f"{field}: {rule}": ([{"tags": v} for v in good], [{"tags": v} for v in bad], field, rule)
    }


UNIT: Final = "must be a number from 0.0 to 1.0"
NOT_UNIT: Final = [-1e-9, 1.0 + 1e-9, float("nan"), float("inf")]
NO_CONTROLS: Final = "must not hold control characters"
NO_NUL: Final = "must not hold NUL or lone surrogates"
KNOWN: Final = "must be a known value"
SHORT: Final = {"namespace": 256, "subject": 512, "source": 256, "epoch": 256}
ENUMS: Final = {
    "memory_kind": 8,
    "delivery_policy": 3,
    "belief_type": 5,
    "sensitivity": 4,
    "portability": 3,
}


def metadata_of(size: int) -> dict[str, str]:
    """Return metadata that takes this many bytes as JSON."""
    return {"k": "v" * (size - len('{"k":""}'))}


def nested(depth: int, *, lists: bool) -> dict[str, Any]:
    """Return metadata with this many lists or objects inside each other."""
    value: Any = "k"
    for _ in range(depth - 1):
        value = [value] if lists else {"k": value}
    return {"k": value}


LIMITS: Final[dict[str, tuple[Any, ...]]] = {
    **text("title", 512),
    **text("content", 40_000),
    **text("rationale", 8_000),
    **text("type", 64),
    **alike("type", ["  trimmed  "], ["", "  "], "must be 1-64 code points"),
    **alike("type", [], ["a\tb", "a\x7fb"], NO_CONTROLS),
    **alike("content", ["\ttext\n"], ["", " \n\t"], "must be 1-40000 code points, not blank"),
    **alike("content", [], ["a\x00b"], NO_NUL),
    **alike("title", ["a\nb"], ["a\x00"], NO_NUL),
    **alike("rationale", ["a\nb"], ["\x00"], NO_NUL),
    **alike("importance", [0.0, 1.0], NOT_UNIT, UNIT),
    **tags(
        [[f"tag-{n}" for n in range(count)] for count in (31, 32)],
        [[f"tag-{n}" for n in range(33)]],
        "tags",
        "must be at most 32",
    ),
    **tags([["a" * 63], ["a" * 64], [f" {'a' * 64} "]], [["a" * 65]], "tags[0]",
           "must be at most 64 code points"),
    **tags([["A", "a"]], [["a", " "], ["a", ""]], "tags[1]", "must be 1-64 code points"),
    **tags([], [["a\nb"]], "tags[0]", NO_CONTROLS),
    **alike("idempotency_key", ["k" * 127, "K._:-9" + "k" * 122],
            ["", "k" * 129, "a b", "a/b", "\u00e4", "key\n"], KEY),
    **{k: v for name, limit in SHORT.items() for k, v in in_facet(
        name, [SKY * limit], [SKY * (limit + 1)], f"must be at most {limit} code points").items()},
    **{k: v for name in SHORT for k, v in in_facet(name, [], ["a\nb"], NO_CONTROLS).items()},
    **{k: v for name, last in ENUMS.items() for k, v in in_facet(
        name, [0, 1, last], [last + 1, -1], KNOWN).items()},
    **in_facet("source_type", [0, 3, 19], [20, 99], KNOWN),
    **in_facet("confidence", [0.0, 1.0], NOT_UNIT, UNIT),
    **in_facet("expire_time", [Timestamp(seconds=0), Timestamp(seconds=253_402_300_799)],
               [Timestamp(seconds=253_402_300_800), Timestamp(nanos=-1)], KNOWN),
    **in_facet("metadata", [{f"k{n}": n for n in range(64)}], [{f"k{n}": n for n in range(65)}],
               "must be at most 64 keys at the top"),
    **in_facet("metadata", [metadata_of(8_191), metadata_of(8_192)], [metadata_of(8_193)],
               "must be at most 8192 bytes as JSON"),
    **in_facet("metadata", [nested(n, lists=lists) for n in (15, 16) for lists in (False, True)],
               [nested(17, lists=lists) for lists in (False, True)],
               "must be nested at most 16 deep"),
    **in_facet("metadata", [], [{"a": ["b\x00"]}, {"a\x00": 1}, {"a": {"b": float("nan")}}],
               "must hold finite numbers and no NUL or lone surrogates"),
}  # fmt: skip
UPDATE_LIMITS: Final[dict[str, tuple[Any, ...]]] = {
    **alike(
        "reason", [SKY * 1_023, SKY * 1_024], [SKY * 1_025], "must be at most 1024 code points"
    ),
    **alike("reason", [], ["a\nb"], NO_CONTROLS),
    **alike("expected_revision", [], [0, -1, -HIGHEST], "must be greater than 0"),
    **alike("record_id", [], ["", "a b", "a" * 257, "a/b"], IDENTIFIER),
    **alike("importance", [], [None], "must be given: 0.0 to 1.0"),
}
"""By name: changes of a request that are accepted, such that are refused, the field, the rule."""


@pytest.mark.parametrize("name", LIMITS)
async def test_limit(stand: Stand, name: str) -> None:
    """004-48, 004-50: below and at a limit it is kept as it came; above it the field is named."""
    good, bad, field, rule = LIMITS[name]
    project = stand.project()
    says = stand.metadata()
    async with stand.channel() as channel:
        for number, changes in enumerate(good):
            given = {"idempotency_key": f"good-{number}"} | changes
            made = await send(channel, CREATE, request(CREATE, project, **given), says)
            assert not isinstance(made, Refused), (changes, made)
            asked = request(GET, project, record_id=made.record.record_id)
            assert (await send(channel, GET, asked, says)).record == made.record
        for changes in bad:
            await _violates(stand, channel, request(CREATE, project, **changes), field, rule)
            changed = _with_mask({"record_id": "any"} | changes)
            await _violates(stand, channel, request(UPDATE, project, **changed), field, rule)
    assert await stand.rows("memory.records", project) == len(good)


@pytest.mark.parametrize("name", UPDATE_LIMITS)
async def test_limit_of_an_update(stand: Stand, name: str) -> None:
    """004-48, 004-55: the fields that only an update has."""
    good, bad, field, rule = UPDATE_LIMITS[name]
    project = stand.project()
    async with stand.channel() as channel:
        made = await send(channel, CREATE, request(CREATE, project), stand.metadata())
        for number, changes in enumerate(good):
            given = {
                "record_id": made.record.record_id,
                "expected_revision": number + 1,
                "idempotency_key": f"good-{number}",
            }
            asked = request(UPDATE, project, **(given | changes))
            assert not isinstance(await send(channel, UPDATE, asked, stand.metadata()), Refused)
        for changes in bad:
            given = {"record_id": made.record.record_id} | changes
            await _violates(stand, channel, request(UPDATE, project, **given), field, rule)


async def _violates(stand: Stand, channel: Any, message: Any, field: str, rule: str) -> None:
    rpc = type(message).__name__.removesuffix("Request")
    reply = await refused(channel, rpc, message, stand.metadata())
    assert (reply.code, reply.reason) == FIELDS
    assert reply.violations.get(field) == rule, reply.violations
    assert reply.message in {f"{name}: {said}" for name, said in reply.violations.items()}


def _with_mask(changes: dict[str, Any]) -> dict[str, Any]:
    """Name the fields of a facet that is given; an unset one is named too."""
    if "facet" not in changes:
        return changes
    names = [field.name for field, _ in changes["facet"].ListFields()]
    return changes | {"facet_mask": FieldMask(paths=names)}


@pytest.mark.parametrize("rpc", RPCS)
@pytest.mark.parametrize("part", ["project_id", "run_id", "agent_id"])
async def test_identifiers_of_a_scope(stand: Stand, rpc: str, part: str) -> None:
    """004-48: 1-256 of the letters; no owner is asked about anything else."""
    project = stand.project()
    async with stand.channel() as channel:
        for value in ("", "a b", "a/b", "\u00e4", "a\n", "a" * 257, "a\x00"):
            message = request(rpc, project)
            setattr(message.scope, part, value)
            reply = await refused(channel, rpc, message, stand.metadata())
            assert reply.violations == {f"scope.{part}": IDENTIFIER}
        longest = request(rpc, project, record_id="absent")
        setattr(longest.scope, part, (project + "._:-Az09")[:20].ljust(256, "x"))
        reply = await send(channel, rpc, longest, stand.metadata())
        assert not isinstance(reply, Refused) or reply.reason == "RECORD_NOT_FOUND"


async def test_no_scope(stand: Stand) -> None:
    """004-48: all three parts are named at once."""
    async with stand.channel() as channel:
        for rpc in RPCS:
            reply = await refused(
                channel, rpc, request(rpc, "p", scope=record_pb2.Scope()), stand.metadata()
            )
            assert reply.violations == dict.fromkeys(
                ["scope.project_id", "scope.run_id", "scope.agent_id"], IDENTIFIER
            )


RECORD_ID: Final = {BATCH: "record_ids[0]"}
"""Where an RPC names a record, if not by `record_id`."""


@pytest.mark.parametrize("rpc", NAMING)
async def test_record_ids(stand: Stand, rpc: str) -> None:
    """004-48: an id that no record can have is a bad field; one that could is absent."""
    project = stand.project()
    async with stand.channel() as channel:
        for value in ("", "a b", "a/b", "x" * 257, "a\x00"):
            message = request(rpc, project, record_id=value)
            told = (await refused(channel, rpc, message, stand.metadata())).violations
            assert told[RECORD_ID.get(rpc, "record_id")] == IDENTIFIER
        for value in ("x" * 256, "..", "not-a-uuid"):
            message = request(rpc, project, record_id=value)
            reply = await refused(channel, rpc, message, stand.metadata())
            assert reply.reason == "RECORD_NOT_FOUND"


async def test_numbers_at_the_ends(stand: Stand) -> None:
    """004-55, 004-68: the largest numbers are numbers like others."""
    project = stand.project()
    async with stand.channel() as channel:
        made = await send(channel, CREATE, request(CREATE, project), stand.metadata())
        named = {"record_id": made.record.record_id}
        for value in (0, -1, -HIGHEST - 1):
            message = request(REVISION, project, revision=value, **named)
            reply = await refused(channel, REVISION, message, stand.metadata())
            assert reply.violations == {"revision": "must be greater than 0"}
        for value in (2, 2**31, HIGHEST):
            message = request(REVISION, project, revision=value, **named)
            reply = await refused(channel, REVISION, message, stand.metadata())
            assert reply.reason == "REVISION_NOT_FOUND"
            message = request(UPDATE, project, expected_revision=value, **named)
            reply = await refused(channel, UPDATE, message, stand.metadata())
            assert (reply.reason, reply.metadata) == ("REVISION_STALE", {"current_revision": "1"})


async def test_kinds(stand: Stand) -> None:
    """004-46: memories and session contexts are made; decisions, proposals and the rest are not."""
    project = stand.project()
    rule = {"kind": "must be MEMORY or SESSION_CONTEXT"}
    async with stand.channel() as channel:
        for kind in (0, 2, 3, 5, 99, -1):
            message = request(CREATE, project, kind=kind)
            assert (await refused(channel, CREATE, message, stand.metadata())).violations == rule
        for kind, trust in ((1, record_pb2.TRUST_PENDING), (4, record_pb2.TRUST_APPROVED)):
            message = request(CREATE, project, kind=kind, idempotency_key=f"key-{kind}")
            made = (await send(channel, CREATE, message, stand.metadata())).record
            assert (made.kind, made.trust, made.revision) == (kind, trust, 1)
            assert made.state == record_pb2.RECORD_STATE_ACTIVE


async def test_many_violations(stand: Stand) -> None:
    """004-48: at most 16 are told, in at most 4 KiB, and none repeats what was sent."""
    project = stand.project()
    canary = "canary-text"
    everything: dict[str, Any] = {
        "idempotency_key": f"{canary}/",
        "record_id": f"{canary} ",
        "expected_revision": 0,
        "type": canary * 10,
        "title": canary * 100,
        "content": canary * 10_000,
        "rationale": canary * 1_000,
        "tags": [f"{canary}\n{n}" for n in range(32)],
        "reason": canary * 100,
        "facet": facet(namespace=canary * 50, subject=canary * 50, memory_kind=99),
        "facet_mask": FieldMask(paths=[canary * 50] * 50),
        "scope": scope(project),
    }
    async with stand.channel() as channel:
        for rpc in (CREATE, UPDATE):
            message = request(rpc, project, **everything)
            reply = await refused(channel, rpc, message, stand.metadata())
            assert len(reply.violations) == 16
            assert len(reply.details) + len(reply.message.encode()) <= 4_096
            assert canary not in reply.text()
            assert all(reply.violations.values())


# -------------------- how requests are read


async def test_unknown_fields_are_ignored(stand: Stand) -> None:
    """004-49, ours: an unknown field of a later release is ignored, at every depth."""
    project = stand.project()
    unknown = b"\xba\x3e\x05later"  # field 999, five bytes
    within = scope(project).SerializeToString() + unknown
    plain = request(CREATE, project)
    plain.ClearField("scope")
    body = b"\x0a" + bytes([len(within)]) + within + plain.SerializeToString() + unknown
    async with stand.channel() as channel:
        assert isinstance(await raw(channel, method(CREATE), body, stand.metadata()), bytes)
        again = await send(channel, CREATE, request(CREATE, project), stand.metadata())
    assert again.replayed


async def test_what_is_no_message(stand: Stand) -> None:
    """004-48: bytes that are no message, or hold text that is no UTF-8, are a bad request."""
    async with stand.channel() as channel:
        for rpc in (*RPCS, *BINDING_RPCS, *TRANSFERS, SEARCH_PROJECT):
            for body in (b"\xff\xff\xff\xff", b"\x0a\x03\x0a\x01\xff"):
                reply = await raw(channel, method(rpc), body, stand.metadata())
                assert isinstance(reply, Refused)
                assert list(reply.violations) == ["request"]


@pytest.mark.parametrize("given", ["request-1", "A" * 128, "._:-9"])
async def test_request_id_comes_back(stand: Stand, given: str) -> None:
    """004-102: the caller's request id is in the reply, and in the refusal twice."""
    project = stand.project()
    says = stand.metadata(x_request_id=given)
    async with stand.channel() as channel:
        create: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method(CREATE))
        call = create(request(CREATE, project).SerializeToString(), metadata=says)
        await call
        assert dict(await call.trailing_metadata() or ())["x-request-id"] == given
        reply = await refused(channel, GET, request(GET, project), says)
    assert reply.info.metadata["request_id"] == dict(reply.trailers)["x-request-id"] == given


@pytest.mark.parametrize("given", [(), ("",), ("a b",), ("A" * 129,), ("a", "a"), ("\u007e",)])
async def test_request_id_is_made(stand: Stand, given: tuple[str, ...]) -> None:
    """004-102: where there is not exactly one that is well formed, the broker makes one."""
    says = [*stand.metadata(), *(("x-request-id", value) for value in given)]
    async with stand.channel() as channel:
        replies = [await refused(channel, LIST, request(LIST, "p"), says) for _ in range(2)]
    made = {str(dict(reply.trailers)["x-request-id"]) for reply in replies}
    assert len(made) == 2
    assert all(len(one) == 36 and one[14] == "7" for one in made)
