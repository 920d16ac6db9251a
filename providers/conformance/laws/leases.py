"""Leases of effects: one holder at a time, for as long as the store's own clock says."""

import asyncio

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.delivery_steps import (
    LONG_MS,
    SHORT_MS,
    Patience,
    accepted,
    acknowledge,
    acquire,
    deliver,
    effect_of,
    leased,
    leased_again,
    pending,
    refused,
    release,
    undelivered,
)
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import SECONDS, gathered, persist
from providers.deliveries import Acquired
from providers.errors import WriteSetInvalidError
from providers.interface import IMemoryProvider
from providers.model import ProjectKey

RACERS = 20
ROUNDS = 3
WORKERS = 6
STREAM = 8
FAR_SECONDS = 7200.0


@law("D-1", "D-4", capability=Capability.DELIVERY)
async def lease_single_owner(bench: Bench) -> None:
    """004-74: who asks while another holds the lease, or when it is delivered, gets none."""
    provider, other, project = bench.provider, await bench.another(), bench.project()
    (effect,) = await accepted(provider, project)
    token = await leased(provider, project, effect)
    for asking in (other, provider):
        await refused(asking, project, effect)
    answer = specimens.acknowledgement()
    done = await acknowledge(other, project, effect, token, answer=answer)
    expect.equal(done, True, "the holder's acknowledgement, through another instance")
    for asking in (other, provider):
        got = await acquire(asking, project, effect)
        expect.equal(got, Acquired(None, effect, True, answer), "a lease of what is delivered")


@law("D-1", "D-3", capability=Capability.DELIVERY)
async def racing_claims_have_one_winner(bench: Bench) -> None:
    """004-74: of many that ask at once one gets the lease, and each lease has its own token."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    (effect,) = await accepted(bench.provider, project)
    tokens: list[str] = []
    for _ in range(ROUNDS):
        claims = (acquire(both[n % 2], project, effect) for n in range(RACERS))
        won = [each.token for each in await gathered(claims) if each.token is not None]
        expect.equal(len(won), 1, "leases of one effect")
        tokens += won
        expect.equal(await release(bench.provider, project, effect, won[0]), True, "the release")
    expect.equal(len(set(tokens)), ROUNDS, "tokens of as many leases")


@law("D-2", capability=Capability.DELIVERY)
async def stream_order(bench: Bench) -> None:
    """004-73: the later effect of a run waits until every earlier one is delivered."""
    provider, project = bench.provider, bench.project()
    first, second, third = await accepted(provider, project, 3)
    for early in (second, third):
        await refused(provider, project, early)
    token = await leased(provider, project, first)
    await refused(provider, project, second)
    expect.equal(await release(provider, project, first, token), True, "the release")
    await refused(provider, project, second)
    await deliver(provider, project, first)
    await refused(provider, project, third)
    await leased(provider, project, second)
    await refused(provider, project, third)


@law("D-2", capability=Capability.DELIVERY)
async def streams_do_not_wait_for_each_other(bench: Bench) -> None:
    """004-73: what another run, project or tenant has undelivered keeps nobody back."""
    provider = bench.provider
    projects = (bench.project(), bench.project("p2"), bench.project(tenant_id="t2"))
    streams = [(each, "run-1") for each in projects] + [(projects[0], "run-10")]
    for project, run_id in streams:
        effects = await accepted(provider, project, 2, run_id=run_id)
        await leased(provider, project, effects[0])
    (only,) = await accepted(provider, projects[0], run_id="run-2")
    await deliver(provider, projects[0], only)


@law("D-3", "D-4", "D-5", capability=Capability.DELIVERY)
async def expired_lease_is_taken_and_fences_the_old(bench: Bench) -> None:
    """004-74: a lease of 150 ms ends by itself; the next token puts an end to the old one."""
    provider, other, project = bench.provider, await bench.another(), bench.project()
    (effect,) = await accepted(provider, project)
    old = await leased(provider, project, effect, lease_ms=SHORT_MS)
    new = await leased_again(other, project, effect)
    expect.that(new != old, "a lease has a token of its own")
    await _fenced(provider, project, old)
    await refused(provider, project, effect)
    expect.equal(await acknowledge(other, project, effect, new), True, "the new holder's")
    expect.equal((await effect_of(provider, project, effect)).delivered, True, "delivered")


async def _fenced(provider: IMemoryProvider, project: ProjectKey, old: str) -> None:
    """Expect that a token does nothing to the one effect that is pending."""
    (found,) = (await pending(provider, project)).effects
    effect = expect.some(found.effect, "the effect")
    expect.equal(await acknowledge(provider, project, effect, old), False, "an old token's")
    expect.equal(await release(provider, project, effect, old), False, "an old token's release")
    await undelivered(provider, project, effect)


@law("D-4", "D-5", capability=Capability.DELIVERY)
async def expired_lease_acknowledges_nothing(bench: Bench) -> None:
    """004-74: after its time a token delivers no more, also where nobody else came."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    token = await leased(provider, project, effect, lease_ms=SHORT_MS)
    await asyncio.sleep(2 * SHORT_MS / 1000)
    expect.equal(await acknowledge(provider, project, effect, token), False, "a late one")
    await undelivered(provider, project, effect)
    late = await release(provider, project, effect, token, code="accepted_effect_delivery_timeout")
    expect.equal(late, True, "the release with the current token")
    await undelivered(provider, project, effect, code="accepted_effect_delivery_timeout")


@law("D-1", "D-3", "D-4", capability=Capability.DELIVERY, facts=(StoreFact.DURABLE,))
async def expired_lease_fenced_across_restart(bench: Bench) -> None:
    """004-74: leases outlive a restart of the store; what expired meanwhile is fenced after it."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    (kept,) = await accepted(provider, project, run_id="run-2")
    old = await leased(provider, project, effect, lease_ms=SHORT_MS)
    token = await leased(provider, project, kept)
    await bench.restart()
    await persist(lambda: provider.ready(timeout=SECONDS))
    new = await persist(lambda: leased_again(provider, project, effect))
    expect.that(new != old, "a lease has a token of its own")
    await _fenced(provider, project, old)
    await refused(provider, project, kept)
    for holder, held in ((effect, new), (kept, token)):
        done = await acknowledge(provider, project, holder, held)
        expect.equal(done, True, "the holder's acknowledgement after the restart")


@law("D-1", "D-3", "D-4", capability=Capability.DELIVERY, facts=(StoreFact.SKEWABLE,))
async def lease_time_is_store_time(bench: Bench) -> None:
    """004-74: whatever time it is for the caller's process, a lease ends by the store's clock."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    (brief,) = await accepted(provider, project, run_id="run-2")
    token = await leased(provider, project, effect)
    await bench.skew(FAR_SECONDS)
    await refused(provider, project, effect)
    expect.equal(await acknowledge(provider, project, effect, token), True, "a live lease's")
    await leased(provider, project, brief, lease_ms=SHORT_MS)
    await bench.skew(-FAR_SECONDS)
    late = await leased_again(provider, project, brief)
    expect.equal(await acknowledge(provider, project, brief, late), True, "a live lease's")
    for each in (effect, brief):
        expect.equal((await effect_of(provider, project, each)).delivered, True, "delivered")


@law("D-5", capability=Capability.DELIVERY)
async def release_keeps_the_code(bench: Bench) -> None:
    """004-74, 004-78: the holder gives back and says why; others give nothing back."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    token = await leased(provider, project, effect)
    for wrong in (f"{token}x", token[:-1], token.swapcase() + "A", "", "\0"):
        expect.equal(await release(provider, project, effect, wrong), False, f"by {wrong!r}")
    await refused(provider, project, effect)
    for code in ("", "x\0", "x\ud800", "x" * 257):
        call = release(provider, project, effect, token, code=code)
        await expect.raises(call, WriteSetInvalidError, what=f"the code {code[:3]!r}")
    await undelivered(provider, project, effect)
    code = "\u00fcber/100%_\U0001f600"
    expect.equal(await release(provider, project, effect, token, code=code), True, "the holder's")
    await undelivered(provider, project, effect, code=code)
    expect.equal(await release(provider, project, effect, token), False, "once more")
    expect.equal(await acknowledge(provider, project, effect, token), False, "afterwards")
    await leased(provider, project, effect)
    await undelivered(provider, project, effect, code=code)


@law("D-4", capability=Capability.DELIVERY)
async def acknowledge_needs_the_token(bench: Bench) -> None:
    """004-74: no lease, another token or the token of another effect acknowledges nothing."""
    provider, project = bench.provider, bench.project()
    (effect,) = await accepted(provider, project)
    (other,) = await accepted(provider, project, run_id="run-2")
    foreign = await leased(provider, project, other)
    for wrong in ("", "None", "\0", foreign):
        done = await acknowledge(provider, project, effect, wrong)
        expect.equal(done, False, f"an acknowledgement without a lease, by {wrong[:5]!r}")
    token = await leased(provider, project, effect)
    for wrong in (foreign, f"{token} ", token[1:], ""):
        done = await acknowledge(provider, project, effect, wrong)
        expect.equal(done, False, "an acknowledgement by another token")
    await undelivered(provider, project, effect)
    await undelivered(provider, project, other)
    expect.equal(await acknowledge(provider, project, effect, token), True, "the holder's")
    expect.equal((await effect_of(provider, project, effect)).delivered, True, "delivered")
    await undelivered(provider, project, other)


@law("D-1", "D-2", "D-4", "D-7", capability=Capability.DELIVERY)
async def workers_deliver_a_stream_in_order(bench: Bench) -> None:
    """004-73, 004-74: whoever delivers at once, each effect is delivered once and in its turn."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    effects = await accepted(bench.provider, project, STREAM)
    done: list[int] = []

    async def work(provider: IMemoryProvider) -> None:
        patience = Patience("a stream is delivered to its end")
        while (page := await pending(provider, project)).effects:
            for found in page.effects[:2]:
                effect = expect.some(found.effect, "a pending effect")
                got = await acquire(provider, project, effect, lease_ms=LONG_MS)
                if got.token is not None:
                    done.append(effect.sequence)
                    held = await acknowledge(provider, project, effect, got.token)
                    expect.equal(held, True, "the acknowledgement of a live lease")
            await patience.wait()

    await gathered(work(both[number % 2]) for number in range(WORKERS))
    expect.equal(done, [each.sequence for each in effects], "the leases that were given, in turn")
