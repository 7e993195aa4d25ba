"""`interlock serve` with a weakness: `python -m tests.faults.serve_process WEAKNESS serve ...`.

It shows when there is a file of the weakness's name in the folder where the process was started.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from interlock.cli.main import main
from interlock.embedded.database import Database


class Weakness(StrEnum):
    """What is going to happen."""

    WRITER_DIES = "writer-dies"  # the writer thread fails in a place where nobody foresaw it

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


if __name__ == "__main__":
    match Weakness(sys.argv[1]):
        case Weakness.WRITER_DIES:
            _kill_the_writer()
    main(sys.argv[2:])
