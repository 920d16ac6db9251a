"""The catalog and the pins, over an in-memory pin store and a scripted provider."""

from dataclasses import replace

import pytest

from broker.binding.binder import Binder
from broker.binding.catalog import Catalog, CatalogEntry
from broker.domain.authority import Authorized, Candidate, RunSelection
from broker.domain.call import Call, Caller, RunScope
from broker.domain.errors import (
    BindingMismatchError,
    BindingMissingError,
    BrokerError,
    CapabilityNotNegotiatedError,
    ProviderNegotiationFailedError,
    ProviderSelectionInvalidError,
    RunSelectionChangedError,
    RunSelectionNotFoundError,
)
from broker.domain.ports import Pin
from providers.capabilities import ORIGINAL_SIX, Capability
from providers.errors import NegotiationRefusedError, ResourceMismatchError
from providers.interface import IMemoryProvider
from providers.model import ResourceIdentity, WriteSet
from providers.requests import (
    CommitOutcome,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
)

ALL = frozenset(Capability)
LIVE = Negotiated(
    resource=ResourceIdentity("resource", 1),
    adapter_version="1.0.0",
    options_schema_version=1,
    options_revision="options-v1",
    capabilities=ALL,
)
CANDIDATE = Candidate(
    seam="Memory",
    provider_id="native",
    adapter_version="1.0.0",
    options_schema_version=1,
    options_revision="options-v1",
    hosting="managed",
    advertised=frozenset(c.value for c in ALL),
    required=frozenset({Capability.READ.value}),
)
SELECTION = RunSelection(
    tenant_id="tenant",
    project_id="project",
    run_id="run",
    project_revision=1,
    project_configuration_revision=2,
    platform_runtime_revision=3,
    context_revision="context-v1",
    memory=CANDIDATE,
    max_prompt_tokens=None,
)


class ScriptedProvider(IMemoryProvider):
    """Negotiates as told and refuses to be used for anything else."""

    def __init__(self, live: Negotiated | Exception = LIVE) -> None:
        """Take what negotiation gives."""
        self.live = live
        self.negotiations = 0

    async def negotiate(self, *, timeout: float) -> Negotiated:
        """Give the scripted answer."""
        self.negotiations += 1
        if isinstance(self.live, Exception):
            raise self.live
        return self.live

    async def ready(self, *, timeout: float) -> None:
        """Not used."""
        raise AssertionError

    async def close(self) -> None:
        """Not used."""
        raise AssertionError

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """Not used."""
        raise AssertionError

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """Not used."""
        raise AssertionError

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """Not used."""
        raise AssertionError


class MemoryPins:
    """A pin store in memory; counts reads and can lose a race."""

    def __init__(self) -> None:
        """Start empty."""
        self.rows: dict[tuple[str, str, str], Pin] = {}
        self.finds = 0
        self.winner: Pin | None = None

    async def find(self, tenant_id: str, project_id: str, run_id: str) -> Pin | None:
        """Return the row."""
        self.finds += 1
        return self.rows.get((tenant_id, project_id, run_id))

    async def insert_if_absent(self, pin: Pin) -> Pin:
        """Insert unless there is one, or unless another was faster."""
        key = (pin.tenant_id, pin.project_id, pin.run_id)
        return self.rows.setdefault(key, self.winner or pin)


def entry(provider: IMemoryProvider, **changes: object) -> CatalogEntry:
    """Return a catalog entry that equals the candidate."""
    given: dict[str, object] = {
        "provider_id": "native",
        "adapter_version": "1.0.0",
        "options_schema_version": 1,
        "options_revision": "options-v1",
        "hosting": "managed",
        "advertised": ALL,
        "enabled": True,
        "provider": provider,
    }
    return CatalogEntry(**(given | changes))  # type: ignore[arg-type]


def authorized(selection: RunSelection | BrokerError = SELECTION) -> Authorized:
    """Return a check that passed."""
    caller = Caller(issuer="https://i", subject="s", bearer="token")
    return Authorized(
        call=Call(caller, "request", deadline=1e18),
        scope=RunScope("project", "run"),
        tenant_id="tenant",
        membership_revision=1,
        grants={},
        selection=selection,
    )


def with_candidate(**changes: object) -> Authorized:
    """Return a check whose selection names a changed candidate."""
    return authorized(SELECTION._replace(memory=CANDIDATE._replace(**changes)))  # type: ignore[arg-type]


async def test_first_use_pins_and_later_uses_find_it() -> None:
    """004-28: insert, read back, compare; a remembered pin costs no trip and no negotiation."""
    provider, pins = ScriptedProvider(), MemoryPins()
    binder = Binder(Catalog([entry(provider)]), pins)
    bound = await binder.bind(authorized(), create=True)
    assert bound.provider is provider and bound.capabilities == ALL
    assert (await binder.bind(authorized(), create=False)).provider is provider
    assert (pins.finds, provider.negotiations) == (1, 1)
    pin = pins.rows["tenant", "project", "run"]
    assert (pin.resource, pin.context_revision) == (LIVE.resource, "context-v1")
    assert pin.capabilities == CANDIDATE.advertised


async def test_a_method_that_does_not_pin_needs_a_pin() -> None:
    """004-29, 004-30: missing pin is refused and none is made."""
    pins = MemoryPins()
    with pytest.raises(BindingMissingError):
        await Binder(Catalog([entry(ScriptedProvider())]), pins).bind(authorized(), create=False)
    assert pins.rows == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"provider_id": "other"},
        {"adapter_version": "1.0.1"},
        {"options_schema_version": 2},
        {"options_revision": "options-v2"},
        {"hosting": "elsewhere"},
        {"advertised": CANDIDATE.advertised - {Capability.SEARCH.value}},
        {"advertised": CANDIDATE.advertised | {"memory.more"}},
    ],
)
async def test_a_candidate_that_differs_from_the_catalog(changes: dict[str, object]) -> None:
    """004-23, 004-26: any drift is refused before a provider or the pin store is touched."""
    provider, pins = ScriptedProvider(), MemoryPins()
    with pytest.raises(ProviderSelectionInvalidError):
        await Binder(Catalog([entry(provider)]), pins).bind(with_candidate(**changes), create=True)
    assert (provider.negotiations, pins.finds) == (0, 0)


async def test_a_disabled_entry_is_refused() -> None:
    """004-32: disabled means not selectable, whatever was selected before."""
    with pytest.raises(ProviderSelectionInvalidError):
        await Binder(Catalog([entry(ScriptedProvider(), enabled=False)]), MemoryPins()).bind(
            authorized(), create=True
        )


def test_a_catalog_with_a_repeated_id_is_refused() -> None:
    """004-32: the catalog is fixed for the life of the process; an invalid one never starts."""
    with pytest.raises(ValueError, match="twice"):
        Catalog([entry(ScriptedProvider()), entry(ScriptedProvider())])


SIX = frozenset(c.value for c in ORIGINAL_SIX)


async def test_the_original_six_stay_valid_and_are_never_rewritten() -> None:
    """004-25: advertised and required are exactly the six; the pin keeps six for ever."""
    pins = MemoryPins()
    binder = Binder(Catalog([entry(ScriptedProvider())]), pins)
    old = with_candidate(advertised=SIX, required=SIX)
    bound = await binder.bind(old, create=True)
    assert bound.capabilities == ORIGINAL_SIX
    with pytest.raises(CapabilityNotNegotiatedError):
        bound.require(Capability.DELIVERY)
    before = dict(pins.rows)
    later = Binder(Catalog([entry(ScriptedProvider())]), pins)
    assert (await later.bind(old, create=False)).capabilities == ORIGINAL_SIX
    assert pins.rows == before


async def test_six_advertised_but_not_all_required_is_drift() -> None:
    """004-25: both sets must be exactly the six."""
    with pytest.raises(ProviderSelectionInvalidError):
        await Binder(Catalog([entry(ScriptedProvider())]), MemoryPins()).bind(
            with_candidate(advertised=SIX, required=SIX - {Capability.SEARCH.value}), create=True
        )


async def test_six_still_need_their_pin() -> None:
    """004-25, 004-29: a missing pin is refused for old selections too."""
    with pytest.raises(BindingMissingError):
        await Binder(Catalog([entry(ScriptedProvider())]), MemoryPins()).bind(
            with_candidate(advertised=SIX, required=SIX), create=False
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"project_revision": 9},
        {"project_configuration_revision": 9},
        {"context_revision": "context-v9"},
    ],
)
@pytest.mark.parametrize("remembered", [True, False])
async def test_a_selection_that_moved_is_refused(
    changes: dict[str, object], remembered: bool
) -> None:
    """004-29: every pinned field is compared, whether the pin is remembered or read."""
    pins, provider = MemoryPins(), ScriptedProvider()
    binder = Binder(Catalog([entry(provider)]), pins)
    await binder.bind(authorized(), create=True)
    if not remembered:
        binder = Binder(Catalog([entry(provider)]), pins)
    with pytest.raises(RunSelectionChangedError) as refused:
        await binder.bind(authorized(SELECTION._replace(**changes)), create=True)  # type: ignore[arg-type]
    assert refused.value.metadata == {"field": next(iter(changes))}


@pytest.mark.parametrize(
    "changes",
    [
        {"provider_id": "other"},
        {"adapter_version": "1.1.0"},
        {"options_schema_version": 2},
        {"options_revision": "options-v2"},
    ],
)
async def test_catalog_and_selection_moved_together(changes: dict[str, object]) -> None:
    """004-29: a pin of another provider, version or options is never rewritten."""
    pins = MemoryPins()
    await Binder(Catalog([entry(ScriptedProvider())]), pins).bind(authorized(), create=True)
    before = dict(pins.rows)
    moved = entry(ScriptedProvider(), **changes)
    with pytest.raises(RunSelectionChangedError):
        await Binder(Catalog([moved]), pins).bind(with_candidate(**changes), create=True)
    assert pins.rows == before


@pytest.mark.parametrize(
    "live",
    [
        replace(LIVE, resource=ResourceIdentity("other", 1)),
        replace(LIVE, resource=ResourceIdentity("resource", 2)),
        replace(LIVE, capabilities=ALL - {Capability.SEARCH}),
        ResourceMismatchError("absent"),
    ],
)
async def test_a_live_resource_that_differs_from_the_pin(live: Negotiated | Exception) -> None:
    """004-29: another resource, another generation, a lost capability, no marker."""
    pins = MemoryPins()
    await Binder(Catalog([entry(ScriptedProvider())]), pins).bind(authorized(), create=True)
    with pytest.raises(BindingMismatchError):
        await Binder(Catalog([entry(ScriptedProvider(live))]), pins).bind(authorized(), create=True)


@pytest.mark.parametrize(
    "live",
    [
        replace(LIVE, adapter_version="2.0.0"),
        replace(LIVE, options_schema_version=2),
        replace(LIVE, options_revision="options-v2"),
        replace(LIVE, capabilities=ALL - {Capability.READ}),
        ResourceMismatchError("absent"),
        NegotiationRefusedError("rights", fact="rights"),
    ],
)
async def test_a_live_resource_that_is_not_fit_is_never_pinned(
    live: Negotiated | Exception,
) -> None:
    """004-27: nothing is pinned to what does not negotiate."""
    pins = MemoryPins()
    with pytest.raises(ProviderNegotiationFailedError) as refused:
        await Binder(Catalog([entry(ScriptedProvider(live))]), pins).bind(authorized(), create=True)
    assert refused.value.metadata["provider_id"] == "native"
    assert pins.rows == {}


async def test_the_loser_of_a_first_use_gets_the_winner_or_a_refusal() -> None:
    """004-28: what is committed is compared, not what was offered."""
    pins = MemoryPins()
    binder = Binder(Catalog([entry(ScriptedProvider())]), pins)
    await binder.bind(authorized(), create=True)
    pins.winner = replace(pins.rows["tenant", "project", "run"], context_revision="context-v2")
    pins.rows.clear()
    with pytest.raises(RunSelectionChangedError):
        await Binder(Catalog([entry(ScriptedProvider())]), pins).bind(authorized(), create=True)


async def test_remembered_pins_are_bounded() -> None:
    """004-28: the oldest is forgotten and found again in the store."""
    pins = MemoryPins()
    binder = Binder(Catalog([entry(ScriptedProvider())]), pins, remembered_max=2)
    for run in ("a", "b", "c"):
        await binder.bind(authorized(SELECTION._replace(run_id=run)), create=True)
    assert pins.finds == 3
    await binder.bind(authorized(SELECTION._replace(run_id="c")), create=True)
    assert pins.finds == 3
    await binder.bind(authorized(SELECTION._replace(run_id="a")), create=True)
    assert pins.finds == 4


async def test_tenants_with_equal_ids_have_their_own_pins() -> None:
    """004-28: the key begins with the tenant."""
    pins = MemoryPins()
    binder = Binder(Catalog([entry(ScriptedProvider())]), pins)
    await binder.bind(authorized(), create=True)
    with pytest.raises(BindingMissingError):
        await binder.bind(authorized(SELECTION._replace(tenant_id="other")), create=False)


async def test_a_selection_that_is_not_there_is_refused_first() -> None:
    """004-21: the kept refusal comes before catalog, store and provider."""
    pins, provider = MemoryPins(), ScriptedProvider()
    with pytest.raises(RunSelectionNotFoundError):
        await Binder(Catalog([entry(provider)]), pins).bind(
            authorized(RunSelectionNotFoundError("none")), create=True
        )
    assert (pins.finds, provider.negotiations) == (0, 0)
