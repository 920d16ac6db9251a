"""What a provider says of itself, and when it refuses the resource."""

from collections.abc import Awaitable, Callable
from functools import partial

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.calls import CALLS
from providers.conformance.declaration import MARKER_HAZARDS, Hazard
from providers.conformance.harness import Bench
from providers.conformance.law import Law, law
from providers.conformance.steps import SECONDS, commit, load, search
from providers.errors import (
    CapabilityMissingError,
    NegotiationRefusedError,
    ResourceMismatchError,
)
from providers.model import ProjectKey


@law("N-2", "N-5", capability=Capability.READ)
async def negotiate_reports_exact_capabilities(bench: Bench) -> None:
    """004-24, 004-27: exactly what is declared, a reason for the rest, and the marker."""
    negotiated = await bench.provider.negotiate(timeout=SECONDS)
    declared = bench.declaration.capabilities
    expect.equal(negotiated.resource, bench.resource, "the identity of the resource")
    expect.equal(negotiated.capabilities, declared, "the capabilities")
    expect.equal(set(negotiated.absent), set(Capability) - declared, "what is absent")
    expect.that(
        all(reason.strip() for reason in negotiated.absent.values()), "every absence has a reason"
    )
    most = bench.declaration.recall_records_max
    expect.equal(negotiated.recall_records_max, most, "how many memories recall looks through")
    expect.that(negotiated.adapter_version.strip() != "", "the adapter has a version")
    expect.that(negotiated.options_schema_version >= 1, "the options schema has a version")
    expect.that(negotiated.options_revision.strip() != "", "the options have a revision")


@law("G-6", capability=Capability.READ, needs_gap=True)
async def undeclared_capability_is_refused(bench: Bench) -> None:
    """004-22: a method of a capability that is not declared raises, and nothing is written."""
    project = bench.project()
    for capability in sorted(bench.declaration.absent_capabilities):
        for name, call in CALLS.get(capability, {}).items():
            await expect.raises(
                call(bench.provider, project),
                CapabilityMissingError,
                what=f"{name} without {capability}",
            )
    loaded = await load(bench.provider, project, "d1", stream_run_id="run-1")
    expect.equal((dict(loaded.heads), loaded.stream), ({}, 0), "what refused calls left")


def _refuses(hazard: Hazard) -> Law:
    async def judge(bench: Bench) -> None:
        project = bench.project()
        record = specimens.memory("r1")
        before = await bench.provider.negotiate(timeout=SECONDS)
        expect.equal(before.resource, bench.resource, "the resource before it is spoiled")
        expect.that(
            await commit(bench.provider, specimens.create(project, record)) is not None,
            "a commit before the resource is spoiled",
        )
        await bench.spoil(hazard)
        for attempt in ("first", "second"):
            await _expect_refusal(bench, hazard, f"the {attempt} negotiation")
        if hazard in MARKER_HAZARDS:
            await _expect_no_service(bench, project)

    judge.__doc__ = (
        f"004-27, 004-45: a resource unfit by its {hazard} is refused, each time it is asked."
    )
    return law(
        *("N-1", "N-4"),
        *(("N-2", "G-3", "R-3") if hazard in MARKER_HAZARDS else ("N-3",)),
        capability=Capability.READ,
        hazard=hazard,
        name=f"negotiate_refuses_{hazard}",
    )(judge)


async def _expect_refusal(bench: Bench, hazard: Hazard, what: str) -> None:
    if hazard in MARKER_HAZARDS:
        call = bench.provider.negotiate(timeout=SECONDS)
        await expect.raises(call, ResourceMismatchError, what=what)
        return
    refused = await expect.raises(
        bench.provider.negotiate(timeout=SECONDS), NegotiationRefusedError, what=what
    )
    expect.equal(refused.fact, hazard.value, "the fact that is named")


async def _expect_no_service(bench: Bench, project: ProjectKey) -> None:
    late = specimens.create(project, specimens.memory("late"))
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "load": lambda: load(bench.provider, project, "r1"),
        "commit": lambda: commit(bench.provider, late),
        "ready": lambda: bench.provider.ready(timeout=SECONDS),
    }
    for capability in bench.declaration.capabilities:
        for name, call in CALLS.get(capability, {}).items():
            calls[name] = partial(call, bench.provider, project)
    if Capability.SEARCH in bench.declaration.capabilities:
        for text in (None, "va", "Java", "\0"):
            calls[f"search for {text!r}"] = partial(search, bench.provider, project, text=text)
    for name, asked in calls.items():
        await expect.raises(asked(), ResourceMismatchError, what=f"{name} on another resource")


REFUSALS = tuple(_refuses(hazard) for hazard in Hazard)
