"""Stopping a command and reading what it wrote: whichever controller started it, and wherever it stands."""

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.jobs.command import wrapper as command_wrapper
from interlock.jobs.command.folder import Claim, RunFolder
from interlock.jobs.command.stop import stop_command
from interlock.jobs.command.target import CommandRunner
from interlock.jobs.command.wrapper import OUTPUT
from interlock.model.errors import JobStopError
from interlock.model.run import FailureCategory
from interlock.ports.jobs import OUTPUT_LIMIT, JobOutput, JobRunner, JobState, JobStop
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.test_command_restart import Controller, controller, started_and_killed
from tests.jobs.command.trials import LONG, Gate, Notices, marker, request, wait_for_wrapper

__all__ = ["controller"]

# Says that it runs, has a child, and pays no attention to SIGTERM; nor does the child.
STUBBORN = "trap '' TERM; sleep 600 & echo $! > {child}; echo up > {gate}; wait; sleep 600"


def begun(runner: CommandRunner, tmp_path: Path, script: str) -> int:
    """Start a script that writes its child's number, and wait until it is up; the child."""
    gate, child = tmp_path / "up", tmp_path / "child"
    os.mkfifo(gate)
    text = script.format(gate=gate, child=child)
    runner.start(request(command=["sh", "-c", text]))
    assert gate.read_text() == "up\n"
    return int(child.read_text())


def gone(pid: int) -> bool:
    """Wait for the end of a process that is not ours."""
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([held], [], [], LONG)[0])
    finally:
        os.close(held)


def test_a_command_is_asked_first(runner: CommandRunner, notices: Notices, tmp_path: Path) -> None:
    port: JobRunner = runner
    polite = "trap 'echo tidied; exit 9' TERM; sleep 600 & echo $! > {child}; echo up > {gate}; wait"
    child = begun(runner, tmp_path, polite)
    assert port.stop(request(), "run-1") is JobStop.REQUESTED
    reported = notices.of("run-1").status
    assert (reported.state, reported.category) == (JobState.FAILED, FailureCategory.TRANSIENT)
    assert reported.error.startswith("stopped on request: exit code 9")
    assert "tidied" in reported.error
    assert gone(child)
    assert port.stop(request(), "run-1") is JobStop.ENDED


def test_after_the_grace_the_whole_group_is_killed(runner: CommandRunner, notices: Notices, tmp_path: Path) -> None:
    child = begun(runner, tmp_path, STUBBORN)
    assert runner.stop(request(), "run-1") is runner.stop(request(), "run-1") is JobStop.REQUESTED
    assert notices.of("run-1").status.error == "stopped on request: signal 9 (SIGKILL)"
    assert gone(child)


def test_a_command_that_ends_well_all_the_same_has_succeeded(
    runner: CommandRunner, notices: Notices, tmp_path: Path
) -> None:
    begun(runner, tmp_path, "trap 'exit 0' TERM; sleep 600 & echo $! > {child}; echo up > {gate}; wait")
    runner.stop(request(), "run-1")
    assert notices.of("run-1").status.state is JobState.SUCCEEDED


def test_a_command_of_a_dead_controller_is_stopped(
    tmp_path: Path, controller: Controller, runner: CommandRunner, notices: Notices
) -> None:
    gate = Gate(tmp_path)
    started_and_killed(controller, *gate.command)
    asked = request(command=gate.command)
    assert runner.stop(asked, "run-1") is JobStop.REQUESTED
    runner.watch_unfinished()
    assert notices.of("run-1").status.error.startswith("stopped on request: signal 15 (SIGTERM)")


def test_a_command_that_has_lost_its_wrapper_is_stopped(
    runner: CommandRunner, notices: Notices, root: Path, tmp_path: Path
) -> None:
    child = begun(runner, tmp_path, STUBBORN)
    os.kill(int(marker(root, "run-1", "wrapper")["pid"]), signal.SIGKILL)
    wait_for_wrapper(root, "run-1")
    assert runner.check(request(), "run-1").state is JobState.RUNNING
    assert runner.stop(request(), "run-1") is JobStop.REQUESTED
    assert notices.of("run-1").status.error == "stopped on request"
    assert gone(child)
    assert runner.stop(request(), "run-1") is JobStop.ENDED


def test_a_wrapper_that_has_not_said_its_number_finds_the_request(root: Path, tmp_path: Path) -> None:
    """The request is made between the claim and the wrapper's first step; the wrapper is started by hand after it."""
    folder = RunFolder(root, "run-1")
    lock = folder.claim(Claim.of(request()), {"PATH": os.defpath})
    assert lock is not None
    assert stop_command(folder, timedelta(0)) is JobStop.REQUESTED
    shell = shutil.which("sh")
    assert shell is not None
    wrapper = [
        command_wrapper.__file__,
        str(folder.path),
        "0",
        "0.3",
        "0",
        "",
        str(tmp_path),
        shell,
        "sh",
        "-c",
        "sleep 600",
    ]
    with (folder.path / OUTPUT).open("wb") as output:
        subprocess.run(["python3", "-I", "-S", *wrapper], stdin=lock, stdout=output, timeout=30, check=True)
    os.close(lock)
    ended = folder.exit()
    assert ended is not None
    assert ended.signal == signal.SIGTERM


def test_what_is_not_there_is_over(runner: CommandRunner) -> None:
    assert runner.stop(request("unheard-of"), "unheard-of") is JobStop.ENDED


def test_a_damaged_folder_says_to_look_by_hand(runner: CommandRunner, root: Path) -> None:
    folder = root / "run-1"
    folder.mkdir(parents=True)
    (folder / "started").touch()
    with pytest.raises(JobStopError, match="damaged"):
        runner.stop(request(), "run-1")


# ---------------------------------------------------------------------------------------------------------- output


@pytest.fixture
def written(root: Path) -> Callable[[bytes], None]:
    """Writes the output file of a command that has vanished."""

    def write(data: bytes) -> None:
        folder = root / "run-1"
        folder.mkdir(parents=True)
        (folder / "started").write_text('{"pid": 1, "identity": "0@another-boot"}')
        (folder / OUTPUT).write_bytes(data)

    return write


def test_output_is_read_while_it_is_written(runner: CommandRunner, notices: Notices, tmp_path: Path) -> None:
    port: JobRunner = runner
    gate = Gate(tmp_path)
    up = tmp_path / "up"
    os.mkfifo(up)
    asked = request(command=["sh", "-c", f"echo first; echo up > {up}; read code < {gate.path}; echo last"])
    runner.start(asked)
    up.read_text()
    assert port.output(asked, "run-1") == JobOutput(text="first\n", next_offset=6)
    assert port.output(asked, "run-1", offset=6) == JobOutput(next_offset=6)
    gate.release()
    notices.of("run-1")
    assert port.output(asked, "run-1", offset=6) == JobOutput(text="last\n", next_offset=11, complete=True)
    assert port.output(asked, "run-1", offset=11) == JobOutput(next_offset=11, complete=True)
    assert port.link(asked, "run-1") == ""


def test_output_comes_in_pieces_that_cut_no_character(runner: CommandRunner, written: Callable[[bytes], None]) -> None:
    text = "ä" * OUTPUT_LIMIT
    written(b"." + text.encode())
    pieces: list[str] = []
    offset, complete = 0, False
    while not complete:
        piece = runner.output(request(), "run-1", offset=offset)
        pieces.append(piece.text)
        assert len(piece.text.encode()) <= OUTPUT_LIMIT
        offset, complete = piece.next_offset, piece.complete
    assert "".join(pieces) == "." + text
    assert len(pieces) == 3


def test_bytes_that_are_no_text_are_shown_as_such(runner: CommandRunner, written: Callable[[bytes], None]) -> None:
    written(b"a\xffb\xc3")
    assert runner.output(request(), "run-1") == JobOutput(text="a\ufffdb\ufffd", next_offset=4, complete=True)


def test_a_command_without_a_folder_has_no_output(root: Path) -> None:
    made = CommandRunner(root, Notices(), ManualClock())
    assert made.output(request(), "run-1") == JobOutput(complete=True)
    made.close()
