"""Commands while the controller lives: started once, told at once, classified rightly, and nothing left behind."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.jobs.command.folder import RunFolder
from interlock.jobs.command.target import CommandRunner, ExitNotice
from interlock.jobs.command.wrapper import OUTPUT
from interlock.model.errors import JobStartError
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRunner, JobStarted, JobState, JobStatus, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import Gate, Notices, marker, request, wait_for_wrapper

PERMANENT, TRANSIENT, TIMEOUT = FailureCategory.PERMANENT, FailureCategory.TRANSIENT, FailureCategory.TIMEOUT


def finished(runner: CommandRunner, notices: Notices, run_id: str = "run-1", **config: object) -> JobStatus:
    """Run a command to its end; what was told of it is what `check` says."""
    asked = request(run_id, **config)
    assert runner.start(asked) == JobStarted(job_id=run_id)
    reported = notices.of(run_id)
    assert (reported.key, reported.attempt) == (asked.key, asked.attempt)
    assert runner.check(asked, run_id) == reported.status
    return reported.status


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_it_is_a_job_runner(runner: CommandRunner) -> None:
    port: JobRunner = runner
    assert port.recover(request("unheard-of")) is Recovery.START_AGAIN


def test_a_command_that_ends_well_has_succeeded(runner: CommandRunner, notices: Notices) -> None:
    assert finished(runner, notices, command=["true"]) == JobStatus(state=JobState.SUCCEEDED)


@pytest.mark.parametrize(
    ("command", "state", "category", "words"),
    [
        (sh("echo broken >&2; exit 3"), JobState.FAILED, PERMANENT, ("exit code 3", "broken")),
        (sh("kill -9 $$"), JobState.FAILED, TRANSIENT, ("signal 9 (SIGKILL", "memory")),
        (sh("kill -TERM $$"), JobState.FAILED, TRANSIENT, ("signal 15 (SIGTERM)",)),
        (sh("kill -40 $$"), JobState.FAILED, TRANSIENT, ("killed by signal 40",)),
        (sh("exit 137"), JobState.FAILED, TRANSIENT, ("exit code 137",)),
        (sh("exit 75"), JobState.FAILED, TRANSIENT, ("exit code 75",)),
        (sh("exit 138"), JobState.FAILED, PERMANENT, ("exit code 138",)),
    ],
)
def test_an_end_is_classified(
    runner: CommandRunner,
    notices: Notices,
    command: list[str],
    state: JobState,
    category: FailureCategory,
    words: tuple[str, ...],
) -> None:
    status = finished(runner, notices, command=command)
    assert (status.state, status.category) == (state, category)
    assert all(word in status.error for word in words), status.error


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo 'one word' two", "one word two\n"),
        (["echo", "$HOME", "*", "5"], "$HOME * 5\n"),
        (sh("echo out; echo err >&2; echo out again"), "out\nerr\nout again\n"),
        (["cat"], ""),
        (["ls", "/proc/self/fd"], "0\n1\n2\n3\n"),
    ],
    ids=["a string is split", "no shell", "both streams in order", "empty input", "no descriptor leaks in"],
)
def test_what_a_command_is_given_and_writes(
    runner: CommandRunner, notices: Notices, command: list[str] | str, output: str
) -> None:
    assert finished(runner, notices, command=command).state is JobState.SUCCEEDED
    assert runner.tail("run-1") == output


def test_the_environment_is_small_and_says_which_run_it_is(
    root: Path, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "TZ", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("INTERLOCK_TOKEN", "not for jobs")
    monkeypatch.setenv("HOME", "/home/me")
    runner = CommandRunner(root, notices, ManualClock())
    env = {"LEVEL": 3, "QUICK": True, "TEXT": "ä=\nb", "INTERLOCK_ATTEMPT": "mine", "LD_LIBRARY_PATH": "/nowhere"}
    finished(runner, notices, command=["env", "-0"], env=env)
    runner.close()
    pairs = (variable.partition("=") for variable in runner.tail("run-1").split("\0") if variable)
    assert {name: value for name, _, value in pairs} == {
        "PATH": os.environ["PATH"],
        "HOME": "/home/me",
        "LEVEL": "3",
        "QUICK": "true",
        "TEXT": "ä=\nb",
        "LD_LIBRARY_PATH": "/nowhere",
        "INTERLOCK_RUN_ID": "run-1",
        "INTERLOCK_PIPELINE": "gold",
        "INTERLOCK_SCHEDULE": "cron",
        "INTERLOCK_DATE": "2026-03-02",
        "INTERLOCK_ATTEMPT": "2",
    }


def test_no_secret_stays_in_the_folder(root: Path, runner: CommandRunner, notices: Notices) -> None:
    finished(runner, notices, command=["true"], env={"PASSWORD": "hunter2"})
    files = [file for file in (root / "run-1").iterdir() if file.is_file()]
    assert len(files) >= 4
    assert not [file.name for file in files if b"hunter2" in file.read_bytes()]
    assert (root / "run-1").stat().st_mode & 0o077 == 0


def test_it_runs_in_its_folder_with_its_own_programs(tmp_path: Path, runner: CommandRunner, notices: Notices) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "job").write_text("#!/bin/sh\npwd\n")
    (work / "job").chmod(0o755)
    assert finished(runner, notices, "relative", command=["./job"], cwd="work").state is JobState.SUCCEEDED
    assert runner.tail("relative") == f"{work}\n"
    on_path = finished(runner, notices, "on-path", command=["job"], env={"PATH": str(work)})
    assert on_path.state is JobState.SUCCEEDED
    assert runner.tail("on-path") == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "command"),
        ({"command": []}, "is empty"),
        ({"command": ""}, "is empty"),
        ({"command": "echo 'open"}, "cannot be split"),
        ({"command": ["no-such-program"]}, "no program 'no-such-program' on the job's PATH"),
        ({"command": ["true"], "env": {"PATH": "/nowhere"}}, "PATH (/nowhere)"),
        ({"command": ["./missing"]}, "there is no program"),
        ({"command": ["./plain"]}, "chmod +x"),
        ({"command": ["true"], "cwd": "missing"}, "is not a folder"),
        ({"command": ["true"], "comand": 1}, "comand"),
        ({"command": ["true"], "timeout": "soon"}, "timeout"),
        ({"command": ["true"], "timeout": True}, "timeout"),
        ({"command": ["true"], "timeout": 60}, "write 60s for seconds"),
        ({"command": ["true"], "env": {"A=B": "c"}}, "'A=B'"),
        ({"command": ["true", "a\0b"]}, "NUL"),
        ({"command": ["true"], "env": {"A": "secret\0"}}, "NUL"),
    ],
)
def test_what_can_never_work_is_refused_before_anything_is_claimed(
    tmp_path: Path, root: Path, runner: CommandRunner, config: dict[str, Any], words: str
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(JobStartError) as refusal:
        runner.start(request(**config))
    assert refusal.value.permanent
    assert words in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert not root.exists()
    assert runner.recover(request(**config)) is Recovery.START_AGAIN


@pytest.mark.parametrize("run_id", ["../elsewhere", ".hidden", "", "a/b", "x" * 201, "a\n"])
def test_a_run_id_never_leads_out_of_the_folder(root: Path, runner: CommandRunner, run_id: str) -> None:
    with pytest.raises(JobStartError, match="cannot name a folder"):
        runner.start(request(run_id, command=["true"]))
    assert not root.exists()


@pytest.mark.parametrize(
    ("first_line", "category"), [("#!/no/such/interpreter", PERMANENT), ("no interpreter at all", PERMANENT)]
)
def test_a_program_that_can_not_be_run_is_the_users_fault(
    tmp_path: Path, runner: CommandRunner, notices: Notices, first_line: str, category: FailureCategory
) -> None:
    (tmp_path / "job").write_text(f"{first_line}\n")
    (tmp_path / "job").chmod(0o755)
    status = finished(runner, notices, command=["./job"])
    assert (status.state, status.category) == (JobState.FAILED, category)
    assert "could not be started" in status.error


def test_a_machine_that_can_start_nothing_is_a_passing_trouble(
    root: Path, runner: CommandRunner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_args: object, **_options: object) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_spawn", no_process)
        with pytest.raises(JobStartError, match="temporarily unavailable") as refusal:
            runner.start(request(command=["true"]))
    assert not refusal.value.permanent
    assert list(root.iterdir()) == []  # the refused start left no claim: it may be tried again
    assert finished(runner, notices, command=["true"]).state is JobState.SUCCEEDED


def test_it_runs_until_it_ends(tmp_path: Path, runner: CommandRunner, notices: Notices) -> None:
    gate = Gate(tmp_path)
    asked = request(command=gate.command)
    runner.start(asked)
    assert runner.check(asked, "run-1") == JobStatus(state=JobState.RUNNING)
    assert runner.recover(asked) == JobStarted(job_id="run-1")
    gate.release()
    assert notices.of("run-1").status.state is JobState.SUCCEEDED
    recovered = runner.recover(asked)
    assert recovered == JobStarted(job_id="run-1", status=JobStatus(state=JobState.SUCCEEDED))


def test_a_long_failure_is_told_with_its_last_lines(runner: CommandRunner, notices: Notices) -> None:
    status = finished(runner, notices, command=sh("seq 1 100000; exit 1"))
    assert status.error.startswith("exit code 1; its last output:\n99981\n")
    assert status.error.endswith("\n100000")
    assert runner.tail("run-1", 14) == "99999\n100000\n"
    assert len(runner.tail("run-1")) <= 64 * 1024


@given(output=st.binary(max_size=60).map(lambda data: data.replace(b"\r", b"\n")), limit=st.integers(1, 40))
def test_a_tail_is_the_end_of_the_output_from_the_start_of_a_line(
    tmp_path_factory: pytest.TempPathFactory, output: bytes, limit: int
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("tails"), "run")
    folder.path.mkdir()
    (folder.path / OUTPUT).write_bytes(output)
    tail = folder.output.tail(limit)
    if len(output) <= limit:
        assert tail == output.decode(errors="replace")
        return
    kept = output[-limit:]
    after = kept.split(b"\n", 1)[1] if output[-limit - 1 : -limit] != b"\n" and b"\n" in kept else kept
    assert tail in (after.decode(errors="replace"), kept.removesuffix(b"\n").decode(errors="replace"))


# -------------------------------------------------------------------------------------------------------- time-outs


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_timeout_ends_the_whole_process_group(runner: CommandRunner, notices: Notices) -> None:
    stubborn = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & echo $$; wait; wait"
    status = finished(runner, notices, command=sh(stubborn), timeout="300ms")
    assert (status.state, status.category) == (JobState.TIMED_OUT, TIMEOUT)
    assert "timeout" in status.error
    pids = [int(line) for line in runner.tail("run-1").split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if alive(pid)]


def test_a_timeout_leaves_time_to_clean_up_even_below_a_shell(runner: CommandRunner, notices: Notices) -> None:
    # The shell dies of the signal at once; its child needs a moment longer.
    child = 'trap "sleep 0.1; echo cleaned up; exit 0" TERM; echo $$; while :; do sleep 0.01; done'
    status = finished(runner, notices, command=sh(f"sh -c '{child}' & wait"), timeout="300ms")
    assert status.state is JobState.TIMED_OUT
    pid, said = runner.tail("run-1").splitlines()[0], runner.tail("run-1").splitlines()[-1]
    assert said == "cleaned up"
    assert not alive(int(pid))


def test_a_command_within_its_timeout_is_left_alone(runner: CommandRunner, notices: Notices) -> None:
    assert finished(runner, notices, command=["true"], timeout="1h").state is JobState.SUCCEEDED


def test_a_signal_to_the_wrapper_is_passed_on(
    tmp_path: Path, root: Path, runner: CommandRunner, notices: Notices
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap 'echo told; exit 4' TERM; echo go > {ready}; while :; do sleep 0.01; done"
    runner.start(request(command=sh(script)))
    assert ready.read_text() == "go\n"
    os.kill(marker(root, "run-1", "wrapper")["pid"], signal.SIGTERM)
    status = notices.of("run-1").status
    assert status.error.startswith("exit code 4;")
    assert status.error.endswith("\ntold")


# ------------------------------------------------------------------------------------------------- once, and no more


def test_one_run_id_is_one_process_however_many_start_it(
    tmp_path: Path, runner: CommandRunner, notices: Notices
) -> None:
    gate = Gate(tmp_path)
    asked = request(command=sh(f"echo here >> {tmp_path}/ran; {gate.command[2]}"))
    together = threading.Barrier(8)
    answers: list[JobStarted] = []

    def start() -> None:
        together.wait()
        answers.append(runner.start(asked))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gate.release()
    notices.of("run-1")
    assert answers == [JobStarted(job_id="run-1")] * 8
    assert (tmp_path / "ran").read_text() == "here\n"
    assert runner.start(asked).status == JobStatus(state=JobState.SUCCEEDED)
    assert (tmp_path / "ran").read_text() == "here\n"


def test_many_commands_at_once_in_one_thread_and_nothing_left_behind(root: Path, notices: Notices) -> None:
    threads_before = threading.active_count()
    files_before = len(os.listdir("/proc/self/fd"))
    children_before = psutil.Process().children()
    runner = CommandRunner(root, notices, ManualClock())
    ids = [f"run-{number}" for number in range(50)]
    for number, run_id in enumerate(ids):
        runner.start(request(run_id, command=sh(f"exit {number % 3}")))
    assert threading.active_count() == threads_before + 1
    reported = {notice.run_id: notice.status for notice in notices.all_of(50)}
    assert sorted(reported) == sorted(ids)
    for number, run_id in enumerate(ids):
        assert (reported[run_id].state is JobState.SUCCEEDED) == (number % 3 == 0)
    runner.close()
    assert len(notices.reported) == 50
    assert psutil.Process().children() == children_before  # no zombie either: a zombie is still a child
    assert len(os.listdir("/proc/self/fd")) == files_before
    assert threading.active_count() == threads_before


def test_closing_kills_nothing(tmp_path: Path, root: Path, runner: CommandRunner, notices: Notices) -> None:
    gate = Gate(tmp_path)
    asked = request(command=gate.command)
    runner.start(asked)
    runner.close()
    runner.close()
    gate.release()
    wait_for_wrapper(root, "run-1")
    assert notices.reported == []
    assert runner.check(asked, "run-1").state is JobState.SUCCEEDED


def test_an_exit_may_close_the_runner(root: Path) -> None:
    ended = threading.Event()

    def close(_notice: ExitNotice) -> None:
        runner.close()
        ended.set()

    runner = CommandRunner(root, close, ManualClock())
    runner.start(request(command=["true"]))
    assert ended.wait(30)
