"""`interlock serve` that meets with an accident on the way of one job.

`python -m tests.crash.serve_process ACCIDENT RUN serve ...`; RUN is how the run id of that job begins. Every other
job is treated as usual.
"""

import os
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from interlock.cli.main import main
from interlock.jobs.command.folder import RunFolder
from interlock.jobs.command.forking import ForkServer
from interlock.jobs.command.target import CommandRunner


class Accident(StrEnum):
    """What happens: `kill -9` of the controller around one of its steps, or of the wrapper before it has done any."""

    BEFORE_CLAIM = "before-claim"
    AFTER_CLAIM = "after-claim"
    AFTER_SPAWN = "after-spawn"
    BEFORE_RUNNING = "before-running"  # the target has answered, the answer is not stored
    BEFORE_OUTCOME = "before-outcome"  # the end was seen, and is not in the job log
    AFTER_OUTCOME = "after-outcome"  # it is in the job log, and the folder does not say so
    STILLBORN = "stillborn"  # the wrapper dies as soon as there is one


def _around(step: Callable[..., Any], run: str, *, before: bool) -> Callable[..., Any]:
    """The step; for the one job, the controller dies before or after it."""

    def stepped(*args: Any, **options: Any) -> Any:
        mine = run in str(args)
        if not (mine and before):
            answer = step(*args, **options)
            if not mine:
                return answer
        return os.kill(os.getpid(), signal.SIGKILL)

    return stepped


def _stillborn(spawn: Callable[..., int], run: str) -> Callable[..., int]:
    def spawned(*args: Any, **options: Any) -> int:
        child = spawn(*args, **options)
        if run in str(args):
            os.kill(child, signal.SIGKILL)
        return child

    return spawned


def _around_outcome(run: str, *, before: bool) -> None:
    made = CommandRunner.__init__

    def make(self: CommandRunner, folder: Path, on_exit: Callable[..., Any], *args: Any, **options: Any) -> None:
        made(self, folder, _around(on_exit, run, before=before), *args, **options)

    CommandRunner.__init__ = make  # type: ignore[method-assign]


def arrange(accident: Accident, run: str) -> None:
    """Have it happen."""
    match accident:
        case Accident.BEFORE_CLAIM | Accident.AFTER_CLAIM:
            before = accident is Accident.BEFORE_CLAIM
            RunFolder.claim = _around(RunFolder.claim, run, before=before)  # type: ignore[method-assign]
        case Accident.AFTER_SPAWN:
            ForkServer.fork = _around(ForkServer.fork, run, before=False)  # type: ignore[method-assign]
        case Accident.BEFORE_RUNNING:
            CommandRunner.start = _around(CommandRunner.start, run, before=False)  # type: ignore[method-assign]
        case Accident.BEFORE_OUTCOME | Accident.AFTER_OUTCOME:
            _around_outcome(run, before=accident is Accident.BEFORE_OUTCOME)
        case Accident.STILLBORN:
            # One that is forked has begun by the time that its number is known; an interpreter takes its time.
            ForkServer.fork = lambda *_: None  # type: ignore[method-assign]
            os.posix_spawn = _stillborn(os.posix_spawn, run)


if __name__ == "__main__":
    arrange(Accident(sys.argv[1]), sys.argv[2])
    main(sys.argv[3:])
