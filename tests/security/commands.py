"""Real `interlock` commands, and what belongs to another user."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.api.running import ROOT, WAIT

# Any user but root and the one who runs the tests.
STRANGER = 65533

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def interlock(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command, to its end, in a folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    path = os.pathsep.join([str(ROOT), *filter(None, [clean.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=folder,
        env={**clean, "PYTHONPATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT,
    )


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The command failed, and its error has these words."""
    assert done.returncode == 1, done.stdout + done.stderr
    for word in words:
        assert word in done.stderr


def give_away(*paths: Path) -> None:
    """These belong to a stranger now."""
    for path in paths:
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
