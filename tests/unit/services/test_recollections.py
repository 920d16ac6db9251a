"""Recalling, between its two trips and beside the loop."""

import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from broker.domain.memories import DedupInput, DedupMode, FilterInput
from broker.retrieval.ranking import Choice, Order, in_order
from broker.services import recollections
from broker.services.turns import LONG
from providers.interface import IMemoryProvider
from providers.model import MemoryFacet, Record, Sensitivity, State, Trust
from providers.recall import Recalled, RecallRequest
from tests.unit.services.memories import Desk

TEA: Final = "Mira drinks green tea every morning before work"
HOME: Final = FilterInput(
    namespaces=("home",), subject="tea", sensitivity_ceiling=Sensitivity.INTERNAL
)


class Interrupted:
    """A provider during whose recall something else happens, once it has found."""

    def __init__(self, provider: IMemoryProvider, act: Callable[[], Awaitable[object]]) -> None:
        """Take what answers, and what happens."""
        self._provider = provider
        self._act = act

    def __getattr__(self, name: str) -> Any:
        """Answer all else as the provider does."""
        return getattr(self._provider, name)

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        """Find, and let it happen."""
        found = await self._provider.recall(request, timeout=timeout)
        await self._act()
        return found


async def desk_with(act: Callable[[Desk, Record], Awaitable[object]]) -> Desk:
    """Return a desk with a memory that something happens to during a recall."""
    desk = Desk()
    done = await desk.remember(TEA, namespace="home", subject="tea")
    record = done.remembered[0].record
    interrupted = Interrupted(desk.provider, lambda: act(desk, record))
    desk.world.provider = interrupted  # type: ignore[assignment]
    return desk


def becomes(**changes: Any) -> Callable[[Desk, Record], Awaitable[None]]:
    """Return what changes a head in its store; names of a facet's fields change its facet."""

    async def act(desk: Desk, record: Record) -> None:
        now = record.current
        facet = {name: changes[name] for name in changes if hasattr(MemoryFacet, name)}
        other = {name: changes[name] for name in changes if name not in facet}
        assert now.facet is not None
        head = replace(record, current=replace(now, facet=replace(now.facet, **facet), **other))
        (shelf,) = desk.store.shelves.values()
        shelf.heads[now.record_id] = head

    return act


@pytest.mark.parametrize(
    "changes",
    [
        {"sensitivity": Sensitivity.RESTRICTED},
        {"namespace": "work"},
        {"subject": "coffee"},
        {"trust": Trust.REJECTED},
        {"state": State.ARCHIVED},
        {"state": State.SUPERSEDED},
        {"agent_id": "another"},
    ],
    ids=lambda changes: "-".join(changes.values()).lower(),
)
async def test_what_a_memory_becomes_between_the_trips_is_judged(changes: dict[str, Any]) -> None:
    """000-42, 003-12: a head that the filter forbids is not told, whatever was found."""
    desk = await desk_with(becomes(**changes))
    assert await desk.texts("tea", filter=HOME) == []


async def test_what_is_forgotten_between_the_trips_is_not_told() -> None:
    """002-20: Forget removes a memory from a recall that found it before."""
    desk = await desk_with(lambda desk, record: desk.forget(record.current.record_id))
    assert await desk.texts("tea") == []


async def test_what_may_still_be_told_is_told() -> None:
    """What was superseded between the trips was in use at the time that is asked about."""
    desk = await desk_with(becomes(state=State.SUPERSEDED))
    assert await desk.texts("tea", as_of=desk.world.now()) == [TEA]
    desk = await desk_with(becomes(subject="tea"))
    assert await desk.texts("tea", filter=HOME) == [TEA]


async def test_a_filter_for_a_subject_gives_what_is_new_first() -> None:
    """002-26: near duplicates use up neither the limit nor the places of their subject."""
    desk = Desk()
    texts = [f"tea tea the green tea of Mira is in the upper drawer, box {n}" for n in range(5)]
    for each in [*texts, "Nobody else drinks tea at all"]:
        await desk.remember(each, dedup=DedupInput(mode=DedupMode.DECLARED), subject="tea")
    for given in (FilterInput(), FilterInput(subject="tea")):
        found = await desk.texts("green tea", limit=5, filter=given)
        assert found[1] == "Nobody else drinks tea at all"
        assert len(found) == (5 if given.subject else 3)


@pytest.fixture
def aside(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Tell of each memory that is chosen or not: its text, and whether it was read in a thread."""
    read: list[tuple[str, bool]] = []
    loop = threading.get_ident()

    class Watched(Choice):
        def take(self, records: Iterable[Record]) -> bool:
            listed = list(records)
            is_aside = threading.get_ident() != loop
            read.extend((each.current.content.content, is_aside) for each in listed)
            return super().take(listed)

    monkeypatch.setattr(recollections, "Choice", Watched)
    return read


@pytest.mark.parametrize("more", [0, 1], ids=["short", "long"])
async def test_long_texts_are_read_aside(aside: list[tuple[str, bool]], more: int) -> None:
    """004-13: other calls go on while long texts are compared."""
    desk = Desk()
    await desk.remember("tea".ljust(LONG + more, "."))
    assert len(await desk.texts("tea")) == 1
    assert [is_aside for _, is_aside in aside] == [more > 0]


async def test_only_what_the_first_texts_leave_open_is_read_aside(
    aside: list[tuple[str, bool]],
) -> None:
    """004-13: of many short texts the first are enough, and no thread is asked for the others."""
    desk = Desk()
    size = LONG // 8
    texts = [f"tea {word} ".ljust(size, ".") for word in "abcdefghij"]
    for each in texts:
        await desk.remember(each, dedup=DedupInput(mode=DedupMode.DECLARED))
    assert len(await desk.texts("tea", limit=8)) == 8
    assert [is_aside for _, is_aside in aside] == [False] * 8
    aside.clear()
    assert len(await desk.texts("tea", limit=9)) == 9
    assert [is_aside for _, is_aside in aside] == [False] * 8 + [True] * 2


async def test_long_names_are_read_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """004-13: titles and subjects are read of all that was found."""
    threads: list[int] = []

    def watched(*args: Any, **named: Any) -> Order:
        threads.append(threading.get_ident())
        return in_order(*args, **named)

    monkeypatch.setattr(recollections, "in_order", watched)
    monkeypatch.setattr(recollections, "_named", lambda _: LONG // 2 + 1)
    desk = Desk()
    for each in ("green tea", "black coffee or tea"):
        await desk.remember(each)
        await desk.texts("tea")
    assert [each != threading.get_ident() for each in threads] == [False, True]
