"""Many pins of one resource against what the live one says (004-29, 004-69)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from broker.binding.binder import new_pin
from broker.binding.catalog import Catalog
from broker.binding.project import ProjectBinder
from broker.domain.errors import (
    BindingMismatchError,
    OfRunError,
    ProviderNegotiationFailedError,
    ProviderSelectionInvalidError,
    RunSelectionChangedError,
)
from broker.domain.ports import Bound
from providers.capabilities import Capability
from providers.errors import (
    NegotiationRefusedError,
    ProviderUnavailableError,
    ResourceMismatchError,
)
from providers.model import ResourceIdentity
from providers.requests import Negotiated
from tests.unit.binding.test_binder import LIVE, SELECTION, ScriptedProvider, entry

NARROW = frozenset({Capability.READ.value, Capability.SEARCH.value})


def bound_of(
    binder: ProjectBinder, run_id: str, capabilities: frozenset[str] | None = None
) -> Bound:
    """Return what a run of the one provider is bound to; by default it pinned everything."""
    selection = SELECTION._replace(run_id=run_id)
    pin = new_pin(selection, LIVE)
    if capabilities is not None:
        required = selection.memory.required & capabilities
        selection = selection._replace(memory=selection.memory._replace(required=required))
        pin = replace(pin, capabilities=capabilities)
    return binder.bound(pin, selection)


async def verified(
    live: Negotiated | Exception, runs: Sequence[tuple[str, frozenset[str] | None]]
) -> ScriptedProvider:
    provider = ScriptedProvider(live)
    binder = ProjectBinder(Catalog([entry(provider)]))
    await binder.verify([bound_of(binder, *run) for run in runs], timeout=1.0)
    return provider


async def test_one_question_for_many_runs() -> None:
    """004-69: however many runs, the resource is asked once."""
    provider = await verified(LIVE, [("a", None), ("b", NARROW), ("c", None)])
    assert provider.negotiations == 1


LESS = replace(LIVE, capabilities=frozenset({Capability.READ, Capability.SEARCH}))


@pytest.mark.parametrize(
    ("live", "run_id", "cause"),
    [
        (replace(LIVE, resource=ResourceIdentity("resource", 2)), "a", BindingMismatchError),
        (LESS, "b", BindingMismatchError),
        (ResourceMismatchError("swapped"), "a", BindingMismatchError),
        (NegotiationRefusedError("bad", fact="schema"), "a", ProviderNegotiationFailedError),
        (replace(LIVE, options_revision="v2"), "a", ProviderNegotiationFailedError),
        (ProviderUnavailableError("down"), "a", ProviderUnavailableError),
    ],
)
async def test_a_resource_that_does_not_fit(
    live: Negotiated | Exception, run_id: str, cause: type[Exception]
) -> None:
    """004-27, 004-29, 004-69: the run it does not fit is named, else the first of all."""
    with pytest.raises(OfRunError) as told:
        await verified(live, [("a", NARROW), ("b", None), ("c", None)])
    assert (told.value.run_id, type(told.value.cause)) == (run_id, cause)


def test_bound() -> None:
    """004-23, 004-29, 004-69: catalog, then pin; what was negotiated then counts now."""
    provider = ScriptedProvider()
    binder = ProjectBinder(Catalog([entry(provider)]))
    bound = bound_of(binder, "a", NARROW)
    assert bound.capabilities == {Capability.READ, Capability.SEARCH}
    assert bound.provider is provider
    pin = bound.pin
    with pytest.raises(RunSelectionChangedError):
        binder.bound(pin, SELECTION._replace(context_revision="context-v2"))
    elsewhere = SELECTION.memory._replace(hosting="elsewhere")
    with pytest.raises(ProviderSelectionInvalidError):
        binder.bound(pin, SELECTION._replace(memory=elsewhere))
    assert provider.negotiations == 0
