"""The real clock. The only file of the program that reads it."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from interlock.model.errors import InvalidValueError
from interlock.ports.clock import Clock

# Who waits by a scaled clock looks again this soon, in real seconds: its speed may have changed meanwhile.
_LOOK_AGAIN: Final = 0.05


class SystemClock:
    """The time of the machine, aware, UTC, never backwards.

    When the machine's clock is set back, time goes on at half speed until the machine has caught up. Standing still
    instead would hold up every timer for as long as the correction was large, and a watchdog must not stop.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._latest = wall()
        self._measured = monotonic()

    def now(self) -> datetime:
        """The current instant."""
        with self._lock:
            wall, measured = self._wall(), self._monotonic()
            slow = self._latest + (measured - self._measured) // 2
            self._latest = latest = wall if wall > slow else slow
            self._measured = measured
        return datetime.fromtimestamp(latest / 1_000_000_000, UTC)


class ScaledClock:
    """Time that starts at a given instant and passes faster than the machine's: hours in seconds, for the demo.

    Everything that runs by it is real (threads, processes, files), so real delays grow with the speed: a job of half a
    second takes half an hour at 3600. The speed may be changed at any moment; time never jumps, nor goes backwards.
    """

    def __init__(
        self, start: datetime, speed: float = 1.0, *, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._speed = _checked(speed)
        self._since = start.astimezone(UTC)
        self._measured = monotonic()

    def now(self) -> datetime:
        """The current instant."""
        with self._lock:
            return self._now(self._monotonic())

    @property
    def speed(self) -> float:
        """How many seconds pass in one of the machine's."""
        with self._lock:
            return self._speed

    def set_speed(self, speed: float) -> None:
        """From now on, time passes so much faster than the machine's."""
        checked = _checked(speed)
        with self._lock:
            measured = self._monotonic()
            self._since, self._measured = self._now(measured), measured
            self._speed = checked

    def real_seconds(self, seconds: float) -> float:
        """How long to wait, on the machine's clock, before looking whether so much time has passed."""
        return min(seconds / self.speed, _LOOK_AGAIN)

    def _now(self, measured: int) -> datetime:
        return self._since + timedelta(seconds=(measured - self._measured) * self._speed / 1_000_000_000)


def _checked(speed: float) -> float:
    if not speed > 0:
        raise InvalidValueError(f"a clock cannot run at {speed} times the speed: give a number above 0")
    return speed


def real_seconds(clock: Clock, seconds: float) -> float:
    """How long a thread is to wait for `seconds` of a clock's time to pass; it looks at the clock again afterwards."""
    return clock.real_seconds(seconds) if isinstance(clock, ScaledClock) else seconds


def rate(clock: Clock) -> float:
    """How many seconds of a clock's time pass in one of the machine's."""
    return clock.speed if isinstance(clock, ScaledClock) else 1.0


def pause(seconds: float) -> None:
    """Hold this thread for a moment: between two tries of something that has no condition to wait on."""
    time.sleep(seconds)
