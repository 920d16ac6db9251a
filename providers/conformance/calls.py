"""One call of every method, by the capability that it needs."""

from collections.abc import Awaitable, Callable, Mapping

from providers.capabilities import Capability
from providers.conformance import specimens
from providers.conformance.recall_steps import index, recalled, tagged, unindexed
from providers.conformance.steps import SECONDS, candidates, commit, page, search
from providers.conformance.transfer_steps import export, graves
from providers.deliveries import (
    Acknowledgement,
    AcquireRequest,
    EffectRequest,
    LeaseRequest,
    PendingEffectsRequest,
)
from providers.interface import IMemoryProvider
from providers.model import ProjectKey

NO_LEASE = "no lease"

Call = Callable[[IMemoryProvider, ProjectKey], Awaitable[object]]


async def _search(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await search(provider, project)


async def _candidates(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await candidates(provider, project)


async def _nobodys_candidates(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await candidates(provider, project, agent_id="\0")


async def _revisions(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await page(provider, project, "r1")


async def _export(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await export(provider, project)


async def _export_named(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await export(provider, project, "r1")


async def _tombstones(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await graves(provider, project, "k1")


async def _promote(provider: IMemoryProvider, project: ProjectKey) -> object:
    accepted = specimens.create(project, specimens.decision("d1"), effect=specimens.effect(1))
    return await commit(provider, accepted)


async def _acquire(provider: IMemoryProvider, project: ProjectKey) -> object:
    request = AcquireRequest(project=project, run_id="run-1", receipt_id="e1", lease_ms=1000)
    return await provider.acquire(request, timeout=SECONDS)


async def _acknowledge(provider: IMemoryProvider, project: ProjectKey) -> object:
    acknowledgement = Acknowledgement("fact-1", 1)
    return await provider.acknowledge(
        _lease(project), acknowledgement=acknowledgement, timeout=SECONDS
    )


async def _release(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await provider.release(_lease(project), code="busy", timeout=SECONDS)


async def _effect(provider: IMemoryProvider, project: ProjectKey) -> object:
    request = EffectRequest(project=project, run_id="run-1", receipt_id="e1")
    return await provider.effect(request, timeout=SECONDS)


async def _pending(provider: IMemoryProvider, project: ProjectKey) -> object:
    request = PendingEffectsRequest(project=project, run_id="run-1", after_sequence=0, limit=10)
    return await provider.pending_effects(request, timeout=SECONDS)


async def _recall(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await recalled(provider, project, "java")


async def _recall_near(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await recalled(provider, project, vector=specimens.vector(1.0))


async def _tagged(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await tagged(provider, project)


async def _unindexed(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await unindexed(provider, project)


async def _index(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await index(provider, project, specimens.memory("r1"), specimens.entry("java"))


def _lease(project: ProjectKey) -> LeaseRequest:
    return LeaseRequest(project=project, run_id="run-1", receipt_id="e1", token=NO_LEASE)


CALLS: Mapping[Capability, Mapping[str, Call]] = {
    Capability.SEARCH: {"search": _search},
    Capability.COMPOSE: {
        "candidates": _candidates,
        "candidates for nobody": _nobodys_candidates,
    },
    Capability.REVISIONS: {
        "revisions": _revisions,
        "export": _export,
        "an export by name": _export_named,
        "tombstones": _tombstones,
    },
    Capability.PROMOTE: {"a commit with an effect": _promote},
    Capability.DELIVERY: {
        "acquire": _acquire,
        "acknowledge": _acknowledge,
        "release": _release,
        "effect": _effect,
        "pending_effects": _pending,
    },
    Capability.RECALL: {
        "recall": _recall,
        "tagged": _tagged,
        "unindexed": _unindexed,
        "index": _index,
    },
    Capability.VECTORS: {"recall by a vector": _recall_near},
}
"""Those of READ and WRITE, which every provider has, are not among them."""
