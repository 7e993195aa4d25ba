"""AWS Step Functions: an execution of a Standard state machine. The run id is its name, which is the idempotency key.

Express state machines are refused: their executions cannot be described, so that nobody could say how one ended.
"""

from hashlib import sha256
from typing import Final

import msgspec

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.console import console
from interlock.jobs.aws.errors import asking, category_of, code_of, starting
from interlock.jobs.configs import default_payload, json_text, read_config, refused
from interlock.jobs.output import piece_of
from interlock.model.errors import JobStartError
from interlock.model.job_configs import StepFunctionConfig
from interlock.model.run import FailureCategory
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

_NAME_LIMIT: Final = 80
_DIGEST: Final = 32
_ARN_PARTS: Final = 7  # without a version or alias
_CAUSE_LIMIT: Final = 1500
_TIMEOUTS: Final = frozenset({"States.Timeout", "States.HeartbeatTimeout"})

_RUNNING, _FAILED = JobState.RUNNING, JobState.FAILED
_STATES: Final[dict[str, tuple[JobState, FailureCategory | None]]] = {
    "RUNNING": (_RUNNING, None),
    "PENDING_REDRIVE": (_RUNNING, None),
    "SUCCEEDED": (JobState.SUCCEEDED, None),
    "FAILED": (_FAILED, None),  # whose fault: its error says
    "TIMED_OUT": (JobState.TIMED_OUT, FailureCategory.TIMEOUT),
    "ABORTED": (_FAILED, FailureCategory.TRANSIENT),
}


class _Execution(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    error: str | None = None
    cause: str | None = None
    output: str | None = None


class StepFunctionRunner:
    """Jobs of type `step-function`. The job id is the ARN of the execution."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients
        self._standard: set[str] = set()

    def start(self, request: JobRequest) -> JobStarted:
        """StartExecution. A name that is taken already is this very start, whose answer got lost."""
        config = _config_of(request)
        arn, name = config.state_machine_arn, _name(request.run_id)
        with starting(f"state machine {arn}"):
            self._refuse_express(config)
            try:
                answer = self._clients.starting("stepfunctions", config).start_execution(
                    stateMachineArn=arn, name=name, input=_input(request, config)
                )
            except Exception as error:
                if code_of(error) != "ExecutionAlreadyExists":
                    raise
                return JobStarted(job_id=_execution_arn(arn, name))
        return JobStarted(job_id=answer["executionArn"])

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """A start under the same name is the same start, for 90 days after the execution ended."""
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """DescribeExecution."""
        with asking(f"execution {job_id}"):
            return _status(self._execution(_config_of(request), job_id))

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """StopExecution."""
        config = _config_of(request)
        with asking(f"execution {job_id}"):
            if _status(self._execution(config, job_id)).state.terminal:
                return JobStop.ENDED
            self._clients.reading("stepfunctions", config).stop_execution(
                executionArn=job_id, error="Interlock.Cancelled", cause="cancelled over Interlock"
            )
        return JobStop.REQUESTED

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """How the execution ended: its output, or error and cause. The rest is in the console."""
        with asking(f"execution {job_id}"):
            execution = self._execution(_config_of(request), job_id)
        over = _status(execution).state.terminal
        return piece_of(_ending(execution) if over else "", offset, ended=over, link=self.link(request, job_id))

    def link(self, request: JobRequest, job_id: str) -> str:
        """The execution in the console of Step Functions."""
        return console("states", _region(job_id), f"v2/executions/details/{job_id}")

    def close(self) -> None:
        """Close the idle connections."""
        self._clients.close()

    def _execution(self, config: StepFunctionConfig, job_id: str) -> _Execution:
        answer = self._clients.reading("stepfunctions", config).describe_execution(executionArn=job_id)
        return msgspec.convert(answer, _Execution)

    def _refuse_express(self, config: StepFunctionConfig) -> None:
        """Ask for the state machine's type, which never changes, before its first start."""
        arn = ":".join(config.state_machine_arn.split(":")[:_ARN_PARTS])
        if arn in self._standard:
            return
        answer = self._clients.reading("stepfunctions", config).describe_state_machine(stateMachineArn=arn)
        if answer.get("type") == "EXPRESS":
            raise JobStartError(
                f"{arn} is an Express state machine, whose executions cannot be described, so that nobody could say"
                " how the job ended: use a Standard one, or start it from a Lambda function that waits for it",
                permanent=True,
            )
        self._standard.add(arn)


def _config_of(request: JobRequest) -> StepFunctionConfig:
    """The config, in the state machine's own region unless it names another."""
    config = read_config(request, StepFunctionConfig)
    region = _region(config.state_machine_arn)
    if not region:
        raise refused(
            request,
            f"stateMachineArn: {config.state_machine_arn!r} is not an ARN:"
            " write arn:aws:states:REGION:ACCOUNT:stateMachine:NAME",
        )
    return msgspec.structs.replace(config, region=config.region or region)


def _region(arn: str) -> str:
    parts = arn.split(":")
    return parts[3] if len(parts) >= _ARN_PARTS and parts[2] == "states" else ""


def _name(run_id: str) -> str:
    """The run id, cut where it is too long, so that it still names one run."""
    if len(run_id) <= _NAME_LIMIT:
        return run_id
    return f"{run_id[: _NAME_LIMIT - _DIGEST - 1]}-{sha256(run_id.encode()).hexdigest()[:_DIGEST]}"


def _execution_arn(state_machine: str, name: str) -> str:
    parts = state_machine.split(":")
    return ":".join([*parts[:5], "execution", parts[6], name])


def _input(request: JobRequest, config: StepFunctionConfig) -> str:
    given = default_payload(request) if config.input is None else config.input
    return json_text(given).decode()


def _status(execution: _Execution) -> JobStatus:
    """What Step Functions says. A status that we do not know goes on: the poll window bounds it."""
    state, category = _STATES.get(execution.status, (_RUNNING, None))
    if state in (_RUNNING, JobState.SUCCEEDED):
        return JobStatus(state=state)
    if execution.error in _TIMEOUTS:
        state, category = JobState.TIMED_OUT, FailureCategory.TIMEOUT
    said = _said(execution)
    error = f"Step Functions says {execution.status}" + (f": {said[:_CAUSE_LIMIT]}" if said else "")
    return JobStatus(state=state, category=category or category_of(said), error=error)


def _said(execution: _Execution) -> str:
    return ": ".join(filter(None, (execution.error, execution.cause)))


def _ending(execution: _Execution) -> str:
    """The end of an execution as text."""
    if execution.status == "SUCCEEDED":
        return f"{execution.output}\n" if execution.output else ""
    said = _said(execution)
    return f"{execution.status}: {said}\n" if said else f"{execution.status}\n"


def _make(settings: TargetSettings) -> StepFunctionRunner:
    return StepFunctionRunner(AwsClients(allow_private=settings.allow_private))


TARGET: Final = JobTarget(make=_make, config=StepFunctionConfig)
