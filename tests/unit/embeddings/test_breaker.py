"""The breaker, step by step, on a clock of its own (000-41)."""

import pytest

from broker.embeddings.breaker import Breaker, Ended

ANSWERED, FAILED, ABANDONED = Ended.ANSWERED, Ended.FAILED, Ended.ABANDONED


class World:
    """A breaker and its clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.breaker = Breaker(lambda: self.now)

    def request(self, ended: Ended) -> bool:
        """Make one request, if it may be; say whether it might."""
        admitted = self.breaker.admit()
        if admitted is not None:
            self.breaker.conclude(admitted, ended)
        return admitted is not None

    def opened(self) -> "World":
        """Fail twice."""
        assert self.request(FAILED) and self.request(FAILED)
        return self


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("before", "is_open"),
    [
        ([], False),
        ([FAILED], False),
        ([FAILED, FAILED], True),
        ([FAILED, ANSWERED, FAILED], False),
        ([FAILED, ANSWERED, FAILED, FAILED], True),
        ([ANSWERED] * 5, False),
        ([FAILED, ABANDONED, FAILED], True),
        ([ABANDONED] * 5, False),
    ],
)
def test_two_failures_in_a_row_open_it(world: World, before: list[Ended], is_open: bool) -> None:
    """000-41: an answer begins the count anew; what was given up does not count."""
    for ended in before:
        assert world.request(ended)
    assert world.request(ANSWERED) is not is_open


@pytest.mark.parametrize(("seconds", "is_open"), [(0.0, True), (299.999, True), (300.0, False)])
def test_it_stays_open_for_300_seconds(world: World, seconds: float, is_open: bool) -> None:
    """000-41: not a moment less."""
    world.opened()
    world.now += seconds
    assert (world.breaker.admit() is None) is is_open


def test_half_open_lets_one_through(world: World) -> None:
    """000-41: the others wait for what comes of it."""
    world.opened().now += 300
    trying = world.breaker.admit()
    assert trying is not None
    assert [world.breaker.admit() for _ in range(3)] == [None] * 3
    world.breaker.conclude(trying, ANSWERED)
    assert world.breaker.admit() is not None
    assert world.breaker.admit() is not None


def test_a_failure_when_half_open_opens_it_again(world: World) -> None:
    """000-41: one is enough then, and the 300 seconds begin anew."""
    world.opened().now += 300
    assert world.request(FAILED)
    world.now += 299.999
    assert not world.request(ANSWERED)
    world.now += 0.001
    assert world.request(ANSWERED)


def test_what_is_given_up_when_half_open_leaves_it_to_the_next(world: World) -> None:
    """000-41: the one request that may go is not lost with its caller."""
    world.opened().now += 300
    assert world.request(ABANDONED)
    assert world.request(ANSWERED)
    assert world.request(FAILED), "closed: one failure does not open it"
    assert world.request(ANSWERED)


@pytest.mark.parametrize("ended", [ANSWERED, FAILED])
def test_what_began_before_it_opened_counts_neither_way(world: World, ended: Ended) -> None:
    """000-41: a late answer does not close it, a late failure does not keep it open for longer."""
    late = world.breaker.admit()
    world.opened()
    world.now += 299
    assert late is not None
    world.breaker.conclude(late, ended)
    assert world.breaker.admit() is None
    world.now += 1
    assert world.breaker.admit() is not None


def test_a_closed_breaker_counts_from_nothing(world: World) -> None:
    """000-41: after it closed, two failures are needed again."""
    world.opened().now += 300
    assert world.request(ANSWERED)
    assert world.request(FAILED)
    assert world.request(FAILED)
    assert not world.request(ANSWERED)
