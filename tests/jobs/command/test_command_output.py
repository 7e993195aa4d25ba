"""What is kept of a command's output: within a limit while it writes, and not forever."""

import os
import re
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.embedded.clock import SystemClock, pause
from interlock.jobs.command import folder as command_folder
from interlock.jobs.command import prune as command_prune
from interlock.jobs.command import wrapper as command_wrapper
from interlock.jobs.command.folder import RunFolder
from interlock.jobs.command.output import OutputKept
from interlock.jobs.command.prune import prune
from interlock.jobs.command.target import CommandRunner
from interlock.jobs.command.wrapper import OUTPUT
from interlock.ports.jobs import JobState
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import Gate, Notices, request, wait_for_wrapper

LIMIT = 256 * 1024
LINES = 200_000
# Numbered lines, so that what is missing can be told; 10 bytes each.
WRITER = f"import sys\nfor n in range({LINES}): sys.stdout.write('%09d\\n' % n)\n"


@pytest.fixture
def limited(root: Path, notices: Notices, tmp_path: Path) -> CommandRunner:
    return CommandRunner(root, notices, ManualClock(), working_folder=tmp_path, output_limit=LIMIT)


def used(folder: Path) -> int:
    return sum(one.stat().st_blocks * 512 for one in folder.iterdir())


def whole_output(runner: CommandRunner, run_id: str) -> str:
    """As a reader gets it who asks piece by piece."""
    offset, text = 0, ""
    while True:
        piece = runner.output(request(run_id), run_id, offset=offset)
        text += piece.text
        if piece.complete:
            return text
        assert piece.next_offset > offset
        offset = piece.next_offset


def test_beginning_and_end_of_a_long_output_are_kept(limited: CommandRunner, notices: Notices, root: Path) -> None:
    limited.start(request(command=[sys.executable, "-c", WRITER]))
    status = notices.of("run-1").status
    assert status.state is JobState.SUCCEEDED
    assert re.fullmatch(
        r"it wrote 1\.9 MiB: the beginning and the end are kept, 1\.\d MiB were left out", status.warning
    )
    assert used(root / "run-1") < 2 * LIMIT
    before, mark, after = whole_output(limited, "run-1").partition("[... ")
    assert mark
    assert before.startswith("000000000\n000000001\n")
    assert len(before) > LIMIT // 3
    assert after.endswith(f"{LINES - 1:09}\n")
    assert "bytes were left out here ...]" in after
    assert limited.tail("run-1", 25).splitlines() == [f"{LINES - 2:09}", f"{LINES - 1:09}"]
    limited.close()


def test_output_is_kept_within_its_limit_while_the_command_runs(
    limited: CommandRunner, notices: Notices, root: Path, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    script = f'{sys.executable} -c "{WRITER}"; echo written > {tmp_path}/written; {gate.command[2]}'
    limited.start(request(command=["sh", "-c", script]))
    folder = RunFolder(root, "run-1")
    for _ in range(300):
        if (tmp_path / "written").exists() and used(folder.path) < 2 * LIMIT:
            break
        pause(0.1)
    assert used(folder.path) < 2 * LIMIT
    assert folder.output.warning()
    gate.release(3)
    failed = notices.of("run-1").status
    assert failed.state is JobState.FAILED
    assert "left out" in failed.warning
    limited.close()


def test_file_is_cut_short_where_the_disk_makes_no_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_wrapper, "punch_hole", lambda *_: False)
    file = os.open(tmp_path / OUTPUT, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    monkeypatch.setattr(command_wrapper, "_OUTPUT", file)
    output = command_wrapper.Output(str(tmp_path), LIMIT)
    for number in range(LINES // 1000):
        os.write(file, b"".join(b"%09d\n" % (number * 1000 + line) for line in range(1000)))
        output.cut()
    os.close(file)
    assert (tmp_path / OUTPUT).stat().st_size < 2 * LIMIT
    folder = RunFolder(tmp_path.parent, tmp_path.name)
    assert folder.output.tail(12) == f"{LINES - 1:09}\n"
    assert folder.output.warning().startswith("it wrote 1.9 MiB: the beginning and the end are kept, 1.")
    assert folder.output.read(0, 10).data == b"000000000\n"


def test_output_below_its_limit_is_whole(limited: CommandRunner, notices: Notices) -> None:
    limited.start(request(command=["sh", "-c", "yes | head -c 200000"]))
    assert notices.of("run-1").status.warning == ""
    assert whole_output(limited, "run-1") == "y\n" * 100_000
    limited.close()


# --------------------------------------------------------------------------------------------------------- pruning


def run_some(runner: CommandRunner, notices: Notices, root: Path, count: int) -> None:
    for number in range(count):
        run_id = f"run-{number}"
        runner.start(request(run_id, command=["sh", "-c", "head -c 100000 /dev/zero"]))
        notices.of(run_id)
        wait_for_wrapper(root, run_id)


def wait_until_reported(root: Path, count: int) -> None:
    for _ in range(300):
        if sum((root / f"run-{number}" / "reported").exists() for number in range(count)) == count:
            return
        pause(0.02)
    raise AssertionError("not reported")


def test_oldest_go_when_all_together_are_too_much(runner: CommandRunner, notices: Notices, root: Path) -> None:
    run_some(runner, notices, root, 5)
    wait_until_reported(root, 5)
    now = SystemClock().now()
    assert prune(root, OutputKept(total=10_000_000), now) == 0
    assert prune(root, OutputKept(total=320_000), now) == 3
    assert sorted(one.name for one in root.iterdir()) == ["run-3", "run-4"]
    assert prune(root, OutputKept(total=0), now) == 2


def test_an_end_that_an_earlier_version_reported_is_known(runner: CommandRunner, notices: Notices, root: Path) -> None:
    run_some(runner, notices, root, 1)
    wait_until_reported(root, 1)
    (root / "run-0" / "reported").rename(root / "run-0" / "told")
    assert prune(root, OutputKept(total=0), SystemClock().now()) == 1


def test_command_that_runs_or_whose_end_nobody_knows_is_kept_however_much_it_takes(
    runner: CommandRunner, notices: Notices, root: Path, tmp_path: Path
) -> None:
    run_some(runner, notices, root, 2)
    wait_until_reported(root, 2)
    (root / "run-0" / "reported").unlink()
    gate = Gate(tmp_path)
    runner.start(request("running", command=gate.command))
    assert prune(root, OutputKept(total=0), SystemClock().now()) == 1
    assert sorted(one.name for one in root.iterdir()) == ["run-0", "running"]
    gate.release()
    notices.of("running")


@pytest.mark.parametrize("name", [".claim-x", "run-0"])
def test_folder_that_vanishes_meanwhile_does_not_stop_the_pruning(
    runner: CommandRunner, notices: Notices, root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run_some(runner, notices, root, 3)
    wait_until_reported(root, 3)
    (root / ".claim-x").mkdir()
    real = command_folder.stray_folders if name.startswith(".") else command_folder.run_folders

    def and_gone(place: Path) -> list[object]:
        found = list(real(place))
        shutil.rmtree(root / name)
        return found

    monkeypatch.setattr(command_prune, real.__name__, and_gone)
    later = SystemClock().now() + timedelta(days=31)
    assert prune(root, OutputKept(), later) == (3 if name.startswith(".") else 2)
    assert list(root.iterdir()) == []
