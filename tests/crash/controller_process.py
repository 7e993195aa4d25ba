"""The process that is killed: a whole controller on a real file. It runs until its standard input is closed.

`python -m tests.crash.controller_process STORE LEDGER`; CRASH_AT and SEARCHABLE in the environment.
"""

import os
import sys
from pathlib import Path

from interlock.control import writing
from interlock.embedded.runtime import Runtime
from interlock.ports.jobs import JobRequest
from tests.crash.ledger import CrashPoint, LedgerTarget
from tests.crash.pipelines import engine_on


def main(store: Path, ledger: Path) -> None:
    """Start, say so, run until nobody holds the other end of the pipe."""
    target = LedgerTarget(
        ledger,
        searchable=os.environ.get("SEARCHABLE", "yes") == "yes",
        crash_at=CrashPoint(os.environ.get("CRASH_AT", "")),
    )
    engine = engine_on(store, target)

    def ended(request: JobRequest) -> None:
        writing.job_ended(engine.control, request.key, request.attempt)

    target.on_end = ended
    runtime = Runtime(engine)
    runtime.start()
    sys.stdout.write("started\n")
    sys.stdout.flush()
    sys.stdin.read()
    runtime.stop()
    engine.database.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
