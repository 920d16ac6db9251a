"""What callers say in confidence is found in no log line, no error and no metric.

Content is kept where content belongs; tokens and callers' names are kept nowhere.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from grpc import aio

from broker.api.v1 import record_pb2
from providers.model import RevisionRef
from tests.fixtures.authority_rows import bent, fails, granting, hangs, said, sends
from tests.fixtures.broker import Stand
from tests.fixtures.bundles import bundle, history, linked
from tests.fixtures.record_calls import (
    CHANGES,
    CREATE,
    EXPORT,
    GET,
    IMPORT,
    LIST,
    NAMING,
    REVISION,
    RPCS,
    SEARCH,
    TRANSFERS,
    UPDATE,
    Metadata,
    Refused,
    method,
    raw,
    request,
    scope,
    send,
)
from tests.fixtures.stand_records import every_row, metrics_text
from tests.fixtures.store_errors import provoke

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

CANARY: Final = "canary-5b7c1e"


def secret(name: str) -> str:
    """Return a text that names where it was put."""
    return f"{CANARY}-{name}"


def facet() -> record_pb2.MemoryFacet:
    """Return a facet with a canary in every text."""
    made = record_pb2.MemoryFacet(
        namespace=secret("namespace"),
        subject=secret("subject"),
        source=secret("source"),
        epoch=secret("epoch"),
    )
    made.metadata.update({secret("key"): secret("value")})
    return made


def telling(rpc: str, project: str, **changes: Any) -> Any:
    """Return a request with a canary in every text it may hold."""
    given: dict[str, Any] = {
        "type": secret("type"),
        "title": secret("title"),
        "content": secret("content"),
        "rationale": secret("rationale"),
        "tags": [secret("tag")],
        "reason": secret("reason"),
        "facet": facet(),
        "facet_mask": FieldMask(paths=["namespace", "subject", "metadata"]),
        "idempotency_key": secret("idempotency-key"),
        "record_id": secret("record-id"),
    }
    return request(rpc, project, **(given | changes))


class Ears:
    """Makes calls that tell secrets, and keeps every refusal and request id."""

    def __init__(self, stand: Stand, channel: aio.Channel) -> None:
        """Mint a token whose subject is a secret too."""
        self.stand, self.channel = stand, channel
        self.project = f"{stand.project()}-{secret('project')}"
        self.token = stand.identity.token(secret("actor"))
        self.refusals: list[Refused] = []
        self.request_ids: list[str] = []

    def says(self, token: str | None = None, *more: tuple[str, str]) -> Metadata:
        """Return metadata under a new request id."""
        self.request_ids.append(f"request-{secrets.token_hex(6)}")
        bearer = ("authorization", f"Bearer {token or self.token}")
        return [bearer, ("x-request-id", self.request_ids[-1]), *more]

    async def tell(self, rpc: str, *more: tuple[str, str], **changes: Any) -> Any:
        """Call, and keep a refusal."""
        token = changes.pop("token", None)
        message = telling(rpc, self.project, **changes)
        return self.heard(await send(self.channel, rpc, message, self.says(token, *more)))

    def heard(self, reply: Any) -> Any:
        """Keep a refusal."""
        if isinstance(reply, Refused):
            self.refusals.append(reply)
        return reply

    def reasons(self) -> set[str]:
        """Return what was refused for."""
        return {refusal.reason or refusal.code for refusal in self.refusals}


@pytest.fixture
async def ears(stand: Stand) -> AsyncIterator[Ears]:
    """A channel that listens."""
    async with stand.channel() as channel:
        yield Ears(stand, channel)


async def provoke_field_errors(ears: Ears) -> str:
    """Create a record, then say everything wrong that can be said."""
    made = await ears.tell(CREATE)
    record: str = made.record.record_id
    long = secret("long") * 3_000
    for changes in (
        {"type": long, "title": long, "content": long, "rationale": long, "tags": [long] * 20},
        {"idempotency_key": secret("key") + "/", "kind": 99, "importance": 7.0},
        {"facet": record_pb2.MemoryFacet(namespace=long, subject=long, source=long)},
        {"content": secret("nul") + "\x00", "type": secret("control") + "\x07"},
    ):
        await ears.tell(CREATE, **changes)
    await ears.tell(UPDATE, record_id=record, facet_mask=FieldMask(paths=[secret("path")]))
    await ears.tell(UPDATE, record_id=record, reason=long, expected_revision=-1)
    await ears.tell(UPDATE, record_id=record, expected_revision=9, idempotency_key="key-9")
    await ears.tell(CREATE, content=secret("other"))
    await ears.tell(LIST, record_id=record, page_token=secret("page-token"))
    await ears.tell(REVISION, record_id=record, revision=9)
    await ears.tell(SEARCH, query=long, tags=[long])
    await ears.tell(SEARCH, query=secret("query"), page_token=secret("page-token"))
    for rpc in CHANGES:
        named = {"record_id": record, "idempotency_key": f"key-{rpc}"}
        await ears.tell(rpc, reason=long, replacement_record_id=secret("no id"), **named)
        await ears.tell(rpc, reason=secret("reason"), expected_revision=9, **named)
    for rpc in NAMING:
        await ears.tell(rpc)
        await ears.tell(rpc, record_id=secret("bad id"))
    for rpc in (*RPCS, *TRANSFERS):
        await ears.tell(rpc, scope=scope(secret("bad project")))
    await provoke_bundle_errors(ears)
    return record


async def provoke_bundle_errors(ears: Ears) -> None:
    """Import and export what is wrong in every way there is."""
    texts: dict[str, Any] = {
        name: secret(name) for name in ("content", "title", "rationale", "type", "reason")
    }
    good = bundle(ears.project, history(ears.project, secret("m"), facet=facet(), **texts))
    wrong = bundle(ears.project, history(ears.project, secret("bad id"), type=secret("nul") + "\0"))
    other = bundle(secret("other project"), agent=secret("other agent"), format=secret("format"))
    away = bundle(ears.project, linked(ears.project, secret("a"), secret("away")))
    round_trip = [
        linked(ears.project, secret("a"), secret("b")),
        linked(ears.project, secret("b"), secret("a")),
    ]
    cycle = bundle(ears.project, *round_trip)
    for number, made in enumerate((good, good, wrong, other, away, cycle)):
        await ears.tell(IMPORT, bundle=made, idempotency_key=secret(f"import-{number}"))
    await ears.tell(IMPORT, bundle=bundle(ears.project, *[good.records[0]] * 26))
    await ears.tell(EXPORT, record_ids=[secret("no id")])
    await ears.tell(EXPORT, record_ids=[secret("absent")])


async def provoke_token_errors(ears: Ears) -> list[str]:
    """Call with tokens that are wrong; return them."""
    mint = ears.stand.identity.token
    wrong = [
        mint(secret("expired"), exp=1),
        mint(secret("audience"), aud=secret("aud")),
        mint(secret("issuer"), iss=f"https://{CANARY}.test"),
        mint(secret("purpose"), purpose=secret("purpose")),
        mint(secret("bound"), project_id=secret("elsewhere")),
        mint(secret("tampered"))[:-6] + "AAAAAA",
        secret("opaque-token"),
    ]
    for token in wrong:
        await ears.tell(GET, token=token)
    await ears.tell(GET, ("x-tenant", secret("bad tenant")))
    await ears.tell(GET, ("x-tenant", secret("tenant")))
    await ears.tell(GET, ("x-events-authorization", f"Bearer {secret('events')}"))
    return wrong


async def provoke_owner_errors(ears: Ears, record: str) -> None:
    """Let the owner say secrets and nonsense."""
    import grpc

    scripts = (
        fails(grpc.StatusCode.UNAUTHENTICATED),
        fails(grpc.StatusCode.INTERNAL),
        hangs(),
        sends(secret("garbage").encode()),
        bent(said(actor_id=secret("other-actor"))),
        bent(granting(), at=2),
    )
    for script in scripts:
        ears.stand.owner.questions[ears.project].clear()
        ears.stand.owner.scripts[ears.project] = script
        await ears.tell(GET, record_id=record)
    del ears.stand.owner.scripts[ears.project]


async def provoke_library_errors(ears: Ears) -> None:
    """Let gRPC itself refuse."""
    body = telling(CREATE, ears.project).SerializeToString()
    wire = (
        (f"/broker.api.v1.RecordService/{secret('Method')}", body),
        (f"/{secret('service')}/Get", body),
        (method(CREATE), body + b"\xff\xff\xff"),
        (method(CREATE), secret("not-a-message").encode()),
        (method(CREATE), secret("oversize").encode() * 150_000),
    )
    for path, sent in wire:
        assert isinstance(ears.heard(await raw(ears.channel, path, sent, ears.says())), Refused)
    ears.heard(await raw(ears.channel, method(GET), body, ears.says(None, ("x", "y" * 70_000))))


async def log_lines(ears: Ears, request_ids: set[str]) -> list[str]:
    """Return the broker's log once it has the lines of these calls."""
    for _ in range(500):
        log = ears.stand.broker.log()
        if all(name in log for name in request_ids):
            return log.splitlines()
        await asyncio.sleep(0.02)
    raise AssertionError("the log lacks lines of calls")


async def test_nothing_leaks(ears: Ears) -> None:
    """004-02, 004-33, 004-76, 004-101: not the token, the content, the caller or a name."""
    record = await provoke_field_errors(ears)
    wrong = await provoke_token_errors(ears)
    await provoke_owner_errors(ears, record)
    answered = set(ears.request_ids)
    await provoke_library_errors(ears)
    before_store = len(ears.request_ids)
    head = RevisionRef(record, 1)
    broken = await provoke(ears.stand.memory, ears.tell, head, ears.project, secret)
    answered |= set(ears.request_ids[before_store:])
    lines = await log_lines(ears, answered)
    assert ears.reasons() >= {
        *("FIELD_INVALID", "PAGE_TOKEN_INVALID", "REVISION_STALE", "IDEMPOTENCY_KEY_REUSED"),
        *("RECORD_NOT_FOUND", "REVISION_NOT_FOUND", "TOKEN_INVALID", "TOKEN_PURPOSE_BOUND"),
        *("TOKEN_BINDING_MISMATCH", "TOKEN_REJECTED_BY_OWNER", "AUTHORITY_UNAVAILABLE"),
        *("AUTHORITY_RESPONSE_INVALID", "PERMISSION_MISSING", "UNIMPLEMENTED"),
        *("BUNDLE_CONFLICT", "BUNDLE_INVALID", "BUNDLE_UNSUPPORTED", "BUNDLE_TOO_LARGE"),
        *("REPLACEMENT_INVALID", "REPLACEMENT_CYCLE"),
        *("RESOURCE_EXHAUSTED", *broken),
    }
    parts = _parts([ears.token, *wrong])
    told = [CANARY, *parts, ears.stand.memory.secret()]
    assert _found(told, (refusal.text() for refusal in ears.refusals)) == []
    assert _found(told, lines) == []
    assert _found(told, metrics_text(ears.stand).splitlines()) == []
    _are_bounded(lines)


def _are_bounded(lines: list[str]) -> None:
    """Every line is JSON, and that of a call holds known fields alone (004-79)."""
    known = {
        *("event", "level", "pid", "timestamp", "component", "method", "code", "reason"),
        *("duration_ms", "request_id", "replayed", "error_type", "location"),
    }
    own = (json.loads(line) for line in lines if line.startswith("{"))
    calls = [line for line in own if line["event"] == "call"]
    assert calls
    assert {name for call in calls for name in call} <= known


async def test_no_table_knows_the_caller(ears: Ears) -> None:
    """004-20, 004-72: tables keep a fingerprint; no token, no part of one, no subject."""
    made = await ears.tell(CREATE)
    await ears.tell(UPDATE, record_id=made.record.record_id)
    rows = await every_row(ears.stand)
    assert _found([secret("content"), secret("reason"), secret("value")], rows) != []
    assert _found([secret("actor"), *_parts([ears.token])], rows) == []
    assert _found(["Bearer", "eyJ"], rows) == []


def _parts(tokens: Iterable[str]) -> list[str]:
    """Return every part of the tokens that tells something: not the header."""
    return [part for token in tokens for part in token.split(".")[1:] or [token]]


def _found(texts: Iterable[str], lines: Iterable[str]) -> list[str]:
    """Return the lines that hold one of the texts."""
    sought = list(texts)
    return [line[:300] for line in lines if any(text in line for text in sought)]
