"""Claim keys: who holds one, who may take it, and that a tombstone ends it."""

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    commit,
    committed,
    gathered,
    load,
    nothing_of,
    settled,
    stored,
)
from providers.interface import IMemoryProvider
from providers.model import Claim, ClaimRelease, ProjectKey, WriteSet
from providers.requests import ClaimTaken, Committed, KeyHolder, Tombstoned

CLAIMANTS = 30
ROUNDS = 25
KEY = "content:0001"


async def _holder(
    provider: IMemoryProvider, project: ProjectKey, key: str = KEY
) -> KeyHolder | None:
    return (await load(provider, project, keys=(key,))).keys.get(key)


def _claiming(project: ProjectKey, record_id: str, held_by: str | None = None) -> WriteSet:
    return specimens.create(
        project, specimens.memory(record_id), **specimens.claiming(record_id, KEY, held_by)
    )


@law("C-10", capability=Capability.WRITE)
async def claim_is_put_if_absent(bench: Bench) -> None:
    """004-62: the first claim holds; a second one is told the holder and writes nothing."""
    project = bench.project()
    await committed(bench.provider, _claiming(project, "r1"))
    expect.equal(await _holder(bench.provider, project), KeyHolder("r1", None), "the holder")
    second = _claiming(project, "r2")
    expect.equal(await commit(bench.provider, second), ClaimTaken(KEY, "r1"), "a second claim")
    await nothing_of(bench.provider, second)
    expect.equal(await _holder(bench.provider, project), KeyHolder("r1", None), "the holder")
    again = specimens.write(project, **specimens.claiming("r1", KEY))
    expect.equal(await commit(bench.provider, again), ClaimTaken(KEY, "r1"), "the holder's own")


@law("C-10", capability=Capability.WRITE)
async def claim_moves_from_its_holder(bench: Bench) -> None:
    """004-57: a key goes over to another record only from the one that is named."""
    project = bench.project()
    early = _claiming(project, "r0", held_by="r1")
    expect.equal(await commit(bench.provider, early), ClaimTaken(KEY, None), "nobody holds it")
    await nothing_of(bench.provider, early)
    await committed(bench.provider, _claiming(project, "r1"))
    await committed(bench.provider, _claiming(project, "r2", held_by="r1"))
    expect.equal(await _holder(bench.provider, project), KeyHolder("r2", None), "the new holder")
    late = _claiming(project, "r3", held_by="r1")
    expect.equal(await commit(bench.provider, late), ClaimTaken(KEY, "r2"), "from a past holder")
    await nothing_of(bench.provider, late)
    expect.equal(await _holder(bench.provider, project), KeyHolder("r2", None), "the holder")


@law("C-10", capability=Capability.WRITE)
async def release_only_by_the_owner(bench: Bench) -> None:
    """004-57: a release by another record changes nothing, by the holder it frees the key."""
    project = bench.project()
    await committed(bench.provider, _claiming(project, "r1"))

    def releasing(record_id: str) -> WriteSet:
        return specimens.write(project, releases=(ClaimRelease(KEY, record_id),))

    await committed(bench.provider, releasing("r2"))
    expect.equal(await _holder(bench.provider, project), KeyHolder("r1", None), "the holder")
    await committed(bench.provider, releasing("r1"))
    expect.equal(await _holder(bench.provider, project), None, "a released key")
    await committed(bench.provider, releasing("r1"), _claiming(project, "r3"))
    expect.equal(await _holder(bench.provider, project), KeyHolder("r3", None), "the next holder")


@law("C-10", "C-11", capability=Capability.WRITE)
async def tombstoned_key_is_refused(bench: Bench) -> None:
    """004-62: a tombstone replaces the holder; neither claim nor absence passes it any more."""
    project = bench.project()
    await committed(bench.provider, _claiming(project, "r1"))
    await committed(
        bench.provider, specimens.write(project, tombstones=(specimens.tombstone(KEY),))
    )
    grave = KeyHolder(None, "forgotten")
    expect.equal(await _holder(bench.provider, project), grave, "the tombstone")
    absent = specimens.create(project, specimens.memory("r3"), must_be_absent=(KEY,))
    for refused in (_claiming(project, "r2"), _claiming(project, "r4", held_by="r1"), absent):
        expect.equal(await commit(bench.provider, refused), Tombstoned(KEY), "over a tombstone")
        await nothing_of(bench.provider, refused)
    freeing = specimens.write(project, releases=(ClaimRelease(KEY, "r1"),))
    await committed(bench.provider, freeing)
    expect.equal(await _holder(bench.provider, project), grave, "the tombstone after a release")
    again = specimens.write(project, tombstones=(specimens.tombstone(KEY, "rejected"),))
    await committed(bench.provider, again)
    expect.equal(
        await _holder(bench.provider, project), KeyHolder(None, "rejected"), "the newer tombstone"
    )


@law("C-11", capability=Capability.WRITE)
async def held_key_is_no_tombstone(bench: Bench) -> None:
    """004-62: ``must_be_absent`` asks for tombstones only; a holder is no matter."""
    project = bench.project()
    await committed(bench.provider, _claiming(project, "r1"))
    beside = specimens.create(project, specimens.memory("r2"), must_be_absent=(KEY, "unknown"))
    await committed(bench.provider, beside)
    expect.equal(await _holder(bench.provider, project), KeyHolder("r1", None), "the holder")


@law("C-11", "C-14", capability=Capability.WRITE)
async def absences_do_not_meet(bench: Bench) -> None:
    """004-62: thirty records at once, each with another tombstone that must not be there."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    for turn in range(2):  # also where somebody proved it of these keys before
        records = [specimens.memory(f"r{turn}-{n:02}") for n in range(CLAIMANTS)]
        writes = [
            specimens.create(project, record, must_be_absent=(f"content:{n}",))
            for n, record in enumerate(records)
        ]
        outcomes = await gathered(commit(both[n % 2], each) for n, each in enumerate(writes))
        expect.equal(outcomes, [Committed()] * CLAIMANTS, "absences of different keys")
        await stored(bench.provider, project, *records)


@law("C-10", "C-2", "C-14", capability=Capability.WRITE)
async def claim_race_has_one_winner(bench: Bench) -> None:
    """004-62: of many records that claim one key, free or held, exactly one is written."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    holder: str | None = None
    for turn in range(3):
        names = [f"r{turn}-{n}" for n in range(CLAIMANTS)]
        outcomes = await gathered(
            settled(both[n % 2], _claiming(project, name, holder)) for n, name in enumerate(names)
        )
        expect.exactly(1, outcomes, Committed, "claims of one key")
        holder = names[outcomes.index(Committed())]
        losers = [each for each in outcomes if each != Committed()]
        expect.equal(losers, [ClaimTaken(KEY, holder)] * (CLAIMANTS - 1), "the losers' answers")
        loaded = await load(bench.provider, project, *names, keys=(KEY,))
        expect.equal(set(loaded.heads), {holder}, "the records written")
        expect.equal(loaded.keys.get(KEY), KeyHolder(holder, None), "the holder")


@law("C-11", "C-14", capability=Capability.WRITE)
async def absence_holds_at_the_time_of_the_write(bench: Bench) -> None:
    """004-62: two commits, each refusing the tombstone that the other puts, never both happen."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    for turn in range(ROUNDS):
        keys = (f"left:{turn}", f"right:{turn}")
        if turn % 2:
            held = tuple(Claim(key, "holder") for key in keys)
            await committed(bench.provider, specimens.write(project, claims=held))
        crossing = [
            specimens.create(
                project,
                specimens.memory(f"{mine}-record"),
                must_be_absent=(theirs,),
                tombstones=(specimens.tombstone(mine),),
            )
            for mine, theirs in (keys, keys[::-1])
        ]
        outcomes = await gathered(
            settled(provider, each) for provider, each in zip(both, crossing, strict=True)
        )
        expect.exactly(1, outcomes, Committed, "crossing absences")
        expect.exactly(1, outcomes, Tombstoned, "crossing absences")
        found = (await load(bench.provider, project, keys=keys)).keys.values()
        graves = [each for each in found if each.tombstone_kind is not None]
        expect.equal(len(graves), 1, "tombstones put")


@law("C-11", "C-14", capability=Capability.WRITE)
async def tombstone_outlives_a_racing_claim(bench: Bench) -> None:
    """004-62: whichever comes first, in the end the tombstone stands."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    for turn in range(ROUNDS):
        key = f"content:{turn}"
        holder = "holder" if turn % 2 else None
        if holder is not None:
            held = specimens.write(project, **specimens.claiming(holder, key))
            await committed(bench.provider, held)
        claim = specimens.create(
            project, specimens.memory(f"r{turn}"), **specimens.claiming(f"r{turn}", key, holder)
        )
        burial = specimens.write(project, tombstones=(specimens.tombstone(key),))
        claimed, buried = await gathered([settled(both[0], claim), settled(both[1], burial)])
        expect.one_of(claimed, (Committed, Tombstoned), "the claim")
        expect.equal(buried, Committed(), "the tombstone")
        found = await _holder(bench.provider, project, key)
        expect.equal(found, KeyHolder(None, "forgotten"), "what the key holds in the end")
