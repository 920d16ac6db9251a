"""Finds or makes the pin of a run, and compares it with all that could have moved (004-28, 29)."""

from collections import OrderedDict
from typing import Final

from broker.binding.catalog import Catalog, CatalogEntry
from broker.domain.authority import Authorized, RunSelection
from broker.domain.errors import (
    BindingMismatchError,
    BindingMissingError,
    DeadlineExceededError,
    ProviderNegotiationFailedError,
    RunSelectionChangedError,
)
from broker.domain.ports import Bound, Pin, PinStore
from providers.errors import NegotiationRefusedError, ResourceMismatchError
from providers.requests import Negotiated

REMEMBERED_MAX: Final = 10_000

_Key = tuple[str, str, str]


class Binder:
    """Binds runs to providers.

    Pins are remembered in process, at most 10,000 of them, and only after they were read back as
    committed: a pin never changes, so one that is remembered cannot be stale. Authority and
    selections are never remembered.
    """

    def __init__(
        self, catalog: Catalog, pins: PinStore, remembered_max: int = REMEMBERED_MAX
    ) -> None:
        """Take the catalog and the store of pins."""
        self._catalog = catalog
        self._pins = pins
        self._remembered: OrderedDict[_Key, Pin] = OrderedDict()
        self._remembered_max = remembered_max

    async def bind(self, authorized: Authorized, *, create: bool) -> Bound:
        """Return the pinned provider of a run; see ``BindingPort``."""
        selection = authorized.selected()
        entry = self._catalog.match(selection.memory)
        key = (selection.tenant_id, selection.project_id, selection.run_id)
        pin = self._remembered.get(key)
        if pin is None:
            pin = await self._committed(authorized, selection, entry, create=create)
            self._remember(key, pin)
        else:
            self._remembered.move_to_end(key)
            check_selection(pin, selection)
        return bound_by(pin, entry)

    def _remember(self, key: _Key, pin: Pin) -> None:
        self._remembered[key] = pin
        if len(self._remembered) > self._remembered_max:
            self._remembered.popitem(last=False)

    async def _committed(
        self, authorized: Authorized, selection: RunSelection, entry: CatalogEntry, *, create: bool
    ) -> Pin:
        """Return the committed pin, made now where the run has none and ``create`` allows it."""
        pin = await self._pins.find(selection.tenant_id, selection.project_id, selection.run_id)
        if pin is None and not create:
            raise BindingMissingError("the run is not pinned to a provider yet")
        if pin is not None:
            check_selection(pin, selection)
        timeout = authorized.call.remaining()
        if timeout <= 0.0:
            raise DeadlineExceededError(outcome_unknown=False)
        live = await negotiate(entry, timeout=timeout, pinned=pin is not None)
        if pin is None:
            pin = await self._pins.insert_if_absent(new_pin(selection, live))
            check_selection(pin, selection)
        check_resource(pin, live)
        return pin


def bound_by(pin: Pin, entry: CatalogEntry) -> Bound:
    """Return what a pin that was compared with its run's selection gives access to."""
    return Bound(entry.provider, entry.provider_id, pin.capabilities, pin)


async def negotiate(entry: CatalogEntry, *, timeout: float, pinned: bool) -> Negotiated:
    """Negotiate with the live resource within seconds, and compare it with the catalog.

    Raises:
        BindingMismatchError: it is not the configured one, and a run is pinned to that. Not
            retryable.
        ProviderNegotiationFailedError: it is not fit, or no run is pinned. Not retryable.
        What else ``IMemoryProvider.negotiate`` raises.
    """
    try:
        live = await entry.provider.negotiate(timeout=timeout)
    except ResourceMismatchError as error:
        if pinned:
            raise BindingMismatchError("the live resource differs from the pin") from error
        raise _refused(entry, "identity") from error
    except NegotiationRefusedError as error:
        raise _refused(entry, error.fact) from error
    for name in ("adapter_version", "options_schema_version", "options_revision"):
        if getattr(live, name) != getattr(entry, name):
            raise _refused(entry, name)
    return live


def new_pin(selection: RunSelection, live: Negotiated) -> Pin:
    """Return the pin of a run's first use.

    Raises:
        ProviderNegotiationFailedError: the live resource lacks a required capability. Not
            retryable.
    """
    candidate = selection.memory
    live_names = {capability.value for capability in live.capabilities}
    missing = sorted(candidate.required - live_names)
    if missing:
        raise ProviderNegotiationFailedError(
            "the live resource lacks a capability the run requires",
            metadata={"provider_id": candidate.provider_id, "capability": missing[0]},
        )
    return Pin(
        tenant_id=selection.tenant_id,
        project_id=selection.project_id,
        run_id=selection.run_id,
        project_revision=selection.project_revision,
        project_configuration_revision=selection.project_configuration_revision,
        context_revision=selection.context_revision,
        provider_id=candidate.provider_id,
        adapter_version=candidate.adapter_version,
        options_schema_version=candidate.options_schema_version,
        options_revision=candidate.options_revision,
        resource=live.resource,
        capabilities=frozenset(candidate.advertised & live_names),
    )


def check_selection(pin: Pin, selection: RunSelection) -> None:
    """Compare a pin with the run's selection, field by field.

    Raises:
        RunSelectionChangedError: names the first field that differs. Not retryable.
    """
    candidate = selection.memory
    pairs = (
        ("project_revision", pin.project_revision, selection.project_revision),
        (
            "project_configuration_revision",
            pin.project_configuration_revision,
            selection.project_configuration_revision,
        ),
        ("context_revision", pin.context_revision, selection.context_revision),
        ("provider_id", pin.provider_id, candidate.provider_id),
        ("adapter_version", pin.adapter_version, candidate.adapter_version),
        (
            "options_schema_version",
            pin.options_schema_version,
            candidate.options_schema_version,
        ),
        ("options_revision", pin.options_revision, candidate.options_revision),
    )
    for name, pinned, selected in pairs:
        if pinned != selected:
            raise _changed(name)
    if not candidate.required <= pin.capabilities <= candidate.advertised:
        raise _changed("capabilities")


def check_resource(pin: Pin, live: Negotiated) -> None:
    """Compare a pin with the live resource.

    Raises:
        BindingMismatchError: another resource, another generation, or a capability was lost. Not
            retryable.
    """
    if pin.resource != live.resource:
        raise BindingMismatchError("the live resource differs from the pin")
    if not pin.capabilities <= {capability.value for capability in live.capabilities}:
        raise BindingMismatchError("the live resource lacks a pinned capability")


def _changed(field: str) -> RunSelectionChangedError:
    return RunSelectionChangedError(
        "the run's selection differs from its pin", metadata={"field": field}
    )


def _refused(entry: CatalogEntry, fact: str) -> ProviderNegotiationFailedError:
    return ProviderNegotiationFailedError(
        "the live resource of the run's provider is not fit",
        metadata={"provider_id": entry.provider_id, "fact": fact},
    )
