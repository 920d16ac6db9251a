"""What the owner says about many runs at once: whole, in order, of the same caller, twice the same.

What is wrong with the first answer about runs is seen before a provider is asked; what changed by
the second one, before anything is told.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
from grpc import StatusCode

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import fails, granting, hangs, projects_grant, said, sends
from tests.fixtures.granting_owner import Script
from tests.fixtures.wide import A, Answer, B, Bend, Wide, candidate, of_b, selected, wide

__all__ = ["wide"]

KNOWLEDGE: Final = owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE
REVOKED: Final = (
    "PERMISSION_DENIED",
    "PERMISSION_MISSING",
    {"permission": "AccessPrivateKnowledge"},
)
UNFIT: Final = "FAILED_PRECONDITION"


def entries(pick: Callable[[list[owners.RunSelectionEntry]], list[Any]]) -> Bend:
    """Give other entries than those asked for."""

    def bend(answer: Answer) -> None:
        if answer.selections:
            picked = pick([*answer.selections])
            del answer.selections[:]
            answer.selections.extend(picked)

    return bend


ENTRIES: Final[dict[str, Bend]] = {
    "missing": entries(lambda all_: all_[:-1]),
    "none": entries(lambda all_: []),
    "doubled": entries(lambda all_: [*all_, all_[0]]),
    "doubled_for_another": entries(lambda all_: [all_[0], all_[0], all_[2]]),
    "reordered": entries(lambda all_: all_[::-1]),
    "unasked": entries(lambda all_: [*all_, owners.RunSelectionEntry(run_id="run-x")]),
    "unnamed": of_b(lambda entry: entry.ClearField("run_id")),
}


@pytest.mark.parametrize("at", [2, 3])
@pytest.mark.parametrize("name", ENTRIES)
async def test_entries(wide: Wide, name: str, at: int) -> None:
    """004-13, 004-69: one entry for each run asked for, in order, at both checks."""
    wide.script(ENTRIES[name], at=at)
    cost = await wide.cost()
    assert cost.told == ("INTERNAL", "AUTHORITY_RESPONSE_INVALID", {})
    assert cost.questions == at
    assert cost.work == ({} if at == 2 else {"negotiate": 2, "search": 2})


async def test_the_size_of_an_answer(wide: Wide) -> None:
    """004-13: 256 KiB, and 4 KiB for each run that was asked for."""
    for more, runs in ((0, 0), (0, 3), (1, 0), (1, 3)):
        size = 256 * 1024 + runs * 4 * 1024 + more

        def bend(answer: Answer, size: int = size, runs: int = runs) -> None:
            if len(answer.selections) == runs:
                room = size - answer.ByteSize()
                answer.MergeFromString(b"\x7a" + _varint(room - 4) + bytes(room - 4))
                assert answer.ByteSize() == size

        wide.script(bend)
        cost = await wide.cost()
        if more:
            assert cost.told == ("INTERNAL", "AUTHORITY_RESPONSE_INVALID", {})
            assert cost.questions == (2 if runs else 1)
        else:
            assert cost.questions == 3


def _varint(length: int) -> bytes:
    return bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])


AT_SELECTIONS: Final[list[tuple[Script | Bend, str, str, dict[str, str]]]] = [
    (fails(StatusCode.UNAVAILABLE, at=2), "UNAVAILABLE", "AUTHORITY_UNAVAILABLE", {}),
    (hangs(at=2), "UNAVAILABLE", "AUTHORITY_UNAVAILABLE", {}),
    (sends(b"\xff", at=2), "INTERNAL", "AUTHORITY_RESPONSE_INVALID", {}),
    (fails(StatusCode.NOT_FOUND, at=2), *REVOKED),
]


@pytest.mark.parametrize(("script", "code", "reason", "metadata"), AT_SELECTIONS)
async def test_the_question_about_runs_fails(
    wide: Wide, script: Script, code: str, reason: str, metadata: dict[str, str]
) -> None:
    """004-14, 004-69: it is a part of check one: refused, and no provider is asked."""
    wide.follow(script)
    cost = await wide.cost()
    assert cost.told == (code, reason, metadata)
    assert (cost.questions, cost.work) == (2, {})


CHANGED: Final[tuple[str, str, dict[str, str]]] = ("PERMISSION_DENIED", "AUTHORITY_CHANGED", {})
NO_SELECTION: Final = (
    "PERMISSION_DENIED",
    "PERMISSION_MISSING",
    {"permission": "ReadRunSelection"},
)
MOVED: Final = (UNFIT, "RUN_SELECTION_CHANGED", {"run_id": B})
CALLERS: Final[dict[str, tuple[Bend, tuple[str, str, dict[str, str]]]]] = {
    "actor": (said(actor_id="actor-b"), CHANGED),
    "tenant": (said(tenant_id="tenant-b"), CHANGED),
    "bound": (said(bound_project_id="elsewhere"), CHANGED),
    "contract": (
        said(contract_version=2),
        ("INTERNAL", "AUTHORITY_RESPONSE_INVALID", {}),
    ),
    "revoked": (granting(), REVOKED),
    "selections_revoked": (granting(projects_grant(KNOWLEDGE)), NO_SELECTION),
}
SELECTIONS: Final[dict[str, Bend]] = {
    "revision": selected(project_revision=2),
    "runtime": selected(platform_runtime_revision=2),
    "provider": candidate(provider_id="second"),
    "gone": of_b(lambda entry: entry.ClearField("selection")),
    "malformed": selected(run_id=A),
}


@pytest.mark.parametrize("name", CALLERS)
@pytest.mark.parametrize("at", [2, 3])
async def test_another_caller(wide: Wide, name: str, at: int) -> None:
    """004-16, 004-17, 004-69: identity and rights hold in every answer."""
    bend, told = CALLERS[name]
    wide.script(bend, at=at)
    cost = await wide.cost()
    assert (cost.told, cost.questions) == (told, at)
    assert cost.work == ({} if at == 2 else {"negotiate": 2, "search": 2})


@pytest.mark.parametrize("name", SELECTIONS)
async def test_one_selection_changes(wide: Wide, name: str) -> None:
    """004-17, 004-69: one run of many moved while resources were searched: nothing is told."""
    await wide.made(content="there")
    wide.script(SELECTIONS[name], at=3)
    cost = await wide.cost()
    assert (cost.told, cost.questions) == (MOVED, 3)
    assert cost.work == {"negotiate": 2, "search": 2}
