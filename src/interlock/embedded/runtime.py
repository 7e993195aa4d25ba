"""The embedded controller in real time: one process, a handful of threads, one SQLite file.

Changes are routed, events published and executions run as fibers on the writer thread (see `fibers`); the timers and
the calendar, the probes, the watchdog and the sweeper have threads of their own. A target that takes long holds a
thread that does nothing else, never a stream, a commit or a timer.
"""

import threading
import time
from datetime import datetime, timedelta
from typing import Final

import msgspec

from interlock.embedded.clock import real_seconds
from interlock.embedded.engine import Engine
from interlock.embedded.timing.probe_threads import ProbeThreads
from interlock.loops import OVERDUE_SECONDS

# Executions under way at once: they wait for commits most of the time, and what waits together is flushed together.
WORKERS: Final = 128
_LONGEST_WAIT: Final = 1.0
_SWEEP_EVERY: Final = timedelta(seconds=60)
_LONGEST_SLEEP: Final = 5.0
_WATCHDOG_YIELD: Final = 0.001
_ROUTED_WITHIN: Final = 30.0
_LOOK_AGAIN: Final = 0.05
_FEW_CHANGES: Final = 100
# A step of these grows with what is due: the ticks of a long night, a pass over every pipeline, a week to be swept.
_MANY_DUE_SECONDS: Final = 6 * OVERDUE_SECONDS


class WatchdogState(msgspec.Struct, frozen=True):
    """The watchdog's passes of this process: the latest, its failed checks, and when the next is due."""

    last_at: datetime | None = None
    next_at: datetime | None = None
    failed_checks: tuple[str, ...] = ()


class Runtime:
    """Drives an engine until it is stopped."""

    def __init__(
        self, engine: Engine, *, workers: int = WORKERS, watchdog_every: timedelta = timedelta(minutes=5)
    ) -> None:
        self.engine = engine
        self._workers = workers
        self._watchdog_every = watchdog_every
        self._stopping = threading.Event()
        self._probes = ProbeThreads(engine.control, engine.probes, engine.database.loops)
        add = engine.database.loops.add
        self._clock = add("clock", self._bring_due, overdue=_MANY_DUE_SECONDS)
        self._watchdog = add("watchdog", self._watch_when_due, overdue=_MANY_DUE_SECONDS)
        self._sweeper = add("sweeper", self._sweep_when_due, overdue=_MANY_DUE_SECONDS)
        self._next_watch: datetime | None = None
        self._next_sweep: datetime | None = None
        self.watchdog = WatchdogState()
        self._routed_by = 0.0

    def start(self) -> None:
        """Start everything; returns at once."""
        self.engine.prepare()
        self._routed_by = time.monotonic() + _ROUTED_WITHIN
        self.engine.timers.on_armed(self._clock.ring)
        self.engine.executions.start_workers(self._workers)
        self.engine.router.start()
        self.engine.sink.start()
        self._clock.start()
        self._watchdog.start()
        self._sweeper.start()
        if self.engine.control.probes is not None:
            self._probes.start()

    def stop(self) -> None:
        """Stop taking new work, finish what is in hand, leave the rest to the next start. Nothing is lost."""
        self._stopping.set()
        for loop in (self._clock, self._watchdog, self._sweeper):
            loop.end()
        self._probes.stop()
        for loop in (self._clock, self._watchdog, self._sweeper):
            loop.stop()
        self.engine.router.stop()
        self.engine.executions.stop()
        self.engine.sink.stop()

    # ------------------------------------------------------------------------------------------- timers and ticks

    def _bring_due(self) -> float:
        now = self.engine.clock.now()
        self.engine.calendar.deliver_due(now)
        while self.engine.fire_timers(now):
            pass
        return self._until_next(now)

    def _until_next(self, now: datetime) -> float:
        """Seconds to the next instant; never long, so that a clock that was set is noticed."""
        instants = [at for at in (self.engine.calendar.next_at(), self.engine.timers.next_at()) if at is not None]
        if not instants:
            return _LONGEST_WAIT
        left = real_seconds(self.engine.clock, (min(instants) - now).total_seconds())
        return min(max(left, 0.0), _LONGEST_WAIT)

    # --------------------------------------------------------------------------------------- watchdog and sweeper

    def _watch_when_due(self) -> float:
        now = self.engine.clock.now()
        if self._next_watch is None and self._is_behind():
            return _LOOK_AGAIN
        if self._next_watch is None or now >= self._next_watch:
            next_watch = now + self._watchdog_every
            self.watch(next_watch, skip_quiet=True)
            self._next_watch = next_watch
        return self._until(self._next_watch)

    def _until(self, at: datetime) -> float:
        """Seconds to that instant; never long, so that a clock that was set is noticed."""
        left = real_seconds(self.engine.clock, (at - self.engine.clock.now()).total_seconds())
        return min(max(left, 0.0), _LONGEST_SLEEP)

    def _is_behind(self) -> bool:
        """What the start has written is routed first, and looked at only then; but it is not waited for forever."""
        return time.monotonic() < self._routed_by and self.engine.router.lag() > _FEW_CHANGES

    def watch(self, next_at: datetime | None = None, *, skip_quiet: bool = False) -> list[str]:
        """A pass of the watchdog; the checks that failed. Asked for by a person, it looks at every pipeline."""
        failed = self.engine.watch(skip_quiet=skip_quiet, pause=self._between_pipelines)
        now = self.engine.clock.now()
        self.watchdog = WatchdogState(now, next_at or self.watchdog.next_at, tuple(failed))
        return failed

    def _between_pipelines(self) -> bool:
        """Give way: thousands of pipelines in one go would hold the interpreter for seconds. True when it is to end."""
        return self._stopping.wait(_WATCHDOG_YIELD)

    def _sweep_when_due(self) -> float:
        now = self.engine.clock.now()
        if self._next_sweep is not None and now >= self._next_sweep:
            self.sweep()
            self._next_sweep = None
        # Not at the start, which has enough to do.
        self._next_sweep = self._next_sweep or now + _SWEEP_EVERY
        return self._until(self._next_sweep)

    def sweep(self) -> None:
        """Remove all that may go, a little at a time, so that every other commit has its turn."""
        while not self._stopping.is_set() and self.engine.sweep():
            pass
