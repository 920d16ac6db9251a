"""What changes between the two checks of a call: it is refused, and nothing was written or told.

Every row calls every RPC about a run. The provider was read, once (for GetBinding it was not);
nothing was committed.
"""

from typing import Final

import pytest
from grpc import StatusCode

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import (
    CASES,
    FIRST_USE,
    Ground,
    Row,
    bent,
    candidate,
    claiming,
    each,
    fails,
    granting,
    ground,
    hangs,
    judge,
    projects_grant,
    rows_of,
    said,
    selected,
    sends,
    without_selection,
)
from tests.fixtures.granting_owner import Context, Question
from tests.fixtures.memory import CAPABILITIES
from tests.fixtures.record_calls import EXPORT, GET_BINDING, IMPORT, READS, WRITES, outcomes
from tests.fixtures.stand_records import provider_operations

__all__ = ["ground"]

KNOWLEDGE: Final = {"permission": "AccessPrivateKnowledge"}
SELECTION: Final = {"permission": "ReadRunSelection"}

revoked = rows_of(
    "004-16", StatusCode.PERMISSION_DENIED, "PERMISSION_MISSING", 2, loads=1, metadata=KNOWLEDGE
)
identity = rows_of("004-17", StatusCode.PERMISSION_DENIED, "AUTHORITY_CHANGED", 2, loads=1)
moved = rows_of("004-17", StatusCode.FAILED_PRECONDITION, "RUN_SELECTION_CHANGED", 2, loads=1)
unavailable = rows_of(
    "004-14", StatusCode.UNAVAILABLE, "AUTHORITY_UNAVAILABLE", 2, loads=1, retry=True
)
invalid = rows_of("004-13", StatusCode.INTERNAL, "AUTHORITY_RESPONSE_INVALID", 2, loads=1)

ROWS: Final = (
    revoked("everything_revoked", script=bent(granting(), at=2)),
    revoked("project_gone", script=fails(StatusCode.NOT_FOUND, at=2)),
    revoked("denied", script=fails(StatusCode.PERMISSION_DENIED, at=2)),
    revoked(
        "knowledge_revoked",
        script=bent(
            granting(
                projects_grant(
                    owners.PERMISSION_READ_PROJECTS,
                    owners.PERMISSION_WRITE_PROJECTS,
                    owners.PERMISSION_READ_RUN_SELECTION,
                )
            ),
            at=2,
        ),
    ),
    revoked(
        "selection_revoked",
        metadata=SELECTION,
        script=bent(
            each(
                granting(projects_grant(owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE)),
                without_selection,
            ),
            at=2,
        ),
    ),
    revoked(
        "token_rejected",
        code=StatusCode.UNAUTHENTICATED,
        reason="TOKEN_REJECTED_BY_OWNER",
        metadata={},
        script=fails(StatusCode.UNAUTHENTICATED, at=2),
    ),
    identity("issuer", script=bent(said(issuer="https://evil.test"), at=2)),
    identity("actor", script=bent(said(actor_id="actor-b"), at=2)),
    identity("tenant", script=bent(said(tenant_id="tenant-b"), at=2)),
    identity(
        "tenant_of_a_token_without_one",
        says=claiming(tenant_id=None),
        script=bent(each(said(tenant_id="tenant-b"), selected(tenant_id="tenant-b")), at=2),
    ),
    identity("bound_meanwhile", script=bent(said(bound_project_id="elsewhere"), at=2)),
    identity(
        "unbound_meanwhile",
        says=claiming(project_id=lambda project: project),
        script=bent(said(bound_project_id=None), at=2),
    ),
    identity("purpose", script=bent(said(token_purpose="export"), at=2)),
    identity(
        "actor_without_grants",
        script=bent(each(granting(), said(actor_id="actor-b")), at=2),
    ),
    moved("project_revision", script=bent(selected(project_revision=2), at=2)),
    moved("configuration", script=bent(selected(project_configuration_revision=2), at=2)),
    moved("runtime_revision", script=bent(selected(platform_runtime_revision=2), at=2)),
    moved("context_revision", script=bent(selected(context_revision="context-v2"), at=2)),
    moved("other_provider", script=bent(candidate(provider_id="other"), at=2)),
    moved(
        "fewer_capabilities", script=bent(candidate(advertised_capabilities=CAPABILITIES[:3]), at=2)
    ),
    moved("more_required", script=bent(candidate(required_capabilities=CAPABILITIES[:2]), at=2)),
    moved("selection_gone", script=bent(without_selection, at=2)),
    moved("selection_of_another_run", script=bent(selected(run_id="run-b"), at=2)),
    moved("selection_malformed", script=bent(selected(context_revision=""), at=2)),
    unavailable("owner_unavailable", script=fails(StatusCode.UNAVAILABLE, at=2)),
    unavailable("owner_hangs", script=hangs(at=2)),
    invalid("answer_empty", script=sends(b"", at=2)),
    invalid("answer_garbage", script=sends(b"\xff\xff", at=2)),
    invalid("contract_version_2", script=bent(said(contract_version=2), at=2)),
    invalid("membership_revision_0", script=bent(said(membership_revision=0), at=2)),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_between(ground: Ground, row: Row) -> None:
    """004-13..17, B3: check ② refuses what check ① allowed; zero rows are written."""
    await judge(ground, row)


@pytest.mark.memories("redis", "cosmos")
@pytest.mark.parametrize("name", ["everything_revoked", "actor", "owner_unavailable"])
async def test_between_on_other_stores(ground: Ground, name: str) -> None:
    """004-13..17, B3: whatever keeps memory; one row of those for each way to be refused."""
    (row,) = (row for row in ROWS if row.name == name)
    await judge(ground, row)


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_first_use_left_the_pin(ground: Ground) -> None:
    """004-16, 004-28: the pin of a first use may stay; no record of the run does."""
    with ground.scripted(bent(granting(), at=2)):
        await ground.call((FIRST_USE,))
    assert await ground.stand.rows("knowledge.pins", ground.projects[FIRST_USE]) == 1
    assert await ground.stand.rows("memory.records", ground.projects[FIRST_USE]) == 0


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_what_was_done_when_check_two_began(ground: Ground) -> None:
    """004-15: a read has its result before check ② begins; a write has committed nothing."""
    seen: dict[str, int] = {}

    async def script(
        question: Question, answer: owners.GetRunAuthorityResponse, context: Context
    ) -> bytes:
        if question.number == 2:
            done = provider_operations(ground.stand) - before
            read = sum(done[each] for each in ("load", "revisions", "search", "export"))
            seen[case] = read + 100 * done["commit"]
        return answer.SerializeToString()

    for case in CASES:
        before = provider_operations(ground.stand)
        with ground.scripted(script):
            assert outcomes(await ground.call((case,))) == {case: ("OK", "")}
    reads = (*READS, EXPORT)
    assert {case: seen[case] for case in reads} == dict.fromkeys(reads, 1)
    assert all(seen[case] in {0, 1} for case in (*WRITES, IMPORT, FIRST_USE))
    assert seen[GET_BINDING] == 0
