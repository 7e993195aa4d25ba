"""The obligations of `ports.timers.Timers`, as tests. What fires them differs too much to be tested here."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone

import pytest

from interlock.model.errors import InvalidValueError
from interlock.ports.timers import Timer, TimerKind, Timers
from tests.conformance.manual_clock import START, ManualClock


def timer(name: str = "sla-gold", minutes: float = 5, n: int = 0) -> Timer:
    return Timer(name, START + timedelta(minutes=minutes), TimerKind.SLA, {"n": n})


class TimersSuite(ABC):
    """Subclass it as `class TestMine(TimersSuite)`."""

    @abstractmethod
    def open_timers(self, clock: ManualClock) -> AbstractContextManager[Timers]:
        """New timers, none armed, on that clock."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def timers(self, clock: ManualClock) -> Iterator[Timers]:
        with self.open_timers(clock) as timers:
            yield timers

    @pytest.mark.parametrize("kind", list(TimerKind))
    def test_an_armed_timer_is_there(self, timers: Timers, kind: TimerKind) -> None:
        armed = Timer("t", START + timedelta(hours=1), kind, {"nested": {"null": None, "list": [1, "2"]}, "ü": True})
        timers.arm(armed)
        assert timers.get("t") == armed
        assert timers.get("u") is None

    def test_arming_again_moves_it(self, timers: Timers) -> None:
        timers.arm(timer(minutes=5))
        timers.arm(timer("other"))
        timers.arm(timer(minutes=9, n=1))
        assert timers.get("sla-gold") == timer(minutes=9, n=1)
        assert timers.get("other") == timer("other")

    def test_arming_the_same_twice_is_no_error(self, timers: Timers) -> None:
        timers.arm(timer())
        timers.arm(timer())
        assert timers.get("sla-gold") == timer()

    def test_a_cancelled_timer_is_gone_and_can_be_armed_again(self, timers: Timers) -> None:
        timers.arm(timer())
        timers.arm(timer("other"))
        timers.cancel("sla-gold")
        assert timers.get("sla-gold") is None
        assert timers.get("other") == timer("other")
        timers.arm(timer(minutes=7))
        assert timers.get("sla-gold") == timer(minutes=7)

    def test_cancelling_an_unknown_name_is_no_error(self, timers: Timers) -> None:
        timers.cancel("never-armed")
        timers.arm(timer())
        timers.cancel("sla-gold")
        timers.cancel("sla-gold")
        assert timers.get("sla-gold") is None

    def test_an_instant_of_another_zone_is_the_same_instant(self, timers: Timers) -> None:
        east = timer().at.astimezone(timezone(timedelta(hours=9)))
        timers.arm(Timer("t", east, TimerKind.RETRY, {}))
        found = timers.get("t")
        assert found is not None
        assert found.at == timer().at

    @pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 64])
    def test_names_that_may_be_used(self, timers: Timers, name: str) -> None:
        timers.arm(timer(name))
        assert timers.get(name) == timer(name)

    @pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a#b", "a/b", "ü", "a\n"])
    def test_names_that_may_not(self, timers: Timers, name: str) -> None:
        with pytest.raises(InvalidValueError, match="timer name"):
            timers.arm(timer(name))
        assert timers.get("a") is None

    def test_an_instant_without_a_zone_is_refused(self, timers: Timers) -> None:
        with pytest.raises(InvalidValueError, match="time zone"):
            timers.arm(Timer("t", datetime(2026, 3, 2), TimerKind.SLA, {}))  # noqa: DTZ001
