"""What a controller is given to do in a campaign: pipelines whose jobs write down that they were started.

Jobs are commands. Each appends one line to a ledger, outside of the disk that is going to be full, and ends as the name
of its pipeline says. Every slot (a pipeline and a date) is written once; so it is known what must come of it.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

_FIRST_DAY: Final = date(2020, 1, 1)
_JOB: Final = """
printf '%s\\t%s\\t%s\\t%s\\n' "$INTERLOCK_PIPELINE" "$INTERLOCK_DATE" "$INTERLOCK_ATTEMPT" "$INTERLOCK_RUN_ID" >> "$1"
case "$INTERLOCK_PIPELINE-$INTERLOCK_ATTEMPT" in
  flaky-*-1) exit 75 ;;
  failing-*) exit 1 ;;
esac
"""


class Kind(StrEnum):
    """How the jobs of a pipeline end."""

    GOOD = "good"
    FLAKY = "flaky"  # the first attempt of each run fails for a passing reason
    FAILING = "failing"

    @property
    def starts(self) -> int:
        """How often the job of a run is started."""
        return 1 if self is Kind.GOOD else 2

    @property
    def status(self) -> str:
        """How a run ends."""
        return "FAILED_FINAL" if self is Kind.FAILING else "COMPLETED"


class Slot(NamedTuple):
    """A run that is going to be."""

    pipeline: str
    date: str

    @property
    def kind(self) -> Kind:
        return Kind(self.pipeline.partition("-")[0])


class Start(NamedTuple):
    """A line of the jobs' ledger."""

    slot: Slot
    attempt: int
    run_id: str


class Workload:
    """The files of a campaign, and the slots in the order in which they are written."""

    COUNTED = "counted"
    """A pipeline whose sensors are counters, and which nothing opens a run of."""

    def __init__(self, project: Path, outside: Path, webhook: str) -> None:
        self._ledger = outside / "starts.tsv"
        self._names = [f"{kind}-{number}" for number in range(4) for kind in (Kind.GOOD, Kind.FLAKY, Kind.FAILING)]
        self._next = 0
        self._lock = threading.Lock()
        job = outside / "job.sh"
        job.write_text(_JOB, encoding="utf-8")
        (project / "pipelines").mkdir()
        for name in (*self._names, self.COUNTED):
            file = project / "pipelines" / f"{name}.json"
            file.write_text(json.dumps(self._document(name, job)), encoding="utf-8")
        (project / "interlock.toml").write_text(
            'watchdog_interval = "5s"\n[jobs]\nallow_private_addresses = true\n'
            f'[[alerts]]\nchannel = "webhook"\nurl = "{webhook}"\n',
            encoding="utf-8",
        )

    def _document(self, name: str, job: Path) -> dict[str, Any]:
        ready = {"key": "up", "check": "equals", "field": "status", "value": "ready"}
        rows = {"key": "rows", "check": "gte", "field": "count", "value": 10}
        return {
            "pipeline": {"id": name},
            "schedule": {"trigger": ready},
            "validation": {"rules": [ready, rows]},
            # Nobody polls within a campaign: an end is told, or found after a restart.
            "job": {
                "type": "command",
                "config": {"command": ["sh", str(job), str(self._ledger)]},
                "maxRetries": 1,
                "pollInterval": "1h",
            },
        }

    def next_slot(self) -> Slot:
        """Another slot; for several threads."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        day = _FIRST_DAY + timedelta(days=number // len(self._names))
        return Slot(self._names[number % len(self._names)], day.isoformat())

    def starts(self) -> Iterator[Start]:
        """What the jobs wrote down."""
        lines = self._ledger.read_text(encoding="utf-8").splitlines() if self._ledger.exists() else []
        for line in lines:
            pipeline, day, attempt, run_id = line.split("\t")
            yield Start(Slot(pipeline, day), int(attempt), run_id)

    def started_twice(self) -> list[str]:
        """Attempts whose job was started more than once, and runs with more starts than they may have."""
        starts = list(self.starts())
        attempts = Counter((one.slot, one.attempt) for one in starts)
        runs = Counter(one.slot for one in starts)
        twice = [f"{slot} attempt {attempt} was started {n} times" for (slot, attempt), n in attempts.items() if n > 1]
        return twice + [f"{slot} was started {n} times" for slot, n in runs.items() if n > slot.kind.starts]
