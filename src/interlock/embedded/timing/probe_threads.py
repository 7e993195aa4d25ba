"""Looks in real time: each on a thread of its own, so many at once, and none for longer than its timeout.

A look that hangs cannot be ended from outside: when its time is over it has failed, whatever its thread does, and the
thread counts no more. A probe whose last look hung is asked again only once that thread has come back, and probes that
do not end in time have at most half of the places: they delay each other, and nobody else.
"""

import threading
import time
from datetime import timedelta
from typing import Any, Final

from interlock.control.context import Control
from interlock.control.probing import Claim
from interlock.embedded.clock import real_seconds
from interlock.embedded.timing.probe_clock import ProbeClock, ProbeEntry, finish
from interlock.logs import get_logger
from interlock.loops import OVERDUE_SECONDS, Loops
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import ProbeError
from interlock.ports.probes import Prober, ProbeRequest

_log = get_logger(__name__)

AT_ONCE: Final = 32
_LONGEST_WAIT: Final = 1.0
_PLACE_AGAIN: Final = timedelta(seconds=1)
# A kind of probe that keeps its timeout says so better than we can.
_LENIENCE: Final = 0.5


class _Look:
    """A look under way. `over` is set once its end was recorded, or is being recorded, by whoever came first."""

    __slots__ = ("claim", "deadline", "entry", "over", "thread")

    def __init__(self, entry: ProbeEntry, claim: Claim, deadline: float) -> None:
        self.entry = entry
        self.claim = claim
        self.deadline = deadline
        self.over = False
        self.thread: threading.Thread | None = None

    @property
    def name(self) -> tuple[str, str]:
        return self.entry.pipeline, self.claim.state.key


class ProbeThreads:
    """Takes the looks that are due, until it is stopped."""

    def __init__(
        self, control: Control, clock: ProbeClock, loops: Loops | None = None, *, at_once: int = AT_ONCE
    ) -> None:
        self._control = control
        self._clock = clock
        self._at_once = at_once
        self._lock = threading.Lock()
        self._stopping = False
        self._looks: list[_Look] = []
        self._hanging: dict[tuple[str, str], threading.Thread] = {}
        self._loop = (loops or Loops()).add("probes", self._look_around, overdue=OVERDUE_SECONDS)
        clock.on_changed(self._loop.ring)

    def stop(self) -> None:
        """Take no further look. Those under way are dropped: they are due again in an interval."""
        self._stopping = True
        self._loop.stop()

    def start(self) -> None:
        """Take the looks that are due from now on, until `stop`."""
        self._loop.start()

    def _look_around(self) -> float:
        self._give_up_late()
        self._take_due()
        return self._until_next()

    def _until_next(self) -> float:
        """Seconds to the next look or deadline; never long, so that a clock that was set is noticed."""
        waits = [_LONGEST_WAIT]
        with self._lock:
            waits += [look.deadline - time.monotonic() for look in self._looks]
            full = len(self._looks) >= self._at_once
        at = self._clock.next_at()
        if at is not None and not full:
            waits.append(real_seconds(self._control.clock, (at - self._control.now()).total_seconds()))
        return max(min(waits), 0.0)

    # -------------------------------------------------------------------------------------------------------- taking

    def _take_due(self) -> None:
        while not self._stopping and self._places() > 0:
            entry = self._clock.take(self._control.now())
            if entry is None:
                return
            if entry.slow and self._slow_places() <= 0:
                self._clock.put_back(entry, self._control.now() + _PLACE_AGAIN)
                continue
            claim = self._clock.claim(entry)
            if claim is not None:
                self._begin(entry, claim)
                # It may look for more than one period: claiming says whether, and when next.
                self._clock.put_back(entry, self._control.now())

    def _places(self) -> int:
        with self._lock:
            return self._at_once - len(self._looks)

    def _slow_places(self) -> int:
        with self._lock:
            return self._at_once // 2 - sum(look.entry.slow for look in self._looks)

    def _begin(self, entry: ProbeEntry, claim: Claim) -> None:
        # Of the machine's time, also where ours goes faster: what is asked does not.
        look = _Look(entry, claim, time.monotonic() + claim.request.timeout.total_seconds() + _LENIENCE)
        hanging = self._hanging.get(look.name)
        if hanging is not None and hanging.is_alive():
            finish(self._control, claim, ProbeError("an earlier look has not come back yet"))
            return
        self._hanging.pop(look.name, None)
        name = f"interlock-probe-{entry.pipeline}-{entry.key}"
        look.thread = threading.Thread(target=self._look, args=(look,), name=name, daemon=True)
        with self._lock:
            self._looks.append(look)
        look.thread.start()

    def _look(self, look: _Look) -> None:
        result = self._answer(look.claim.request)
        if self._ends(look):
            look.entry.slow = False
            self._record(look, result)
        self._loop.ring()

    def _answer(self, request: ProbeRequest) -> dict[str, Any] | ProbeError:
        prober = self._control.probes
        if prober is None:
            return ProbeError("there is nobody to ask")
        try:
            return prober.look(request)
        except ProbeError as error:
            return error
        except BaseException as error:  # noqa: BLE001 - whatever it raises, it has failed
            return ProbeError(f"{type(error).__name__}: {error}")

    # -------------------------------------------------------------------------------------------------------- ending

    def _ends(self, look: _Look) -> bool:
        """Are we the first to say how it ended? Frees its place."""
        with self._lock:
            if look.over or self._stopping:
                return False
            look.over = True
            self._looks.remove(look)
            return True

    def _give_up_late(self) -> None:
        with self._lock:
            late = [look for look in self._looks if look.deadline <= time.monotonic()]
        for look in late:
            if self._ends(look):
                look.entry.slow = True
                if look.thread is not None:
                    self._hanging[look.name] = look.thread
                self._record(look, ProbeError(f"it had not ended after {in_words(look.claim.request.timeout)}"))

    def _record(self, look: _Look, result: dict[str, Any] | ProbeError) -> None:
        try:
            finish(self._control, look.claim, result)
        except Exception as error:  # noqa: BLE001 - the record says when it began, and it is due again in an interval
            _log.error(
                "a look could not be recorded", pipeline=look.entry.pipeline, probe=look.name[1], error=str(error)
            )


def look_once(prober: Prober, request: ProbeRequest) -> dict[str, Any]:
    """One look that somebody waits for; raises ProbeError, also when it does not end in time."""
    results: list[dict[str, Any] | ProbeError] = []

    def look() -> None:
        try:
            results.append(prober.look(request))
        except ProbeError as error:
            results.append(error)
        except BaseException as error:  # noqa: BLE001 - whatever it raises, it has failed
            results.append(ProbeError(f"{type(error).__name__}: {error}"))

    thread = threading.Thread(target=look, name="interlock-probe-by-hand", daemon=True)
    thread.start()
    thread.join(request.timeout.total_seconds() + _LENIENCE)
    result = results[0] if results else ProbeError(f"it had not ended after {in_words(request.timeout)}")
    if isinstance(result, ProbeError):
        raise result
    return result


def in_words(length: timedelta) -> str:
    """`30s`."""
    return format_duration(Duration(seconds=length.total_seconds()))
