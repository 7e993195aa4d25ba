"""Jobs of type `airflow`: one DAG run, whose id is our run id.

That id is the idempotency key: a second start of the same run is answered with 409, and the run that is there is ours.
A DAG that is missing or paused is refused before anything is started: Airflow takes runs of a paused DAG, and never
runs them. Nor does it run the tasks of a run whose logical date is still to come. No two runs of a DAG have the same
logical date: attempts are a microsecond apart, and where somebody else's run has the date already, ours is moved by
less than a second.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from interlock.jobs.airflow.api import AirflowApi, Version, base, masks_of
from interlock.jobs.airflow.log import Task, run_log, task_log, tasks_of
from interlock.jobs.configs import read_config
from interlock.jobs.output import piece_of
from interlock.jobs.rest import Answer, NotReachedError, RestClient, describe, refusal
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import AirflowConfig, BasicAuth
from interlock.model.run import FailureCategory
from interlock.ports.clock import Clock
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

_ERROR_LINES: Final = 20
_ERROR_CHARACTERS: Final = 1500
_MOST_NAMED: Final = 10

# What the state of a DAG run means. A failed one is looked at more closely: `_failure`.
STATES: Final = {
    "queued": JobState.RUNNING,
    "running": JobState.RUNNING,
    "success": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
}


class AirflowRunner:
    """DAG runs of any number of Airflows."""

    def __init__(self, client: RestClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._api = AirflowApi(client)

    def start(self, request: JobRequest) -> JobStarted:
        """Create the DAG run; one that is there already under our id is the same start."""
        config = read_config(request, AirflowConfig)
        try:
            version = self._api.find_version(config)
            self._refuse_unless_runnable(config)
        except UnavailableError as error:
            raise JobStartError(str(error), permanent=False) from error  # nothing was asked for yet
        note = {"note": f"started by Interlock for {request.key}, attempt {request.attempt}"} if version == "v2" else {}
        dates = logical_dates(request, self._clock.now())
        for date in dates:
            if self._created(config, request.run_id, {"logical_date": date, "conf": config.conf, **note}):
                return JobStarted(job_id=request.run_id)
        message = f"{_dag(config)} has other runs of the logical date {dates[0]}: delete them"
        raise JobStartError(message, permanent=True)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """The DAG run of our id, if it is there; starting again is harmless."""
        config = read_config(request, AirflowConfig)
        answer = self._run(config, request.run_id)
        if answer.code == 404:
            return Recovery.START_AGAIN
        if not answer.good:
            raise UnavailableError(f"{_dag(config)} cannot be asked: {describe(answer, masks_of(config))}")
        return JobStarted(job_id=request.run_id)

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """The state of the DAG run; of a failed one also which tasks failed, and the end of a log."""
        config = read_config(request, AirflowConfig)
        answer = self._run(config, job_id)
        if answer.code == 404:
            message = f"{_dag(config)} has no run {job_id} any more: somebody deleted it, or the DAG"
            return JobStatus(state=JobState.FAILED, category=FailureCategory.PERMANENT, error=message)
        if not answer.good:
            raise UnavailableError(f"{_dag(config)} cannot be asked: {describe(answer, masks_of(config))}")
        state = STATES.get(str(answer.json().get("state")))
        if state is None:
            raise UnavailableError(f"{_dag(config)} says nothing of the state of {job_id}")
        return self._failure(config, job_id) if state is JobState.FAILED else JobStatus(state=state)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Mark the run as failed, which ends its tasks. Asked first: marking an ended one would change its end."""
        config = read_config(request, AirflowConfig)
        if self.check(request, job_id).state.terminal:
            return JobStop.ENDED
        answer = self._api.call(config, "PATCH", config.dag_id, "dagRuns", job_id, json={"state": "failed"})
        if answer.good:
            return JobStop.REQUESTED
        message = f"{_dag(config)} does not end {job_id}: {describe(answer, masks_of(config))}"
        if 400 <= answer.code < 500 and answer.code != 429:
            raise JobStopError(f"{message}; mark it as failed in Airflow: {self.link(request, job_id)}")
        raise UnavailableError(message)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """The logs of its tasks, one after the other."""
        config = read_config(request, AirflowConfig)
        ended = self.check(request, job_id).state.terminal  # asked first: what an ended run wrote is all there
        text = run_log(self._api, config, job_id)
        return piece_of(text, offset, ended=ended, link=self.link(request, job_id))

    def link(self, request: JobRequest, job_id: str) -> str:
        """The page of the DAG run."""
        config = read_config(request, AirflowConfig)
        dag, run = quote(config.dag_id, safe=""), quote(job_id, safe="")
        if self._api.version(config, ask=False) == "v1":
            return f"{base(config)}/dags/{dag}/grid?dag_run_id={run}"
        return f"{base(config)}/dags/{dag}/runs/{run}"

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    # ---------------------------------------------------------------------------------------------------- inside

    def _run(self, config: AirflowConfig, run_id: str) -> Answer:
        return self._api.call(config, "GET", config.dag_id, "dagRuns", run_id)

    def _refuse_unless_runnable(self, config: AirflowConfig) -> None:
        answer = self._api.call(config, "GET", config.dag_id)
        if answer.code == 404:
            raise JobStartError(f"{_dag(config)} does not exist there: check dagId and url", permanent=True)
        if not answer.good:
            hint = _auth_hint(config, answer, self._api.version(config))
            raise refusal(f"{_dag(config)}: {describe(answer, masks_of(config))}{hint}", answer)
        dag = answer.json()
        if dag.get("is_paused"):
            message = f"{_dag(config)} is paused, so a run of it would wait forever: unpause it, then rerun"
            raise JobStartError(message, permanent=True)
        if dag.get("is_stale") or dag.get("is_active") is False:
            raise JobStartError(f"{_dag(config)} is no longer in Airflow's DAG files: restore it", permanent=True)

    def _created(self, config: AirflowConfig, run_id: str, body: Mapping[str, object]) -> bool:
        """Is there a run of our id now? False when another run has the logical date, and so nothing was created."""
        try:
            answer = self._api.call(config, "POST", config.dag_id, "dagRuns", json={"dag_run_id": run_id, **body})
        except NotReachedError as error:
            raise JobStartError(str(error), permanent=False) from error
        if answer.code == 409:  # which does not say what is taken: our run id, which is well, or the logical date
            answer = self._run(config, run_id)
            if answer.code == 404:
                return False
            if not answer.good:
                raise UnavailableError(f"{_dag(config)} cannot be asked: {describe(answer, masks_of(config))}")
        if not answer.good:
            raise refusal(f"{_dag(config)} was not started: {describe(answer, masks_of(config))}", answer)
        return True

    def _failure(self, config: AirflowConfig, run_id: str) -> JobStatus:
        """A failed task is a fault of the DAG, since Airflow has used up the task's own retries by then.

        A run in which no task failed, but some were skipped, has come to the end of its `dagrun_timeout`.
        """
        failed = tasks_of(self._api, config, run_id, "failed")
        if failed:
            names = ", ".join(f"{task.name} (try {task.try_number})" for task in failed[:_MOST_NAMED])
            error = f"the DAG run failed in {names}{self._last_lines(config, run_id, failed[0])}"
            return JobStatus(state=JobState.FAILED, category=FailureCategory.PERMANENT, error=error)
        if tasks_of(self._api, config, run_id, "skipped"):
            error = "the DAG run failed without a failed task: its dagrun_timeout was over"
            return JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TIMEOUT, error=error)
        error = "the DAG run failed, and no task of it: somebody marked it as failed"
        return JobStatus(state=JobState.FAILED, category=FailureCategory.PERMANENT, error=error)

    def _last_lines(self, config: AirflowConfig, run_id: str, task: Task) -> str:
        try:
            lines = task_log(self._api, config, run_id, task).splitlines()[-_ERROR_LINES:]
        except UnavailableError:
            return ""  # the verdict does not depend on it
        text = masks_of(config).hide("\n".join(lines))[-_ERROR_CHARACTERS:]
        return f"; its last output:\n{text}" if text else ""


def logical_dates(request: JobRequest, now: datetime) -> tuple[str, str]:
    """The instant at which the run's period begins, or now if that is still to come; and a date to take instead.

    The second is the same for every start of this run, and for no other run, but for one in a million.
    """
    begins = request.begins_at or request.key.period.at.replace(tzinfo=UTC)
    at = min(begins, (now - timedelta(seconds=1)).astimezone(UTC).replace(microsecond=0))
    own = at + timedelta(microseconds=request.attempt - 1)
    moved = at + timedelta(microseconds=1000 + int(sha256(request.run_id.encode()).hexdigest(), 16) % 998_000)
    return _rfc3339(own), _rfc3339(moved)


def _rfc3339(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _dag(config: AirflowConfig) -> str:
    return f"DAG {config.dag_id} of {base(config)}"


def _auth_hint(config: AirflowConfig, answer: Answer, version: Version) -> str:
    if answer.code not in (401, 403):
        return ""
    if config.auth is None:
        return f"; give auth: {{type: {'jwt' if version == 'v2' else 'basic'}, username: ..., password: ...}}"
    wrong = version == "v2" and isinstance(config.auth, BasicAuth)
    return "; Airflow 3 takes auth of type jwt or bearer" if wrong else ""


def make_airflow_runner(settings: TargetSettings) -> AirflowRunner:
    """The runner of an installation."""
    return AirflowRunner(RestClient(settings.allow_private), settings.clock)


TARGET: Final = JobTarget(make=make_airflow_runner, config=AirflowConfig)
