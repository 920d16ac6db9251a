"""The provider catalog: what this process offers, fixed for its life (004-23, 004-32)."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.domain.authority import Candidate
from broker.domain.errors import ProviderSelectionInvalidError
from broker.domain.ports import ProviderInfo
from providers.capabilities import EARLIER_SETS, Capability
from providers.deliveries import UnscopedEffects
from providers.interface import IMemoryProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One provider id of the catalog. Several ids may use one adapter with different options."""

    provider_id: str
    adapter_version: str
    options_schema_version: int
    options_revision: str
    hosting: str
    advertised: frozenset[Capability]
    enabled: bool
    provider: IMemoryProvider
    unscoped: UnscopedEffects | None = None
    """What finds receipts without their project, where the store is a native one."""


class Catalog:
    """Every entry by provider id. Nothing is added or removed after construction."""

    def __init__(self, entries: Iterable[CatalogEntry]) -> None:
        """Take the entries; their ids must be distinct."""
        self._entries: dict[str, CatalogEntry] = {}
        for entry in entries:
            if entry.provider_id in self._entries:
                raise ValueError(f"provider id {entry.provider_id} stands in the catalog twice")
            self._entries[entry.provider_id] = entry

    def providers(self) -> tuple[ProviderInfo, ...]:
        """Return every entry as callers may know it, sorted by id."""
        return tuple(
            ProviderInfo(
                provider_id=entry.provider_id,
                adapter_version=entry.adapter_version,
                options_schema_version=entry.options_schema_version,
                options_revision=entry.options_revision,
                hosting=entry.hosting,
                advertised=tuple(sorted(entry.advertised)),
                enabled=entry.enabled,
            )
            for _, entry in sorted(self._entries.items())
        )

    def entry(self, provider_id: str) -> CatalogEntry:
        """Return the entry of a provider that a candidate was matched with.

        Raises:
            KeyError: there is none; a bug.
        """
        return self._entries[provider_id]

    def match(self, candidate: Candidate) -> CatalogEntry:
        """Return the entry that a run's candidate equals in every field.

        Raises:
            ProviderSelectionInvalidError: unknown, disabled, or different; there is no fall-back to
                another provider (004-26). Not retryable.
        """
        entry = self._entries.get(candidate.provider_id)
        if entry is None:
            raise _mismatch("provider_id", "is not in the catalog")
        if not entry.enabled:
            raise _mismatch("provider_id", "is disabled in the catalog")
        for name in ("adapter_version", "options_schema_version", "options_revision", "hosting"):
            if getattr(candidate, name) != getattr(entry, name):
                raise _mismatch(name, "differs from the catalog")
        if not _advertises_alike(candidate, entry):
            raise _mismatch("advertised_capabilities", "differ from the catalog")
        return entry


def _advertises_alike(candidate: Candidate, entry: CatalogEntry) -> bool:
    """Compare capabilities; a selection of exactly an earlier set stays valid (004-25)."""
    if candidate.advertised == entry.advertised:
        return True
    earlier = candidate.advertised == candidate.required and candidate.advertised in EARLIER_SETS
    return earlier and candidate.advertised < entry.advertised


def _mismatch(field: str, fact: str) -> ProviderSelectionInvalidError:
    return ProviderSelectionInvalidError(
        f"the run's memory provider does not equal the catalog: {field} {fact}",
        metadata={"field": field},
    )
