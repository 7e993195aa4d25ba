"""Amazon EMR Serverless: a Spark or Hive job run of an application. The run id is its client token."""

from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.console import console, part
from interlock.jobs.aws.errors import asking, category_of, code_of, starting
from interlock.jobs.configs import read_config
from interlock.jobs.output import piece_of
from interlock.model.job_configs import EmrServerlessConfig
from interlock.model.run import FailureCategory
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

_TOKEN_LIMIT: Final = 64
_NAME_LIMIT: Final = 256

_RUNNING, _FAILED = JobState.RUNNING, JobState.FAILED
_STATES: Final[dict[str, tuple[JobState, FailureCategory | None]]] = {
    "SUBMITTED": (_RUNNING, None),
    "PENDING": (_RUNNING, None),
    "SCHEDULED": (_RUNNING, None),
    "QUEUED": (_RUNNING, None),
    "RUNNING": (_RUNNING, None),
    "CANCELLING": (_RUNNING, None),
    "SUCCESS": (JobState.SUCCEEDED, None),
    "FAILED": (_FAILED, None),  # whose fault: its details say
    "CANCELLED": (_FAILED, FailureCategory.TRANSIENT),
}


class _JobRun(msgspec.Struct, frozen=True, rename="camel"):
    state: str
    state_details: str | None = None
    execution_timeout_minutes: int | None = None
    total_execution_duration_seconds: int | None = None

    @property
    def out_of_time(self) -> bool:
        """EMR Serverless cancels what runs into its timeout."""
        limit = timedelta(minutes=self.execution_timeout_minutes or 0)
        return bool(limit) and timedelta(seconds=self.total_execution_duration_seconds or 0) >= limit


class EmrServerlessRunner:
    """Jobs of type `emr-serverless`. The job id is the id of the job run."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def start(self, request: JobRequest) -> JobStarted:
        """StartJobRun; with the same client token again it answers with the same job run."""
        config = read_config(request, EmrServerlessConfig)
        with starting(f"EMR Serverless application {config.application_id}"):
            answer = self._clients.starting("emr-serverless", config).start_job_run(**_job_run(request, config))
        return JobStarted(job_id=answer["jobRunId"])

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """A start with the same token is the same start."""
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """GetJobRun."""
        config = read_config(request, EmrServerlessConfig)
        with asking(f"job run {job_id} of the EMR Serverless application {config.application_id}"):
            return _status(self._run(config, job_id))

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """CancelJobRun."""
        config = read_config(request, EmrServerlessConfig)
        with asking(f"job run {job_id} of the EMR Serverless application {config.application_id}"):
            if _status(self._run(config, job_id)).state.terminal:
                return JobStop.ENDED
            emr = self._clients.reading("emr-serverless", config)
            emr.cancel_job_run(applicationId=config.application_id, jobRunId=job_id)
        return JobStop.REQUESTED

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What EMR Serverless says of it, and a link to its dashboard, which has the logs; it is good for an hour."""
        config = read_config(request, EmrServerlessConfig)
        with asking(f"job run {job_id} of the EMR Serverless application {config.application_id}"):
            run = self._run(config, job_id)
            link = self._dashboard(config, job_id) or self.link(request, job_id)
        over = _status(run).state.terminal
        text = f"{run.state}: {run.state_details}\n" if over and run.state_details else ""
        return piece_of(text, offset, ended=over, link=link)

    def link(self, request: JobRequest, job_id: str) -> str:
        """The application in the console of EMR."""
        config = read_config(request, EmrServerlessConfig)
        place = f"serverless/applications/{part(config.application_id)}/job-runs/{part(job_id)}"
        return console("emr", self._clients.region(config), place)

    def close(self) -> None:
        """Close the idle connections."""
        self._clients.close()

    def _run(self, config: EmrServerlessConfig, job_id: str) -> _JobRun:
        emr = self._clients.reading("emr-serverless", config)
        answer = emr.get_job_run(applicationId=config.application_id, jobRunId=job_id)
        return msgspec.convert(answer["jobRun"], _JobRun)

    def _dashboard(self, config: EmrServerlessConfig, job_id: str) -> str:
        """The address of the Spark or Tez page; "" while there is none, or where it may not be asked for."""
        emr = self._clients.reading("emr-serverless", config)
        try:
            answer = emr.get_dashboard_for_job_run(applicationId=config.application_id, jobRunId=job_id)
        except Exception as error:
            if code_of(error) in ("AccessDeniedException", "ValidationException", "ResourceNotFoundException"):
                return ""
            raise
        return str(answer.get("url") or "")


def _job_run(request: JobRequest, config: EmrServerlessConfig) -> dict[str, Any]:
    name = config.job_name or f"{request.key.pipeline} {request.key.date}"
    parameters: dict[str, Any] = {
        "applicationId": config.application_id,
        "clientToken": _token(request.run_id),
        "executionRoleArn": config.execution_role_arn,
        "jobDriver": config.job_driver,
        "name": name[:_NAME_LIMIT],
    }
    if config.configuration_overrides:
        parameters["configurationOverrides"] = config.configuration_overrides
    if config.timeout_minutes is not None:
        parameters["executionTimeoutMinutes"] = config.timeout_minutes
    return parameters


def _token(run_id: str) -> str:
    """The run id, or what stands for one that is too long."""
    return run_id if len(run_id) <= _TOKEN_LIMIT else sha256(run_id.encode()).hexdigest()


def _status(run: _JobRun) -> JobStatus:
    """What EMR Serverless says. A state that we do not know goes on: the poll window bounds it."""
    state, category = _STATES.get(run.state, (_RUNNING, None))
    if state in (_RUNNING, JobState.SUCCEEDED):
        return JobStatus(state=state)
    said = run.state_details or ""
    error = f"EMR Serverless says {run.state}" + (f": {said}" if said else "")
    if run.out_of_time:
        error += f" (its timeout is {run.execution_timeout_minutes} minutes)"
        return JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TIMEOUT, error=error)
    return JobStatus(state=state, category=category or category_of(said), error=error)


def _make(settings: TargetSettings) -> EmrServerlessRunner:
    return EmrServerlessRunner(AwsClients(allow_private=settings.allow_private))


TARGET: Final = JobTarget(make=_make, config=EmrServerlessConfig)
