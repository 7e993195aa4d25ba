"""Amazon EMR: a step on a running cluster.

EMR knows no idempotency key: the name of the step ends with the run id, and a start whose answer got lost is searched
for by it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.console import console, part
from interlock.jobs.aws.errors import asking, category_of, code_of, starting
from interlock.jobs.aws.logs import read_packed, split_s3
from interlock.jobs.aws.recovery import found_among
from interlock.jobs.configs import read_config
from interlock.model.errors import JobStopError
from interlock.model.job_configs import EmrConfig
from interlock.model.run import FailureCategory
from interlock.ports.clock import Clock
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

_NAME_LIMIT: Final = 256
_FILES: Final = ("stdout", "stderr", "controller")
_COPIED_WITHIN: Final = timedelta(minutes=10)
_NO_LOGS: Final = "the cluster has no log folder: give it one (--log-uri) to read here what its steps write\n"

_RUNNING, _FAILED = JobState.RUNNING, JobState.FAILED
_STATES: Final[dict[str, tuple[JobState, FailureCategory | None]]] = {
    "PENDING": (_RUNNING, None),
    "RUNNING": (_RUNNING, None),
    "CANCEL_PENDING": (_RUNNING, None),
    "COMPLETED": (JobState.SUCCEEDED, None),
    "FAILED": (_FAILED, None),  # whose fault: its reason says
    "CANCELLED": (_FAILED, FailureCategory.TRANSIENT),
    "INTERRUPTED": (_FAILED, FailureCategory.TRANSIENT),
}


class _Reason(msgspec.Struct, frozen=True, rename="pascal"):
    message: str | None = None


class _Failure(msgspec.Struct, frozen=True, rename="pascal"):
    reason: str | None = None
    message: str | None = None
    log_file: str | None = None


class _Timeline(msgspec.Struct, frozen=True, rename="pascal"):
    end_date_time: datetime | None = None


class _StepStatus(msgspec.Struct, frozen=True, rename="pascal"):
    state: str
    timeline: _Timeline = _Timeline()
    state_change_reason: _Reason = _Reason()
    failure_details: _Failure = _Failure()


class _Step(msgspec.Struct, frozen=True, rename="pascal"):
    id: str
    name: str
    status: _StepStatus


class _Steps(msgspec.Struct, frozen=True, rename="pascal"):
    steps: list[_Step] = []
    marker: str | None = None


class _Cancel(msgspec.Struct, frozen=True, rename="pascal"):
    status: str = ""
    reason: str = ""


class EmrRunner:
    """Jobs of type `emr`. The job id is the id of the step."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._clients = clients
        self._clock = clock

    def start(self, request: JobRequest) -> JobStarted:
        """AddJobFlowSteps, with one step. Whether it waits for others is the cluster's business."""
        config = read_config(request, EmrConfig)
        step = {
            "Name": _step_name(request, config),
            "ActionOnFailure": config.action_on_failure,
            "HadoopJarStep": {"Jar": config.jar, "Args": config.arguments},
        }
        with starting(f"EMR cluster {config.cluster_id}"):
            answer = self._clients.starting("emr", config).add_job_flow_steps(JobFlowId=config.cluster_id, Steps=[step])
        return JobStarted(job_id=answer["StepIds"][0])

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """Look for the run id among the cluster's latest steps."""
        config = read_config(request, EmrConfig)
        name = _step_name(request, config)
        with asking(f"steps of the EMR cluster {config.cluster_id}"):
            return found_among((step.id, step.name == name) for step in self._steps(config))

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """DescribeStep."""
        config = read_config(request, EmrConfig)
        with asking(f"step {job_id} of the EMR cluster {config.cluster_id}"):
            return _status(self._step(config, job_id).status)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """CancelSteps; a step that runs already is ended, not only taken from the queue."""
        config = read_config(request, EmrConfig)
        with asking(f"step {job_id} of the EMR cluster {config.cluster_id}"):
            if _status(self._step(config, job_id).status).state.terminal:
                return JobStop.ENDED
            answer = self._clients.reading("emr", config).cancel_steps(
                ClusterId=config.cluster_id, StepIds=[job_id], StepCancellationOption="TERMINATE_PROCESS"
            )
        found = msgspec.convert(answer.get("CancelStepsInfoList", []), list[_Cancel])
        refused = [one for one in found if one.status == "FAILED"]
        if refused:
            raise JobStopError(
                f"EMR does not cancel {job_id}: {refused[0].reason}; end it on the cluster"
                f" (yarn application -kill), or terminate the cluster"
            )
        return JobStop.REQUESTED

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What the step wrote, from the cluster's log folder in S3, where EMR copies it every five minutes.

        An offset says which of the step's files it is in: the first that has text is the one that is read.
        """
        config = read_config(request, EmrConfig)
        link = self.link(request, job_id)
        with asking(f"logs of {job_id}"):
            status = self._step(config, job_id).status
            complete = self._no_more_logs(status)
            bucket, folder = self._log_folder(config)
            if not bucket:
                return JobOutput(text=_NO_LOGS if not offset else "", next_offset=1, complete=True, link=link)
            s3 = self._clients.beside("s3", config)
            for index in _files(_status(status).state, offset):
                key = "/".join(filter(None, (folder, config.cluster_id, "steps", job_id, f"{_FILES[index]}.gz")))
                piece = read_packed(s3, bucket, key, offset // len(_FILES))
                if piece is not None and (piece.text or offset):
                    following = piece.next_offset * len(_FILES) + index
                    complete = complete and not piece.more
                    return JobOutput(text=piece.text, next_offset=following, complete=complete, link=link)
        return JobOutput(next_offset=offset, complete=complete, link=link)

    def link(self, request: JobRequest, job_id: str) -> str:
        """The cluster in the console of EMR."""
        config = read_config(request, EmrConfig)
        return console("emr", self._clients.region(config), f"clusterDetails/{part(config.cluster_id)}")

    def close(self) -> None:
        """Close the idle connections."""
        self._clients.close()

    # ---------------------------------------------------------------------------------------------------- inside

    def _step(self, config: EmrConfig, job_id: str) -> _Step:
        answer = self._clients.reading("emr", config).describe_step(ClusterId=config.cluster_id, StepId=job_id)
        return msgspec.convert(answer["Step"], _Step)

    def _steps(self, config: EmrConfig) -> Iterator[_Step]:
        """The steps of a cluster, the latest first."""
        emr = self._clients.reading("emr", config)
        marker: dict[str, str] = {}
        while True:
            try:
                answer = emr.list_steps(ClusterId=config.cluster_id, **marker)
            except Exception as error:
                if code_of(error) == "InvalidRequestException":
                    return  # no such cluster, so none of its steps either; a start will say so
                raise
            page = msgspec.convert(answer, _Steps)
            yield from page.steps
            if page.marker is None:
                return
            marker = {"Marker": page.marker}

    def _no_more_logs(self, status: _StepStatus) -> bool:
        ended = status.timeline.end_date_time
        waited = ended is None or self._clock.now() >= ended + _COPIED_WITHIN
        return _status(status).state.terminal and waited

    def _log_folder(self, config: EmrConfig) -> tuple[str, str]:
        answer: Any = self._clients.reading("emr", config).describe_cluster(ClusterId=config.cluster_id)
        return split_s3(answer["Cluster"].get("LogUri") or "")


def _files(state: JobState, offset: int) -> Sequence[int]:
    """Which files to look into, in that order: of a failure what it wrote as errors comes first."""
    if offset:
        return (offset % len(_FILES),)
    return (1, 0, 2) if state in (JobState.FAILED, JobState.TIMED_OUT) else (0, 1, 2)


def _step_name(request: JobRequest, config: EmrConfig) -> str:
    name = config.step_name or request.key.pipeline
    return f"{name[: _NAME_LIMIT - len(request.run_id) - 1]} {request.run_id}"


def _status(step: _StepStatus) -> JobStatus:
    """What EMR says. A state that we do not know goes on: the poll window bounds it."""
    state, category = _STATES.get(step.state, (_RUNNING, None))
    if state in (_RUNNING, JobState.SUCCEEDED):
        return JobStatus(state=state)
    details = step.failure_details
    said = " ".join(filter(None, (details.reason, details.message, step.state_change_reason.message)))
    where = f" (log: {details.log_file})" if details.log_file else ""
    error = f"EMR says {step.state}" + (f": {said}" if said else "") + where
    return JobStatus(state=state, category=category or category_of(said), error=error)


def _make(settings: TargetSettings) -> EmrRunner:
    return EmrRunner(AwsClients(allow_private=settings.allow_private), settings.clock)


TARGET: Final = JobTarget(make=_make, config=EmrConfig)
