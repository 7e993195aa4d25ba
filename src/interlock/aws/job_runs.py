"""Which run a job of AWS belongs to: an event that says that a job ended names the job, and nothing of ours.

Whoever starts a job of these types also writes a small record under the job's id (`JOBRUN#{id}`); the event finds the
run by it. A record that could not be written costs nothing but time: the lifecycle polls all the same.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from interlock.logs import get_logger
from interlock.model.config import JobType
from interlock.model.errors import InterlockError
from interlock.model.keys import RunKey, Table
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobOutput, JobRequest, JobRunner, JobStarted, JobStatus, JobStop, Recovery
from interlock.ports.store import Key, Put, Store

RECORD: Final = "JOBRUN#"
_SK: Final = "JOBRUN"
TYPES: Final = frozenset({JobType.GLUE, JobType.EMR, JobType.EMR_SERVERLESS, JobType.STEP_FUNCTION})
"""The types whose ends EventBridge tells of."""
_REMEMBERED: Final = timedelta(days=8)
"""A job that was given up may still end: a late success completes its run."""
_log = get_logger(__name__)


def find_run(store: Store, job_id: str) -> tuple[RunKey, int] | None:
    """The run and the attempt that started a job; None when it is none of ours."""
    found = store.get(_key(job_id))
    if found is None:
        return None
    return RunKey(str(found["pipeline"]), str(found["schedule"]), str(found["date"])), int(found["attempt"])


def remembering(jobs: Mapping[str, JobRunner], store: Store, clock: Clock) -> dict[str, JobRunner]:
    """The same runners; those of which EventBridge tells remember what they started."""
    return {name: JobMemory(runner, store, clock) if name in TYPES else runner for name, runner in jobs.items()}


class JobMemory:
    """A runner that writes down which run each job belongs to."""

    def __init__(self, runner: JobRunner, store: Store, clock: Clock) -> None:
        self._runner = runner
        self._store = store
        self._clock = clock

    def start(self, request: JobRequest) -> JobStarted:
        """As the target does it."""
        return self._noted(request, self._runner.start(request))

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """As the target does it."""
        found = self._runner.recover(request)
        return self._noted(request, found) if isinstance(found, JobStarted) else found

    def _noted(self, request: JobRequest, started: JobStarted) -> JobStarted:
        try:
            self._store.commit([Put(_key(started.job_id), self._item(request))])
        except InterlockError as error:
            # The job runs: nothing may make its start look as if it had failed.
            _log.warning("job-not-noted", run=str(request.key), attempt=request.attempt, error=str(error))
        return started

    def _item(self, request: JobRequest) -> dict[str, Any]:
        key = request.key
        until = int((self._clock.now() + _REMEMBERED).timestamp())
        run = {"pipeline": key.pipeline, "schedule": key.schedule, "date": key.date}
        return {**run, "attempt": request.attempt, "ttl": until}

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """As the target does it."""
        return self._runner.check(request, job_id)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """As the target does it."""
        return self._runner.stop(request, job_id)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """As the target does it."""
        return self._runner.output(request, job_id, offset=offset)

    def link(self, request: JobRequest, job_id: str) -> str:
        """As the target does it."""
        return self._runner.link(request, job_id)


def _key(job_id: str) -> Key:
    return Key(Table.CONTROL, RECORD + job_id, _SK)
