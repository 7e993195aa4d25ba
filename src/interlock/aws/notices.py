"""What EventBridge tells the stream-router: an execution of the lifecycle has ended, or a job has.

An event is read into a named notice first, purely; then it is acted on. Polls and the watchdog remain as the net, so an
event that never comes costs time and nothing else.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.aws import job_runs
from interlock.control import records, waking, writing
from interlock.control.attempts import execution_ends
from interlock.control.context import Control
from interlock.logs import get_logger
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus

EXECUTION: Final = "Step Functions Execution Status Change"
# By detail-type: the attribute that is the job's id, the one that is its state, and the states that are the end.
_JOBS: Final[Mapping[str, tuple[str, str, frozenset[str]]]] = {
    "Glue Job State Change": ("jobRunId", "state", frozenset({"SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR"})),
    "EMR Step Status Change": ("stepId", "state", frozenset({"COMPLETED", "FAILED", "CANCELLED", "INTERRUPTED"})),
    "EMR Serverless Job Run State Change": ("jobRunId", "state", frozenset({"SUCCESS", "FAILED", "CANCELLED"})),
    EXECUTION: ("executionArn", "status", frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"})),
}
_log = get_logger(__name__)


class ExecutionEnd(msgspec.Struct, frozen=True, tag=True):
    """An execution of the lifecycle ended, and not by itself."""

    key: RunKey
    attempt: int
    execution: str
    status: str


class JobEnd(msgspec.Struct, frozen=True, tag=True):
    """A job ended: whose it is, the table of job runs says."""

    job_id: str
    state: str


class Nothing(msgspec.Struct, frozen=True, tag=True):
    """Nothing follows: a job that still runs, an execution that ended in good order."""


Notice = ExecutionEnd | JobEnd | Nothing


class _Input(msgspec.Struct, frozen=True):
    """What an execution of the lifecycle was started with, as far as it matters here."""

    pipeline: str
    schedule: str
    date: str
    attempt: int


def read_notice(event: Mapping[str, Any], machine: str) -> Notice:
    """What an event says; one of an unknown shape names itself. `machine`: the ARN of the lifecycle's machine."""
    kind, detail = str(event["detail-type"]), event["detail"]
    if kind not in _JOBS:
        raise InvalidValueError(f"the stream-router does not know an event of the type {kind!r}")
    name, state_name, ends = _JOBS[kind]
    job_id, state = detail.get(name), detail.get(state_name)
    if not isinstance(job_id, str) or not isinstance(state, str) or not job_id:
        raise InvalidValueError(f"an event of the type {kind!r} has no {name} or no {state_name}")
    if state not in ends:
        return Nothing()
    if kind == EXECUTION and str(detail.get("stateMachineArn")) == machine:
        return _execution_end(detail, state)
    return JobEnd(job_id, state)


def _execution_end(detail: Mapping[str, Any], status: str) -> Notice:
    if status == "SUCCEEDED":
        return Nothing()
    try:
        given = msgspec.json.decode(str(detail.get("input") or ""), type=_Input)
    except msgspec.MsgspecError as error:
        raise InvalidValueError(f"the execution {detail.get('name')} was not started by Interlock: {error}") from error
    key = RunKey(given.pipeline, given.schedule, given.date)
    return ExecutionEnd(key, given.attempt, str(detail.get("name", "")), status)


def act(control: Control, notice: Notice) -> dict[str, Any]:
    """Do what follows from a notice."""
    match notice:
        case Nothing():
            return {"result": "nothing"}
        case ExecutionEnd():
            failed = notice.status == "FAILED"
            done = execution_ends.ended(
                control, notice.key, notice.attempt, notice.execution, why=notice.status, failed=failed
            )
            return {"result": "followed" if done else "nothing"}
        case JobEnd():
            return _job_ended(control, notice)


def _job_ended(control: Control, notice: JobEnd) -> dict[str, Any]:
    found = job_runs.find_run(control.store, notice.job_id)
    if found is None:
        return {"result": "not-ours"}
    key, attempt = found
    try:
        if writing.job_ended(control, key, attempt):
            return {"result": "logged"}
    except Exception as error:  # noqa: BLE001 - the orchestrator asks the target instead, with rights of its own
        _log.warning("job-end-not-asked", run=str(key), attempt=attempt, error=f"{type(error).__name__}: {error}")
    # Nothing to log yet, though the job is over: a success of Glue waits for its logs. The lifecycle asks again in a
    # moment, and not with the next poll.
    run = records.get_run(control.store, key)
    woken = run is not None and run.attempt == attempt and run.status is RunStatus.RUNNING and waking.wake(control, key)
    return {"result": "woken" if woken else "nothing"}
