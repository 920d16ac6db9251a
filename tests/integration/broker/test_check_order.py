"""The order of checks: what is told when several things are wrong at once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg
import pytest
from grpc import StatusCode

from tests.fixtures.authority_rows import (
    CASES,
    FIRST_USE,
    Ground,
    bent,
    candidate,
    claiming,
    each,
    fails,
    granting,
    ground,
    without_selection,
)
from tests.fixtures.broker import Stand
from tests.fixtures.granting_owner import Script
from tests.fixtures.record_calls import (
    CHANGES,
    COMPILATION,
    COMPILATIONS,
    CREATE,
    EXPORT,
    GET,
    GET_BINDING,
    IMPORT,
    LIST,
    NAMING,
    PAGED,
    RESTORE,
    REVISION,
    SUPERSEDE,
    UPDATE,
    Refused,
    outcomes,
    request,
    scope,
    send,
)
from tests.fixtures.seeds import seed
from tests.fixtures.stand_records import provider_operations, stored
from tests.fixtures.stored_history import TAMPERED

__all__ = ["ground"]

NO_ID: Final = "not an identifier"
BAD: Final[dict[str, Any]] = {
    "idempotency_key": NO_ID,
    "record_id": NO_ID,
    "record_ids": [NO_ID],
    "revision": 0,
    "expected_revision": 0,
    "content": "",
    "importance": 7.0,
    "importance_min": 7.0,
    "source_revision": 0,
    "query": "q" * 2_001,
    "limit": -1,
    "compilation_id": NO_ID,
}
"""Fields that are wrong beside the scope, at least one for each RPC that has any."""
WITH_FIELDS: Final = tuple(case for case in CASES if case != GET_BINDING)
OF_AN_AGENT: Final = tuple(case for case in WITH_FIELDS if case not in {COMPILATIONS, COMPILATION})

DENIED: Final = ("PERMISSION_DENIED", "PERMISSION_MISSING")
FIELDS: Final = ("INVALID_ARGUMENT", "FIELD_INVALID")
TOKEN: Final = ("UNAUTHENTICATED", "TOKEN_INVALID")
PAGE: Final = ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID")
GONE: Final = ("NOT_FOUND", "RECORD_NOT_FOUND")


async def ask(
    ground: Ground, script: Script | None, cases: tuple[str, ...] = CASES, **more: Any
) -> tuple[dict[str, tuple[str, str]], set[int]]:
    """Return what is told, and how often the owner was asked."""
    with ground.scripted(script):
        told = outcomes(await ground.call(cases, **more))
        return told, set(ground.questions(cases).values())


async def test_token_before_everything(ground: Ground) -> None:
    """004-03: a bad token hides that the scope is bad."""
    bad = BAD | {"scope": scope(NO_ID)}
    told, questions = await ask(ground, None, says=claiming(exp=1), **bad)
    assert (told, questions) == (dict.fromkeys(CASES, TOKEN), {0})


async def test_scope_before_the_owner(ground: Ground) -> None:
    """004-48, 004-05: what would be sent to the owner is judged before it is asked."""
    denied = fails(StatusCode.PERMISSION_DENIED)
    for project, run, agent in (("", "r", "a"), ("p", "a/b", "a"), ("p", "r", "a" * 257)):
        cases = CASES if agent == "a" else OF_AN_AGENT
        within = scope(project, run=run, agent=agent)
        told, questions = await ask(ground, denied, cases, scope=within)
        assert (told, questions) == (dict.fromkeys(cases, FIELDS), {0})


async def test_scope_before_the_token_s_bounds(ground: Ground) -> None:
    """004-10, 004-11: bounds and purpose are part of check ①."""
    told, _ = await ask(ground, None, says=claiming(purpose="export"), scope=scope(NO_ID))
    assert told == dict.fromkeys(CASES, FIELDS)
    told, _ = await ask(ground, None, says=claiming(purpose="export"), **BAD)
    assert told == dict.fromkeys(CASES, ("PERMISSION_DENIED", "TOKEN_PURPOSE_BOUND"))


async def test_paging_before_the_owner(ground: Ground) -> None:
    """004-68: so are the page size and the form of a page token."""
    for changes, refusal in (({"page_size": -1}, FIELDS), ({"page_token": "%"}, PAGE)):
        told, questions = await ask(ground, fails(StatusCode.PERMISSION_DENIED), PAGED, **changes)
        assert (told, questions) == (dict.fromkeys(PAGED, refusal), {0})


async def test_permission_before_fields(ground: Ground) -> None:
    """004-05, B6: who may not enter is not told what is wrong with a request."""
    told, questions = await ask(ground, bent(granting()), **BAD)
    assert (told, questions) == (dict.fromkeys(CASES, DENIED), {1})


async def test_fields_before_the_selection(ground: Ground) -> None:
    """004-14, 004-48: one question, and the fields are told."""
    told, questions = await ask(ground, bent(without_selection), WITH_FIELDS, **BAD)
    assert (told, questions) == (dict.fromkeys(WITH_FIELDS, FIELDS), {1})


async def test_fields_before_the_binding(ground: Ground) -> None:
    """004-23, 004-48: a drifted candidate is not looked at before the fields."""
    told, questions = await ask(ground, bent(candidate(hosting="tenant")), WITH_FIELDS, **BAD)
    assert (told, questions) == (dict.fromkeys(WITH_FIELDS, FIELDS), {1})


async def test_selection_before_the_binding(ground: Ground) -> None:
    """004-21, 004-23: a selection that is invalid and drifted is invalid."""
    script = bent(candidate(hosting="tenant", options_schema_version=0))
    told, questions = await ask(ground, script)
    refusal = ("INTERNAL", "RUN_SELECTION_INVALID")
    assert (told, questions) == (dict.fromkeys(CASES, refusal), {1})


async def test_page_token_of_another_request(ground: Ground, stand: Stand) -> None:
    """004-68: judged after permissions and before the selection."""
    foreign = await _page_token(stand)
    told, questions = await ask(ground, bent(granting()), PAGED, page_token=foreign)
    assert (told, questions) == (dict.fromkeys(PAGED, DENIED), {1})
    told, questions = await ask(ground, bent(without_selection), PAGED, page_token=foreign)
    assert (told, questions) == (dict.fromkeys(PAGED, PAGE), {1})


async def _page_token(stand: Stand) -> str:
    project = stand.project()
    async with stand.channel() as channel:
        made = await send(channel, CREATE, request(CREATE, project), stand.metadata())
        named = {"record_id": made.record.record_id, "page_size": 1}
        await send(channel, UPDATE, request(UPDATE, project, **named), stand.metadata())
        page = await send(channel, LIST, request(LIST, project, **named), stand.metadata())
    assert page.next_page_token
    return str(page.next_page_token)


# -------------------- check ② before every outcome of the store


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a call comes to when check ② passes, at its last question.

    ``tamper`` is SQL that goes past the triggers, with the record as its parameter. With ``done``
    the same request has been served before.
    """

    rpc: str
    told: tuple[str, str]
    questions: int = 2
    changes: dict[str, Any] = field(default_factory=dict)
    says: Callable[[Stand, str], Any] | None = None
    tamper: str = ""
    done: bool = False


REUSED: Final = ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
STATE: Final = ("FAILED_PRECONDITION", "STATE_NOT_ALLOWED")
INVALID: Final = ("DATA_LOSS", "STORED_DATA_INVALID")
NOBODY: Final = {"record_id": "01890000-0000-7000-8000-000000000000"}
OTHER_AGENT: Final = {"agent": "agent-b"}
OUTCOMES: Final = {
    **{
        f"stale_{rpc}": Outcome(
            rpc=rpc, told=("ABORTED", "REVISION_STALE"), changes={"expected_revision": 7}
        )
        for rpc in (UPDATE, *CHANGES)
    },
    **{f"absent_{rpc}": Outcome(rpc=rpc, told=GONE, changes=NOBODY) for rpc in NAMING},
    **{f"foreign_{rpc}": Outcome(rpc=rpc, told=GONE, changes=OTHER_AGENT) for rpc in NAMING},
    "no_such_revision": Outcome(
        rpc=REVISION, told=("NOT_FOUND", "REVISION_NOT_FOUND"), changes={"revision": 9}
    ),
    "no_such_source": Outcome(
        rpc=RESTORE, told=("NOT_FOUND", "REVISION_NOT_FOUND"), changes={"source_revision": 9}
    ),
    "replayed": Outcome(rpc=CREATE, told=("OK", ""), questions=3),
    **{
        f"replayed_{rpc}": Outcome(rpc=rpc, told=("OK", ""), questions=3, done=True)
        for rpc in (UPDATE, *CHANGES)
    },
    "absent_ExportRecords": Outcome(rpc=EXPORT, told=GONE, changes={"record_ids": ["absent"]}),
    "torn_ExportRecords": Outcome(
        rpc=EXPORT, told=INVALID, tamper="DELETE FROM memory.revisions WHERE record_id = $1"
    ),
    "replayed_ImportRecords": Outcome(rpc=IMPORT, told=("OK", ""), questions=3, done=True),
    "there_already": Outcome(
        rpc=IMPORT,
        told=("ALREADY_EXISTS", "BUNDLE_CONFLICT"),
        changes={"idempotency_key": "key-2"},
        tamper="UPDATE memory.records SET record_id = 'record-key-2' WHERE record_id = $1",
    ),
    "key_reused_by_an_import": Outcome(
        rpc=IMPORT, told=REUSED, questions=3, changes={"idempotency_key": "key-1"}
    ),
    "no_such_replacement": Outcome(
        rpc=SUPERSEDE,
        told=("FAILED_PRECONDITION", "REPLACEMENT_INVALID"),
        changes={"replacement_record_id": "absent"},
    ),
    "key_reused": Outcome(rpc=CREATE, told=REUSED, questions=4, changes={"content": "other"}),
    "key_reused_by_another_method": Outcome(
        rpc=UPDATE, told=REUSED, questions=3, changes={"idempotency_key": "key-1"}
    ),
    "key_reused_for_nobody": Outcome(
        rpc=UPDATE, told=REUSED, questions=3, changes={"idempotency_key": "key-1", **NOBODY}
    ),
    **{
        f"state_forbids_{rpc}": Outcome(
            rpc=rpc,
            told=STATE,
            tamper="UPDATE memory.records SET kind = 'proposal', state = 'rejected' "
            "WHERE record_id = $1",
        )
        for rpc in (UPDATE, *CHANGES)
    },
    "forgotten": Outcome(
        rpc=GET,
        told=GONE,
        tamper="UPDATE memory.records SET state = 'forgotten' WHERE record_id = $1",
    ),
    **{
        f"head_invalid_{rpc}": Outcome(
            rpc=rpc,
            told=INVALID,
            tamper="UPDATE memory.records SET facet = '[]' WHERE record_id = $1",
        )
        for rpc in (GET, UPDATE)
    },
    "history_invalid": Outcome(
        rpc=LIST,
        told=INVALID,
        tamper="DELETE FROM memory.revisions WHERE record_id = $1",
    ),
}


async def seeded(stand: Stand, outcome: Outcome) -> tuple[str, dict[str, Any]]:
    """Return a project with what the RPC may be done to, and how a request names that."""
    project, rpc = stand.project(), outcome.rpc
    async with stand.channel() as channel:
        named = await seed(stand, channel, rpc, project)
        if outcome.done:
            await send(channel, rpc, request(rpc, project, **named), stand.metadata())
    if outcome.tamper:
        TAMPERED.add(project)
        connection = await asyncpg.connect(stand.database.admin_dsn)
        try:
            await connection.execute("SET session_replication_role = replica")
            await connection.execute(outcome.tamper, named["record_id"])
        finally:
            await connection.close()
    return project, named


async def called(stand: Stand, outcome: Outcome, project: str, named: dict[str, Any]) -> Any:
    """Make the call, and count the owner's questions from 1."""
    stand.owner.questions[project].clear()
    given = named | outcome.changes
    async with stand.channel() as channel:
        return await send(
            channel, outcome.rpc, request(outcome.rpc, project, **given), stand.metadata()
        )


@pytest.mark.parametrize("name", OUTCOMES)
async def test_check_two_before_the_outcome(stand: Stand, name: str) -> None:
    """004-15, 004-16, B.11.11: revoked meanwhile, none of it is told; and nothing is written."""
    outcome = OUTCOMES[name]
    project, named = await seeded(stand, outcome)
    allowed = await called(stand, outcome, project, named)
    assert outcomes({name: allowed}) == {name: outcome.told}
    assert len(stand.owner.questions[project]) == outcome.questions
    kept, asked = await stored(stand, [project]), provider_operations(stand)
    refusals = []
    for last in range(2, outcome.questions + 1):
        stand.owner.scripts[project] = bent(granting(), at=last)
        refused = await called(stand, outcome, project, named)
        assert outcomes({name: refused}) == {name: DENIED}
        assert len(stand.owner.questions[project]) == last
        refusals.append(refused)
    # A memory is created unseen: its replay is a commit that changes nothing.
    assert outcome.rpc == CREATE or not (provider_operations(stand) - asked)["commit"]
    assert await stored(stand, [project]) == kept
    assert all(isinstance(refused, Refused) for refused in refusals)
    assert {tuple(refused.metadata.items()) for refused in refusals} == {
        (("permission", "AccessPrivateKnowledge"),)
    }


async def test_check_two_before_the_binding_s_outcome(ground: Ground) -> None:
    """004-15, 004-23, 004-29: a drifted catalog is told only to who may still enter."""
    drifted = candidate(hosting="tenant")

    def both(answer: Any) -> None:
        each(drifted, granting())(answer)

    async def script(question: Any, answer: Any, context: Any) -> bytes:
        (both if question.number == 2 else drifted)(answer)
        raw: bytes = answer.SerializeToString()
        return raw

    told, questions = await ask(ground, script)
    assert (told, questions) == (dict.fromkeys(CASES, DENIED), {2})
    assert FIRST_USE in told
