"""A scripted owner, its client, and what every refusal must hold to."""

import asyncio
import traceback
from collections.abc import AsyncIterator

import pytest

from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.domain.authority import KNOWLEDGE
from broker.domain.call import Call, Caller
from broker.domain.errors import BrokerError
from broker.outbound import PeerSettings
from tests.fixtures.owner_answers import BEARER, SCOPE, caller
from tests.fixtures.scripted_owner import ScriptedOwner

SECRET = BEARER.removeprefix("Bearer ")


def call_of(said: Caller | None = None, *, seconds: float = 30.0) -> Call:
    deadline = asyncio.get_running_loop().time() + seconds
    return Call(caller=said or caller(), request_id="request-1", deadline=deadline)


async def refused(authority: OwnerAuthority, call: Call | None = None) -> BrokerError:
    """The refusal of one check. Nothing of it, its chain or its frames may hold the token."""
    with pytest.raises(BrokerError) as caught:
        await authority.check(call or call_of(), SCOPE, KNOWLEDGE)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.metadata)
    assert SECRET not in shown
    assert caught.value.__context__ is None
    return caught.value


@pytest.fixture
async def owner() -> AsyncIterator[ScriptedOwner]:
    async with ScriptedOwner().running() as running:
        yield running


def settings(address: str, timeout_s: float = 20.0) -> PeerSettings:
    return PeerSettings(address=address, timeout_s=timeout_s, plaintext_loopback=True)


@pytest.fixture(params=[False, True], ids=["single", "streams"])
def streams(request: pytest.FixtureRequest) -> bool:
    """Whether the owner is asked by streams."""
    return bool(request.param)


@pytest.fixture
async def client(owner: ScriptedOwner, streams: bool) -> AsyncIterator[OwnerClient]:
    made = OwnerClient(settings(owner.address), streams=streams)
    yield made
    await made.aclose()


@pytest.fixture
def authority(client: OwnerClient) -> OwnerAuthority:
    return OwnerAuthority(client)
