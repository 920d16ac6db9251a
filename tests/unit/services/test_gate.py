"""How few calls look at many runs at the same time, and who comes next (004-69)."""

import asyncio

import pytest

from broker.domain.call import Call
from broker.domain.errors import DeadlineExceededError
from broker.services.gate import Gate
from tests.fixtures.owner_answers import caller


class Visits:
    """Calls that stay inside until they are let go."""

    def __init__(self) -> None:
        self.gate = Gate(places=2, each=1)
        self.inside: list[str] = []
        self.entered: list[str] = []
        self.leave: dict[str, asyncio.Event] = {}

    def start(self, name: str, seconds: float = 60.0) -> "asyncio.Task[None]":
        self.leave[name] = asyncio.Event()
        return asyncio.ensure_future(self._visit(name, seconds))

    async def _visit(self, name: str, seconds: float) -> None:
        call = Call(caller(), name, asyncio.get_running_loop().time() + seconds)
        async with self.gate.place(name[0], call):
            self.inside.append(name)
            self.entered.append(name)
            try:
                await self.leave[name].wait()
            finally:
                self.inside.remove(name)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_one_place_for_each_and_turns() -> None:
    """004-69: one tenant holds one place of two; each that waits comes before one's next call."""
    visits = Visits()
    order = ["a1", "b1", "a2", "b2", "c1", "a3"]
    names = ["a1", "a2", "a3", "b1", "b2", "c1"]
    tasks = [visits.start(name) for name in names]
    await settle()
    assert visits.inside == ["a1", "b1"]
    for name in order:
        assert len(visits.inside) <= 2 and len({one[0] for one in visits.inside}) <= 2
        visits.leave[name].set()
        await settle()
    await asyncio.gather(*tasks)
    assert visits.entered == order


async def test_those_who_leave_the_line() -> None:
    """004-69: a cancelled call and one without time leave at once, and keep no place."""
    visits = Visits()
    first, gone, late, last = (
        visits.start("a1"),
        visits.start("a2"),
        visits.start("a3", seconds=0.0),
        visits.start("a4"),
    )
    await settle()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    with pytest.raises(DeadlineExceededError):
        await late
    visits.leave["a1"].set()
    await first
    await settle()
    assert visits.inside == ["a4"]
    visits.leave["a4"].set()
    await last
    await _is_free(visits)


@pytest.mark.parametrize("granted_first", [True, False])
async def test_granted_and_cancelled_in_one_moment(granted_first: bool) -> None:
    """004-69: the place is passed on, whichever came first."""
    visits = Visits()
    first, second, third = (visits.start(name) for name in ("a1", "a2", "a3"))
    await settle()
    if granted_first:
        visits.leave["a1"].set()
        await asyncio.sleep(0)  # the first one leaves, and the second one has not run yet
        assert visits.inside == []
        second.cancel()
    else:
        second.cancel()
        first.cancel()
    visits.leave["a3"].set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert visits.entered[-1] == "a3"
    await _is_free(visits)


async def _is_free(visits: Visits) -> None:
    tasks = [visits.start(name) for name in ("x", "y")]
    await settle()
    assert visits.inside == ["x", "y"]
    for name in ("x", "y"):
        visits.leave[name].set()
    await asyncio.gather(*tasks)
