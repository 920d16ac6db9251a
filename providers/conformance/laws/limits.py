"""The limits of clause C-15, at the limit and one past it, and a write set's own rules."""

import json
from dataclasses import replace
from math import inf, nan
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import commit, committed, load, nothing_of, pages, stored
from providers.errors import ProviderError, WriteSetInvalidError, WriteSetTooLargeError
from providers.model import Claim, ClaimRelease, Content, ProjectKey, Record, WriteSet

HEADS_MAX = 100
HISTORY_MAX = 500
KEYS_MAX = 100
TEXT_BYTES_MAX = 4 * 1024 * 1024
TEXT_SLACK = 64 * 1024
"""What ids, types and names may take beside the content."""

CONTENT_LENGTH = 40_000
OUTCOME_BYTES_MAX = 1024
TOGETHER_BYTES_MAX = 384 * 1024
TOGETHER_TAGS_MAX = 192
TOGETHER = 12
FEW_BYTES = 32 * 1024


def _heads(project: ProjectKey, count: int) -> WriteSet:
    return specimens.create(project, *(specimens.memory(f"r{n}") for n in range(count)))


def _history(project: ProjectKey, count: int) -> WriteSet:
    chain = specimens.history("r0", count + 1)
    return specimens.create(project, chain[-1], history=tuple(each.current for each in chain[:-1]))


def _keys(project: ProjectKey, count: int) -> WriteSet:
    """Spread keys over all four places."""
    names = [f"k{n}" for n in range(count)]
    return specimens.create(
        project,
        specimens.memory("r0"),
        claims=tuple(Claim(each, "r0") for each in names[0::4]),
        releases=tuple(ClaimRelease(each, "r0") for each in names[1::4]),
        must_be_absent=tuple(names[2::4]),
        tombstones=tuple(specimens.tombstone(each) for each in names[3::4]),
    )


def _text(project: ProjectKey, size: int) -> WriteSet:
    """Put ``size`` bytes of content into one chain, in characters of three bytes where it can."""
    parts = -(-size // (3 * CONTENT_LENGTH))
    chain = specimens.history("r0", parts)
    said: list[Record] = []
    for each in chain:
        part = min(size, 3 * CONTENT_LENGTH)
        size -= part
        text = "\u9b31" * (part // 3) + "a" * (part % 3)
        said.append(replace(each, current=replace(each.current, content=specimens.content(text))))
    return specimens.create(project, said[-1], history=tuple(each.current for each in said[:-1]))


def _together(project: ProjectKey, size: int, tags: int) -> WriteSet:
    """Put twelve heads without history, of so many bytes as JSON and so many tags together."""
    records = []
    for number in range(TOGETHER):
        names = tuple(f"t{n:03}" for n in range(number, tags, TOGETHER))
        said = specimens.content("", title=None, tags=names)
        share = (size + number) // TOGETHER
        text = "a" * (share - _json_size(said))
        records.append(specimens.memory(f"r{number}", content=replace(said, content=text)))
    return specimens.create(project, *records)


def _json_size(said: Content) -> int:
    texts = (said.type, said.content, *said.tags)
    return sum(len(json.dumps(text, ensure_ascii=False).encode()) for text in texts)


@law("C-15", "C-1", capability=Capability.WRITE)
async def write_sets_at_their_limits_are_applied(bench: Bench) -> None:
    """004-83: as many heads, revisions, keys and bytes as the contract or the store allows."""
    sizes = bench.declaration.sizes
    for number, write in enumerate(
        make(bench.project(f"p{number}"), size)
        for number, (make, size) in enumerate(
            (
                (_heads, sizes.heads),
                (_history, sizes.history),
                (_keys, sizes.keys),
                (_text, sizes.text_bytes - TEXT_SLACK),
            )
        )
    ):
        await committed(bench.provider, write)
        project = bench.project(f"p{number}")
        await stored(bench.provider, project, *(each.record for each in write.heads))
        if write.history and Capability.REVISIONS in bench.declaration.capabilities:
            found = await pages(bench.provider, project, "r0")
            wanted = [*write.history, write.heads[0].record.current]
            expect.equal(found, wanted, "the history")


@law("C-15", "C-5", capability=Capability.WRITE)
async def write_sets_past_a_limit_are_refused(bench: Bench) -> None:
    """004-83, 004-84: one more than the limit is the caller's error, and nothing is written."""
    project = bench.project()
    for name, write in {
        "heads": _heads(project, HEADS_MAX + 1),
        "history": _history(project, HISTORY_MAX + 1),
        "keys": _keys(project, KEYS_MAX + 1),
        "text": _text(project, TEXT_BYTES_MAX + 1),
    }.items():
        await _expect_refusal(bench, write, f"too much: {name}")


@law("C-15", "C-1", "C-5", capability=Capability.WRITE)
async def several_heads_without_history_are_bounded(bench: Bench) -> None:
    """004-48: 384 KiB and 192 tags hold up nobody for long; one more of either is refused."""
    for name, size, tags in (
        ("bytes", TOGETHER_BYTES_MAX, 0),
        ("tags", FEW_BYTES, TOGETHER_TAGS_MAX),
        ("both", TOGETHER_BYTES_MAX, TOGETHER_TAGS_MAX),
    ):
        project = bench.project(name)
        write = _together(project, size, tags)
        await committed(bench.provider, write)
        await stored(bench.provider, project, *(each.record for each in write.heads))
    for name, write in _too_large(bench.project()).items():
        await _expect_refusal(bench, write, f"too much: {name}", WriteSetTooLargeError)


def _too_large(project: ProjectKey) -> dict[str, WriteSet]:
    return {
        "bytes": _together(project, TOGETHER_BYTES_MAX + 1, 0),
        "tags": _together(project, FEW_BYTES, TOGETHER_TAGS_MAX + 1),
    }


@law("C-15", "C-5", capability=Capability.WRITE)
async def write_sets_that_break_their_rules_are_refused(bench: Bench) -> None:
    """004-20, 004-52: chains with gaps, keys used twice and false fingerprints are refused."""
    project = bench.project()
    for name, write in _broken(project).items():
        await _expect_refusal(bench, write, name)
    await committed(bench.provider, _heads(project, 1))


async def _expect_refusal(
    bench: Bench, write: WriteSet, what: str, error: type[ProviderError] = WriteSetInvalidError
) -> None:
    await expect.raises(commit(bench.provider, write), error, what=what)
    few = replace(write, heads=write.heads[:HEADS_MAX])
    await nothing_of(bench.provider, few)
    left = await load(bench.provider, write.project, graph=True, transfer=True)
    expect.equal((left.graph, left.transfer), (0, 0), f"{what}: counters")


def _broken(project: ProjectKey) -> dict[str, WriteSet]:
    first, second, third = specimens.history("r0", 3)
    create = specimens.create

    def revised(**changes: Any) -> WriteSet:
        return create(project, specimens.memory("r0", **changes))

    held = create(project, first, **specimens.claiming("r0", "k"))
    return {
        "a record put twice": create(project, first, specimens.memory("r0")),
        "a first revision that is not 1": create(project, second),
        "a gap after the expected revision": specimens.write(project, specimens.put(third, over=1)),
        "history with a gap": create(project, third, history=(first.current,)),
        "history of another record": create(
            project, first, history=(specimens.memory("r1").current,)
        ),
        "history that does not link": create(
            project, second, history=(specimens.memory("r0").current,)
        ),
        "a link before revision 1": revised(previous_revision_id="none before"),
        "no link after revision 1": specimens.write(
            project,
            specimens.put(specimens.after(first, previous_revision_id=None), over=1),
        ),
        "a revision id twice": create(
            project, first, specimens.memory("r1", revision_id=first.current.revision_id)
        ),
        "a key claimed and released": replace(held, releases=(ClaimRelease("k", "r0"),)),
        "a key claimed and buried": replace(held, tombstones=(specimens.tombstone("k"),)),
        "a key claimed twice": replace(held, claims=(Claim("k", "r0"), Claim("k", "r1"))),
        "an actor's false fingerprint": revised(actor_fingerprint="A" * 64),
        "a receipt's false actor": specimens.keyed(create(project, first), actor="f" * 63),
        "a false fingerprint": specimens.keyed(create(project, first), fingerprint="g" * 64),
        "a large outcome": specimens.keyed(
            create(project, first), outcome={"note": "a" * (OUTCOME_BYTES_MAX + 1)}
        ),
        "a time without a zone": revised(create_time=specimens.START.replace(tzinfo=None)),
        "an importance that is no number": revised(content=specimens.content(importance=nan)),
        "metadata that is not JSON": revised(facet=specimens.facet(metadata={"a": {1, 2}})),
        "metadata that is not finite": revised(facet=specimens.facet(metadata={"a": [inf]})),
        "an effect before the first": create(project, first, effect=specimens.effect(0)),
    }


@law("C-15", capability=Capability.WRITE, facts=(StoreFact.COUNTED,))
async def invalid_write_set_is_never_sent(bench: Bench) -> None:
    """004-83: what breaks a rule is found before the store hears of it."""
    project = bench.project()
    good = _heads(project, 1)
    await committed(bench.provider, good)
    before = bench.round_trips()
    for write in (
        _heads(project, HEADS_MAX + 1),
        _text(project, TEXT_BYTES_MAX + 1),
        specimens.create(project, specimens.memory("x", "a\0b")),
    ):
        await expect.raises(commit(bench.provider, write), WriteSetInvalidError, what="unfit")
    for write in _too_large(project).values():
        await expect.raises(commit(bench.provider, write), WriteSetTooLargeError, what="too much")
    expect.equal(bench.round_trips() - before, 0, "round trips of invalid write sets")
