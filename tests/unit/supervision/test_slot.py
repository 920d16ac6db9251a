"""When a child is started again, when it counts as serving, and when it is killed for silence."""

import signal
from typing import Any

import pytest

from broker.supervision import slot as module
from broker.supervision.child import Launch
from broker.supervision.slot import (
    DELAY_MAX_S,
    DELAY_MIN_S,
    HUNG_S,
    STALE_S,
    STEADY_S,
    Slot,
    delay_s,
)
from broker.telemetry.logs import logger

LAUNCH = Launch("none", {})


class FakeChild:
    """A child that says what a test puts in."""

    can_start = True

    def __init__(self, _: Launch) -> None:
        if not self.can_start:
            raise OSError("no more processes")
        self.pid = 1
        self.saying: list[dict[str, Any]] = []
        self.signals: list[int] = []

    def heard(self) -> tuple[list[dict[str, Any]], bool]:
        said, self.saying = self.saying, []
        return said, True

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def close(self) -> None:
        pass


@pytest.fixture
def slot(monkeypatch: pytest.MonkeyPatch) -> Slot:
    monkeypatch.setattr(module, "Child", FakeChild)
    return Slot(0, LAUNCH, logger("test"))


def started(slot: Slot, now: float, *said: dict[str, Any]) -> Any:
    """Start a child that says something at once."""
    child: Any = slot.start(now)
    child.saying.extend(said)
    slot.listen(now)
    return child


SERVES = {"serves": True}


def test_delays_double_up_to_a_bound() -> None:
    delays = [delay_s(failures) for failures in range(1, 12)]
    assert delays[:4] == [DELAY_MIN_S * factor for factor in (1, 2, 4, 8)]
    assert delays[-1] == DELAY_MAX_S and delays == sorted(delays)
    assert delay_s(10_000) == DELAY_MAX_S


def test_each_end_makes_the_next_start_later_until_one_lasted(slot: Slot) -> None:
    now = 100.0
    for failures in (1, 2, 3):
        started(slot, now, SERVES)
        slot.bury(now, 1)
        assert not slot.is_due(now + delay_s(failures) - 0.01)
        now += delay_s(failures)
        assert slot.is_due(now)
    started(slot, now, SERVES)
    now += STEADY_S
    slot.bury(now, -9)
    assert slot.is_due(now + DELAY_MIN_S)


def test_one_that_was_renewed_is_followed_at_once(slot: Slot) -> None:
    started(slot, 1.0, SERVES)
    slot.bury(1.0, 1)
    for now in (10.0, 11.0, 12.0):
        started(slot, now, SERVES)
        slot.bury(now, 0)
        assert slot.is_due(now)
    started(slot, 13.0)
    slot.bury(13.0, 0)
    assert not slot.is_due(13.0), "one that ended before it served did not do what it was for"


def test_ends_before_serving_are_counted_in_a_row(slot: Slot) -> None:
    for _ in range(3):
        started(slot, 0.0)
        slot.bury(0.0, 1)
    assert (slot.fruitless, slot.has_served) == (3, False)
    started(slot, 0.0, SERVES)
    assert (slot.fruitless, slot.has_served) == (0, True)
    slot.bury(0.0, 1)
    assert slot.fruitless == 0


def test_what_a_child_told_counts_for_a_while_and_not_beyond_its_end(slot: Slot) -> None:
    started(slot, 0.0, {"statuses": {"": True}}, SERVES)
    assert slot.serves(STALE_S - 0.01) and slot.statuses(STALE_S - 0.01) == {"": True}
    assert not slot.serves(STALE_S) and slot.statuses(STALE_S) == {}
    slot.bury(0.0, 1)
    assert not slot.serves(0.0) and slot.statuses(0.0) == {}


def test_a_child_that_does_not_serve_yet_has_no_say(slot: Slot) -> None:
    started(slot, 0.0, {"statuses": {"": True}})
    assert slot.statuses(0.0) == {}


def test_a_silent_child_is_killed_unless_it_was_the_listener_who_was_away(slot: Slot) -> None:
    child = started(slot, 0.0, SERVES)
    slot.end_if_hung(HUNG_S)
    assert child.signals == []
    slot.pardon(HUNG_S + 1)
    slot.end_if_hung(HUNG_S + 2)
    assert child.signals == []
    slot.end_if_hung(2 * HUNG_S + 1.01)
    assert child.signals == [signal.SIGKILL]


def test_a_refusal_is_kept_until_the_next_start(slot: Slot) -> None:
    started(slot, 0.0, {"refused": "no marker"})
    slot.bury(0.0, 78)
    assert slot.refusal == "no marker" and slot.code == 78
    started(slot, 1.0)
    assert slot.refusal is None


def test_a_machine_without_room_for_a_process_is_asked_again_later(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeChild, "can_start", False)
    assert slot.start(0.0) is None
    assert slot.fruitless == 1
    assert not slot.is_due(DELAY_MIN_S - 0.01) and slot.is_due(DELAY_MIN_S)
