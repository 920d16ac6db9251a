"""The two checks, with an owner that answers from a list (004-01, 004-05..17)."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from broker.authority.checks import OwnerAuthority
from broker.domain.authority import KNOWLEDGE, SELECTIONS, Authorized, Need, Permission
from broker.domain.call import Call, Caller, ProjectScope, RunScope
from broker.domain.errors import (
    AuthorityChangedError,
    AuthorityResponseInvalidError,
    AuthorityUnavailableError,
    BrokerError,
    PermissionMissingError,
    RunSelectionChangedError,
    RunSelectionInvalidError,
    RunSelectionNotFoundError,
    TokenBindingMismatchError,
    TokenBoundError,
    TokenPurposeBoundError,
)
from broker.domain.ports import AuthorityPort
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import SCOPE, answer, caller, grant

Answer = owners.GetRunAuthorityResponse
Bend = Callable[[Answer], object]

K = Permission.ACCESS_PRIVATE_KNOWLEDGE
W = Permission.WRITE_PROJECTS
S = Permission.READ_RUN_SELECTION


class ListedOwner:
    """Gives one answer after the other and counts."""

    def __init__(self, answers: Sequence[Answer | BrokerError]) -> None:
        self.answers = list(answers)
        self.named: list[str] = []

    async def run_authority(self, call: Call, scope: RunScope, permission: str) -> Answer:
        assert scope == SCOPE
        self.named.append(permission)
        given = self.answers.pop(0)
        if isinstance(given, BrokerError):
            raise given
        return given

    async def project_authority(
        self, call: Call, scope: ProjectScope, permission: str
    ) -> owners.GetProjectAuthorityResponse:
        given = await self.run_authority(call, SCOPE, permission)
        return owners.GetProjectAuthorityResponse(context=given.context)

    async def caller_authority(
        self, call: Call, permission: str
    ) -> owners.GetCallerAuthorityResponse:
        given = await self.run_authority(call, SCOPE, permission)
        return owners.GetCallerAuthorityResponse(context=given.context)


def call_of(said: Caller | None = None) -> Call:
    deadline = asyncio.get_running_loop().time() + 60
    return Call(caller=said or caller(), request_id="request-1", deadline=deadline)


def bent(bend: Bend) -> Answer:
    given = answer()
    bend(given)
    return given


async def check(
    *answers: Answer | BrokerError, said: Caller | None = None, need: Need = KNOWLEDGE
) -> Authorized:
    return await OwnerAuthority(ListedOwner(answers)).check(call_of(said), SCOPE, need)


async def check_twice(second: Answer | BrokerError, *, need: Need = KNOWLEDGE) -> None:
    authority: AuthorityPort = OwnerAuthority(ListedOwner([answer(), second]))
    first = await authority.check(call_of(), SCOPE, KNOWLEDGE)
    await authority.recheck(first, need)


async def test_check_passes() -> None:
    """004-01, 004-05: one question, and the answer as the call carries it."""
    call = call_of()
    owner = ListedOwner([answer()])
    authorized = await OwnerAuthority(owner).check(call, SCOPE, KNOWLEDGE)
    assert authorized.call is call
    assert (authorized.scope, authorized.tenant_id) == (SCOPE, "tenant-a")
    assert (authorized.membership_revision, authorized.grants_write) == (7, True)
    assert authorized.selected().memory.provider_id == "postgres.native-memory"
    assert owner.named == [K]


@pytest.mark.parametrize(
    ("said", "need", "refusal"),
    [
        (caller(purpose="events"), KNOWLEDGE, TokenPurposeBoundError),
        (caller(bound_project_id="project-b"), KNOWLEDGE, TokenBindingMismatchError),
        (caller(bound_project_id="project-a"), Need(frozenset({K}), unbound=True), TokenBoundError),
    ],
    ids=["purpose", "elsewhere", "bound"],
)
async def test_token_is_judged_before_the_owner_is_asked(
    said: Caller, need: Need, refusal: type[BrokerError]
) -> None:
    """004-10, 004-11: what the token alone forbids costs no owner call."""
    owner = ListedOwner([])
    with pytest.raises(refusal):
        await OwnerAuthority(owner).check(call_of(said), SCOPE, need)
    assert owner.named == []


async def test_grants_write_is_told() -> None:
    """004-08: WriteProjects is told apart from what the method needs."""
    reader = answer(
        grant(
            owners.RESOURCE_TYPE_PROJECT,
            "project-a",
            owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE,
            owners.PERMISSION_READ_RUN_SELECTION,
        )
    )
    assert (await check(reader)).grants_write is False


async def test_metadata_reader_is_denied() -> None:
    """004-07: ReadProjects and ReadRunSelection give no records."""
    reader = answer(
        grant(
            owners.RESOURCE_TYPE_PROJECT,
            "project-a",
            owners.PERMISSION_READ_PROJECTS,
            owners.PERMISSION_READ_RUN_SELECTION,
        )
    )
    with pytest.raises(PermissionMissingError) as refused:
        await check(reader)
    assert refused.value.metadata == {"permission": "AccessPrivateKnowledge"}


async def test_answer_about_somebody_else_is_refused() -> None:
    """004-13: before any permission of theirs is judged."""
    other = bent(lambda given: setattr(given.context, "actor_id", "actor-b"))
    del other.context.grants[:]
    with pytest.raises(AuthorityResponseInvalidError, match="actor_id"):
        await check(other)


async def test_permissions_come_before_the_selection() -> None:
    """004-05, 004-14: who may not know of a run is not told whether it has a selection."""
    given = answer(
        grant(owners.RESOURCE_TYPE_PROJECT, "project-a", owners.PERMISSION_READ_PROJECTS)
    )
    given.ClearField("selection")
    with pytest.raises(PermissionMissingError):
        await check(given)


async def test_selection_refusal_is_kept_for_later() -> None:
    """004-14: check ① passes; whoever needs the selection gets its refusal."""
    authorized = await check(bent(lambda given: given.ClearField("selection")))
    for _ in range(2):
        with pytest.raises(RunSelectionNotFoundError):
            authorized.selected()
    foreign = await check(bent(lambda given: setattr(given.selection, "tenant_id", "tenant-b")))
    with pytest.raises(RunSelectionInvalidError):
        foreign.selected()


async def test_recheck_passes_when_nothing_changed() -> None:
    """004-15: the membership revision and the grants beside the need may move."""
    moved = answer(
        grant(
            owners.RESOURCE_TYPE_PROJECT,
            "project-a",
            owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE,
            owners.PERMISSION_READ_RUN_SELECTION,
            role_revision=9,
        )
    )
    moved.context.membership_revision = 8
    await check_twice(moved)


IDENTITY: dict[str, Bend] = {
    "issuer": lambda given: setattr(given.context, "issuer", "https://other.test/"),
    "actor": lambda given: setattr(given.context, "actor_id", "actor-b"),
    "tenant": lambda given: setattr(given.context, "tenant_id", "tenant-b"),
    "bounds": lambda given: setattr(given.context, "bound_project_id", "project-a"),
    "purpose": lambda given: setattr(given.context, "token_purpose", "events"),
}


@pytest.mark.parametrize("bend", IDENTITY.values(), ids=IDENTITY)
async def test_identity_changed_between_the_checks(bend: Bend) -> None:
    """004-17: judged before permissions, which would be somebody else's."""
    second = bent(bend)
    del second.context.grants[:]
    with pytest.raises(AuthorityChangedError):
        await check_twice(second)


async def test_permission_revoked_between_the_checks() -> None:
    """004-16: the plain refusal, as if it had never been held."""
    second = answer()
    del second.context.grants[0].permissions[3]
    with pytest.raises(PermissionMissingError) as refused:
        await check_twice(second)
    assert refused.value.metadata == {"permission": "AccessPrivateKnowledge"}


async def test_recheck_may_need_more() -> None:
    """004-16: WriteProjects that was held at first and is relied on must still be held."""
    second = answer()
    del second.context.grants[0].permissions[2]
    await check_twice(second)
    with pytest.raises(PermissionMissingError) as refused:
        await check_twice(second, need=Need(KNOWLEDGE.permissions | {W}))
    assert refused.value.metadata == {"permission": "WriteProjects"}


async def test_the_same_answer_is_held_against_what_is_needed_now() -> None:
    """004-16: what was not asked for at first, and is not held, is missing now."""
    without = bent(lambda given: given.context.grants[0].permissions.pop(2))
    authority = OwnerAuthority(ListedOwner([without, without]))
    first = await authority.check(call_of(), SCOPE, KNOWLEDGE)
    with pytest.raises(PermissionMissingError) as refused:
        await authority.recheck(first, Need(KNOWLEDGE.permissions | {W}))
    assert refused.value.metadata == {"permission": "WriteProjects"}


def in_memory(name: str, value: object) -> Bend:
    return lambda given: setattr(given.selection.providers[1].candidates[0], name, value)


def without_requirements(given: Answer) -> None:
    given.selection.providers[1].candidates[0].ClearField("required_capabilities")


def with_one_more_capability(given: Answer) -> None:
    given.selection.providers[1].candidates[0].advertised_capabilities.append("more")


SELECTION: dict[str, Bend] = {
    "gone": lambda given: given.ClearField("selection"),
    "malformed_now": lambda given: setattr(given.selection, "run_id", "run-b"),
    "project_revision": lambda given: setattr(given.selection, "project_revision", 9),
    "configuration_revision": lambda given: setattr(
        given.selection, "project_configuration_revision", 9
    ),
    "runtime_revision": lambda given: setattr(given.selection, "platform_runtime_revision", 9),
    "context_revision": lambda given: setattr(given.selection, "context_revision", "context-v2"),
    "cap": lambda given: setattr(given.selection.run_limits, "max_prompt_tokens", 999),
    "cap_gone": lambda given: given.selection.ClearField("run_limits"),
    "provider": in_memory("provider_id", "redis.memory"),
    "adapter_version": in_memory("adapter_version", "1.0.1"),
    "schema_version": in_memory("options_schema_version", 2),
    "options_revision": in_memory("options_revision", "options-v2"),
    "hosting": in_memory("hosting", "tenant"),
    "required": without_requirements,
    "advertised": with_one_more_capability,
}


@pytest.mark.parametrize("bend", SELECTION.values(), ids=SELECTION)
async def test_selection_changed_between_the_checks(bend: Bend) -> None:
    """004-17: any field of the selection, stored in the pin or not."""
    with pytest.raises(RunSelectionChangedError):
        await check_twice(bent(bend))


async def test_selection_absent_both_times_has_not_changed() -> None:
    """004-17: a method that needs no selection is not refused for one that was never there."""
    without = bent(lambda given: given.ClearField("selection"))
    authority = OwnerAuthority(ListedOwner([without, without, answer()]))
    first = await authority.check(call_of(), SCOPE, Need(frozenset({W})))
    await authority.recheck(first, Need(frozenset({W})))
    with pytest.raises(RunSelectionChangedError):
        await authority.recheck(first, Need(frozenset({W})))


async def test_owner_is_asked_afresh_each_time() -> None:
    """004-01, 004-15: no answer is used twice, and trouble is passed on as it is."""
    owner = ListedOwner([answer(), answer(), AuthorityUnavailableError("now"), answer()])
    authority = OwnerAuthority(owner)
    call = call_of()
    first = await authority.check(call, SCOPE, KNOWLEDGE)
    await authority.recheck(first, KNOWLEDGE)
    with pytest.raises(AuthorityUnavailableError):
        await authority.recheck(first, KNOWLEDGE)
    await authority.check(call, SCOPE, KNOWLEDGE)
    assert len(owner.named) == 4
    assert vars(authority).keys() == {"_owner", "_pace"}


async def test_a_project_as_a_whole() -> None:
    """004-06, 004-09, 004-15: the same judgement without a run; no selection comes with it."""
    owner = ListedOwner([answer(), answer(), answer(grant(owners.RESOURCE_TYPE_PLATFORM, "x", 4))])
    authority = OwnerAuthority(owner)
    scope = ProjectScope(SCOPE.project_id)
    first = await authority.check(call_of(), scope, SELECTIONS)
    await authority.recheck(first, SELECTIONS)
    with pytest.raises(RunSelectionNotFoundError):
        first.selected()
    with pytest.raises(PermissionMissingError):
        await authority.check(call_of(), scope, SELECTIONS)
    elsewhere = caller(bound_project_id="project-b")
    with pytest.raises(TokenBindingMismatchError):
        await authority.check(call_of(elsewhere), scope, SELECTIONS)


async def test_a_caller_who_names_no_project() -> None:
    """004-81, 004-11, 004-12: the tenant is the owner's word, and has to fit the token."""
    owner = ListedOwner([answer(), answer()])
    assert await OwnerAuthority(owner).check_caller(call_of()) == "tenant-a"
    with pytest.raises(AuthorityResponseInvalidError):
        await OwnerAuthority(owner).check_caller(call_of(caller(tenant_claim="tenant-b")))
    with pytest.raises(TokenPurposeBoundError):
        await OwnerAuthority(owner).check_caller(call_of(caller(purpose="export")))
    assert owner.answers == [] and owner.named == [W, W]
