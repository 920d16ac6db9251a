"""Contexts over the wire: what a run is told, how it is logged, and how that is proved later."""

import asyncio
import hashlib
import json
from dataclasses import replace
from typing import Any, Final

import pytest

from broker.api.v1 import context_service_pb2 as pb
from broker.api.v1 import record_pb2
from broker.context.frame import BEGIN, END
from broker.owners.v1 import projects_config_service_pb2 as owners
from providers.model import Kind, State, Trust
from tests.fixtures.authority_rows import bent, granting, projects_grant
from tests.fixtures.decisions import changed as put_changed
from tests.fixtures.decisions import head, id_of, written
from tests.fixtures.desk import Desk, desk
from tests.fixtures.page_tokens import packed_token, unpacked_token
from tests.fixtures.record_calls import (
    APPROVE,
    ARCHIVE,
    COMPILATION,
    COMPILATIONS,
    COMPILE,
    REJECT,
    RESTORE,
    REVISION,
    SUPERSEDE,
    UPDATE,
)
from tests.fixtures.stand_records import every_row, provider_operations

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

NOTE: Final = record_pb2.RECORD_KIND_SESSION_CONTEXT
SECRET: Final = "the sky is cerulean today"


def payload(text: str) -> Any:
    """Return what stands between the markers."""
    lines = text.splitlines()
    assert [line.startswith(BEGIN) for line in lines].count(True) == 1
    assert [line.startswith(END) for line in lines].count(True) == 1
    (start,) = (number for number, line in enumerate(lines) if line.startswith(BEGIN))
    assert lines[start + 2].startswith(END)
    return json.loads(lines[start + 1])


async def decisions(desk: Desk, *contents: str, **changes: Any) -> list[str]:
    """Make approved decisions of a type that contexts take; return their ids."""
    puts = []
    for text in contents:
        given: dict[str, Any] = {"trust": Trust.APPROVED, **changes}
        put = head(**given)
        content = replace(put.record.current.content, type="architectural", content=text)
        puts.append(put_changed(put, content=content))
    await written(desk.stand, desk.project, puts)
    return [id_of(put) for put in puts]


async def compiled(desk: Desk, **changes: Any) -> pb.CompileContextResponse:
    """Compile a context."""
    reply: pb.CompileContextResponse = await desk.done(COMPILE, **changes)
    return reply


async def verdict(desk: Desk, compilation_id: str, **changes: Any) -> pb.GetCompilationResponse:
    """Return a compilation and its proof."""
    reply: pb.GetCompilationResponse = await desk.done(
        COMPILATION, compilation_id=compilation_id, **changes
    )
    return reply


async def test_nothing_is_no_context(desk: Desk) -> None:
    """004-97: without candidates there is no text and no entry, but the run is pinned."""
    reply = await compiled(desk)
    assert not reply.HasField("text")
    assert (reply.compilation_id, list(reply.items), list(reply.causes)) == ("", [], [])
    assert (reply.budget.tokens, reply.budget.items, reply.budget.characters_used) == (4_000, 20, 0)
    assert not (await desk.done(COMPILATIONS)).compilations
    assert await desk.stand.rows("knowledge.pins", desk.project) == 1


async def test_a_whole_context(desk: Desk) -> None:
    """004-89, 004-92, 004-97, P12: decisions, memories, the session note; each at its revision."""
    memory = await desk.made(content="rivers flow to the sea")
    note = await desk.made(key="note", kind=NOTE, content="we talk about rivers")
    (decision,) = await decisions(desk, "all rivers have names")
    ignored, *_ = await decisions_of_type(desk, "rule")
    reply = await compiled(desk)
    said = payload(reply.text)
    assert [each["content"] for each in said["decisions"]] == ["all rivers have names"]
    assert [each["content"] for each in said["memory"]] == ["rivers flow to the sea"]
    assert said["session"]["content"] == "we talk about rivers"
    assert [(each.kind, each.record_id) for each in reply.items] == [
        (pb.CONTEXT_ITEM_KIND_DECISION, decision),
        (pb.CONTEXT_ITEM_KIND_MEMORY, memory.record_id),
        (pb.CONTEXT_ITEM_KIND_SESSION_CONTEXT, note.record_id),
    ]
    for item in reply.items:
        revision = await desk.done(REVISION, record_id=item.record_id, revision=item.revision)
        assert revision.revision.revision_id == item.revision_id
    assert [(each.record_id, each.type) for each in reply.ignored] == [(ignored, "rule")]
    assert reply.ignored_decision_count == 1
    assert reply.budget.characters_used == len(reply.text) <= 16_000


async def decisions_of_type(desk: Desk, kind: str) -> list[str]:
    """Make one approved decision of a type."""
    put = head(trust=Trust.APPROVED)
    assert put.record.current.content.type == kind
    await written(desk.stand, desk.project, [put])
    return [id_of(put)]


async def test_what_never_enters(desk: Desk) -> None:
    """004-89, R20: other runs' notes, others' private memories, what is refused or put aside."""
    rejected = await desk.made("rejected", content="rejected")
    await desk.changed(REJECT, rejected)
    archived = await desk.made("archived", content="archived")
    await desk.changed(ARCHIVE, archived)
    await desk.made("elsewhere", kind=NOTE, content="other run", run="run-b")
    await desk.made("private", content="private", agent="agent-b")
    shared = await desk.made("shared", content="shared", agent="agent-b", tags=["Cross-Team"])
    pending_shared = await desk.made("p", content="nobody", agent="agent-b", tags=["cross-team"])
    await desk.done(
        APPROVE,
        record_id=shared.record_id,
        agent="agent-b",
        expected_revision=1,
        idempotency_key="approve",
    )
    await decisions(desk, "pending", trust=Trust.PENDING)
    await decisions(desk, "aside", state=State.ARCHIVED)
    own = await desk.made("own", content="own")
    reply = await compiled(desk)
    assert {each.record_id for each in reply.items} == {shared.record_id, own.record_id}
    assert pending_shared.record_id not in {each.record_id for each in reply.omitted}
    confirmed = await compiled(desk, include_pending=False)
    assert {each.record_id for each in confirmed.items} == {shared.record_id}


@pytest.mark.parametrize(
    ("field", "values", "limit"),
    [("max_items", (21, 0, -1), "20"), ("max_tokens", (4_001, 0, -1), "4000")],
)
async def test_limits_only_narrow(
    desk: Desk, field: str, values: tuple[int, ...], limit: str
) -> None:
    """004-91, B7: refused before the run is bound and before anything is read."""
    await desk.made()
    before = provider_operations(desk.stand)
    for value in values:
        desk.stand.owner.questions[desk.project].clear()
        refused = await desk.told(COMPILE, **{field: value})
        assert (refused.code, refused.reason) == ("INVALID_ARGUMENT", "LIMIT_NOT_NARROWING")
        assert refused.metadata == {"field": field, "limit": limit}
        assert len(desk.stand.owner.questions[desk.project]) == 1
    assert provider_operations(desk.stand) == before
    assert (await compiled(desk, **{field: int(limit)})).items


async def test_the_runs_prompt_cap(desk: Desk) -> None:
    """004-91: it bounds the tokens, also those asked for; without one the configured limit does."""
    await desk.made(content="c" * 4_000)

    def capped(answer: owners.GetRunAuthorityResponse) -> None:
        answer.selection.run_limits.max_prompt_tokens = 500

    desk.stand.owner.scripts[desk.project] = bent(capped)
    refused = await desk.told(COMPILE, max_tokens=501)
    assert refused.metadata == {"field": "max_tokens", "limit": "500"}
    reply = await compiled(desk)
    assert reply.budget.tokens == 500
    assert [each.cause for each in reply.omitted] == [pb.OMISSION_CAUSE_BUDGET]
    assert len(reply.text) <= 2_000


async def test_mandatory_decisions_over_budget(desk: Desk) -> None:
    """004-92, R12: both numbers, in characters; nothing is logged."""
    await desk.made()
    await decisions(desk, "d" * 12_000, "e" * 12_000)
    refused = await desk.told(COMPILE)
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "CONTEXT_BUDGET_OVERFLOW")
    assert refused.metadata["limit"] == "16000"
    assert int(refused.metadata["observed"]) > 24_000
    assert not (await desk.done(COMPILATIONS)).compilations


async def test_the_log_and_its_proof(desk: Desk) -> None:
    """000-38, 004-100, R19: what was told is proved later, whatever became of the records."""
    memory = await desk.made(content=SECRET)
    one, other = await decisions(desk, "decide one", "decide other")
    first = await compiled(desk, query="sky cerulean")
    proof = await verdict(desk, first.compilation_id)
    assert (proof.verdict, proof.text) == (pb.VERDICT_VERIFIED, first.text)
    assert list(proof.items) == list(first.items)
    summary = proof.compilation
    assert summary.text_hash == hashlib.sha256(first.text.encode()).hexdigest()
    assert summary.query_hash == hashlib.sha256(b"sky cerulean").hexdigest()
    assert (summary.agent_id, summary.run_id, summary.item_count) == ("agent-a", "run-a", 3)
    assert summary.budget == first.budget
    await desk.changed(UPDATE, memory, type="note", content="the sky is grey", importance=0.5)
    await desk.changed(SUPERSEDE, one, replacement_record_id=other)
    await desk.changed(ARCHIVE, other)
    second = await compiled(desk)
    told = payload(second.text)
    assert [each["content"] for each in told["memory"]] == ["the sky is grey"]
    assert told["decisions"] == []
    await desk.changed(RESTORE, one, source_revision=1)
    await desk.changed(APPROVE, one)
    third = await compiled(desk)
    assert [each["content"] for each in payload(third.text)["decisions"]] == ["decide one"]
    for made in (first, second, third):
        proof = await verdict(desk, made.compilation_id)
        assert (proof.verdict, proof.text) == (pb.VERDICT_VERIFIED, made.text)
    rows = [row for row in await every_row(desk.stand) if row.startswith("knowledge.")]
    assert not any(SECRET in row or "cerulean" in row for row in rows)


async def test_which_runs_were_told_of_a_revision(desk: Desk) -> None:
    """000-38: the question an operator has of a poisoned memory, in one call; paged."""
    memory = await desk.made(content="poison")
    changed = await desk.changed(UPDATE, memory, type="note", content="cure", importance=0.5)
    await desk.changed(UPDATE, changed, type="note", content="poison again", importance=0.5)
    told = []
    for number in range(7):
        reply = await compiled(desk, run=f"run-{number}")
        told.append(reply.compilation_id)
    await desk.changed(UPDATE, memory.record_id, type="note", content="clean", importance=0.5)
    await compiled(desk)
    found: list[str] = []
    token = ""
    while True:
        page = await desk.done(
            COMPILATIONS,
            run_id="",
            record_id=memory.record_id,
            revision=3,
            page_size=3,
            page_token=token,
        )
        found += [each.compilation_id for each in page.compilations]
        token = page.next_page_token
        if not token:
            break
    assert found == told[::-1]
    of_run = await desk.done(COMPILATIONS, run="run-3")
    assert [each.compilation_id for each in of_run.compilations] == [told[3]]
    none = await desk.done(COMPILATIONS, run_id="", record_id=memory.record_id, revision=2)
    assert not none.compilations
    bound = {"project_id": desk.project, "run_id": "run-3"}
    refused = await desk.told(COMPILATIONS, bound, run_id="")
    assert (refused.code, refused.reason) == ("PERMISSION_DENIED", "TOKEN_BOUND")
    assert await desk.done(COMPILATIONS, bound, run="run-3")
    first = await desk.done(COMPILATIONS, run_id="", page_size=2)
    for changes in ({"record_id": "other"}, {"run_id": "run-1"}):
        given = {"run_id": "", "page_token": first.next_page_token} | changes
        assert (await desk.told(COMPILATIONS, **given)).reason == "PAGE_TOKEN_INVALID"
    version, digest, position = unpacked_token(first.next_page_token)
    for forged in ([position[0], "a\x00b"], [position[0], ""], [2**62, position[1]], position[:1]):
        token = packed_token([version, digest, forged])
        told_back = await desk.told(COMPILATIONS, run_id="", page_token=token)
        assert (told_back.code, told_back.reason) == ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID"), (
            forged
        )


async def test_compilations_of_others(desk: Desk) -> None:
    """000-38, 004-56: of another run, project or tenant it is the same as absent."""
    await desk.made()
    made = await compiled(desk)
    await compiled(desk, run="run-b")
    elsewhere = Desk(desk.stand, desk.channel, desk.stand.project())
    await elsewhere.made()
    await compiled(elsewhere)
    told = [
        await desk.told(COMPILATION, compilation_id="absent"),
        await desk.told(COMPILATION, compilation_id=made.compilation_id, run="run-b"),
        await elsewhere.told(COMPILATION, compilation_id=made.compilation_id),
    ]
    assert {(each.code, each.reason) for each in told} == {("NOT_FOUND", "COMPILATION_NOT_FOUND")}
    assert len({each.message for each in told}) == 1
    other = {"tenant_id": "tenant-b"}
    refused = await desk.told(COMPILATION, other, compilation_id=made.compilation_id)
    assert refused.reason == "BINDING_MISSING"
    assert not (await desk.done(COMPILATIONS, other, run_id="")).compilations


async def test_a_dry_run_leaves_nothing(desk: Desk) -> None:
    """000-38: the same text, and no entry."""
    await desk.made()
    dry = await compiled(desk, dry_run=True)
    wet = await compiled(desk)
    assert dry.text == wet.text
    assert (dry.compilation_id, bool(wet.compilation_id)) == ("", True)
    assert len((await desk.done(COMPILATIONS)).compilations) == 1


async def test_revoked_between_the_checks(desk: Desk) -> None:
    """004-16: no text, and no entry in the log."""
    await desk.made(content=SECRET)
    desk.stand.owner.scripts[desk.project] = bent(
        granting(projects_grant(owners.PERMISSION_READ_RUN_SELECTION)), at=2
    )
    desk.stand.owner.questions[desk.project].clear()
    refused = await desk.told(COMPILE)
    assert (refused.code, refused.reason) == ("PERMISSION_DENIED", "PERMISSION_MISSING")
    assert SECRET not in refused.text()
    del desk.stand.owner.scripts[desk.project]
    assert not (await desk.done(COMPILATIONS)).compilations


async def test_what_a_context_costs(desk: Desk) -> None:
    """004-15, ours: the same trips for ten candidates and for a thousand."""
    costs = []
    for count in (10, 990):
        puts = [head(kind=Kind.MEMORY, trust=Trust.PENDING) for _ in range(count)]
        for start in range(0, count, 90):
            await written(desk.stand, desk.project, puts[start : start + 90])
        await compiled(desk)  # pins the run
        before = provider_operations(desk.stand)
        desk.stand.owner.questions[desk.project].clear()
        reply = await compiled(desk)
        costs.append(
            (
                len(desk.stand.owner.questions[desk.project]),
                dict(provider_operations(desk.stand) - before),
            )
        )
        assert len(reply.items) == min(count, 20)
    assert costs == [(2, {"candidates": 1})] * 2
    await written(desk.stand, desk.project, [head(kind=Kind.MEMORY, trust=Trust.PENDING)])
    refused = await desk.told(COMPILE)
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "CONTEXT_CANDIDATE_OVERFLOW")
    assert refused.metadata == {"what": "candidates", "limit": "1000", "observed": "1001"}


async def test_equal_input_gives_equal_bytes(desk: Desk) -> None:
    """000-33, ours: the same text for the same records, from calls at the same time."""
    await asyncio.gather(*(desk.made(f"key-{n}", content=f"fact {n}") for n in range(12)))
    replies = await asyncio.gather(*(compiled(desk, query="fact") for _ in range(8)))
    assert len({reply.text for reply in replies}) == 1
    assert len({reply.compilation_id for reply in replies}) == 8
