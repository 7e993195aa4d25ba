"""Does a job's config have what its target cannot do without?

Only what is missing or cannot be read is an error. Keys that are not listed here are the target's own business,
and some are passed on to it as they are.
"""

import re
import shlex
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from interlock.config.job_types import check_type
from interlock.config.problems import Finding, Path
from interlock.decide.templates import ENVIRONMENT_PREFIX, JOB_ID, fill
from interlock.decide.values import show
from interlock.model.config import Job, JobType
from interlock.model.durations import format_duration, parse_duration
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey

# Of each group one key is needed.
REQUIRED: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    JobType.COMMAND: (("command",),),
    JobType.HTTP: (("url",),),
    JobType.AIRFLOW: (("url",), ("dagId",)),
    JobType.GLUE: (("jobName",),),
    JobType.EMR: (("clusterId",),),
    JobType.EMR_SERVERLESS: (("applicationId",),),
    JobType.STEP_FUNCTION: (("stateMachineArn",),),
    JobType.DATABRICKS: (("host", "url"), ("jobId", "submit")),
    JobType.LAMBDA: (("functionName",),),
    JobType.EXTERNAL: (),
}
_URLS: Final = ("url", "host")
_MIN_POLL: Final = timedelta(seconds=1)
_MAX_RETRY_DELAY: Final = timedelta(hours=1)
_ENVIRONMENT: Final = re.compile(r"\$\{(" + ENVIRONMENT_PREFIX + r"[^{}]*)\}")
_SAMPLE: Final = RunKey("pipeline", "schedule", "2026-01-01")


def check_job(job: Job) -> Iterator[Finding]:
    """Everything about a job that its types do not say."""
    yield from check_type(job.type)
    seconds = job.job_poll_window_seconds
    if 0 < seconds < 60:
        yield Finding(("job", "jobPollWindowSeconds"), f"{seconds} is not in 60..86400 (0 is the default, 3600)")
    if job.poll_interval < _MIN_POLL:
        yield Finding(("job", "pollInterval"), f"{format_duration(job.poll_interval)} is shorter than 1s")
    if job.retry_delay > _MAX_RETRY_DELAY:
        yield Finding(("job", "retryDelay"), f"{format_duration(job.retry_delay)} is longer than 1h")
    yield from _missing(job)
    yield from _unreadable(job)
    yield from _bad_templates(job.config, ("job", "config"))


def _missing(job: Job) -> Iterator[Finding]:
    for names in REQUIRED.get(job.type, ()):
        if all(job.config.get(name) in (None, "", []) for name in names):
            others = "".join(f" (or {name})" for name in names[1:])
            yield Finding(("job", "config", names[0]), f"is missing: jobs of type {job.type} need {names[0]}{others}")


def _unreadable(job: Job) -> Iterator[Finding]:
    config = job.config
    if job.type == JobType.COMMAND:
        problem = _wrong_command(config.get("command"))
        if problem:
            yield Finding(("job", "config", "command"), problem)
    if job.type in (JobType.HTTP, JobType.AIRFLOW, JobType.DATABRICKS):
        for name in _URLS:
            problem = _wrong_url(name, config.get(name))
            if problem:
                yield Finding(("job", "config", name), problem)
    timeout = config.get("timeout")
    if job.type in (JobType.COMMAND, JobType.HTTP) and isinstance(timeout, str) and "${" not in timeout:
        try:
            parse_duration(timeout)
        except InvalidValueError as error:
            yield Finding(("job", "config", "timeout"), str(error))


def _wrong_command(command: object) -> str | None:
    if command in (None, "", []):
        return None  # reported as missing, or not given
    if isinstance(command, list):
        texts = all(isinstance(part, str) for part in command)
        return None if texts and command[0] else "is a list of texts, the program first: quote numbers"
    if not isinstance(command, str):
        return f"{show(command)} is neither a list of texts nor one line of text"
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"cannot be split into words ({str(error).lower()}): give a list, such as [python, etl.py]"
    return None if words else "names no program"


def _wrong_url(name: str, url: object) -> str | None:
    if url in (None, "") or (isinstance(url, str) and "${" in url):
        return None
    if not isinstance(url, str):
        return f"{show(url)} is not text"
    if url.lower().startswith(("http://", "https://")) or (name == "host" and "://" not in url):
        return None
    return f"{show(url)} is not an http(s) address"


def _bad_templates(config: object, path: Path) -> Iterator[Finding]:
    """Templates that could not be filled in when the job is to start, which would be too late to hear of it."""
    waiting: list[tuple[Path, object]] = [(path, config)]
    while waiting:
        here, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(((*here, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*here, index), inner) for index, inner in enumerate(value))
        elif isinstance(value, str) and "${" in value:
            yield from _bad_template(value, here)
            yield from _misplaced(value, here)


def _misplaced(text: str, path: Path) -> Iterator[Finding]:
    """What the target fills in itself, it fills in where it is made for that."""
    if JOB_ID in text and path[2:] != ("poll", "url"):
        yield Finding(
            path, f"{JOB_ID} is known in poll.url of an http job alone; our own id of the start is ${{RUN_ID}}"
        )


def _bad_template(text: str, path: Path) -> Iterator[Finding]:
    # Which variables the controller's environment has is not known here; that they have the prefix is enough.
    environment = dict.fromkeys(_ENVIRONMENT.findall(text), "")
    try:
        fill({"text": text}, _SAMPLE, run_id="run", attempt=1, environment=environment, where="")
    except InvalidValueError as error:
        yield Finding(path, str(error).removeprefix(".text: "))
