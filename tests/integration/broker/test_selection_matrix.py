"""Whatever is wrong with a run's selection or pin: one refusal, and no provider was asked.

Every row calls every RPC about a run (all of RecordService, GetBinding), of runs with a pin and of
one without.
"""

from typing import Any, Final

import asyncpg
import pytest
from grpc import StatusCode

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import (
    CASES,
    FIRST_USE,
    PINNED,
    Answer,
    Ground,
    Row,
    bent,
    candidate,
    claiming,
    each,
    granting,
    ground,
    judge,
    plain,
    projects_grant,
    rows_of,
    said,
    selected,
)
from tests.fixtures.broker import STORE_TRIPS, Stand
from tests.fixtures.memory import CAPABILITIES, candidate_of
from tests.fixtures.record_calls import (
    BATCH,
    COMPILATION,
    COMPILATIONS,
    COMPILE,
    GET,
    GET_BINDING,
    LIST_PROVIDERS,
    MEMORY_RPCS,
    PROPOSAL_RPCS,
    READS,
    RPCS,
    SEARCH_PROJECT,
    TRANSFERS,
    outcomes,
    request,
    send,
)
from tests.fixtures.stand_records import provider_operations, stored

pytestmark = pytest.mark.memories("postgres", "redis")

__all__ = ["ground"]


def entry(position: int = 0, **changes: object) -> Any:
    """Change an entry of the selected providers."""

    def bend(answer: Answer) -> None:
        for name, value in changes.items():
            setattr(answer.selection.providers[position], name, value)

    return bend


def no_memory(answer: Answer) -> None:
    """Select nothing for Memory."""
    del answer.selection.providers[:]


def two_memories(answer: Answer) -> None:
    """Select for Memory twice."""
    answer.selection.providers.append(answer.selection.providers[0])


def two_candidates(answer: Answer) -> None:
    """Select two candidates in one entry."""
    answer.selection.providers[0].candidates.append(candidate_of("another"))


def no_candidate(answer: Answer) -> None:
    """Select an entry without candidates."""
    del answer.selection.providers[0].candidates[:]


def prompt_cap_of_zero(answer: Answer) -> None:
    """Limit prompts to nothing."""
    answer.selection.run_limits.max_prompt_tokens = 0


absent = rows_of("004-14", StatusCode.NOT_FOUND, "RUN_SELECTION_NOT_FOUND", 1)
invalid = rows_of("004-14, 004-22", StatusCode.INTERNAL, "RUN_SELECTION_INVALID", 1)
not_one = rows_of("004-21", StatusCode.FAILED_PRECONDITION, "PROVIDER_SELECTION_INVALID", 1)
SELECTION_ROWS: Final = (
    absent("absent", script=bent(lambda answer: answer.ClearField("selection"))),
    absent(
        "absent_for_whoever_may_write",
        script=bent(
            each(granting(projects_grant()), lambda answer: answer.ClearField("selection"))
        ),
    ),
    invalid("of_another_tenant", script=bent(selected(tenant_id="tenant-b"))),
    invalid("of_another_project", script=bent(selected(project_id="elsewhere"))),
    invalid("of_another_run", script=bent(selected(run_id="run-b"))),
    invalid("of_a_run_in_another_case", script=bent(selected(run_id="RUN-A"))),
    invalid("project_revision_0", script=bent(selected(project_revision=0))),
    invalid("configuration_0", script=bent(selected(project_configuration_revision=0))),
    invalid("runtime_revision_0", script=bent(selected(platform_runtime_revision=0))),
    invalid("negative_revision", script=bent(selected(project_revision=-1))),
    invalid("context_revision_absent", script=bent(selected(context_revision=""))),
    invalid("context_revision_blank", script=bent(selected(context_revision=" "))),
    invalid("unknown_cardinality", script=bent(entry(cardinality=99))),
    invalid("unspecified_cardinality", script=bent(entry(cardinality=0))),
    invalid("seam_of_the_candidate_differs", script=bent(candidate(seam="Tools"))),
    invalid("provider_id_absent", script=bent(candidate(provider_id=""))),
    invalid("version_malformed", script=bent(candidate(adapter_version="1.0"))),
    invalid("options_schema_0", script=bent(candidate(options_schema_version=0))),
    invalid("options_revision_blank", script=bent(candidate(options_revision=" "))),
    invalid("hosting_absent", script=bent(candidate(hosting=""))),
    invalid("layer_of_an_exclusive_one", script=bent(candidate(layer="upper"))),
    invalid("capability_blank", script=bent(candidate(advertised_capabilities=(" ",)))),
    invalid("capability_twice", script=bent(candidate(advertised_capabilities=("a", "a")))),
    invalid("nothing_advertised", script=bent(candidate(advertised_capabilities=()))),
    invalid(
        "required_and_not_advertised",
        script=bent(candidate(required_capabilities=("memory.unknown",))),
    ),
    invalid("prompt_cap_0", script=bent(prompt_cap_of_zero)),
    not_one("no_memory", script=bent(no_memory)),
    not_one("two_memories", script=bent(two_memories)),
    not_one("ordered", script=bent(entry(cardinality=owners.CARDINALITY_ORDERED))),
    not_one("layered", script=bent(entry(cardinality=owners.CARDINALITY_LAYERED))),
    not_one("two_candidates", script=bent(two_candidates)),
    not_one("no_candidate", script=bent(no_candidate)),
)


def drifted(field: str, value: object) -> Row:
    """A candidate that differs from the catalog in one field."""
    return Row(
        name=f"drift_of_{field}",
        proves="004-23",
        code=StatusCode.FAILED_PRECONDITION,
        reason="PROVIDER_SELECTION_INVALID",
        questions=2,
        metadata={"field": field},
        script=bent(candidate(**{field: value})),
    )


def moved(field: str, value: object) -> Row:
    """A selection that differs from the pin in one field."""
    return Row(
        name=f"pin_differs_in_{field}",
        proves="004-28, 004-29",
        code=StatusCode.FAILED_PRECONDITION,
        reason="RUN_SELECTION_CHANGED",
        questions=2,
        metadata={"field": field},
        script=bent(selected(**{field: value})),
        cases=PINNED,
    )


CATALOG_ROWS: Final = (
    drifted("provider_id", "unknown"),
    drifted("provider_id", "Native"),
    drifted("adapter_version", "1.0.1"),
    drifted("options_schema_version", 2),
    drifted("options_revision", "options-v2"),
    drifted("hosting", "tenant"),
    drifted("advertised_capabilities", CAPABILITIES[:3]),
    drifted("advertised_capabilities", (*CAPABILITIES, "memory.records.later")),
    drifted("advertised_capabilities", (*CAPABILITIES[:3], "memory.unknown")),
    moved("project_revision", 2),
    moved("project_configuration_revision", 2),
    moved("context_revision", "context-v2"),
)


def row_id(row: Row) -> str:
    """Name a row."""
    return row.name


@pytest.mark.parametrize("row", SELECTION_ROWS, ids=row_id)
async def test_selection(ground: Ground, row: Row) -> None:
    """004-14, 004-21, 004-22: one question; the run is not even looked up among the pins."""
    await judge(ground, row)


@pytest.mark.parametrize("row", CATALOG_ROWS, ids=row_id)
async def test_catalog_and_pin(ground: Ground, row: Row) -> None:
    """004-23, 004-26, 004-28, 004-29: told only after check ②; nothing is negotiated."""
    await judge(ground, row)


async def test_no_refusal_makes_a_pin(ground: Ground) -> None:
    """004-28, 004-29: none of the rows above pinned the run that had no pin."""
    row = drifted("hosting", "tenant")
    await judge(ground, row)
    assert await ground.stand.rows("knowledge.pins", ground.projects[FIRST_USE]) == 0


PASSES: Final = {
    "tenant_grant_and_selection_on_the_project": bent(
        granting(
            (
                owners.RESOURCE_TYPE_TENANT,
                "tenant-a",
                (owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE,),
            ),
            projects_grant(owners.PERMISSION_READ_RUN_SELECTION),
        )
    ),
    "knowledge_without_read_projects": bent(
        granting(
            projects_grant(
                owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE, owners.PERMISSION_READ_RUN_SELECTION
            )
        )
    ),
    "membership_moved_between": bent(said(membership_revision=9), at=2),
    "runtime_moved_since_the_pin": bent(selected(platform_runtime_revision=7)),
    "capabilities_in_another_order": bent(
        candidate(advertised_capabilities=tuple(reversed(CAPABILITIES)))
    ),
    "another_seam_beside": bent(
        lambda answer: answer.selection.providers.append(
            owners.SelectedProviders(cardinality=owners.CARDINALITY_ORDERED, seam="Tools")
        )
    ),
}


@pytest.mark.parametrize("name", PASSES)
async def test_what_passes(ground: Ground, name: str) -> None:
    """004-06, 004-09, 004-21, 004-28: what only looks wrong is not refused."""
    with ground.scripted(PASSES[name]):
        assert outcomes(await ground.call(READS)) == dict.fromkeys(READS, ("OK", ""))


BOUND: Final = {
    "unbound": plain,
    "to_the_project": claiming(project_id=lambda project: project),
    "to_the_run": claiming(project_id=lambda project: project, run_id="run-a"),
    "no_tenant_claim": claiming(tenant_id=None),
}


@pytest.mark.parametrize("name", BOUND)
async def test_whose_token_passes(ground: Ground, name: str) -> None:
    """004-10, 004-12, B2: bound to what it asks for, or to nothing."""
    assert outcomes(await ground.call(READS, BOUND[name])) == dict.fromkeys(READS, ("OK", ""))


# -------------------- pins of another time


async def pinned(stand: Stand, **changes: Any) -> str:
    """Return a project whose run was pinned like this by somebody else."""
    project, memory = stand.project(), stand.memory
    columns = {
        "tenant_id": "tenant-a",
        "project_id": project,
        "run_id": "run-a",
        "project_revision": 1,
        "project_configuration_revision": 1,
        "context_revision": "context-v1",
        "provider_id": memory.candidate.provider_id,
        "adapter_version": memory.candidate.adapter_version,
        "options_schema_version": 1,
        "options_revision": memory.candidate.options_revision,
        "resource_id": memory.resource.resource_id,
        "resource_generation": memory.resource.generation,
        "capabilities": list(CAPABILITIES),
        **changes,
    }
    places = ", ".join(f"${number + 1}" for number in range(len(columns)))
    connection = await asyncpg.connect(stand.database.admin_dsn)
    try:
        await connection.execute(
            f"INSERT INTO knowledge.pins ({', '.join(columns)}, create_time) "
            f"VALUES ({places}, now())",
            *columns.values(),
        )
    finally:
        await connection.close()
    return project


async def every_rpc(stand: Stand, project: str) -> dict[str, tuple[str, str]]:
    """Return what becomes of each RPC."""
    async with stand.channel() as channel:
        return outcomes(
            {
                rpc: await send(
                    channel, rpc, request(rpc, project, record_id="absent"), stand.metadata()
                )
                for rpc in PINNED
            }
        )


@pytest.mark.parametrize(
    "changes",
    [{"resource_id": "another"}, {"resource_generation": 2}],
    ids=["resource", "generation"],
)
async def test_pin_of_another_resource(stand: Stand, changes: dict[str, Any]) -> None:
    """004-29, B10: the live resource is not the pinned one; no other is tried."""
    project = await pinned(stand, **changes)
    asked = provider_operations(stand)
    refusal = ("FAILED_PRECONDITION", "BINDING_MISMATCH")
    assert await every_rpc(stand, project) == dict.fromkeys(PINNED, refusal)
    assert not {*STORE_TRIPS} & (provider_operations(stand) - asked).keys()
    assert (await stored(stand, [project]))[project] == []
    assert stand.owner.counts[project] == 2 * len(PINNED)


async def test_pin_of_another_provider(stand: Stand) -> None:
    """004-29: a stored pin is compared before anything is negotiated."""
    project = await pinned(stand, provider_id="another")
    asked = provider_operations(stand)
    refusal = ("FAILED_PRECONDITION", "RUN_SELECTION_CHANGED")
    assert await every_rpc(stand, project) == dict.fromkeys(PINNED, refusal)
    assert provider_operations(stand) == asked


async def test_capability_missing_from_the_pin(stand: Stand) -> None:
    """004-24, 004-25: what was not negotiated then is not used now."""
    project = await pinned(stand, capabilities=["memory.records.read"])
    missing = ("FAILED_PRECONDITION", "CAPABILITY_MISSING")
    refused = (*RPCS, *PROPOSAL_RPCS, *TRANSFERS, *MEMORY_RPCS, COMPILE)
    assert await every_rpc(stand, project) == dict.fromkeys(refused, missing) | {
        GET: ("NOT_FOUND", "RECORD_NOT_FOUND"),
        BATCH: ("NOT_FOUND", "RECORD_NOT_FOUND"),
        GET_BINDING: ("OK", ""),
        COMPILATIONS: ("OK", ""),
        COMPILATION: ("NOT_FOUND", "COMPILATION_NOT_FOUND"),
    }
    assert (await stored(stand, [project]))[project] == []


def test_every_case_is_called() -> None:
    """004-05: the rows leave out no RPC but those of effects, which need other rights."""
    from broker.server.methods import METHODS

    served = {name.rpartition("/")[2] for name in METHODS if "EffectService" not in name}
    assert served == {*CASES, LIST_PROVIDERS, SEARCH_PROJECT} - {FIRST_USE}
