"""A run selected when the catalog knew six capabilities, on a broker whose catalog has seven."""

from typing import Any, Final

import pytest

from broker.api.v1 import effect_pb2
from broker.owners.v1 import projects_config_service_pb2 as owners
from providers.capabilities import ORIGINAL_SIX, Capability
from tests.fixtures.authority_rows import bent, candidate
from tests.fixtures.desk import Desk, desk
from tests.fixtures.memory import CAPABILITIES
from tests.fixtures.record_calls import (
    DELIVER,
    GET,
    GET_BINDING,
    LIST_PROVIDERS,
    PENDING,
    PROMOTE,
    PROPOSE,
)

pytestmark = pytest.mark.memories("postgres", "redis")

__all__ = ["desk"]

SIX: Final = tuple(sorted(ORIGINAL_SIX))
SEVEN: Final = tuple(sorted(Capability))
MISSING: Final = ("FAILED_PRECONDITION", "CAPABILITY_MISSING")
DRIFTED: Final = ("FAILED_PRECONDITION", "PROVIDER_SELECTION_INVALID")


def selecting(advertised: tuple[str, ...], required: tuple[str, ...]) -> Any:
    """Let the owner say that the run selected these capabilities."""
    names = candidate(advertised_capabilities=advertised, required_capabilities=required)

    def bend(answer: Any) -> None:
        if isinstance(answer, owners.GetRunAuthorityResponse):
            names(answer)

    return bent(bend)


@pytest.fixture
async def six(desk: Desk) -> Desk:
    """A project whose run advertises and requires exactly the original six."""
    desk.stand.owner.scripts[desk.project] = selecting(SIX, SIX)
    return desk


async def pinned(desk: Desk) -> list[str]:
    """Return what the pin of the run says that the provider can do."""
    return list((await desk.done(GET_BINDING)).binding.capabilities)


async def test_the_original_six_stay_valid(six: Desk) -> None:
    """004-25: the catalog has seven; such a run reads and writes, and its pin keeps six."""
    offered = (await six.done(LIST_PROVIDERS)).providers
    assert [sorted(each.advertised_capabilities) for each in offered] == [list(SEVEN)]
    assert sorted(CAPABILITIES) == list(SEVEN)
    record = await six.made()
    assert (await six.done(GET, record_id=record.record_id)).record == record
    assert await pinned(six) == list(SIX)
    assert "memory.context.compose" in SIX
    assert "memory.accepted-effects.delivery" not in SIX


async def test_what_was_added_later_is_missing(six: Desk) -> None:
    """004-24, 004-25: what is accepted under a pin of six waits, and cannot be delivered."""
    made = await six.done(PROPOSE, idempotency_key="p-1")
    promotion = {"proposal_id": made.proposal.record_id, "idempotency_key": "key-2"}
    reply = await six.done(PROMOTE, **promotion)
    told = (reply.delivery.state, reply.delivery.code)
    assert told == (effect_pb2.DELIVERY_STATE_PENDING, "accepted_effect_provider_unavailable")
    for rpc, fields in ((PENDING, {}), (DELIVER, {"receipt_id": reply.receipt_id})):
        refused = await six.told(rpc, **fields)
        assert (refused.code, refused.reason) == MISSING, rpc
    assert await pinned(six) == list(SIX)


async def test_a_pin_of_six_is_never_rewritten(six: Desk) -> None:
    """004-25, 004-28: when the run's selection gains the seventh the pin still has six."""
    await six.made()
    six.stand.owner.scripts[six.project] = selecting(SEVEN, SIX)
    assert await pinned(six) == list(SIX)
    refused = await six.told(PENDING)
    assert (refused.code, refused.reason) == MISSING
    six.stand.owner.scripts[six.project] = selecting(SEVEN, SEVEN)
    refused = await six.told(GET_BINDING)
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "RUN_SELECTION_CHANGED")


@pytest.mark.parametrize(
    ("advertised", "required"),
    [
        (SIX, SIX[:1]),
        (SIX, SIX[:-1]),
        (SIX[:-1], SIX[:-1]),
        (tuple(name for name in SEVEN if name != Capability.COMPOSE), SIX[-1:]),
        (tuple(name for name in SEVEN if name != Capability.SEARCH),) * 2,
    ],
    ids=["six_and_one", "six_and_five", "five", "another_six", "another_six_required"],
)
async def test_other_sets_are_drift(
    desk: Desk, advertised: tuple[str, ...], required: tuple[str, ...]
) -> None:
    """004-23, 004-25: exactly the six, advertised and required, or what the catalog says."""
    desk.stand.owner.scripts[desk.project] = selecting(advertised, required)
    refused = await desk.told("CreateRecord", idempotency_key="key-1")
    assert (refused.code, refused.reason) == DRIFTED
    assert refused.info.metadata["field"] == "advertised_capabilities"
