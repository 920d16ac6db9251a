"""One order over several resources, cut once (004-69)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.errors import ReplyTooLargeError
from broker.domain.project_pages import Place, merged_page
from broker.domain.records import Stamp, created
from broker.domain.requests import ProjectHit
from providers.model import Content, Kind, Record, ResourceIdentity
from providers.requests import SearchPage

START = datetime(2026, 1, 1, tzinfo=UTC)
Key = tuple[int, str]


def place(number: int, *runs: str) -> Place:
    named = runs or (f"run-{number}",)
    return Place(ResourceIdentity(f"resource-{number}", 1), frozenset(named), min(named))


def record(at: int, record_id: str, *, text: str = "text", run: str = "run-x") -> Record:
    """A head that was changed so many microseconds after the start."""
    content = Content(
        type="note", title=None, content=text, rationale=None, importance=0.5, tags=()
    )
    stamp = Stamp(START + timedelta(microseconds=at), lambda: record_id, "0" * 64)
    put = created(
        kind=Kind.MEMORY, agent_id="agent", run_id=run, content=content, facet=None, stamp=stamp
    )
    return put.record


def key(one: Record) -> Key:
    after = (one.current.create_time - START) // timedelta(microseconds=1)
    return -after, one.current.record_id


def search(held: Sequence[Record], after: Key | None, limit: int) -> SearchPage:
    """What a resource answers."""
    left = [one for one in sorted(held, key=key) if after is None or key(one) > after]
    return SearchPage(tuple(left[:limit]), more=len(left) > limit)


def walked(stores: Sequence[Sequence[Record]], limit: int) -> list[list[ProjectHit]]:
    """Return all pages."""
    places = [place(number) for number in range(len(stores))]
    pages: list[list[ProjectHit]] = []
    after: Key | None = None
    while True:
        found = [
            (where, search(held, after, limit)) for where, held in zip(places, stores, strict=True)
        ]
        page = merged_page(found, limit, full=True)
        pages.append(list(page.hits))
        if not page.more:
            return pages
        after = key(page.hits[-1].record)


STORES = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abcdef")), max_size=12, unique=True),
    min_size=1,
    max_size=4,
)


@given(stores=STORES, limit=st.integers(1, 9))
def test_any_stores(stores: list[list[tuple[int, str]]], limit: int) -> None:
    """004-69: all of them, in order, each once; equal keys on one page; no page too long."""
    held = [[record(at, name) for at, name in store] for store in stores]
    pages = walked(held, limit)
    found = [key(hit.record) for page in pages for hit in page]
    assert found == sorted(key(one) for store in held for one in store)
    for page in pages:
        keys = [key(hit.record) for hit in page]
        assert all(keys.count(one) == found.count(one) for one in keys)
        assert len(keys) <= limit or len({*keys}) == 1
    assert all(pages) or pages == [[]]


def test_nothing_is_told_beyond_what_was_looked_into() -> None:
    """004-69: what a resource did not give yet may come before what another one gave."""
    near = SearchPage((record(9, "a"), record(8, "a")), more=True)
    far = SearchPage((record(7, "b"), record(1, "b")), more=False)
    page = merged_page([(place(1), near), (place(2), far)], 2, full=False)
    assert [key(hit.record) for hit in page.hits] == [(-9, "a"), (-8, "a")]
    assert page.more
    short = merged_page([(place(1), near), (place(2), far)], 100, full=False)
    assert len(short.hits) == 2 and short.more


def test_one_resource_by_two_ids() -> None:
    """004-69: two provider ids of one resource reach one hit; two resources hold two."""
    page = SearchPage((record(5, "a", run="run-9"),), more=False)
    one, other = place(1, "run-2", "run-3"), place(1, "run-4", "run-9")
    (hit,) = merged_page([(one, page), (other, page)], 10, full=False).hits
    assert hit == ProjectHit(page.records[0], "run-9")
    elsewhere = merged_page([(one, page), (place(2), page)], 10, full=False)
    assert [hit.access_run_id for hit in elsewhere.hits] == ["run-2", "run-2"]


@pytest.mark.parametrize(
    ("runs", "wanted"), [(("run-b", "run-x"), "run-x"), (("run-b", "run-c"), "run-b")]
)
def test_access_run(runs: tuple[str, ...], wanted: str) -> None:
    """004-69: the run it was made in where that reaches the resource, else the first that does."""
    page = SearchPage((record(1, "a"),), more=False)
    (hit,) = merged_page([(place(1, *runs), page)], 1, full=False).hits
    assert hit.access_run_id == wanted


LARGE = "\U0001f308" * 40_000


def test_large_records_end_a_page() -> None:
    """004-69: over all resources together no page passes the reply, and none is lost."""
    stores = [[record(2 * n + odd, "a", text=LARGE) for n in range(20)] for odd in (0, 1)]
    pages = walked(stores, 100)
    assert [len(page) for page in pages] == [19, 19, 2]
    assert [key(hit.record)[0] for page in pages for hit in page] == list(range(-39, 1))


def test_copies_that_pass_the_reply_alone() -> None:
    """004-69: they cannot be parted, so they are refused in full, and shown as snippets."""
    page = SearchPage((record(1, "a", text=LARGE),), more=False)
    found = [(place(n), page) for n in range(20)]
    with pytest.raises(ReplyTooLargeError):
        merged_page(found, 100, full=True)
    assert len(merged_page(found, 3, full=False).hits) == 20
    before = (place(99), SearchPage((record(2, "b"),), more=False))
    page_before = merged_page([*found, before], 100, full=True)
    assert len(page_before.hits) == 1 and page_before.more
