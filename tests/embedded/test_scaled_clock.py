"""ScaledClock: time that passes faster, at a speed that may change, and never jumps."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.embedded.clock import ScaledClock, SystemClock, real_seconds
from interlock.model.errors import InvalidValueError

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
SECOND = 1_000_000_000


class Machine:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.nanoseconds = 5 * SECOND

    def __call__(self) -> int:
        return self.nanoseconds

    def passes(self, seconds: float) -> None:
        self.nanoseconds += int(seconds * SECOND)


def test_time_passes_as_many_times_faster_as_told() -> None:
    machine = Machine()
    clock = ScaledClock(START, 600, monotonic=machine)
    assert clock.now() == START
    machine.passes(6)
    assert clock.now() == START + timedelta(hours=1)
    assert clock.now().tzinfo is UTC


def test_a_change_of_speed_counts_from_then_on() -> None:
    machine = Machine()
    clock = ScaledClock(START, 600, monotonic=machine)
    machine.passes(6)
    clock.set_speed(2)
    assert clock.now() == START + timedelta(hours=1)
    machine.passes(30)
    assert clock.now() == START + timedelta(hours=1, minutes=1)
    clock.set_speed(0.5)
    machine.passes(60)
    assert clock.now() == START + timedelta(hours=1, minutes=1, seconds=30)


def test_a_wait_is_shortened_by_the_speed_and_never_outlasts_a_change_of_it_by_long() -> None:
    clock = ScaledClock(START, 1000)
    assert real_seconds(clock, 10.0) == pytest.approx(0.01)
    assert real_seconds(clock, 3600.0) == pytest.approx(0.05)
    assert real_seconds(clock, -10.0) < 0


def test_by_the_clock_of_the_machine_a_second_is_a_second() -> None:
    assert real_seconds(SystemClock(), 12.5) == 12.5


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_time_can_not_stand_still(speed: float) -> None:
    with pytest.raises(InvalidValueError, match="above 0"):
        ScaledClock(START, speed)
    clock = ScaledClock(START)
    with pytest.raises(InvalidValueError, match="above 0"):
        clock.set_speed(speed)
    assert clock.speed == 1.0
