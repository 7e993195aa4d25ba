"""The embedded controller in real time: one process, a handful of threads, one SQLite file.

Changes are routed, events published and executions run as fibers on the writer thread (see `fibers`); the timers and
the calendar, the probes, the watchdog and the sweeper have threads of their own. A target that takes long holds a
thread that does nothing else, never a stream, a commit or a timer.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from interlock.embedded.clock import real_seconds
from interlock.embedded.engine import Engine
from interlock.embedded.timing.probe_threads import ProbeThreads
from interlock.logs import get_logger

_log = get_logger(__name__)

# Executions under way at once: they wait for commits most of the time, and what waits together is flushed together.
WORKERS: Final = 128
_LONGEST_WAIT: Final = 1.0
_SWEEP_EVERY: Final = timedelta(seconds=60)
_WATCHDOG_YIELD: Final = 0.001


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
        self._alarm = threading.Condition()
        self._rung = False
        self._threads: list[threading.Thread] = []
        self._probes = ProbeThreads(engine.control, engine.probes)
        self.watchdog = WatchdogState()

    def start(self) -> None:
        """Start everything; returns at once."""
        self.engine.prepare()
        self.engine.timers.on_armed(self._ring)
        self.engine.executions.start_workers(self._workers)
        self.engine.router.start()
        self.engine.sink.start()
        self._spawn("clock", self._run_clock)
        self._spawn("watchdog", self._run_watchdog)
        if self.engine.control.probes is not None:
            self._spawn("probes", self._probes.run)

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=f"interlock-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Stop taking new work, finish what is in hand, leave the rest to the next start. Nothing is lost."""
        self._stopping.set()
        self._ring()
        self._probes.stop()
        for thread in self._threads:
            thread.join()
        self.engine.router.stop()
        self.engine.executions.stop()
        self.engine.sink.stop()

    def ended(self) -> list[str]:
        """The threads that should run and do not: none, unless something is badly wrong."""
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        if not self.engine.executions.alive:
            ended.append("the dispatcher of executions")
        return ended + [consumer.name for consumer in (self.engine.router, self.engine.sink) if not consumer.alive]

    def _ring(self) -> None:
        with self._alarm:
            self._rung = True
            self._alarm.notify_all()

    # ------------------------------------------------------------------------------------------- timers and ticks

    def _run_clock(self) -> None:
        while not self._stopping.is_set():
            now = self.engine.clock.now()
            try:
                self.engine.calendar.deliver_due(now)
                while self.engine.fire_timers(now):
                    pass
                wait = self._until_next(now)
            except Exception as error:  # noqa: BLE001 - the clock must not stop because the disk is full
                _log.error("timers or ticks failed; trying again", error=str(error))
                wait = _LONGEST_WAIT
            with self._alarm:
                if not self._rung:
                    self._alarm.wait(wait)
                self._rung = False

    def _until_next(self, now: datetime) -> float:
        """Seconds to the next instant; never long, so that a clock that was set is noticed."""
        instants = [at for at in (self.engine.calendar.next_at(), self.engine.timers.next_at()) if at is not None]
        if not instants:
            return _LONGEST_WAIT
        left = real_seconds(self.engine.clock, (min(instants) - now).total_seconds())
        return min(max(left, 0.0), _LONGEST_WAIT)

    # --------------------------------------------------------------------------------------- watchdog and sweeper

    def _run_watchdog(self) -> None:
        clock = self.engine.clock
        next_watch = clock.now()
        next_sweep = clock.now() + _SWEEP_EVERY
        while not self._stopping.is_set():
            now = clock.now()
            if now >= next_watch:
                next_watch = now + self._watchdog_every
                self._attempt("watchdog", partial(self.watch, next_watch, skip_quiet=True))
            if now >= next_sweep:
                self._attempt("sweep", self.sweep)
                next_sweep = now + _SWEEP_EVERY
            wait = real_seconds(clock, (min(next_watch, next_sweep) - clock.now()).total_seconds())
            self._stopping.wait(min(max(wait, 0.0), 5.0))

    def watch(self, next_at: datetime | None = None, *, skip_quiet: bool = False) -> list[str]:
        """A pass of the watchdog; the checks that failed. Asked for by a person, it looks at every pipeline."""
        failed = self.engine.watch(skip_quiet=skip_quiet, pause=self._between_pipelines)
        now = self.engine.clock.now()
        self.watchdog = WatchdogState(now, next_at or self.watchdog.next_at, tuple(failed))
        return failed

    def _between_pipelines(self) -> bool:
        """Give way: thousands of pipelines in one go would hold the interpreter for seconds. True when it is to end."""
        return self._stopping.wait(_WATCHDOG_YIELD)

    def sweep(self) -> None:
        """Remove all that may go, a little at a time, so that every other commit has its turn."""
        while not self._stopping.is_set() and self.engine.sweep():
            pass

    def _attempt(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - tried again at its next turn
            _log.error(f"{name} failed", error=str(error))
