"""Questions by streams: whose they are, and that no answer meets another question."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from typing import Final

import grpc
import pytest

from broker.authority import streams as module
from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.domain.authority import KNOWLEDGE, Authorized
from broker.domain.call import Call, Caller
from broker.domain.errors import (
    AuthorityResponseInvalidError,
    AuthorityUnavailableError,
    BrokerError,
    PermissionMissingError,
    TokenRejectedByOwnerError,
)
from tests.fixtures.owner_answers import SCOPE, answer, caller
from tests.fixtures.refusing_owner import refusing_owner
from tests.fixtures.scripted_owner import Context, Script, ScriptedOwner, fails, hangs, leaves
from tests.integration.authority.conftest import call_of, refused, settings

pytestmark = pytest.mark.parametrize("streams", [True], indirect=True)

CALLERS: Final = (
    caller(),
    caller(tenant_selector="tenant-a"),
    caller(bearer="Bearer another.token.of-theirs"),
)


def numbered() -> Script:
    """Answers that differ: the first is of revision 1, the next of revision 2."""
    revision = 0

    async def script(_: Context) -> bytes:
        nonlocal revision
        revision += 1
        said = answer()
        said.context.membership_revision = revision
        return said.SerializeToString()

    return script


def one_after_the_other(*scripts: Script) -> Script:
    """A script for each question."""
    left: Iterator[Script] = iter(scripts)

    async def script(context: Context) -> bytes:
        return await next(left)(context)

    return script


async def checked(authority: OwnerAuthority, said: Caller | None = None) -> Authorized:
    return await authority.check(call_of(said), SCOPE, KNOWLEDGE)


async def passes(authority: OwnerAuthority, said: Caller) -> bool:
    try:
        await checked(authority, said)
    except AuthorityUnavailableError:
        return False
    return True


async def comes(true: Callable[[], bool]) -> None:
    """Wait until the owner has noticed."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - no event of the owner
            await asyncio.sleep(0.01)


async def test_a_stream_serves_its_caller_alone(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-01, 004-02: a question for each check, never with another token or tenant selector."""
    for _ in range(5):
        for said in CALLERS:
            await checked(authority, said)
    assert owner.opened == len(CALLERS)
    assert len(owner.requests) == 5 * len(CALLERS)
    shown = [{key: value for key, value in each if key != "user-agent"} for each in owner.metadata]
    for number, said in enumerate(CALLERS * 5):
        expected = {"authorization": said.bearer}
        if said.tenant_selector is not None:
            expected["x-tenant"] = said.tenant_selector
        assert shown[number] == expected


async def test_a_stream_carries_one_question_at_a_time(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-01: sixteen at once are sixteen streams; the next sixteen use them again."""
    for _ in range(2):
        await asyncio.gather(*(checked(authority) for _ in range(16)))
    assert owner.opened == 16
    assert len(owner.requests) == 32


@pytest.mark.parametrize("way", ["leaves", "too late"])
async def test_an_answer_never_meets_another_question(
    owner: ScriptedOwner, authority: OwnerAuthority, way: str
) -> None:
    """004-01, 004-14: who gives a question up takes its stream along."""
    assert (await checked(authority)).membership_revision
    held, asked = asyncio.Event(), asyncio.Event()

    async def slow(_: Context) -> bytes:
        asked.set()
        await held.wait()
        said = answer()
        said.context.membership_revision = 1_000
        return said.SerializeToString()

    owner.script = one_after_the_other(slow, numbered())
    check = asyncio.create_task(
        authority.check(call_of(seconds=0.3 if way == "too late" else 30.0), SCOPE, KNOWLEDGE)
    )
    await asked.wait()
    if way == "leaves":
        check.cancel()
    await asyncio.wait([check])
    held.set()
    assert (await checked(authority)).membership_revision == 1
    await comes(lambda: owner.open == 1)
    assert owner.opened == 2


async def test_an_answer_too_many_is_malformed(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-01, 004-13: it is of the question before, whose rights may have changed since."""
    owner.again = 1
    await checked(authority)
    owner.again = 0
    assert type(await refused(authority)) is AuthorityResponseInvalidError
    await comes(lambda: owner.open == 0)
    owner.script = numbered()
    assert (await checked(authority)).membership_revision == 1
    assert owner.opened == 2


async def test_a_refused_question_ends_its_stream(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: the status is the answer; the next question is asked on another stream."""
    await checked(authority)
    owner.script = one_after_the_other(fails(grpc.StatusCode.PERMISSION_DENIED), numbered())
    assert type(await refused(authority)) is PermissionMissingError
    assert (await checked(authority)).membership_revision == 1
    assert owner.opened == 2


async def test_owner_that_takes_its_leave(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: a stream that ends in peace answered nothing, and the question is asked anew."""
    await asyncio.gather(*(checked(authority) for _ in range(3)))
    owner.script = one_after_the_other(leaves, leaves, leaves, numbered())
    assert (await checked(authority)).membership_revision == 1
    assert owner.opened == 4


async def test_question_that_no_stream_took(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: a new stream that ends in peace is not followed by another, but by a single RPC."""
    owner.script = one_after_the_other(leaves, numbered())
    assert (await checked(authority)).membership_revision == 1
    assert (owner.opened, len(owner.requests)) == (1, 2)
    assert owner.request_ids == ["request-1"] * 2


async def test_both_ways_share_the_time_of_one_question(
    owner: ScriptedOwner, streams: bool
) -> None:
    """004-14: who waited for a stream in vain has so much less time for the single RPC."""

    async def leaves_late(context: Context) -> bytes:
        await asyncio.sleep(1.5)
        return await leaves(context)

    owner.script = one_after_the_other(leaves_late, numbered())
    client = OwnerClient(settings(owner.address, timeout_s=3.0), streams=streams)
    await checked(OwnerAuthority(client))
    await client.aclose()
    assert owner.remaining[0] < 2.5  # on the wire, times are rounded up


async def test_no_stream_and_no_answer(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: the status of the single RPC is the answer."""
    owner.script = one_after_the_other(leaves, fails(grpc.StatusCode.PERMISSION_DENIED))
    assert type(await refused(authority)) is PermissionMissingError


@pytest.mark.parametrize("at_once", [1, 16])
async def test_refusals_that_come_before_the_question_is_sent(at_once: int, streams: bool) -> None:
    """004-14: whatever gRPC makes of them, who is refused is told so, and not to try again."""
    with refusing_owner() as port:
        client = OwnerClient(settings(f"127.0.0.1:{port}"), streams=streams)
        authority = OwnerAuthority(client)

        async def ask(number: int) -> set[type[BrokerError]]:
            said = caller(bearer=f"Bearer token-{number}")
            return {type(await refused(authority, call_of(said))) for _ in range(480 // at_once)}

        told = await asyncio.gather(*map(ask, range(at_once)))
        await client.aclose()
    assert set().union(*told) == {TokenRejectedByOwnerError}


async def test_waiting_streams_give_way(streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """004-14: where the owner takes few streams, a late question makes room for the next."""
    monkeypatch.setattr(module, "IDLE_S", 1_000.0)
    async with ScriptedOwner(streams_max=len(CALLERS)).running() as owner:
        client = OwnerClient(settings(owner.address, timeout_s=0.5), streams=streams)
        authority = OwnerAuthority(client)
        await asyncio.gather(*(checked(authority, said) for said in CALLERS))
        another = caller(bearer="Bearer of-one-more")
        assert not await passes(authority, another)
        async with asyncio.timeout(20):
            while not await passes(authority, another):
                pass
        await client.aclose()


async def test_a_question_that_was_given_up_is_forgotten(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-02: its call, and the token in it, are gone at once and not when garbage is collected."""
    owner.script = hangs
    said = caller(bearer="Bearer of-who-gives-up")
    gc.disable()
    try:
        check = asyncio.create_task(checked(authority, said))
        await comes(lambda: len(owner.requests) == 1)
        check.cancel()
        await asyncio.wait([check])
        del check
        await comes(lambda: owner.open == 0)
        calls = [each for each in gc.get_objects() if isinstance(each, Call)]
        assert not [each for each in calls if each.caller.bearer == said.bearer]
    finally:
        gc.enable()


async def test_owner_that_began_anew(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: streams that ended while they waited are left alone: no call is refused for them."""
    await checked(authority)
    await owner.begin_anew()
    async with asyncio.timeout(20):
        while not await passes(authority, CALLERS[1]):  # noqa: ASYNC110 - it connects anew
            await asyncio.sleep(0.05)
    opened = owner.opened
    await checked(authority)
    assert owner.opened == opened + 1


async def test_waiting_streams_are_few(
    owner: ScriptedOwner, authority: OwnerAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-02: of many at once, only some wait for a next question."""
    monkeypatch.setattr(module, "IDLE_MAX", 3)
    await asyncio.gather(*(checked(authority) for _ in range(10)))
    await comes(lambda: owner.open == 3)
    await asyncio.gather(*(checked(authority, said) for said in CALLERS))
    await comes(lambda: owner.open == 3)


async def test_waiting_streams_end(
    owner: ScriptedOwner, authority: OwnerAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-01: nobody's token stays with a stream that nobody asks; one in use stays."""
    monkeypatch.setattr(module, "IDLE_S", 0.2)
    monkeypatch.setattr(module, "IDLE_MAX", len(CALLERS))
    await asyncio.gather(*(checked(authority, said) for said in CALLERS))
    for _ in range(30):
        await checked(authority, CALLERS[0])
        await asyncio.sleep(0.02)
    await comes(lambda: owner.open == 1)
    assert owner.opened == 3
    await comes(lambda: owner.open == 0)
    monkeypatch.setattr(module, "IDLE_S", 1_000.0)
    for _ in range(2):
        await asyncio.gather(*(checked(authority, said) for said in CALLERS))
    assert owner.opened == owner.open + 3 == 6


async def test_a_stream_grows_old(
    owner: ScriptedOwner, authority: OwnerAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-01: one that was asked for long enough makes room for another."""
    monkeypatch.setattr(module, "LIFE_S", 0.2)
    monkeypatch.setattr(module, "IDLE_S", 1_000.0)
    await asyncio.gather(*(checked(authority) for _ in range(3)))
    await asyncio.sleep(0.3)
    await checked(authority)
    await comes(lambda: owner.open == 1)
    assert owner.opened == 4


async def test_questions_and_streams_do_not_leak(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: fifty that are given up leave no stream behind."""
    owner.script = hangs
    checks = [asyncio.create_task(checked(authority)) for _ in range(50)]
    await comes(lambda: len(owner.requests) == 50)
    for check in checks:
        check.cancel()
    await asyncio.wait(checks)
    await comes(lambda: owner.open == 0)
