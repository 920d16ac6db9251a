"""Small pages of large records: brief ones, and ones that end by their bytes."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.reference_pages import brief, brief_record, size, text_size
from providers.conformance.steps import committed, page, position, search
from providers.interface import IMemoryProvider
from providers.model import Content, MemoryFacet, ProjectKey, Record, Revision
from providers.requests import BRIEF_LENGTH, RevisionsPage, SearchPage, SearchPosition

LONG = 3_000
SAID = {
    "ascii": "a",
    "latin": "\u00fc",
    "han": "\u77e5",
    "emoji": "\U0001f308",
    "joined": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "marked": "e\u0301",
    "mixed": "a\u0301\u77e5\U0001f680 ",
}
"""What contents are made of, over and over."""
LENGTHS = (1, BRIEF_LENGTH - 1, BRIEF_LENGTH, BRIEF_LENGTH + 1, LONG)
METADATA: dict[str, object] = {"note": "\u77e5\U0001f680 %" * 600}
BOUND = 10_000
FEW = 9


def _varied() -> list[Content]:
    """Say something of every script and length, each with all that may stand beside it."""
    texts = [(part * length)[:length] for part in SAID.values() for length in LENGTHS]
    return [
        specimens.content(text, rationale=text[::-1], title="Title " * 60, tags=("x" * 300, "y"))
        for text in texts
    ]


def _facets(count: int) -> list[MemoryFacet | None]:
    """Return facets in turn: none, bare, full, with much metadata, with none of it."""
    kinds = (
        None,
        specimens.empty_facet(),
        specimens.facet(),
        specimens.facet(metadata=METADATA),
        specimens.facet(metadata={}),
        specimens.facet(metadata=None, subject="\u77e5" * 900),
    )
    return [kinds[n % len(kinds)] for n in range(count)]


def _sized() -> list[Content]:
    """Say the same amount in each field in turn, in characters of one to four bytes."""
    made = [specimens.content("x", title=None, tags=())]
    for character in ("a", "\u00fc", "\u77e5", "\U0001f308"):
        text = character * 1_000
        made += [
            specimens.content("x", type=text),
            specimens.content("x", title=text),
            specimens.content(text),
            specimens.content("x", rationale=text),
            specimens.content("x", tags=(text[:500], text[500:])),
        ]
    # One alone is larger than the bound of a page, in the middle and at the end.
    made.insert(7, specimens.content("\u77e5" * BOUND))
    return [*made, specimens.content("\U0001f308" * BOUND)]


def _record(number: int, content: Content, facet: MemoryFacet | None = None) -> Record:
    moment = specimens.START - timedelta(seconds=number)
    return specimens.memory(
        f"r{number}", content=content, facet=facet, create_time=moment, reason="why \u77e5 " * 9
    )


async def _heads(provider: IMemoryProvider, project: ProjectKey) -> list[Record]:
    """Write records of every size; return them in search order."""
    records = [_record(number, said) for number, said in enumerate(_sized())]
    await committed(provider, specimens.create(project, *records))
    return records


async def _history(
    provider: IMemoryProvider,
    project: ProjectKey,
    contents: Sequence[Content],
    facets: Sequence[MemoryFacet | None] = (),
) -> list[Revision]:
    """Write a history of r1; return its revisions, newest first."""
    first = specimens.memory("r1", content=contents[0], facet=facets[0] if facets else None)
    chain = [first]
    for number, said in enumerate(contents[1:], start=1):
        facet = facets[number] if facets else None
        chain.append(specimens.after(chain[-1], content=said, facet=facet))
    past = tuple(each.current for each in chain[:-1])
    await committed(provider, specimens.create(project, chain[-1], history=past))
    return [each.current for each in chain[::-1]]


def _expect_page(got: Sequence[Revision], whole: Sequence[Revision], *, more: bool) -> None:
    """Expect the longest beginning of what is there that fits the bound, and no more."""
    taken = sum(map(text_size, got))
    expect.that(len(got) == 1 or taken <= BOUND, f"a page of {taken} bytes")
    expect.equal(list(got), list(whole[: len(got)]), "what the page holds")
    expect.equal(more, len(got) < len(whole), "more after it")
    if more:
        beyond = taken + text_size(whole[len(got)])
        expect.that(beyond > BOUND, f"a page that ended early: {beyond} bytes fit")


# -------------------- searches


@law("S-8", capability=Capability.SEARCH)
async def brief_heads_are_cut_by_code_points(bench: Bench) -> None:
    """004-66: 256 code points of content, whatever they are; no rationale, no metadata."""
    project, provider = bench.project(), bench.provider
    said = _varied()
    facets = _facets(len(said))
    records = [_record(n, each, facets[n]) for n, each in enumerate(said)]
    await committed(provider, specimens.create(project, *records))
    wanted = SearchPage(tuple(map(brief_record, records)), more=False)
    for agent_id, text in product(("a1", None), (None, "it", "title")):
        asked: dict[str, Any] = {"agent_id": agent_id, "text": text, "limit": 100}
        got = await search(provider, project, brief=True, **asked)
        expect.equal(got, wanted, f"the brief page of {asked}")
        whole = await search(provider, project, **asked)
        expect.equal(whole.records, tuple(records), f"the whole page of {asked}")


@law("S-8", "S-6", capability=Capability.SEARCH)
async def brief_pages_find_what_they_leave_out(bench: Bench) -> None:
    """004-67: a text that stands behind the first 256 code points is found, page after page."""
    project, provider = bench.project(), bench.provider
    behind = "\u77e5" * LONG + " needle"
    records = [_record(n, specimens.content(behind)) for n in range(FEW)]
    await committed(provider, specimens.create(project, *records))
    for text, limit in product(("needle", "dl", None), (1, 4, FEW)):
        found: list[Record] = []
        after: SearchPosition | None = None
        more = True
        while more:
            got = await search(provider, project, text=text, limit=limit, after=after, brief=True)
            expect.equal(len(got.records), min(limit, FEW - len(found)), "the size of a page")
            found += got.records
            after, more = position(got.records[-1]), got.more
            expect.equal(more, len(found) < FEW, "more after a page")
        expect.equal(found, [*map(brief_record, records)], f"{limit} at a time of {text}")


@law("S-9", "S-2", capability=Capability.SEARCH)
async def bounded_pages_of_heads_join(bench: Bench) -> None:
    """004-68: no page is larger than its bound or shorter than it may be; none is left out."""
    project, provider = bench.project(), bench.provider
    records = await _heads(provider, project)
    facts = [each for each in records if each.current.content.type == "fact"]
    for agent_id, (text, fitting) in product(("a1", None), ((None, records), ("fact", facts))):
        whole = list(fitting)
        after: SearchPosition | None = None
        while whole:
            got = await search(
                provider,
                project,
                agent_id=agent_id,
                text=text,
                after=after,
                limit=100,
                bytes_max=BOUND,
            )
            expect.that(bool(got.records), "a page holds something")
            page = [each.current for each in got.records]
            _expect_page(page, [each.current for each in whole], more=got.more)
            whole = whole[len(page) :]
            after = position(got.records[-1])


@law("S-9", capability=Capability.SEARCH)
async def a_page_of_heads_may_be_as_large_as_its_bound(bench: Bench) -> None:
    """004-68: to the byte, and the limit of heads holds beside it."""
    project, provider = bench.project(), bench.provider
    records = await _heads(provider, project)
    for count in (1, 2, 7, 8, 9, len(records)):
        taken = sum(text_size(each.current) for each in records[:count])
        for bound, held in ((taken, count), (taken - 1, max(count - 1, 1))):
            for limit in (100, max(held - 1, 1)):
                got = await search(provider, project, bytes_max=bound, limit=limit)
                wanted = records[: min(held, limit)]
                more = len(wanted) < len(records)
                expect.equal(got, SearchPage(tuple(wanted), more=more), f"{bound} bytes, {limit}")


@law("S-9", capability=Capability.SEARCH)
async def facets_of_heads_count(bench: Bench) -> None:
    """004-68: a page of small texts with much metadata ends as well."""
    project, provider = bench.project(), bench.provider
    facet = specimens.facet(metadata=METADATA)
    records = [_record(n, specimens.content("few words"), facet) for n in range(FEW)]
    await committed(provider, specimens.create(project, *records))
    taken = size(records[0].current)
    for text in (None, "few words"):
        got = await search(provider, project, text=text, bytes_max=3 * taken + taken // 2)
        expect.equal(got, SearchPage(tuple(records[:3]), more=True), "a page of three and a half")


# -------------------- histories


@law("V-4", capability=Capability.REVISIONS)
async def brief_revisions_are_cut_by_code_points(bench: Bench) -> None:
    """004-68: 256 code points of content, whatever they are; no rationale, no metadata."""
    project, provider = bench.project(), bench.provider
    said = _varied()
    whole = await _history(provider, project, said, _facets(len(said)))
    for before in (None, len(said) + 1, 7):
        left = whole if before is None else whole[-(before - 1) :]
        got = await page(provider, project, "r1", before=before, brief=True)
        wanted = RevisionsPage(found=True, revisions=tuple(map(brief, left)), more=False)
        expect.equal(got, wanted, f"the brief page before {before}")
        full = await page(provider, project, "r1", before=before)
        expect.equal(full.revisions, tuple(left), f"the whole page before {before}")
    short = await page(provider, project, "r1", limit=3, brief=True)
    wanted = RevisionsPage(found=True, revisions=tuple(map(brief, whole[:3])), more=True)
    expect.equal(short, wanted, "a brief page that others follow")


@law("V-5", "V-2", capability=Capability.REVISIONS)
async def bounded_pages_of_revisions_join(bench: Bench) -> None:
    """004-68: no page is larger than its bound or shorter than it may be; none is left out."""
    project, provider = bench.project(), bench.provider
    left = await _history(provider, project, _sized())
    before: int | None = None
    while left:
        got = await page(provider, project, "r1", before=before, bytes_max=BOUND)
        expect.that(got.found and bool(got.revisions), "a page holds something")
        _expect_page(got.revisions, left, more=got.more)
        left = left[len(got.revisions) :]
        before = got.revisions[-1].revision
    last = await page(provider, project, "r1", before=1, bytes_max=BOUND)
    expect.equal(last, RevisionsPage(found=True), "a bounded page after the end")


@law("V-5", capability=Capability.REVISIONS)
async def a_page_of_revisions_may_be_as_large_as_its_bound(bench: Bench) -> None:
    """004-68: to the byte, and the limit of revisions holds beside it."""
    project, provider = bench.project(), bench.provider
    whole = await _history(provider, project, _sized())
    for count in (1, 2, 7, 8, 9, len(whole)):
        taken = sum(map(text_size, whole[:count]))
        for bound, held in ((taken, count), (taken - 1, max(count - 1, 1))):
            for limit in (100, max(held - 1, 1)):
                got = await page(provider, project, "r1", bytes_max=bound, limit=limit)
                wanted = tuple(whole[: min(held, limit)])
                more = len(wanted) < len(whole)
                expect.equal((got.revisions, got.more), (wanted, more), f"{bound} bytes, {limit}")


@law("V-5", capability=Capability.REVISIONS)
async def facets_of_revisions_count(bench: Bench) -> None:
    """004-68: a page of small texts with much metadata ends as well."""
    project, provider = bench.project(), bench.provider
    facet = specimens.facet(metadata=METADATA)
    said = [specimens.content("few words")] * FEW
    whole = await _history(provider, project, said, [facet] * FEW)
    taken = size(whole[0])
    got = await page(provider, project, "r1", bytes_max=3 * taken + taken // 2)
    wanted = RevisionsPage(found=True, revisions=tuple(whole[:3]), more=True)
    expect.equal(got, wanted, "a page of three and a half")
