"""Jobs of type `databricks`: a run of a job that is there (by id or name), or a run that is submitted whole.

Our run id is Databricks' `idempotency_token`: a second start with it answers with the run that is there.
"""

from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.jobs.configs import read_config, refused
from interlock.jobs.databricks.api import DatabricksApi, base, masks_of
from interlock.jobs.output import piece_of
from interlock.jobs.rest import Answer, NotReachedError, RestClient, describe, one_line, refusal
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import DatabricksConfig
from interlock.model.run import FailureCategory
from interlock.ports.job_targets import JobTarget
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

_LONGEST_TOKEN: Final = 64
_MOST_PAGES: Final = 20
_MOST_TASKS: Final = 50
_TRANSIENT, _PERMANENT = FailureCategory.TRANSIENT, FailureCategory.PERMANENT

# A run is over in these states of its life cycle alone.
LIFE_CYCLE: Final[dict[str, JobStatus]] = {
    "QUEUED": JobStatus(state=JobState.RUNNING),
    "PENDING": JobStatus(state=JobState.RUNNING),
    "RUNNING": JobStatus(state=JobState.RUNNING),
    "TERMINATING": JobStatus(state=JobState.RUNNING),
    "BLOCKED": JobStatus(state=JobState.RUNNING),
    "WAITING_FOR_RETRY": JobStatus(state=JobState.RUNNING),
    "SKIPPED": JobStatus(state=JobState.FAILED, category=_TRANSIENT, error="skipped: another run of the job is active"),
    "INTERNAL_ERROR": JobStatus(state=JobState.FAILED, category=_TRANSIENT, error="internal error of Databricks"),
}
# What the result of a TERMINATED run means; that of a failed one may be made more precise by CODES and TYPES.
RESULTS: Final[dict[str, JobStatus]] = {
    "SUCCESS": JobStatus(state=JobState.SUCCEEDED),
    "SUCCESS_WITH_FAILURES": JobStatus(state=JobState.SUCCEEDED),
    "FAILED": JobStatus(state=JobState.FAILED, category=_PERMANENT, error="the run failed"),
    "TIMEDOUT": JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TIMEOUT, error="its timeout was over"),
    "CANCELED": JobStatus(state=JobState.FAILED, category=_TRANSIENT, error="the run was cancelled"),
    "MAXIMUM_CONCURRENT_RUNS_REACHED": JobStatus(
        state=JobState.FAILED, category=_TRANSIENT, error="skipped: the job has as many runs as it may have at once"
    ),
    "UPSTREAM_CANCELED": JobStatus(state=JobState.FAILED, category=_TRANSIENT, error="a task before it was cancelled"),
    "UPSTREAM_FAILED": JobStatus(state=JobState.FAILED, category=_PERMANENT, error="a task before it failed"),
    "EXCLUDED": JobStatus(state=JobState.FAILED, category=_PERMANENT, error="the run was excluded"),
    "DISABLED": JobStatus(state=JobState.FAILED, category=_PERMANENT, error="the job is disabled"),
}
# `termination_details.type`: whose fault a failure is.
TYPES: Final = {"INTERNAL_ERROR": _TRANSIENT, "CLOUD_FAILURE": _TRANSIENT, "CLIENT_ERROR": _PERMANENT}
# `termination_details.code`, where it knows better than the type.
CODES: Final = {
    "CLOUD_FAILURE": _TRANSIENT,
    "CLUSTER_ERROR": _TRANSIENT,
    "CLUSTER_REQUEST_LIMIT_EXCEEDED": _TRANSIENT,
    "DRIVER_ERROR": _TRANSIENT,
    "INTERNAL_ERROR": _TRANSIENT,
    "MAX_CONCURRENT_RUNS_EXCEEDED": _TRANSIENT,
    "MAX_JOB_QUEUE_SIZE_EXCEEDED": _TRANSIENT,
    "MAX_SPARK_CONTEXTS_EXCEEDED": _TRANSIENT,
    "REPOSITORY_CHECKOUT_FAILED": _TRANSIENT,
    "STORAGE_ACCESS_ERROR": _TRANSIENT,
    "WORKSPACE_RUN_LIMIT_EXCEEDED": _TRANSIENT,
}


class DatabricksRunner:
    """Runs in any number of workspaces. The job id is Databricks' run id."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._api = DatabricksApi(client)

    def start(self, request: JobRequest) -> JobStarted:
        """Start the run; a second start with the same token is the same run."""
        config = _config(request)
        try:
            self._api.sign_in(config)
            path, body = self._asked_for(request, config)
        except UnavailableError as error:
            raise JobStartError(str(error), permanent=False) from error  # nothing was asked for yet
        try:
            answer = self._api.post(config, path, body)
        except NotReachedError as error:
            raise JobStartError(str(error), permanent=False) from error
        if not answer.good:
            raise refusal(f"{base(config)} did not start the run: {describe(answer, masks_of(config))}", answer)
        run_id = answer.json().get("run_id")
        if not isinstance(run_id, int):
            raise UnavailableError(f"{base(config)} started a run, and did not say which: {one_line(answer.text)}")
        return JobStarted(job_id=str(run_id))

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """Starting again with the same token finds the run, or starts it."""
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """Life cycle, result, and for a failure whose fault it is."""
        config = _config(request)
        answer = self._run(config, job_id)
        if answer.code in (400, 404) and _error_code(answer) in ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST"):
            message = f"{base(config)} knows no run {job_id} any more: {describe(answer, masks_of(config))}"
            return JobStatus(state=JobState.FAILED, category=_PERMANENT, error=message)
        if not answer.good:
            raise UnavailableError(f"{base(config)} cannot be asked: {describe(answer, masks_of(config))}")
        status = classify(answer.json())
        return msgspec.structs.replace(status, error=masks_of(config).hide(status.error))

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Cancel the run; Databricks does that in its own time."""
        config = _config(request)
        if self.check(request, job_id).state.terminal:
            return JobStop.ENDED
        answer = self._api.post(config, "jobs/runs/cancel", {"run_id": int(job_id)})
        if answer.good:
            return JobStop.REQUESTED
        message = f"{base(config)} does not cancel the run {job_id}: {describe(answer, masks_of(config))}"
        if 400 <= answer.code < 500 and answer.code != 429:
            raise JobStopError(f"{message}; cancel it there: {self.link(request, job_id)}")
        raise UnavailableError(message)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What each task left, in the order of their ends: Databricks gives it when a task is over."""
        config = _config(request)
        answer = self._run(config, job_id)
        if not answer.good:
            raise UnavailableError(f"{base(config)} cannot be asked: {describe(answer, masks_of(config))}")
        run = answer.json()
        ended = classify(run).state.terminal
        text = "".join(self._task_output(config, task) for task in _ended_tasks(run)[:_MOST_TASKS])
        page = run.get("run_page_url")
        link = page if isinstance(page, str) and page else self.link(request, job_id)
        return piece_of(text, offset, ended=ended, link=link)

    def link(self, request: JobRequest, job_id: str) -> str:
        """The page of the run."""
        config = _config(request)
        job = f"{config.job_id}/" if config.job_id is not None else ""
        return f"{base(config)}/jobs/{job}runs/{job_id}"

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    # ---------------------------------------------------------------------------------------------------- inside

    def _asked_for(self, request: JobRequest, config: DatabricksConfig) -> tuple[str, dict[str, Any]]:
        token = {"idempotency_token": idempotency_token(request.run_id)}
        if config.submit is not None:
            name = f"{request.key.pipeline} {request.key.date}"
            return "jobs/runs/submit", {"run_name": name, **config.submit, **token}
        parameters = {name: _text(value) for name, value in config.parameters.items()}
        job_id = config.job_id if config.job_id is not None else self._job_named(config, str(config.job_name))
        body = {"job_id": _number(request, job_id), **token}
        return "jobs/run-now", {**body, "job_parameters": parameters} if parameters else body

    def _job_named(self, config: DatabricksConfig, name: str) -> int:
        found: list[int] = []
        params = {"name": name, "limit": "100"}
        for _ in range(_MOST_PAGES):
            answer = self._api.get(config, "jobs/list", params)
            if not answer.good:
                message = f"{base(config)} does not list its jobs: {describe(answer, masks_of(config))}"
                raise JobStartError(message, permanent=answer.code < 500 and answer.code != 429)
            page = answer.json()
            # The filter pays no attention to case.
            named = [one for one in page.get("jobs", []) if one.get("settings", {}).get("name") == name]
            found += [one["job_id"] for one in named]
            if not page.get("next_page_token"):
                break
            params["page_token"] = page["next_page_token"]
        if len(found) != 1:
            problem = f"has {len(found)} jobs" if found else "has no job"
            message = f"{base(config)} {problem} named {name!r}: {'give jobId' if found else 'check jobName'}"
            raise JobStartError(message, permanent=True)
        return found[0]

    def _run(self, config: DatabricksConfig, run_id: str) -> Answer:
        return self._api.get(config, "jobs/runs/get", {"run_id": run_id})

    def _task_output(self, config: DatabricksConfig, task: dict[str, Any]) -> str:
        answer = self._api.get(config, "jobs/runs/get-output", {"run_id": str(task.get("run_id"))})
        left = answer.json() if answer.good else {}
        notebook = left.get("notebook_output")
        parts = [
            left.get("logs"),
            notebook.get("result") if isinstance(notebook, dict) else None,
            left.get("error"),
            left.get("error_trace"),
        ]
        result = task.get("state", {}).get("result_state", "")
        lines = [f"==> {task.get('task_key', 'task')} ({result}) <==", *(str(part).rstrip() for part in parts if part)]
        return "".join(f"{line}\n" for line in lines)


def classify(run: dict[str, Any]) -> JobStatus:
    """What a run, as `runs/get` shows it, has come to."""
    state = run.get("state") or {}
    life, result = str(state.get("life_cycle_state")), str(state.get("result_state"))
    # A run of several tasks of which one failed is an INTERNAL_ERROR with the result FAILED.
    decided = life == "TERMINATED" or (life == "INTERNAL_ERROR" and result in RESULTS)
    status = RESULTS.get(result) if decided else LIFE_CYCLE.get(life)
    if status is None:
        raise UnavailableError(f"Databricks says a state that is not known here: {life} {result}")
    if status.state in (JobState.RUNNING, JobState.SUCCEEDED):
        return status
    details = (run.get("status") or {}).get("termination_details") or {}
    code, type_ = str(details.get("code", "")), str(details.get("type", ""))
    category = status.category
    if status.state is JobState.FAILED and result in ("FAILED", "None"):
        category = CODES.get(code) or TYPES.get(type_) or category
    words = [status.error, code if code not in ("", result) else "", one_line(str(state.get("state_message") or ""))]
    failed = [str(task.get("task_key")) for task in _ended_tasks(run) if _task_failed(task)]
    words.append(f"failed tasks: {', '.join(failed)}" if failed else "")
    return msgspec.structs.replace(status, category=category, error="; ".join(word for word in words if word))


def idempotency_token(run_id: str) -> str:
    """Our run id, or, when that is too long, what stands for it."""
    return run_id if len(run_id) <= _LONGEST_TOKEN else sha256(run_id.encode()).hexdigest()


def _config(request: JobRequest) -> DatabricksConfig:
    config = read_config(request, DatabricksConfig)
    if sum(one is not None for one in (config.job_id, config.job_name, config.submit)) != 1:
        raise refused(request, "give one of jobId, jobName and submit")
    return config


def _number(request: JobRequest, job_id: int | str) -> int:
    try:
        return int(job_id)
    except ValueError:
        raise refused(request, f"jobId: {job_id!r} is not a number: for a name, give jobName") from None


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _ended_tasks(run: dict[str, Any]) -> list[dict[str, Any]]:
    tasks = [task for task in run.get("tasks") or [] if isinstance(task, dict) and task.get("end_time")]
    return sorted(tasks, key=lambda task: (task["end_time"], str(task.get("task_key"))))


def _task_failed(task: dict[str, Any]) -> bool:
    return (task.get("state") or {}).get("result_state") in ("FAILED", "TIMEDOUT", "CANCELED")


def _error_code(answer: Answer) -> str:
    return str(answer.json().get("error_code", ""))


TARGET: Final = JobTarget(
    make=lambda settings: DatabricksRunner(RestClient(settings.allow_private)), config=DatabricksConfig
)
