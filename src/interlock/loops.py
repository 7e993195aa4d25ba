"""Threads that run as long as the controller does, and what becomes of those that fail.

A `Loop` is a thread that calls its step again and again. Whatever a step raises, `SystemExit` included, is logged under
the loop's name, and the step is called again after a pause. `Loops` knows every loop of a controller, so that health
names each one that fails or has ended, and none can be forgotten. A loop without which nothing can go on (the writer
of the store) is not called again: `on_failure` ends the process.

A step may also be the whole work, until it is asked to end (`wait`, `ending`). Then it counts as sound again once it
has run for a minute.

A step that hangs raises nothing. A loop that promises to come round (`overdue`) is named when it has not for so long:
when its step has neither returned nor said `came_round`. Sleep between steps does not count, nor does a machine's own.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from interlock.logs import get_logger
from interlock.model.errors import InterlockError

# Seconds until the next step; None when there is none any more.
Step = Callable[[], float | None]
OnFailure = Callable[[BaseException], None]

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 1.0
# A step that has run this long since its last failure is sound again.
_SOUND_SECONDS: Final = 60.0
# From so many failures in a row on, the controller does not do its work.
_MANY_FAILURES: Final = 5
# `overdue` of a loop whose step looks at what is due, and waits for seconds at most. Generous: a machine that swaps, or
# a slow disk, must not ring an alarm.
OVERDUE_SECONDS: Final = 600.0
# How long a loop may take to end. `serve` ends the process earlier: this is for everybody else.
_STOP_SECONDS: Final = 30.0

_log = get_logger(__name__)


class Loop:
    """One thread of a controller. Made by `Loops.add`; runs from `start` to `stop`."""

    def __init__(
        self,
        name: str,
        step: Step,
        *,
        vital: bool,
        finite: bool,
        on_failure: OnFailure | None,
        stop_seconds: float | None,
        overdue: float | None,
    ) -> None:
        self.name = name
        self._step = step
        self._vital = vital
        self._finite = finite
        self._on_failure = on_failure
        self._stop_seconds = stop_seconds
        self._overdue = overdue
        self._bell = threading.Condition()
        self._rings = 0
        self._ending = False
        self._started = False
        self._finished = False
        self._begun = 0.0
        # When the step under way began, or last came round; None between two steps.
        self._round: float | None = None
        self._failures = 0
        self._error = ""
        self._thread: threading.Thread | None = None

    # --------------------------------------------------------------------------------------------------- driving

    def start(self) -> None:
        """Run, from now on. Raises RuntimeError when the system gives no thread."""
        self._thread = threading.Thread(target=self._run, name=f"interlock-{self.name}", daemon=True)
        self._thread.start()
        self._started = True

    def ring(self) -> None:
        """Call the next step at once; also when it is rung in the middle of one."""
        with self._bell:
            self._rings += 1
            self._bell.notify_all()

    def end(self) -> None:
        """Ask it to end, without waiting for that."""
        with self._bell:
            self._ending = True
            self._bell.notify_all()

    def stop(self) -> bool:
        """Ask it to end, and wait; false when it hangs, and is left behind. Stopping twice is no error."""
        self.end()
        if self._thread is None or self.is_current or not self._thread.is_alive():
            return True
        self._thread.join(self._stop_seconds)
        if not self._thread.is_alive():
            return True
        _log.error("a loop does not end: it is left behind", loop=self.name, seconds=self._stop_seconds)
        return False

    def wait(self, seconds: float) -> bool:
        """For a step: sleep so long, or until it is to end; true then."""
        with self._bell:
            return self._bell.wait_for(lambda: self._ending, seconds)

    def came_round(self) -> None:
        """For a step that is the whole work: it does not hang."""
        self._round = time.monotonic()

    # --------------------------------------------------------------------------------------------------- asking

    @property
    def ending(self) -> bool:
        """Was it asked to end?"""
        return self._ending

    @property
    def is_current(self) -> bool:
        """Is this code running on it?"""
        return threading.current_thread() is self._thread

    @property
    def alive(self) -> bool:
        """Does its thread run?"""
        return self._thread is not None and self._thread.is_alive()

    @property
    def failures(self) -> int:
        """How often it has failed in a row; 0 when it is sound."""
        return 0 if self._is_sound() else self._failures

    def problem(self) -> str:
        """Why the controller does not do its work; "" when this loop is not the reason. Names no path and no secret."""
        return self._complaint() if self._vital and self._is_broken() else ""

    def degradation(self) -> str:
        """What is wrong with it although the controller does its work; "" when all is well."""
        return "" if self._vital and self._is_broken() else self._complaint()

    def _complaint(self) -> str:
        if self._is_dead():
            return f"{self.name} has ended"
        if not self.alive or self._ending:
            return ""
        if minutes := self._hangs_for():
            return f"{self.name} hangs: it has not come round for {minutes} minutes"
        if not (failures := self.failures):
            return ""
        how = "fails again and again" if failures >= _MANY_FAILURES else "failed and was started again"
        return f"{self.name} {how} ({self._error})"

    def _hangs_for(self) -> int:
        """Minutes, rounded up; 0 when it does not hang, or promises nothing."""
        since = self._round
        seconds = 0.0 if since is None else time.monotonic() - since
        return 0 if self._overdue is None or seconds < self._overdue else max(1, math.ceil(seconds / 60))

    def _is_broken(self) -> bool:
        return self._is_dead() or self.failures >= _MANY_FAILURES

    def _is_dead(self) -> bool:
        return self._started and not self._ending and not self._finished and not self.alive

    def _is_sound(self) -> bool:
        return self._begun > 0.0 and time.monotonic() - self._begun >= _SOUND_SECONDS

    # ------------------------------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self._ending:
            # Taken before the step: whatever rings from here on is not slept through.
            rings, self._begun = self._rings, time.monotonic()
            self._round = self._begun
            try:
                seconds = self._take_step()
            except BaseException as error:  # noqa: BLE001  whatever it was, its thread must live, or say that it died
                if self._on_failure is not None:
                    self._failed_for_good(error, self._on_failure)
                    return
                self._round = None
                self._failed(error)
                continue
            self._round = None
            if seconds is None:
                self._finished = True
                return
            self._succeeded()
            with self._bell:
                if seconds > 0.0 and self._rings == rings and not self._ending:
                    self._bell.wait(seconds)

    def _take_step(self) -> float | None:
        seconds = self._step()
        if seconds is None and not self._finite and not self._ending:
            raise RuntimeError("it ended by itself")
        return seconds

    def _succeeded(self) -> None:
        if self._failures:
            self._failures, self._error = 0, ""
            _log.info("a loop works again", loop=self.name)

    def _failed(self, error: BaseException) -> None:
        """Say it, and pause. A ring does not end the pause: what failed would fail again at once."""
        self._failures = 1 if self._is_sound() else self._failures + 1
        self._error, self._begun = type(error).__name__, 0.0
        with suppress(Exception):  # a log that cannot be written ends no loop
            self._report(error)
        self.wait(min(_FIRST_PAUSE * 2 ** min(self._failures - 1, 10), _LONGEST_PAUSE))

    def _report(self, error: BaseException) -> None:
        if self._ending:
            _log.debug("a loop failed as it ended", loop=self.name, error=repr(error))
        elif self._failures > 1 or isinstance(error, InterlockError | OSError):
            # Troubles that have words for themselves need no traceback, and nobody needs one every second.
            _log.error("a loop failed; trying again", loop=self.name, error=str(error), failures=self._failures)
        else:
            _log.error("a loop failed; trying again", loop=self.name, error=repr(error), exc_info=error)

    def _failed_for_good(self, error: BaseException, on_failure: OnFailure) -> None:
        self._failures, self._error = self._failures + 1, type(error).__name__
        on_failure(error)


class Loops:
    """The loops of one controller."""

    def __init__(self) -> None:
        self._loops: list[Loop] = []

    def add(
        self,
        name: str,
        step: Step,
        *,
        vital: bool = True,
        finite: bool = False,
        on_failure: OnFailure | None = None,
        stop_seconds: float | None = _STOP_SECONDS,
        overdue: float | None = None,
    ) -> Loop:
        """A further loop; `start` it.

        `vital`: without it the controller does not do its work. `finite`: it may come to an end by itself.
        `on_failure`: it is not called again after a failure, this is called instead. `stop_seconds`: how long `stop`
        waits for it; None: as long as it takes. `overdue`: after so many seconds a step that has not come round hangs;
        None: it may wait for something for as long as it likes.
        """
        loop = Loop(
            name,
            step,
            vital=vital,
            finite=finite,
            on_failure=on_failure,
            stop_seconds=stop_seconds,
            overdue=overdue,
        )
        self._loops.append(loop)
        return loop

    def __iter__(self) -> Iterator[Loop]:
        return iter(tuple(self._loops))

    def end(self) -> None:
        """Ask every loop to end, without waiting for that."""
        for loop in self:
            loop.end()

    def problems(self) -> list[str]:
        """Why the controller does not do its work, in words: vital loops that ended, or fail again and again."""
        return [said for loop in self if (said := loop.problem())]

    def degradations(self) -> list[str]:
        """What is wrong with loops although the controller does its work, in words."""
        return [said for loop in self if (said := loop.degradation())]
