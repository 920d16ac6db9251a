"""Judges the pins of many runs of a project together. Makes none (004-69)."""

from collections.abc import Sequence

from broker.binding.binder import bound_by, check_resource, check_selection, negotiate
from broker.binding.catalog import Catalog
from broker.domain.authority import RunSelection
from broker.domain.errors import BrokerError, OfRunError
from broker.domain.ports import Bound, Pin
from providers.errors import ProviderError


class ProjectBinder:
    """Fulfils ``broker.domain.ports.ProjectBindings``. Remembers nothing."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the catalog."""
        self._catalog = catalog

    def bound(self, pin: Pin, selection: RunSelection) -> Bound:
        """Return the pinned provider of a run; see ``ProjectBindings``."""
        entry = self._catalog.match(selection.memory)
        check_selection(pin, selection)
        return bound_by(pin, entry)

    async def verify(self, bound: Sequence[Bound], *, timeout: float) -> None:
        """Compare the live resource with all pins to it; see ``ProjectBindings``."""
        first = bound[0]
        entry = self._catalog.entry(first.provider_id)
        try:
            live = await negotiate(entry, timeout=timeout, pinned=True)
        except (BrokerError, ProviderError) as error:
            raise OfRunError(first.pin.run_id, error) from error
        for one in bound:
            try:
                check_resource(one.pin, live)
            except BrokerError as error:
                raise OfRunError(one.pin.run_id, error) from error
