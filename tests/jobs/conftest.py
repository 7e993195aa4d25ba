"""A command runner on a folder of the test's own."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.jobs.command.target import CommandRunner
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import Notices


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state" / "commands"


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
def runner(root: Path, notices: Notices, tmp_path: Path) -> Iterator[CommandRunner]:
    made = CommandRunner(root, notices, ManualClock(), working_folder=tmp_path, grace=timedelta(milliseconds=300))
    yield made
    made.close()
