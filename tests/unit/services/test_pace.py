"""How much is worked on in one turn of the event loop (004-69)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from broker.authority.checks import OwnerAuthority
from broker.authority.selection import SelectionReader
from broker.domain.authority import WHOLE_PROJECT, RunSelection
from broker.domain.pace import PIECE, Pace
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.unit.authority.test_runs import RunsOwner, first_of, names
from tests.unit.services.test_project_search import Surroundings, pin


class Turns:
    """Numbers the turns of the loop, and counts what is done in each."""

    def __init__(self) -> None:
        self.number = 0
        self.done: Counter[int] = Counter()

    def note(self, *_: object) -> None:
        self.done[self.number] += 1

    async def count(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)


@pytest.fixture
async def turns() -> AsyncIterator[Turns]:
    given = Turns()
    task = asyncio.ensure_future(given.count())
    await asyncio.sleep(0)
    yield given
    task.cancel()


async def test_callers_share_turns(turns: Turns) -> None:
    """004-69: ten at once do no more in a turn than one; a short one ends before the long ones."""
    pace, ended = Pace(), list[int]()

    async def work(size: int) -> None:
        assert len(await pace.each(turns.note, range(size))) == size
        ended.append(size)

    await asyncio.gather(*(work(size) for size in (*[1_000] * 9, 60)))
    assert max(turns.done.values()) <= PIECE
    assert sum(turns.done.values()) == 9_060
    assert ended[0] == 60


async def test_what_fails_frees_the_turn() -> None:
    """004-69: whoever fails or leaves holds nobody up."""
    pace = Pace()
    with pytest.raises(ZeroDivisionError):
        await pace.each(lambda number: 1 // number, [1, 0])
    left = asyncio.ensure_future(pace.each(str, range(1_000)))
    await asyncio.sleep(0)
    left.cancel()
    assert await pace.each(str, [1]) == ["1"]
    assert left.cancelled()


async def test_selections_of_10000_runs(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """004-69: four questions open, and few selections read in a turn; equal ones share parts."""
    read = SelectionReader.read

    def noted(self: SelectionReader, entry: owners.RunSelectionEntry) -> object:
        turns.note()
        return read(self, entry)

    monkeypatch.setattr(SelectionReader, "read", noted)
    authority, first = await first_of(RunsOwner())
    assert isinstance(authority, OwnerAuthority)
    found = await authority.check_runs(first, WHOLE_PROJECT, names(10_000))
    await authority.recheck_runs(first, WHOLE_PROJECT, found)
    assert sum(turns.done.values()) == 20_000
    assert max(turns.done.values()) <= PIECE
    assert list(found) == names(10_000)
    said = [one for one in found.values() if isinstance(one, RunSelection)]
    assert [one.run_id for one in said] == names(10_000)
    assert len({id(one.memory) for one in said}) == 1


async def test_sixteen_searches_at_once(turns: Turns) -> None:
    """004-69: one of a tenant's looks at 2,000 runs; the others have not read a pin yet."""
    around = Surroundings(pins=[pin(name) for name in names(2_000)])
    judged = around.bound

    def noted(*given: object) -> object:
        turns.note()
        return judged(*given)  # type: ignore[arg-type]

    around.bound = noted  # type: ignore[method-assign, assignment]
    await asyncio.gather(*(around.search() for _ in range(16)))
    steps = [each for each in around.events if not each.startswith(("bound", "check", "count"))]
    alone = ["pins", "runs 2000", "verify run-00000", "search run-00000", "again 2000"]
    assert steps == alone * 16
    assert max(turns.done.values()) <= PIECE
