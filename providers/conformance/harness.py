"""What an adapter's author writes so that the laws can judge the adapter.

A ``Harness`` opens a ``Bench`` for each law: a fresh resource, or a namespace of its own inside
one, that no other law sees. Methods that belong to a ``StoreFact`` or a ``Hazard`` are needed only
where the declaration names it.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from providers.conformance.declaration import Declaration, Hazard, StoreFact
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ResourceIdentity


class Bench(ABC):
    """One fresh resource, a provider on it, and what can be done to both."""

    tenant_prefix = ""
    """Begins every tenant id a law uses: where benches share a resource it keeps them apart."""

    @property
    @abstractmethod
    def declaration(self) -> Declaration:
        """What the harness declares."""

    @property
    @abstractmethod
    def resource(self) -> ResourceIdentity:
        """The identity that the resource was made with and the provider is configured for."""

    @property
    @abstractmethod
    def provider(self) -> IMemoryProvider:
        """The instance under judgement, open and ready. It reaches the store as faults allow."""

    @abstractmethod
    async def another(self) -> IMemoryProvider:
        """Open one more instance on the same resource, as a second process would.

        The bench closes it. Faults other than freezing and restarting do not touch it.
        """

    def project(self, project_id: str = "p1", *, tenant_id: str = "t1") -> ProjectKey:
        """Name a project of this bench."""
        return ProjectKey(f"{self.tenant_prefix}{tenant_id}", project_id)

    async def restart(self) -> None:
        """Kill the store as a crash would, start it again, return when it answers (durable)."""
        raise _undone(StoreFact.DURABLE)

    async def freeze(self) -> None:
        """Stop the store; connections stay open and nothing is answered (freezable)."""
        raise _undone(StoreFact.FREEZABLE)

    async def thaw(self) -> None:
        """Let a frozen store go on (freezable)."""
        raise _undone(StoreFact.FREEZABLE)

    async def lose_replies(self, *, to_writes: bool = False) -> None:
        """From now on drop what the store answers on open connections (loses_replies).

        Requests still go through. The connection may stall or be cut after them. ``to_writes``: the
        next call writes; of a store that is read before it is written, that may be answered still.
        """
        raise _undone(StoreFact.LOSES_REPLIES)

    async def keep_replies(self) -> None:
        """End ``lose_replies``; connections that lost a reply stay broken (loses_replies)."""
        raise _undone(StoreFact.LOSES_REPLIES)

    def round_trips(self) -> int:
        """Count the requests that the provider sent to its store so far (counted)."""
        raise _undone(StoreFact.COUNTED)

    async def corrupt(self, project: ProjectKey, record_id: str) -> None:
        """Damage the stored head so that it does not pass its own check (corruptible)."""
        raise _undone(StoreFact.CORRUPTIBLE)

    async def skew(self, seconds: float) -> None:
        """Put the time that the provider's process sees so far ahead of the right one (skewable).

        Below 0: behind it. The store's own clock stays right; leaving the bench sets both right.
        """
        raise _undone(StoreFact.SKEWABLE)

    async def spoil(self, hazard: Hazard) -> None:
        """Make the resource unfit in this way, behind the provider's back."""
        raise NotImplementedError(f"the harness declares {hazard} and does not bring it about")


class Harness(ABC):
    """Opens benches for one backend."""

    @property
    @abstractmethod
    def declaration(self) -> Declaration:
        """What this backend is said to do."""

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[Bench]:
        """Open a bench on a fresh resource; leaving it closes its providers and undoes faults."""


def _undone(fact: StoreFact) -> NotImplementedError:
    return NotImplementedError(f"the harness declares {fact} and does not fulfil it")
