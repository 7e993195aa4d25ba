"""A real `interlock serve` on a folder of pipelines, whose jobs are real processes that write down what they do."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from interlock.control import records
from interlock.embedded.process.discovery import find_server
from interlock.model.keys import RunKey
from interlock.model.run import JobRecord, Run, RunStatus
from tests.crash import pipelines
from tests.crash.serve_process import Accident
from tests.crash.stage import PATIENCE, ROOT, Scene
from tests.jobs.command.trials import Gate, marker, wait_for_wrapper

START: Final = "start"
END: Final = "end"

# One line when it starts and one when it ends, appended in one write each. Between them it waits where it is told to,
# and is told its exit code there.
_JOB: Final = """
run="$INTERLOCK_PIPELINE\t$INTERLOCK_DATE\t$INTERLOCK_ATTEMPT\t$INTERLOCK_RUN_ID\t$$"
gate="gates/$INTERLOCK_PIPELINE-$INTERLOCK_DATE-$INTERLOCK_ATTEMPT"
code=0
echo "start\t$run" >> ledger.tsv
if [ -p "$gate" ]; then read -r code < "$gate"; fi
echo "end\t$run" >> ledger.tsv
exit "$code"
"""


class Line(NamedTuple):
    """One line of the jobs' ledger."""

    mark: str
    of: RunKey
    attempt: int
    run_id: str
    pid: int


class CommandStage(Scene):
    """A scene whose jobs are commands. Their ends are told, or not known: nobody polls within the length of a test."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder
        self._jobs = self._store.with_name(f"{self._store.name}.jobs")
        self._gates: dict[tuple[RunKey, int], Gate] = {}
        (folder / "gates").mkdir()
        (folder / "pipelines").mkdir()
        (folder / "job.sh").write_text(_JOB, encoding="utf-8")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        for gate in self._gates.values():
            with suppress(OSError):  # nobody waits there
                os.close(os.open(gate.path, os.O_WRONLY | os.O_NONBLOCK))

    def pipeline(self, name: str, **job: Any) -> None:
        """Write a pipeline's file, for the next controller."""
        content = pipelines.document(name, {"config": {"command": ["sh", "job.sh"]}, "pollInterval": "1h", **job})
        (self._folder / "pipelines" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")

    # ------------------------------------------------------------------------------------------------ the controller

    def start(self) -> None:
        """Start a controller; returns when it runs."""
        self._serve("interlock")

    def start_for(self, accident: Accident, key: RunKey) -> None:
        """Start a controller that meets with an accident at the first attempt of a run."""
        self._serve("tests.crash.serve_process", accident.value, f"{key.pipeline}-{key.date}-1-")

    def _serve(self, module: str, *arguments: str) -> None:
        assert self._process is None
        ours = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        path = os.pathsep.join([str(ROOT), *filter(None, [ours.get("PYTHONPATH")])])
        with (self._folder / "log.txt").open("ab") as log:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, "serve", "--port", "0"],
                cwd=self._folder,
                env={**ours, "PYTHONPATH": path},
                stdout=log,
                stderr=log,
                text=True,
            )
        self.until(lambda: self._serves(process))

    def _serves(self, process: "subprocess.Popen[str]") -> bool:
        assert process.poll() is None, (self._folder / "log.txt").read_text(encoding="utf-8")
        found = find_server(self._store)
        return found is not None and found.pid == process.pid

    def stop(self) -> int:
        """Let it end in peace; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)
        return self._reap()

    # ------------------------------------------------------------------------------------------------------ the jobs

    def ledger(self) -> list[Line]:
        """What the jobs wrote, in order."""
        path = self._folder / "ledger.tsv"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        fields = (line.split("\t") for line in lines)
        return [
            Line(mark, RunKey(pipeline, "stream", date), int(attempt), run_id, int(pid))
            for mark, pipeline, date, attempt, run_id, pid in fields
        ]

    def marks(self, key: RunKey) -> list[tuple[str, int]]:
        """What the jobs of a run wrote, in order: (mark, attempt)."""
        return [(line.mark, line.attempt) for line in self.ledger() if line.of == key]

    def hold(self, key: RunKey, attempt: int = 1) -> None:
        """Have a job wait, once it runs."""
        self._gates[key, attempt] = Gate(self._folder / "gates", f"{key.pipeline}-{key.date}-{attempt}")

    def release(self, key: RunKey, attempt: int = 1, code: int = 0) -> None:
        """Have it end with that code; waits for it to run."""
        self._gates[key, attempt].release(code)

    def await_held(self, keys: Sequence[RunKey], attempt: int = 1) -> None:
        """Wait until the jobs run, and the controller has stored that."""
        self.until(lambda: all((START, attempt) in self.marks(key) and self._runs(key, attempt) for key in keys))

    def _runs(self, key: RunKey, attempt: int) -> bool:
        run = self.latest(key)
        return run.attempt == attempt and run.status is RunStatus.RUNNING

    def await_status(self, status: RunStatus, *keys: RunKey) -> None:
        """Wait until the runs have it."""
        self.until(lambda: all(run is not None and run.status is status for run in map(self.run, keys)))

    def await_end(self, key: RunKey) -> None:
        """Wait until the wrapper of a run's latest job is gone: how the job ended is on disk."""
        wait_for_wrapper(self._jobs, self.latest(key).run_id)

    def kill_wrapper(self, key: RunKey, *, and_command: bool = False) -> None:
        """`kill -9` of the wrapper of a run's latest job; its command goes on, or dies unseen as well."""
        run_id = self.latest(key).run_id
        wrapper: int = marker(self._jobs, run_id, "wrapper")["pid"]
        if and_command:
            os.kill(wrapper, signal.SIGSTOP)
            os.killpg(marker(self._jobs, run_id, "started")["pid"], signal.SIGKILL)
        os.kill(wrapper, signal.SIGKILL)
        wait_for_wrapper(self._jobs, run_id)

    def latest(self, key: RunKey) -> Run:
        """The run, which there is."""
        run = self.run(key)
        assert run is not None, key
        return run

    def job_log(self, key: RunKey) -> list[JobRecord]:
        return records.job_log(self.engine.store, key)
