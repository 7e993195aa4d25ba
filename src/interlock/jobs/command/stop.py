"""Ending a command before its time: TERM to its whole group, after the grace KILL. Also after a controller restart.

Its wrapper does that, as it does after the timeout; here it is only signalled. A command that has outlived its
wrapper is ended from here, and then the call takes as long as the grace.
"""

import contextlib
import os
import signal
import threading
from datetime import timedelta
from typing import Final, assert_never

from interlock.jobs.command.folder import Phase, Process, RunFolder
from interlock.model.errors import JobStopError
from interlock.ports.jobs import JobStop

_POLL_SECONDS: Final = 0.05


def stop_command(folder: RunFolder, grace: timedelta) -> JobStop:
    """Have the command of a folder ended."""
    phase = folder.phase()
    match phase:
        case Phase.ENDED | Phase.VANISHED | Phase.UNSTARTED | Phase.ABSENT:
            return JobStop.ENDED
        case Phase.UNCERTAIN:
            raise JobStopError(
                f"{folder.run_id}: its folder {folder.path} is damaged, so nobody knows its process:"
                " look for it on this machine and end it by hand"
            )
        case Phase.RUNNING:
            # In this order: a wrapper that has not said its number yet looks for the request once it has.
            folder.request_stop()
            wrapper = folder.wrapper()
            if wrapper is not None:
                _signal(wrapper, signal.SIGTERM)
            else:
                _end_orphan(folder, grace)
            return JobStop.REQUESTED
        case _:
            assert_never(phase)


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal this very process: held by its descriptor first, it cannot be swapped for another while we look."""
    with contextlib.suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
            if process.alive:
                os.kill(process.pid, number)
            return
        held = os.pidfd_open(process.pid)
        try:
            if process.alive:
                signal.pidfd_send_signal(held, number)
        finally:
            os.close(held)


def _end_orphan(folder: RunFolder, grace: timedelta) -> None:
    """Nobody is at work but the command itself, unless its wrapper is only just beginning."""
    command = folder.command()
    if folder.phase() is not Phase.RUNNING or command is None or not command.alive:
        return
    _signal_group(command, signal.SIGTERM)
    never = threading.Event()
    for _ in range(int(grace.total_seconds() / _POLL_SECONDS)):
        if not _signal_group(command, 0):
            return
        never.wait(_POLL_SECONDS)
    _signal_group(command, signal.SIGKILL)


def _signal_group(command: Process, number: int) -> bool:
    """False when nobody of the group is left."""
    try:
        os.killpg(command.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
