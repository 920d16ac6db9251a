"""Recall by a vector: which are nearest, how exactly, and that an old one never answers."""

from datetime import timedelta
from math import cos, radians, sin

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.recall_steps import (
    followed,
    index,
    matched,
    near,
    recalled,
    remembered,
    unindexed,
)
from providers.conformance.steps import SECONDS, created, persist, trips
from providers.entries import DIMENSION_MAX, Vector
from providers.model import MemoryFacet, State
from providers.recall import Matches

EXACT = 1e-4


def _turned(degrees: float, model: str = "m1") -> Vector:
    """Make a vector in the plane, turned so far away from the first axis."""
    return specimens.vector(cos(radians(degrees)), sin(radians(degrees)), model=model)


HERE = _turned(0)


@law("Q-6", capability=Capability.VECTORS)
async def nearest_come_first(bench: Bench) -> None:
    """001-26, 002-25: by cosine descending, then by id; the first so many, and exact to 1e-4."""
    project, provider = bench.project(), bench.provider
    turns = {"c": 0, "B": 20, "a": 20, "b": 20, "far": 90, "behind": 180, "z": 5, "left": -60}
    pairs = [
        (specimens.memory(name), specimens.entry("java", vector=_turned(turn)))
        for name, turn in turns.items()
    ]
    await remembered(provider, project, *pairs)
    wanted = ["c", "z", "B", "a", "b", "left", "far", "behind"]
    for count in (1, 3, 4, 8, 1_000):
        got = await recalled(provider, project, vector=HERE, nearest_max=count)
        expect.equal(near(got), wanted[:count], f"the {count} nearest")
        for each in got.nearest:
            off = abs(each.similarity - cos(radians(turns[each.record_id])))
            expect.that(off <= EXACT, f"the cosine of {each.record_id} is off by {off}")
            expect.that(-1.0 <= each.similarity <= 1.0, f"the cosine of {each.record_id}")
        expect.equal((got.matches, got.frequencies), (Matches(), ()), "what matches without a word")
        expect.equal((got.documents, got.length_total), (8, 8), "the statistics")
    both = await recalled(provider, project, "java", "absent", vector=HERE, nearest_max=2)
    expect.equal((len(both.matches), near(both)), (8, ["c", "z"]), "by both arms at once")


@law("Q-6", capability=Capability.VECTORS)
async def vectors_of_any_dimension_are_exact(bench: Bench) -> None:
    """001-26: of 1 number and of 1,536, small and large ones beside each other."""
    project, provider = bench.project(), bench.provider
    for dimension in (1, 3, 384, DIMENSION_MAX):
        numbers = [((n * 7919) % 1009 - 504) * 10.0 ** (n % 5 - 2) for n in range(dimension)]
        shifted = [number + 100.0 * (n % 3) for n, number in enumerate(numbers)]
        one, other = specimens.vector(*numbers), specimens.vector(*shifted)
        left, right = memoryview(one.packed).cast("f"), memoryview(other.packed).cast("f")
        wanted = sum(a * b for a, b in zip(left, right, strict=True))
        name = f"r{dimension}"
        await remembered(provider, project, (specimens.memory(name), specimens.entry(vector=other)))
        got = await recalled(provider, project, vector=one)
        expect.equal(near(got), [name], f"what is near in {dimension} dimensions")
        off = abs(got.nearest[0].similarity - wanted)
        expect.that(off <= EXACT, f"in {dimension} dimensions the cosine is off by {off}")


@law("Q-6", capability=Capability.VECTORS)
async def vectors_of_other_models_are_not_compared(bench: Bench) -> None:
    """000-40: same model and same dimension, byte for byte, or it is not there."""
    project, provider = bench.project(), bench.provider
    vectors = {
        "same": _turned(80),
        "other": _turned(0, "m2"),
        "case": _turned(0, "M1"),
        "longer": _turned(0, "m1 "),
        "wide": specimens.vector(1.0, 0.0, 0.0),
        "narrow": specimens.vector(1.0),
        "none": None,
    }
    pairs = [
        (specimens.memory(name), specimens.entry("java", vector=vector))
        for name, vector in vectors.items()
    ]
    await remembered(provider, project, *pairs)
    await created(provider, project, specimens.memory("bare"))
    got = await recalled(provider, project, vector=HERE)
    expect.equal(near(got), ["same"], "what is compared")
    long = "\U0001f600" * 128
    await remembered(
        provider, project, (specimens.memory("long"), specimens.entry(vector=_turned(1, long)))
    )
    by_long = await recalled(provider, project, vector=_turned(0, long))
    expect.equal(near(by_long), ["long"], "by the longest name of a model")
    nobody = await recalled(provider, project, vector=_turned(0, "m\0"))
    expect.equal((near(nobody), nobody.documents), ([], 8), "by a model that cannot be")


@law("Q-2", "Q-6", "G-2", capability=Capability.VECTORS)
async def filters_act_before_the_nearest_are_cut(bench: Bench) -> None:
    """000-42: what is nearer and filtered, or another's, takes no place among the nearest."""
    project, provider = bench.project(), bench.provider
    exact = specimens.entry("java", vector=HERE)
    nearer = [
        *(specimens.memory(f"theirs{n}", agent_id=f"a{n}") for n in range(2, 40)),
        *(specimens.memory(f"away{n}", facet=MemoryFacet(namespace="away")) for n in range(40)),
        *(specimens.memory(f"archived{n}", state=State.ARCHIVED) for n in range(40)),
        specimens.decision("decision"),
    ]
    await remembered(provider, project, *((each, exact) for each in nearer))
    for where in (bench.project("p2"), bench.project("p"), bench.project(tenant_id="t2")):
        far = [(specimens.memory(f"r{n}"), exact) for n in range(20)]
        await remembered(provider, where, *far)
    mine = [
        (specimens.memory(f"mine{n}"), specimens.entry(vector=_turned(60 + n))) for n in range(3)
    ]
    await remembered(provider, project, *mine)
    asked = {"namespaces": frozenset({""})}
    for count in (1, 2, 3, 10):
        got = await recalled(provider, project, vector=HERE, nearest_max=count, **asked)
        expect.equal(near(got), ["mine0", "mine1", "mine2"][:count], f"the {count} nearest")


@law("Q-10", "Q-6", capability=Capability.VECTORS)
async def vector_never_stale_after_edit(bench: Bench) -> None:
    """000-14, 001-11: a new text without a vector has none; with another it has that one only."""
    project, provider = bench.project(), bench.provider
    first = specimens.memory("r1")
    await remembered(provider, project, (first, specimens.entry("java", vector=HERE)))
    archived = await followed(provider, project, first, state=State.ARCHIVED)
    expect.equal(near(await recalled(provider, project, vector=HERE)), [], "while archived")
    now = await followed(provider, project, archived, state=State.ACTIVE)
    expect.equal(near(await recalled(provider, project, vector=HERE)), ["r1"], "active again")
    now = await followed(provider, project, now, text="Python.", entry=specimens.entry("python"))
    got = await recalled(provider, project, "python", vector=HERE)
    expect.equal((matched(got), near(got)), (["r1"], []), "after an edit without a vector")
    turned = specimens.entry("rust", vector=_turned(60))
    now = await followed(provider, project, now, text="Rust.", entry=turned)
    again = await recalled(provider, project, vector=HERE)
    off = abs(again.nearest[0].similarity - 0.5) if again.nearest else 1.0
    expect.that(near(again) == ["r1"] and off <= EXACT, "after an edit with another vector")
    other = specimens.entry("go", vector=_turned(0, "m2"))
    await followed(provider, project, now, text="Go.", entry=other)
    expect.equal(near(await recalled(provider, project, vector=HERE)), [], "by the old model")
    by_new = await recalled(provider, project, vector=_turned(0, "m2"))
    expect.equal(near(by_new), ["r1"], "by the new model")


@law("I-1", "I-2", "Q-6", capability=Capability.VECTORS)
async def vectors_can_be_built_later(bench: Bench) -> None:
    """000-43: those without a vector of the model are told, and found once they have one."""
    project, provider = bench.project(), bench.provider
    heads = [specimens.memory(f"r{n}") for n in range(4)]
    entries = (
        specimens.entry("java", vector=HERE),
        specimens.entry("java", vector=_turned(0, "m2")),
        specimens.entry("java"),
    )
    await remembered(provider, project, *zip(heads[:3], entries, strict=True))
    await created(provider, project, heads[3])
    plain = await unindexed(provider, project)
    expect.equal(plain, (heads[3],), "those without an entry")
    lacking = await unindexed(provider, project, vector_model="m1")
    expect.equal(lacking, tuple(heads[1:]), "those without a vector of the model")
    rest = await unindexed(provider, project, vector_model="m1", after="r1", limit=1)
    expect.equal(rest, (heads[2],), "a page of these")
    for head in lacking:
        put = await index(provider, project, head, specimens.entry("java", vector=_turned(30)))
        expect.equal(put, 1, "how many were put")
    expect.equal(await unindexed(provider, project, vector_model="m1"), (), "in the end")
    got = await recalled(provider, project, "java", vector=HERE)
    expect.equal(near(got), ["r0", "r1", "r2", "r3"], "what is near in the end")
    expect.equal(len(got.matches), 4, "what matches in the end")
    expect.equal(await index(provider, project, heads[0], specimens.entry("java")), 1, "one more")
    expect.equal(near(await recalled(provider, project, vector=HERE)), ["r1", "r2", "r3"], "then")


@law("Q-9", capability=Capability.VECTORS, facts=(StoreFact.COUNTED,))
async def nearest_are_one_round_trip(bench: Bench) -> None:
    """004-68: words and a vector together cost no more than words."""
    project, provider = bench.project(), bench.provider
    pairs = [
        (specimens.memory(f"r{n}"), specimens.entry("java", vector=_turned(n))) for n in range(40)
    ]
    await remembered(provider, project, *pairs)
    await recalled(provider, project, "java", vector=HERE)
    for terms in ((), ("java",), ("java", "absent")):
        before = bench.round_trips()
        got = await recalled(provider, project, *terms, vector=HERE)
        trips(bench, before, "recall")
        expect.equal(len(got.nearest), 40, f"how many are near, with {len(terms)} terms")


@law("Q-10", "C-7", capability=Capability.VECTORS, facts=(StoreFact.DURABLE,))
async def vectors_survive_a_restart(bench: Bench) -> None:
    """003-11: what was near before a crash is near after it, as near as it was."""
    project, provider = bench.project(), bench.provider
    later = specimens.START + timedelta(seconds=1)
    pairs = [
        (specimens.memory(f"r{n}", create_time=later), specimens.entry(vector=_turned(10 * n)))
        for n in range(5)
    ]
    await remembered(provider, project, *pairs)
    before = await recalled(provider, project, vector=HERE)
    expect.equal(near(before), [f"r{n}" for n in range(5)], "what is near")
    await bench.restart()
    await persist(lambda: provider.ready(timeout=SECONDS))
    after = await persist(lambda: recalled(provider, project, vector=HERE))
    expect.equal(after, before, "what is near after the restart")
