"""What is kept of a delivery, who finds it, and how it is listed."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.delivery_steps import (
    RUN,
    accepted,
    acknowledge,
    acquire,
    deliver,
    effect_of,
    leased,
    pending,
    release,
    undelivered,
)
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import committed, persist, trips
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
)
from providers.errors import (
    OutcomeUnknownError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.interface import IMemoryProvider
from providers.model import AcceptedEffect, ProjectKey

SHORT_SECONDS = 1.5
LISTED = 7
LATE = (ProviderTimeoutError, ProviderUnavailableError)


@law("D-8", capability=Capability.DELIVERY)
async def acknowledgement_comes_back(bench: Bench) -> None:
    """004-77, 004-80: a replay repeats the acknowledgement that came first, and no other."""
    provider, other, project = bench.provider, await bench.another(), bench.project()
    (effect,) = await accepted(provider, project)
    token = await leased(provider, project, effect)
    await release(provider, project, effect, token, code="events_unavailable")
    await undelivered(provider, project, effect, code="events_unavailable")
    token = await leased(provider, project, effect)
    answer = Acknowledgement("fact:\u00fc/1 %_", 2**63 - 1)
    done = await acknowledge(provider, project, effect, token, answer=answer)
    expect.equal(done, True, "the acknowledgement")
    wanted = EffectFound(effect, True, None, answer)
    for _ in range(2):
        for asked in (provider, other):
            expect.equal(await effect_of(asked, project, effect), wanted, "a delivered effect")
            got = await acquire(asked, project, effect)
            expect.equal(got, Acquired(None, effect, True, answer), "a lease of it")
        again = await acknowledge(other, project, effect, token)
        expect.equal(again, False, "a second acknowledgement")
        expect.equal(await release(other, project, effect, token), False, "a release after it")


@law("D-6", capability=Capability.DELIVERY)
async def effect_comes_back_exactly(bench: Bench) -> None:
    """004-72: the receipt's fields, texts and numbers apart, and its time to the microsecond."""
    provider, project = bench.provider, bench.project()
    receipt: dict[str, str | int | None] = {
        "issuer": "https://id.example.test/a?b=c",
        "subject": '\u00fc\U0001f600 "quoted" \\ % _',
        "bound_run": None,
        "membership_revision": 2**53 - 1,
        "number_as_text": "1",
        "record_id": "d1",
    }
    effect = replace(specimens.effect(1), receipt=receipt)
    await committed(provider, specimens.write(project, effect=effect))
    await undelivered(provider, project, effect)
    found = expect.some((await effect_of(provider, project, effect)).effect, "the effect")
    types = {name: type(value) for name, value in found.receipt.items()}
    wanted = {name: type(value) for name, value in receipt.items()}
    expect.equal(types, wanted, "the types of the receipt's fields")


@law("D-6", "G-1", "G-2", capability=Capability.DELIVERY)
async def effects_of_others_are_not_found(bench: Bench) -> None:
    """004-74: by another run, project, tenant or name nothing is found, leased or delivered."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    elsewhere: tuple[tuple[ProjectKey, dict[str, Any]], ...] = (
        (project, {"run_id": "run-10"}),
        (project, {"run_id": "RUN-1"}),
        (project, {"run_id": "run-1\0"}),
        (project, {"receipt_id": effect.receipt_id.upper()}),
        (project, {"receipt_id": effect.receipt_id[:-1] + "%"}),
        (project, {"receipt_id": "\0"}),
        (bench.project("p2"), {}),
        (bench.project("P1"), {}),
        (bench.project(tenant_id="t2"), {}),
    )
    for where, changes in elsewhere:
        await _nothing_for(provider, where, effect, changes)
    await _nothing_on_pages(bench)
    token = await leased(provider, project, effect)
    for where, changes in elsewhere:
        done = await acknowledge(provider, where, effect, token, **changes)
        expect.equal(done, False, "an acknowledgement from elsewhere")
        given = await release(provider, where, effect, token, **changes)
        expect.equal(given, False, "a release from elsewhere")
    await undelivered(provider, project, effect)
    expect.equal(await acknowledge(provider, project, effect, token), True, "the holder's")


async def _nothing_for(
    provider: IMemoryProvider, where: ProjectKey, effect: AcceptedEffect, changes: dict[str, Any]
) -> None:
    found = await effect_of(provider, where, effect, **changes)
    expect.equal(found, EffectFound(None), f"an effect by {changes}")
    got = await acquire(provider, where, effect, **changes)
    expect.equal(got, Acquired(None, None), f"a lease by {changes}")


async def _nothing_on_pages(bench: Bench) -> None:
    project = bench.project()
    for where, run_id in (
        (project, "run-10"),
        (project, "run-1\0"),
        (project, "run"),
        (bench.project("p2"), RUN),
        (bench.project(tenant_id="t2"), RUN),
    ):
        page = await pending(bench.provider, where, run_id=run_id)
        expect.equal(page, PendingEffects((), more=False), f"pending of {run_id!r}")


@law("D-7", capability=Capability.DELIVERY)
async def pending_pages_skip_nothing(bench: Bench) -> None:
    """004-73, 004-75: pages of any size list what is undelivered in stream order, and end."""
    provider, project = bench.provider, bench.project()
    effects = await accepted(provider, project, LISTED)
    await accepted(provider, project, 2, run_id="run-10")
    for delivered in range(LISTED + 1):
        rest = [EffectFound(each) for each in effects[delivered:]]
        for limit in (1, 2, 3, 100):
            found, ends = await _listed(provider, project, limit)
            expect.equal(found, rest, f"pending after {delivered}, in pages of {limit}")
            wanted = max(1, -(-len(rest) // limit))
            expect.equal(ends, wanted, f"pages of {limit}")
        if rest:
            await deliver(provider, project, effects[delivered])
    after = await pending(provider, project, after=2**63)
    expect.equal(after, PendingEffects((), more=False), "after the end of all numbers")


@law("D-7", capability=Capability.DELIVERY)
async def pending_lists_what_is_leased_too(bench: Bench) -> None:
    """004-75: a lease or a failed delivery takes nothing off the list; its code stands there."""
    provider, project = bench.provider, bench.project()
    first, second = await accepted(provider, project, 2)
    token = await leased(provider, project, first)
    wanted = PendingEffects((EffectFound(first), EffectFound(second)), more=False)
    expect.equal(await pending(provider, project), wanted, "pending while leased")
    await release(provider, project, first, token, code="events_conflict")
    page = await pending(provider, project, limit=1)
    told = EffectFound(first, last_code="events_conflict")
    expect.equal(page, PendingEffects((told,), more=True), "pending after a failure")
    rest = PendingEffects((EffectFound(second),), more=False)
    expect.equal(await pending(provider, project, after=1), rest, "what follows")


async def _listed(
    provider: IMemoryProvider, project: ProjectKey, limit: int
) -> tuple[list[EffectFound], int]:
    """Read page after page; return what they hold and how many there were."""
    found: list[EffectFound] = []
    after, turns = 0, 0
    while True:
        page = await pending(provider, project, after=after, limit=limit)
        turns += 1
        found += page.effects
        if not page.more:
            return found, turns
        expect.equal(len(page.effects), limit, "the size of a page that others follow")
        after = expect.some(found[-1].effect, "a pending effect").sequence


@law("D-9", capability=Capability.DELIVERY, facts=(StoreFact.COUNTED,))
async def delivery_is_one_round_trip(bench: Bench) -> None:
    """004-75: every call that delivers costs one trip, whatever it finds."""
    provider, project = bench.provider, bench.project()
    first, second = await accepted(provider, project, 2)
    await acquire(provider, bench.project("p2"), first)
    token = ""

    async def take() -> object:
        nonlocal token
        token = await leased(provider, project, first)
        return True

    calls: tuple[tuple[str, Callable[[], Awaitable[object]], object], ...] = (
        ("a look", lambda: effect_of(provider, project, first), EffectFound(first)),
        ("a look in vain", lambda: effect_of(provider, bench.project("p2"), first), None),
        ("pages", lambda: pending(provider, project, limit=1), None),
        ("a lease", take, True),
        ("no lease", lambda: acquire(provider, project, second), Acquired(None, second)),
        ("a release", lambda: release(provider, project, first, token), True),
        ("no release", lambda: release(provider, project, first, token), False),
        ("a lease again", take, True),
        ("no acknowledgement", lambda: acknowledge(provider, project, first, "x"), False),
        ("an acknowledgement", lambda: acknowledge(provider, project, first, token), True),
    )
    for name, call, wanted in calls:
        before = bench.round_trips()
        got = await call()
        trips(bench, before, "deliver")
        if wanted is not None:
            expect.equal(got, wanted, name)


@law("G-4", "D-8", capability=Capability.DELIVERY, facts=(StoreFact.LOSES_REPLIES,))
async def lost_delivery_replies_are_unknown(bench: Bench) -> None:
    """004-35, 004-74: what was sent and got no answer may have happened; a look only was late."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    (other,) = await accepted(provider, project, run_id="run-2")
    token = await leased(provider, project, effect)
    answer = specimens.acknowledgement()
    lease = _lease(project, effect, token)
    claim = AcquireRequest(
        project=project, run_id=other.run_id, receipt_id=other.receipt_id, lease_ms=60_000
    )
    look = EffectRequest(project=project, run_id=effect.run_id, receipt_id=effect.receipt_id)
    await _lost(bench, lambda: provider.release(lease, code="late", timeout=SHORT_SECONDS))
    found = await persist(lambda: effect_of(provider, project, effect))
    expect.equal(found, EffectFound(effect, last_code="late"), "after a lost release")
    lease = _lease(project, effect, await leased(provider, project, effect))
    await _lost(
        bench,
        lambda: provider.acknowledge(lease, acknowledgement=answer, timeout=SHORT_SECONDS),
    )
    found = await persist(lambda: effect_of(provider, project, effect))
    expect.equal(found, EffectFound(effect, True, None, answer), "after a lost acknowledgement")
    await _lost(bench, lambda: provider.acquire(claim, timeout=SHORT_SECONDS))
    held = await persist(lambda: acquire(provider, project, other))
    expect.equal(held, Acquired(None, other), "a lease that nobody heard of")
    await bench.lose_replies()
    looking = provider.effect(look, timeout=SHORT_SECONDS)
    await expect.raises(looking, *LATE, what="a look without an answer")


async def _lost(bench: Bench, call: Callable[[], Awaitable[object]]) -> None:
    await bench.lose_replies(to_writes=True)
    await expect.raises(call(), OutcomeUnknownError, what="a write without an answer")
    await bench.keep_replies()


def _lease(project: ProjectKey, effect: AcceptedEffect, token: str) -> LeaseRequest:
    return LeaseRequest(
        project=project, run_id=effect.run_id, receipt_id=effect.receipt_id, token=token
    )
