"""Commands across the death of a controller, of a wrapper, of both: started once, and their end not lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from interlock.jobs.command import folder as command_folder
from interlock.jobs.command.folder import Claim, Phase, RunFolder
from interlock.jobs.command.output import OutputKept
from interlock.jobs.command.target import CommandRunner, ExitNotice
from interlock.jobs.command.wrapper import identity
from interlock.model.errors import InterlockError, JobStartError
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobStarted, JobState, JobStatus, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import LONG, Gate, Notices, marker, request, wait_for_wrapper

PROJECT = Path(__file__).parents[3]
FAR = datetime(2100, 1, 1, tzinfo=UTC)

Controller = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def controller(root: Path) -> Iterator[Controller]:
    """Starts controllers of their own processes on the same folder."""
    started: list[subprocess.Popen[str]] = []

    def start(point: str, *command: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.command.controller_process", str(root), point, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def started_and_killed(controller: Controller, *command: str) -> None:
    process = controller("", *command)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.kill()
    process.wait(LONG)


@pytest.fixture(params=["pidfd", "polling"])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to wait: this system's, and that of a system without pidfds."""
    if request.param == "polling":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize(("code", "state"), [(0, JobState.SUCCEEDED), (3, JobState.FAILED)])
def test_a_command_outlives_its_controller_and_the_next_one_hears_of_its_end(
    tmp_path: Path, controller: Controller, runner: CommandRunner, notices: Notices, code: int, state: JobState
) -> None:
    gate = Gate(tmp_path)
    started_and_killed(controller, *gate.command)
    asked = request(command=gate.command)
    assert runner.recover(asked) == JobStarted(job_id="run-1")
    assert runner.watch_unfinished() == 1
    assert runner.check(asked, "run-1") == JobStatus(state=JobState.RUNNING)
    gate.release(code)
    reported = notices.of("run-1")
    assert (reported.key, reported.attempt, reported.status.state) == (asked.key, asked.attempt, state)
    assert runner.tail("run-1") == "waiting\n"


@pytest.mark.usefixtures("waiting")
def test_an_end_while_no_controller_lived_is_told_to_the_next_one_once(
    tmp_path: Path, root: Path, controller: Controller, runner: CommandRunner, notices: Notices
) -> None:
    gate = Gate(tmp_path)
    started_and_killed(controller, *gate.command)
    gate.release(7)
    wait_for_wrapper(root, "run-1")
    assert runner.watch_unfinished() == 1
    assert notices.of("run-1").status.error.startswith("exit code 7")
    runner.close()
    another = CommandRunner(root, notices, ManualClock())
    assert another.watch_unfinished() == 0
    another.close()
    assert len(notices.reported) == 1


@pytest.mark.usefixtures("waiting")
def test_own_commands_are_seen_to_end(runner: CommandRunner, notices: Notices) -> None:
    for number in range(5):
        runner.start(request(f"run-{number}", command=["sh", "-c", f"exit {number}"]))
    errors = [notices.of(f"run-{number}").status.error for number in range(5)]
    assert errors == ["", "exit code 1", "exit code 2", "exit code 3", "exit code 4"]


@pytest.mark.parametrize("point", ["before-claim", "after-claim", "after-request", "after-fork", "after-spawn", ""])
def test_wherever_the_controller_dies_the_command_runs_exactly_once(
    tmp_path: Path, controller: Controller, runner: CommandRunner, notices: Notices, point: str
) -> None:
    command = ["sh", "-c", f"echo here >> {tmp_path}/ran"]
    process = controller(point, *command)
    if point:
        assert process.wait(LONG) == -signal.SIGKILL
    else:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
    # What the next controller does, in the order of its start.
    runner.watch_unfinished()
    asked = request(command=command)
    found = runner.recover(asked)
    assert found is not Recovery.UNDECIDABLE
    if found is Recovery.START_AGAIN:
        assert point in ("before-claim", "after-claim")
        runner.start(asked)
    assert notices.of("run-1").status.state is JobState.SUCCEEDED
    assert (tmp_path / "ran").read_text() == "here\n"
    assert runner.recover(asked) == JobStarted(job_id="run-1", status=JobStatus(state=JobState.SUCCEEDED))


# ------------------------------------------------------------------------------------------------ what a folder proves


WRAPPER = {"wrapper": '{"pid": 1}'}
STARTED = {**WRAPPER, "started": '{"pid": 1, "identity": "0@another-boot"}'}
DAMAGED = {**WRAPPER, "started": ""}


def claimed(root: Path, markers: Mapping[str, str]) -> RunFolder:
    """A folder as a crash leaves it: claimed, some markers written, nobody alive."""
    folder = RunFolder(root, "run-1")
    lock = folder.claim(Claim.of(request()), {})
    assert lock is not None
    for name, content in markers.items():
        (folder.path / name).write_text(content)
    os.close(lock)
    return folder


@pytest.mark.parametrize(
    ("markers", "phase", "recovered", "word"),
    [
        ({}, Phase.UNSTARTED, Recovery.START_AGAIN, "nothing is known"),
        (WRAPPER, Phase.UNSTARTED, Recovery.START_AGAIN, "nothing is known"),
        (STARTED, Phase.VANISHED, JobStarted, "vanished"),
        (DAMAGED, Phase.UNCERTAIN, Recovery.UNDECIDABLE, "damaged"),
        ({**STARTED, "exit.json": "{"}, Phase.ENDED, JobStarted, "unreadable"),
    ],
)
def test_the_markers_of_a_dead_wrapper_say_whether_the_command_was_started(
    root: Path,
    runner: CommandRunner,
    markers: Mapping[str, str],
    phase: Phase,
    recovered: Recovery | type[JobStarted],
    word: str,
) -> None:
    assert claimed(root, markers).phase() is phase
    found = runner.recover(request())
    assert found is recovered or type(found) is recovered
    status = runner.check(request(), "run-1")
    assert (status.state, status.category) == (JobState.FAILED, FailureCategory.TRANSIENT)
    assert word in status.error
    assert (root / "run-1").exists() == (found is not Recovery.START_AGAIN)


def test_a_held_lock_is_proof_of_life_however_often_it_is_looked_at(root: Path, runner: CommandRunner) -> None:
    folder = RunFolder(root, "run-1")
    lock = folder.claim(Claim.of(request()), {})
    assert lock is not None
    assert folder.claim(Claim.of(request()), {}) is None
    assert [folder.phase() for _ in range(3)] == [Phase.RUNNING] * 3
    assert folder.awaited() == 0  # alive, and its number not yet said
    assert runner.recover(request()) == JobStarted(job_id="run-1")
    os.close(lock)
    assert folder.phase() is Phase.UNSTARTED


@pytest.mark.parametrize("markers", [{}, WRAPPER, DAMAGED])
def test_a_start_that_came_to_nothing_is_not_told_as_an_end(
    root: Path, runner: CommandRunner, notices: Notices, markers: Mapping[str, str]
) -> None:
    """It is the lifecycle's to repair; an outcome in the job log would be taken for that of the next start."""
    claimed(root, markers)
    assert runner.watch_unfinished() == 1
    runner.start(request("another", command=["true"]))
    notices.of("another")  # the watch has come past run-1
    assert [notice.run_id for notice in notices.reported] == ["another"]


@pytest.mark.parametrize(
    ("pid", "phase"), [(os.getpid(), Phase.RUNNING), (2**22 - 1, Phase.VANISHED)], ids=["alive", "gone"]
)
def test_where_processes_have_no_start_time_their_number_must_do(
    root: Path, monkeypatch: pytest.MonkeyPatch, pid: int, phase: Phase
) -> None:
    monkeypatch.setattr(command_folder, "identity", lambda _pid: "")
    folder = claimed(root, {"started": f'{{"pid": {pid}, "identity": ""}}'})
    assert folder.phase() is phase
    assert folder.awaited() == (pid if phase is Phase.RUNNING else 0)


def test_a_number_that_was_given_away_is_not_the_command(root: Path) -> None:
    started = f'{{"pid": {os.getpid()}, "identity": "1@{identity(os.getpid()).partition("@")[2]}"}}'
    assert claimed(root, {"started": started}).phase() is Phase.VANISHED


def test_a_folder_that_does_not_say_whose_it_is_tells_nobody(
    root: Path, runner: CommandRunner, notices: Notices
) -> None:
    (claimed(root, STARTED).path / "request.json").write_text("")
    runner.watch_unfinished()
    runner.start(request("another", command=["true"]))
    notices.of("another")
    assert [notice.run_id for notice in notices.reported] == ["another"]


def test_a_claim_that_can_not_be_made_leaves_nothing_behind(root: Path, runner: CommandRunner) -> None:
    root.mkdir(parents=True)
    (root / "run-1").write_text("in the way")
    with pytest.raises(JobStartError, match="no folder could be made for run-1: Not a directory"):
        runner.start(request(command=["true"]))
    assert [entry.name for entry in root.iterdir()] == ["run-1"]


def test_a_stale_claim_does_not_stand_in_the_way_of_a_start(
    root: Path, runner: CommandRunner, notices: Notices
) -> None:
    claimed(root, WRAPPER)
    assert runner.start(request(command=["true"])) == JobStarted(job_id="run-1")
    assert notices.of("run-1").status.state is JobState.SUCCEEDED


def test_a_damaged_claim_does(root: Path, runner: CommandRunner) -> None:
    claimed(root, DAMAGED)
    with pytest.raises(InterlockError, match="is damaged"):
        runner.start(request(command=["true"]))


@pytest.mark.usefixtures("waiting")
def test_a_command_whose_wrapper_was_killed_runs_until_it_has_really_ended(
    tmp_path: Path, root: Path, runner: CommandRunner, notices: Notices
) -> None:
    gate, rest = Gate(tmp_path), Gate(tmp_path, "rest")
    asked = request(command=["sh", "-c", f"{gate.command[2].rpartition(';')[0]}; {rest.command[2]}"])
    runner.start(asked)
    gate.release()
    os.kill(marker(root, "run-1", "wrapper")["pid"], signal.SIGKILL)
    wait_for_wrapper(root, "run-1")
    assert runner.check(asked, "run-1") == JobStatus(state=JobState.RUNNING)
    assert runner.recover(asked) == JobStarted(job_id="run-1")
    rest.release()
    status = notices.of("run-1").status
    assert (status.state, status.category) == (JobState.FAILED, FailureCategory.TRANSIENT)
    assert "vanished" in status.error


def test_a_wrapper_and_a_command_killed_together_have_vanished(
    tmp_path: Path, root: Path, runner: CommandRunner, notices: Notices
) -> None:
    gate = Gate(tmp_path)
    runner.start(request(command=["sh", "-c", f"{gate.command[2].rpartition(';')[0]}; exec sleep 1000"]))
    gate.release()
    os.kill(marker(root, "run-1", "wrapper")["pid"], signal.SIGSTOP)  # it must not see the command end first
    os.killpg(marker(root, "run-1", "started")["pid"], signal.SIGKILL)
    os.kill(marker(root, "run-1", "wrapper")["pid"], signal.SIGKILL)
    assert "vanished" in notices.of("run-1").status.error


def test_an_end_that_could_not_be_told_is_told_by_the_next_controller(root: Path, notices: Notices) -> None:
    def deaf(notice: ExitNotice) -> None:
        notices(notice)
        raise RuntimeError("the store is down")

    first = CommandRunner(root, deaf, ManualClock())
    first.start(request(command=["true"]))
    notices.of("run-1")
    first.start(request("run-2", command=["true"]))
    notices.of("run-2")  # the watch survived
    first.close()
    second = CommandRunner(root, notices, ManualClock())
    assert second.watch_unfinished() == 2
    assert {notice.run_id for notice in notices.all_of(4)[2:]} == {"run-1", "run-2"}
    second.close()


def test_an_end_that_could_not_be_told_is_told_again_by_itself(
    root: Path, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.jobs.command.target._REPORT_AGAIN_SECONDS", 0.0)
    refusals = iter([True, True])

    def hard_of_hearing(notice: ExitNotice) -> None:
        if next(refusals, False):
            raise RuntimeError("the disk is full")
        notices(notice)

    runner = CommandRunner(root, hard_of_hearing, ManualClock())
    runner.start(request(command=["true"]))
    assert notices.of("run-1").status.state is JobState.SUCCEEDED
    runner.close()
    assert len(notices.reported) == 1


# ------------------------------------------------------------------------------------------------------------ pruning


def test_old_folders_are_removed_and_running_ones_never(tmp_path: Path, root: Path, notices: Notices) -> None:
    gate = Gate(tmp_path)
    now = CommandRunner(root, notices, ManualClock())
    now.start(request("ended", command=["true"]))
    notices.of("ended")
    now.start(request("running", command=gate.command))
    claimed(root, WRAPPER)
    (root / ".claim-left-by-a-crash").mkdir()
    assert now.prune(OutputKept(age=timedelta(days=7))) == 0
    later = CommandRunner(root, notices, ManualClock(FAR))
    assert later.prune(OutputKept(age=timedelta(days=7))) == 2
    assert sorted(entry.name for entry in root.iterdir()) == ["running"]
    assert later.tail("ended") == ""
    assert "nothing is known" in later.check(request("ended"), "ended").error
    gate.release()
    notices.of("running")
    now.close()
    later.close()


def test_without_a_folder_there_is_nothing_to_watch_or_remove(runner: CommandRunner, root: Path) -> None:
    assert runner.watch_unfinished() == 0
    assert runner.prune(OutputKept(age=timedelta(0))) == 0
    assert not root.exists()
