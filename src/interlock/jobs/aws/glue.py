"""AWS Glue: StartJobRun, and a job run that is believed only when its logs agree.

Glue knows no idempotency key: the run id is passed as the argument `--interlock_run_id`, and a start whose answer got
lost is searched for by it. What a success is worth, `glue_verdict` decides.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.console import console, part
from interlock.jobs.aws.errors import asking, category_of, code_of, starting
from interlock.jobs.aws.glue_verdict import JobLogs, judge_logs
from interlock.jobs.aws.logs import read_stream
from interlock.jobs.aws.recovery import found_among
from interlock.jobs.configs import read_config
from interlock.model.errors import JobStopError
from interlock.model.job_configs import GlueConfig
from interlock.model.run import FailureCategory
from interlock.ports.clock import Clock
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

RUN_ID: Final = "--interlock_run_id"
GRACE: Final = timedelta(seconds=30)
"""How long after a job run its logs are waited for."""
_PAGE: Final = 200
_ASK_AGAIN: Final = timedelta(seconds=10)

_RUNNING, _FAILED = JobState.RUNNING, JobState.FAILED
_STATES: Final[dict[str, tuple[JobState, FailureCategory | None]]] = {
    "STARTING": (_RUNNING, None),
    "RUNNING": (_RUNNING, None),
    "STOPPING": (_RUNNING, None),
    "WAITING": (_RUNNING, None),
    "SUCCEEDED": (JobState.SUCCEEDED, None),
    "FAILED": (_FAILED, None),  # whose fault: its error message says
    "ERROR": (_FAILED, FailureCategory.TRANSIENT),
    "STOPPED": (_FAILED, FailureCategory.TRANSIENT),
    "EXPIRED": (_FAILED, FailureCategory.TRANSIENT),
    "TIMEOUT": (JobState.TIMED_OUT, FailureCategory.TIMEOUT),
}


class _JobRun(msgspec.Struct, frozen=True, rename="pascal"):
    id: str
    job_run_state: str
    completed_on: datetime | None = None
    error_message: str = ""
    state_detail: str = ""
    log_group_name: str = ""
    arguments: dict[str, str] = {}


class _JobRuns(msgspec.Struct, frozen=True, rename="pascal"):
    job_runs: list[_JobRun] = []
    next_token: str | None = None


class GlueRunner:
    """Jobs of type `glue`. The job id is Glue's id of the job run."""

    def __init__(self, clients: AwsClients, clock: Clock, *, grace: timedelta = GRACE) -> None:
        self._clients = clients
        self._clock = clock
        self._grace = grace

    def start(self, request: JobRequest) -> JobStarted:
        """StartJobRun, with the period and the run id as arguments."""
        config = read_config(request, GlueConfig)
        with starting(f"Glue job {config.job_name}"):
            answer = self._clients.starting("glue", config).start_job_run(**_job_run(request, config))
        return JobStarted(job_id=answer["JobRunId"])

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """Look for the run id among the job's latest runs."""
        config = read_config(request, GlueConfig)
        with asking(f"runs of the Glue job {config.job_name}"):
            return found_among((run.id, run.arguments.get(RUN_ID) == request.run_id) for run in self._runs(config))

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """Its state; of a success also what its logs say, once they had the time to appear."""
        config = read_config(request, GlueConfig)
        with asking(f"run {job_id} of the Glue job {config.job_name}"):
            run = self._run(config, job_id)
            status = _status(run)
            if status.state is not JobState.SUCCEEDED or not config.false_success_check:
                return status
            return self._believed(config, run)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """BatchStopJobRun."""
        config = read_config(request, GlueConfig)
        with asking(f"run {job_id} of the Glue job {config.job_name}"):
            if _status(self._run(config, job_id)).state.terminal:
                return JobStop.ENDED
            glue = self._clients.reading("glue", config)
            answer = glue.batch_stop_job_run(JobName=config.job_name, JobRunIds=[job_id])
        for failed in answer.get("Errors", []):
            detail = failed.get("ErrorDetail", {})
            raise JobStopError(
                f"Glue does not stop {job_id}: {detail.get('ErrorCode', '')}: {detail.get('ErrorMessage', '')};"
                " stop it in the console of Glue"
            )
        return JobStop.REQUESTED

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What the driver wrote, from CloudWatch; where it wrote nothing to its output, what it wrote as errors."""
        config = read_config(request, GlueConfig)
        link = self.link(request, job_id)
        with asking(f"logs of {job_id}"):
            run = self._run(config, job_id)
            logs = self._clients.beside("logs", config)
            over = _status(run).state.terminal and not self._logs_may_come(run)
            for group, stream in _logs_of(config, run).written:
                piece = read_stream(logs, group, stream, offset)
                if piece is not None and (piece.text or offset):
                    complete = over and not piece.more
                    return JobOutput(text=piece.text, next_offset=piece.next_offset, complete=complete, link=link)
        return JobOutput(next_offset=offset, complete=over, link=link)

    def link(self, request: JobRequest, job_id: str) -> str:
        """The job run in the console of Glue Studio."""
        config = read_config(request, GlueConfig)
        place = f"job/{part(config.job_name)}/run/{part(job_id)}"
        return console("gluestudio", self._clients.region(config), place)

    def close(self) -> None:
        """Close the idle connections."""
        self._clients.close()

    # ---------------------------------------------------------------------------------------------------- inside

    def _run(self, config: GlueConfig, job_id: str) -> _JobRun:
        answer = self._clients.reading("glue", config).get_job_run(JobName=config.job_name, RunId=job_id)
        return msgspec.convert(answer["JobRun"], _JobRun)

    def _runs(self, config: GlueConfig) -> Iterator[_JobRun]:
        """The runs of a job, the latest first."""
        glue = self._clients.reading("glue", config)
        token: dict[str, str] = {}
        while True:
            try:
                answer = glue.get_job_runs(JobName=config.job_name, MaxResults=_PAGE, **token)
            except Exception as error:
                if code_of(error) == "EntityNotFoundException":
                    return  # no such job, so none of its runs either; a start will say so
                raise
            page = msgspec.convert(answer, _JobRuns)
            yield from page.job_runs
            if page.next_token is None:
                return
            token = {"NextToken": page.next_token}

    def _logs_may_come(self, run: _JobRun) -> bool:
        return run.completed_on is not None and self._clock.now() < run.completed_on + self._grace

    def _believed(self, config: GlueConfig, run: _JobRun) -> JobStatus:
        """A success, unless the logs say otherwise; running, while they may still come."""
        # Asked before the logs are read: what comes between the two is not overlooked.
        may_come = self._logs_may_come(run)
        verdict = judge_logs(self._clients.beside("logs", config), _logs_of(config, run))
        if verdict.failure:
            error = f"Glue says SUCCEEDED, its {verdict.source} says: {verdict.failure}"
            return JobStatus(state=_FAILED, category=category_of(verdict.failure), error=error)
        if may_come:
            return JobStatus(state=_RUNNING, ask_again=_ASK_AGAIN)
        return JobStatus(state=JobState.SUCCEEDED, warning=verdict.warning)


def _job_run(request: JobRequest, config: GlueConfig) -> dict[str, Any]:
    """The parameters of StartJobRun. Ours come last: recovery and partitions rely on them."""
    period = request.key.period
    arguments = {name: _text(value) for name, value in config.arguments.items()}
    arguments["--par_day"] = period.day.strftime("%Y%m%d")
    if period.hour is not None:
        arguments["--par_hour"] = f"{period.hour:02d}"
    arguments[RUN_ID] = request.run_id
    overrides = {
        "WorkerType": config.worker_type,
        "NumberOfWorkers": config.number_of_workers,
        "Timeout": config.timeout_minutes,
    }
    given = {name: value for name, value in overrides.items() if value is not None}
    return {"JobName": config.job_name, "Arguments": arguments, **given}


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _status(run: _JobRun) -> JobStatus:
    """What Glue itself says. A state that we do not know goes on: the poll window bounds it."""
    state, category = _STATES.get(run.job_run_state, (_RUNNING, None))
    if state in (_RUNNING, JobState.SUCCEEDED):
        return JobStatus(state=state)
    said = run.error_message or run.state_detail
    error = f"Glue says {run.job_run_state}" + (f": {said}" if said else "")
    return JobStatus(state=state, category=category or category_of(said), error=error)


def _logs_of(config: GlueConfig, run: _JobRun) -> JobLogs:
    # Of a run that was started by us and has been read back, both know the arguments; the job's defaults neither.
    arguments = {**{name: _text(value) for name, value in config.arguments.items()}, **run.arguments}
    return JobLogs.of(run.id, run.log_group_name, arguments)


def _make(settings: TargetSettings) -> GlueRunner:
    return GlueRunner(AwsClients(allow_private=settings.allow_private), settings.clock)


TARGET: Final = JobTarget(make=_make, config=GlueConfig)
