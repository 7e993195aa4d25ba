"""`interlock serve` with a weakness: `python -m tests.faults.serve_process WEAKNESS serve ...`.

It shows when there is a file of the weakness's name in the folder where the process was started.
"""

import os
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from interlock.cli.main import main
from interlock.embedded.files import Applied
from interlock.embedded.service import Service
from interlock.embedded.sqlite.database import Database


class Weakness(StrEnum):
    """What is going to happen."""

    WRITER_DIES = "writer-dies"  # the writer thread fails in a place where nobody foresaw it
    SIGNALLED_EARLY = "signalled-early"  # SIGTERM comes while the controller is still starting

    @property
    def shown(self) -> bool:
        """Is it time?"""
        return Path(self.value).exists()


def _kill_the_writer() -> None:
    real = Database._commit_group

    def commit_group(self: Database, requests: Any) -> None:
        if Weakness.WRITER_DIES.shown:
            raise MemoryError("out of memory")
        real(self, requests)

    Database._commit_group = commit_group  # type: ignore[method-assign]


def _signal_at_the_start() -> None:
    real = Service.start

    def start(self: Service) -> Applied:
        os.kill(os.getpid(), signal.SIGTERM)
        return real(self)

    Service.start = start  # type: ignore[method-assign]


if __name__ == "__main__":
    match Weakness(sys.argv[1]):
        case Weakness.WRITER_DIES:
            _kill_the_writer()
        case Weakness.SIGNALLED_EARLY:
            _signal_at_the_start()
    main(sys.argv[2:])
