"""A controller of its own process, to be killed: starts one command, or dies on the way there.

`python -m tests.jobs.command.controller_process ROOT POINT COMMAND...`: POINT says where it kills itself; "" lets it
live, and it says so.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from interlock.jobs.command.folder import RunFolder
from interlock.jobs.command.forking import ForkServer
from interlock.jobs.command.target import CommandRunner
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import request


def die(*_args: object, **_options: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def then_die(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **options: Any) -> NoReturn:
        call(*args, **options)
        die()

    return wrapped


def main(root: str, point: str, *command: str) -> None:
    match point:
        case "before-claim":
            RunFolder.claim = die  # type: ignore[method-assign]
        case "after-claim":
            RunFolder.claim = then_die(RunFolder.claim)  # type: ignore[method-assign]
        case "after-request":
            ForkServer._sent = then_die(ForkServer._sent)  # type: ignore[method-assign]
        case "after-fork":
            ForkServer.fork = then_die(ForkServer.fork)  # type: ignore[method-assign]
        case "after-spawn":
            ForkServer.fork = lambda *_: None  # type: ignore[method-assign]
            os.posix_spawn = then_die(os.posix_spawn)
    runner = CommandRunner(Path(root), lambda _notice: None, ManualClock())
    runner.start(request(command=list(command)))
    sys.stdout.write("started\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
