"""Idempotency: one receipt for one key, kept for ever, replayed to whoever asks again."""

from dataclasses import replace

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    commit,
    committed,
    gathered,
    head,
    load,
    nothing_of,
    persist,
    receipt_of,
    settled,
    stored,
)
from providers.errors import OutcomeUnknownError
from providers.requests import Committed, IdempotencyReused, Replayed, StaleRevision

SHORT_SECONDS = 2.0
CALLERS = 100
ROUNDS = 30


@law("C-4", "C-8", capability=Capability.WRITE)
async def replay_after_later_updates(bench: Bench) -> None:
    """004-63: a retry gets the first receipt, however far the record has moved on."""
    project = bench.project()
    record = specimens.memory("r1")
    first = specimens.create(project, record)
    await committed(bench.provider, first)
    for turn in range(5):
        now = expect.some(await head(bench.provider, project, "r1"), "the head")
        await committed(bench.provider, specimens.update(project, now, f"text {turn}"))
    before = await head(bench.provider, project, "r1")
    outcome = await commit(await bench.another(), first)
    expect.equal(outcome, Replayed(first.receipt), "the retry")
    expect.equal(await head(bench.provider, project, "r1"), before, "the head after a replay")
    loaded = await load(bench.provider, project, revisions=first.receipt.refs)
    expect.equal(
        loaded.revisions.get(first.receipt.refs[0]), record.current, "what the receipt refers to"
    )


@law("C-4", capability=Capability.WRITE)
async def replay_ignores_what_a_retry_decided(bench: Bench) -> None:
    """004-62: method and fingerprint decide; fresh ids and times of a retry are not compared."""
    project = bench.project()
    first = specimens.keyed(
        specimens.create(project, specimens.memory("r1")), key="k1", request="remember"
    )
    await committed(bench.provider, first)
    retry = specimens.keyed(
        specimens.create(project, specimens.memory("r2", "decided again")),
        key="k1",
        request="remember",
        outcome={"created": True},
    )
    expect.equal(await commit(bench.provider, retry), Replayed(first.receipt), "the retry")
    expect.equal(await head(bench.provider, project, "r2"), None, "what the retry would put")


@law("C-4", "C-7", "C-9", capability=Capability.WRITE, facts=(StoreFact.LOSES_REPLIES,))
async def replay_after_lost_reply_and_restart(bench: Bench) -> None:
    """004-43, 004-63: the reply is lost, the store restarts, the retry finds one effect."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    lost = specimens.update(project, record, "the reply is lost")
    await bench.lose_replies(to_writes=True)
    await expect.raises(
        bench.provider.commit(lost, timeout=SHORT_SECONDS), OutcomeUnknownError, what="a lost reply"
    )
    await bench.keep_replies()
    if StoreFact.DURABLE in bench.declaration.facts:
        await bench.restart()
    outcome = await persist(lambda: commit(bench.provider, lost))
    expect.equal(outcome, Replayed(lost.receipt), "the retry")
    await stored(bench.provider, project, lost.heads[0].record)


@law("C-4", "C-5", capability=Capability.WRITE)
async def key_other_content_conflicts(bench: Bench) -> None:
    """004-62: the same key for another request, or another method, is refused."""
    project = bench.project()
    first = specimens.keyed(specimens.create(project, specimens.memory("r1")), key="k1")
    await committed(bench.provider, first)
    other = specimens.create(project, specimens.memory("r2"))
    for retry in (
        specimens.keyed(other, key="k1", request="another request"),
        specimens.keyed(other, key="k1", method="conformance.other"),
    ):
        expect.equal(await commit(bench.provider, retry), IdempotencyReused(), "a reused key")
    expect.equal(await head(bench.provider, project, "r2"), None, "what was refused")
    kept = await receipt_of(bench.provider, project, first.receipt.key)
    expect.equal(kept.receipt, first.receipt, "the first receipt")


@law("C-5", capability=Capability.WRITE)
async def key_free_after_refused_write(bench: Bench) -> None:
    """004-64: a refused write keeps no receipt, so its key serves for the next attempt."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    stale = specimens.keyed(
        specimens.write(project, specimens.put(specimens.after(specimens.after(record)), over=2)),
        key="k1",
    )
    expect.equal(await commit(bench.provider, stale), StaleRevision("r1", 1), "the stale write")
    await nothing_of(bench.provider, stale, known=[record])
    good = specimens.keyed(
        specimens.update(project, record, "corrected"), key="k1", request="the corrected request"
    )
    await committed(bench.provider, good)
    await stored(bench.provider, project, good.heads[0].record)


@law("C-16", capability=Capability.WRITE)
async def key_scope_is_project_and_actor(bench: Bench) -> None:
    """004-62: the same key of another actor, project or tenant is another key."""
    scopes = [
        (bench.project(), specimens.ACTOR),
        (bench.project(), specimens.OTHER_ACTOR),
        (bench.project("p2"), specimens.ACTOR),
        (bench.project(tenant_id="t2"), specimens.ACTOR),
    ]
    writes = [
        specimens.keyed(
            specimens.create(project, specimens.memory(f"r{n}")),
            key="same",
            actor=actor,
            request=f"request {n}",
        )
        for n, (project, actor) in enumerate(scopes)
    ]
    await committed(bench.provider, *writes)
    for each in writes:
        found = await receipt_of(bench.provider, each.project, each.receipt.key)
        expect.equal(found.receipt, each.receipt, "the receipt of this scope")
        outcome = await commit(bench.provider, each)
        expect.equal(outcome, Replayed(each.receipt), "the replay in this scope")


@law("C-2", "C-4", "C-14", capability=Capability.WRITE)
async def hundred_same_key_one_effect(bench: Bench) -> None:
    """004-62: a hundred callers with one key make one record, and all hear the same."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    same = specimens.create(project, specimens.memory("r1"))
    outcomes = await gathered(settled(both[n % 2], same) for n in range(CALLERS))
    expect.exactly(1, outcomes, Committed, "commits of one key")
    replays = [each for each in outcomes if each != Committed()]
    expect.equal(replays, [Replayed(same.receipt)] * (CALLERS - 1), "the other answers")
    await stored(bench.provider, project, same.heads[0].record)


@law("C-3", "C-4", "C-14", capability=Capability.WRITE)
async def retry_racing_its_first_attempt_is_replayed(bench: Bench) -> None:
    """004-62: beside its own first attempt a retry is replayed; it is never stale."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    for turn in range(ROUNDS):
        write = specimens.update(project, record, f"text {turn}")
        outcomes = await gathered(settled(each, write) for each in both)
        expect.exactly(1, outcomes, Committed, "an attempt and its retry")
        expect.exactly(1, outcomes, Replayed, "an attempt and its retry")
        record = write.heads[0].record
    await stored(bench.provider, project, record)


@law("C-8", capability=Capability.WRITE)
async def receipt_comes_back_exactly(bench: Bench) -> None:
    """004-63: order of references, types of the outcome and the time are kept."""
    project = bench.project()
    records = [specimens.memory(name) for name in ("b", "a", "c")]
    full = replace(
        specimens.receipt(refs=[specimens.ref(each) for each in records]),
        method="memory.batch_remember",
        effect_id="effect-1",
        outcome={"created": True, "merged": False, "count": 1, "score": 0.1 + 0.2, "kind": "new"},
    )
    await committed(bench.provider, specimens.create(project, *records, receipt=full))
    for outcome in (
        (await receipt_of(bench.provider, project, full.key)).receipt,
        expect.kind(
            await commit(bench.provider, specimens.create(project, receipt=full)),
            Replayed,
            "the retry",
        ).receipt,
    ):
        found = expect.some(outcome, "the receipt")
        expect.equal(found, full, "the receipt")
        types = {name: type(value) for name, value in found.outcome.items()}
        wanted = {name: type(value) for name, value in full.outcome.items()}
        expect.equal(types, wanted, "the types of the outcome")
