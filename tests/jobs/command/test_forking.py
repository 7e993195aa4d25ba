"""Wrappers are forked by a small server; without it, each has an interpreter of its own, and nothing else differs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from interlock.jobs.command import fork_server, wrapper
from interlock.jobs.command.folder import Phase, RunFolder
from interlock.jobs.command.forking import ForkServer
from interlock.jobs.command.target import CommandRunner
from interlock.model.errors import InterlockError
from interlock.ports.jobs import JobState, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import Gate, Notices, marker, request, wait_for_wrapper


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
def runner(root: Path, notices: Notices) -> Iterator[CommandRunner]:
    made = CommandRunner(root, notices, ManualClock())
    yield made
    made.close()


def wrapper_of(root: Path, run_id: str) -> psutil.Process:
    return psutil.Process(marker(root, run_id, "wrapper")["pid"])


def server_of(runner: CommandRunner) -> int:
    return runner._forks._pid


def test_wrappers_are_forked_by_one_server_and_leave_no_zombies(
    root: Path, runner: CommandRunner, notices: Notices
) -> None:
    for number in range(20):
        runner.start(request(f"run-{number}", command=["sh", "-c", f"exit {number % 3}"]))
    states = {notices.of(f"run-{number}").status.state for number in range(20)}
    assert states == {JobState.SUCCEEDED, JobState.FAILED}
    server = psutil.Process(server_of(runner))
    assert fork_server.__file__ in server.cmdline()
    runner.start(request("last", command=["true"]))
    notices.of("last")
    wait_for_wrapper(root, "last")
    psutil.wait_procs(server.children(), timeout=10)
    assert server.children() == []


def test_a_server_that_was_killed_is_started_again(root: Path, runner: CommandRunner, notices: Notices) -> None:
    runner.start(request("first", command=["true"]))
    notices.of("first")
    first = server_of(runner)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    runner.start(request("second", command=["true"]))
    assert notices.of("second").status.state is JobState.SUCCEEDED
    runner.start(request("third", command=["true"]))
    assert notices.of("third").status.state is JobState.SUCCEEDED
    assert server_of(runner) != first


def test_a_command_goes_on_when_its_server_dies(
    tmp_path: Path, root: Path, runner: CommandRunner, notices: Notices
) -> None:
    gate = Gate(tmp_path)
    runner.start(request(command=gate.command))
    with gate.path.open("w") as reported:
        os.kill(server_of(runner), signal.SIGKILL)
        reported.write("7\n")
    assert notices.of("run-1").status.error.startswith("exit code 7")


def test_without_an_answer_nobody_starts_it_twice(
    root: Path, runner: CommandRunner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies between the request and its answer: whether the command runs is for `recover` to find out."""
    sent = ForkServer._sent

    def then_kill(self: ForkServer, *given: object) -> bool:
        os.kill(self._pid, signal.SIGSTOP)
        done = sent(self, *given)  # type: ignore[arg-type]
        os.kill(self._pid, signal.SIGKILL)
        return done

    asked = request(command=["true"])
    with monkeypatch.context() as patched:
        patched.setattr(ForkServer, "_sent", then_kill)
        with pytest.raises(InterlockError, match="may have started"):
            runner.start(asked)
    assert RunFolder(root, "run-1").phase() is Phase.UNSTARTED
    assert runner.recover(asked) is Recovery.START_AGAIN
    runner.start(asked)
    assert notices.of("run-1").status.state is JobState.SUCCEEDED


def test_a_command_that_is_too_long_for_a_request_is_started_all_the_same(
    runner: CommandRunner, notices: Notices
) -> None:
    long = "x" * 100_000
    runner.start(request(command=["sh", "-c", 'test "${#1}${#2}" = 100000100000', "sh", long, long]))
    assert notices.of("run-1").status.state is JobState.SUCCEEDED


def test_where_no_server_can_be_started_each_wrapper_has_its_own_interpreter(
    root: Path, runner: CommandRunner, notices: Notices, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_self: ForkServer) -> None:
        raise OSError(11, "no")

    monkeypatch.setattr(ForkServer, "_begin", refuse)
    gate = Gate(tmp_path)
    runner.start(request(command=gate.command))
    with gate.path.open("w") as reported:
        assert "wrapper.py" in " ".join(wrapper_of(root, "run-1").cmdline())
        reported.write("0\n")
    assert notices.of("run-1").status.state is JobState.SUCCEEDED


def test_a_wrapper_knows_nothing_of_its_controller(
    tmp_path: Path, root: Path, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither variables nor descriptors: a job can read those of its parents."""
    monkeypatch.setenv("INTERLOCK_TOKEN", "secret")
    runner = CommandRunner(root, notices, ManualClock())
    gate = Gate(tmp_path)
    runner.start(request(command=gate.command))
    with gate.path.open("w") as reported:
        wrapper = wrapper_of(root, "run-1")
        parents = [wrapper, psutil.Process(server_of(runner))]
        assert all("INTERLOCK_TOKEN" not in process.environ() for process in parents)
        opened = {link.readlink().name for link in Path(f"/proc/{wrapper.pid}/fd").iterdir()}
        assert not any(name.startswith("socket") for name in opened)
        reported.write("0\n")
    notices.of("run-1")
    runner.close()


def test_a_command_does_not_begin_when_its_wrapper_dies_before_it_is_ready(tmp_path: Path) -> None:
    folder, touched = tmp_path / "run", tmp_path / "touched"
    folder.mkdir()
    go, ready = os.pipe()
    os.close(ready)  # the wrapper's end: it has died
    command = os.fork()
    if command == 0:
        try:
            wrapper.become(str(folder), "", str(tmp_path), "/bin/touch", ["touch", str(touched)], {}, go)
        finally:
            os._exit(1)
    os.close(go)
    assert os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]) == 127
    assert not touched.exists()
    assert list(folder.iterdir()) == [], "it says nothing of itself: the wrapper does, before it lets it begin"


_STEPS = """
import os, sys, importlib.machinery
wrapper = importlib.machinery.SourceFileLoader("wrapper", sys.argv[1]).load_module()
folder = sys.argv[2]
wrapper.identity(os.getpid())
before = set(sys.modules)
assert wrapper.make_ready(folder, os.fork() or os._exit(0)) == 0
wrapper.finish(folder, 0)
print(sorted(set(sys.modules) - before))
"""


def test_a_wrapper_loads_nothing_that_the_fork_server_has_not_loaded(tmp_path: Path) -> None:
    """It was half of a wrapper's processor time: a codec, in every wrapper and every command's process anew."""
    steps = [sys.executable, "-I", "-S", "-c", _STEPS, wrapper.__file__, str(tmp_path)]
    loaded = subprocess.run(steps, check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "[]"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["exit.json", "started", "wrapper"]
