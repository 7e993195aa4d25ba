"""Is a job's config what its target can work with? Unknown and missing keys, wrong values, templates.

The keys are those of `model.job_configs`, the Structs that the targets read. A text with a template is taken for
whatever is wanted there: what it becomes is known when the job is to start.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from interlock.config.decode import Template, find_wrong
from interlock.config.job_types import check_type, config_type
from interlock.config.problems import Finding, Path
from interlock.config.shell_syntax import wrong_text
from interlock.decide.templates import CALLBACK_URL, ENVIRONMENT_PREFIX, JOB_ID, fill
from interlock.decide.values import read_duration, show
from interlock.model.config import Job, JobType
from interlock.model.durations import format_duration
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.job_configs import HTTP_METHODS
from interlock.model.keys import RunKey

CONFIG: Final[Path] = ("job", "config")
_MIN_POLL: Final = timedelta(seconds=1)
_MAX_RETRY_DELAY: Final = timedelta(hours=1)
_ENVIRONMENT: Final = re.compile(r"\$\{(" + ENVIRONMENT_PREFIX + r"[^{}]*)\}")
_TEMPLATE: Final = re.compile(r"(?<!\$)\$\{")
_SAMPLE: Final = RunKey("pipeline", "schedule", "2026-01-01")
_URLS: Final[tuple[Path, ...]] = (("url",), ("poll", "url"), ("host",), ("endpointUrl",))
_ARNS: Final = ("roleArn", "executionRoleArn", "stateMachineArn")


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
    for finding in _check_config(job):
        # Which keys there are depends on the type: where that is wrong, nothing can be said of them.
        yield msgspec.structs.replace(finding, needs=(*finding.needs, ("job", "type")))
    yield from _bad_templates(job.config, CONFIG)


def _check_config(job: Job) -> Iterator[Finding]:
    try:
        type_ = config_type(job.type)
    except InterlockError as error:
        yield Finding(("job", "type"), str(error))
        return
    if type_ is None:
        return  # nobody says what it takes
    said = partial(in_words, what=f"jobs of type {job.type}", type_=type_, at=CONFIG)
    wrong = [said(one) for one in find_wrong(opened(job.config), type_, CONFIG)]
    yield from wrong
    broken = {one.path for one in wrong}
    for finding in _wrong_values(job):
        if not any(finding.path[: len(path)] == path for path in broken):
            yield finding


def in_words(finding: Finding, what: str, type_: type[msgspec.Struct], at: Path) -> Finding:
    """What the walk says of a mapping, in the words of the config at `at` of a job or probe."""
    inner = finding.path[len(at) :]
    if len(inner) != 1:
        return finding
    keys = [field.encode_name for field in msgspec.structs.fields(type_)]
    if finding.message == "is missing":
        return msgspec.structs.replace(finding, message=f"is missing: {what} need {inner[0]}")
    if finding.message == "unknown key":
        known = f"take {', '.join(keys)}" if keys else "take none"
        return msgspec.structs.replace(finding, message=f"unknown key: {what} {known}")
    return finding


def opened(value: object) -> object:
    """The config, its texts with templates marked as such."""
    if isinstance(value, dict):
        return {key: opened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [opened(inner) for inner in value]
    return Template(value) if has_template(value) else value


def has_template(value: object) -> bool:
    """Is it a text with a template?"""
    return isinstance(value, str) and _TEMPLATE.search(value) is not None


# --------------------------------------------------------------------------------- values that have the right type


def _wrong_values(job: Job) -> Iterator[Finding]:
    config = job.config
    for path in _URLS:
        problem = wrong_url(path[-1] == "host", _value(config, path))
        if problem:
            yield Finding((*CONFIG, *path), problem)
    for name in _ARNS:
        arn = config.get(name)
        if isinstance(arn, str) and not has_template(arn) and not arn.startswith("arn:"):
            yield Finding((*CONFIG, name), f"{show(arn)} is not an ARN: arn:aws:...")
    match job.type:
        case JobType.COMMAND:
            yield from wrong_command(config.get("command"), (*CONFIG, "command"))
        case JobType.HTTP:
            yield from _wrong_request(config)
        case JobType.DATABRICKS:
            yield from _wrong_databricks(config)
        case _:
            pass
    mode = config.get("mode")
    reports = job.type == JobType.LAMBDA and (mode == "async" or has_template(mode))
    if job.type != JobType.HTTP and not reports:
        known = "http jobs with callback: true and lambda jobs with mode: async"
        for path in _uses_of(CALLBACK_URL, config, CONFIG):
            yield Finding(path, f"{CALLBACK_URL} is known to {known} alone")


def _value(config: dict[str, Any], path: Path) -> object:
    value: object = config
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def wrong_url(bare: bool, url: object) -> str | None:
    """Why a URL cannot be called; `bare`: a host alone will do."""
    if not isinstance(url, str) or not url or url.startswith("${"):
        return None
    if url.lower().startswith(("http://", "https://")) or (bare and "://" not in url):
        return None
    return f"{show(url)} is not an http(s) address"


def wrong_command(command: object, path: Path) -> Iterator[Finding]:
    """What is wrong with the command at a path."""
    if isinstance(command, list):
        if not command:
            yield Finding(path, "names no program")
        elif command[0] == "":
            yield Finding((*path, 0), "names no program")
    elif isinstance(command, str):
        problem = wrong_text(command)
        if problem:
            yield Finding(path, problem)


def _wrong_request(config: dict[str, Any]) -> Iterator[Finding]:
    method = config.get("method")
    if isinstance(method, str) and not has_template(method) and method.upper() not in HTTP_METHODS:
        yield Finding((*CONFIG, "method"), f"{show(method)} is not one of {', '.join(HTTP_METHODS)}")
    timeout = config.get("timeout")
    if isinstance(timeout, str) and not has_template(timeout) and _is_nothing(timeout):
        yield Finding((*CONFIG, "timeout"), "must be longer than nothing")
    if config.get("callback") is True and config.get("poll") is not None:
        yield Finding((*CONFIG, "poll"), "stands beside `callback: true`: the end is reported, or asked for, not both")
    url = _value(config, ("poll", "url"))
    if config.get("callback") is not True and not has_template(config.get("callback")):
        for path in _uses_of(CALLBACK_URL, config, CONFIG):
            yield Finding(path, f"{CALLBACK_URL} needs callback: true")
    if isinstance(url, str) and JOB_ID in url and not config.get("jobIdPath"):
        yield Finding((*CONFIG, "poll", "url"), f"{JOB_ID} needs jobIdPath: where the answer has it", needs=(CONFIG,))


def _uses_of(template: str, value: object, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _uses_of(template, inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _uses_of(template, inner, (*path, index))
    elif isinstance(value, str) and template in value:
        yield path


def _is_nothing(timeout: str) -> bool:
    try:
        return not read_duration(timeout)
    except InvalidValueError:
        return False  # reported as what it is


def _wrong_databricks(config: dict[str, Any]) -> Iterator[Finding]:
    given = [name for name in ("jobId", "jobName", "submit") if config.get(name) is not None]
    if not given:
        message = "is missing: jobs of type databricks need jobId, jobName or submit"
        yield Finding((*CONFIG, "jobId"), message, needs=(CONFIG,))
    for name in given[1:]:
        yield Finding((*CONFIG, name), f"stands beside {given[0]}: give one of them")
    auth = config.get("auth")
    if isinstance(auth, dict) and ("token" in auth) == ("clientId" in auth or "clientSecret" in auth):
        yield Finding((*CONFIG, "auth"), "is {token}, or {clientId, clientSecret}", needs=((*CONFIG, "auth"),))
    elif isinstance(auth, dict) and ("clientId" in auth) != ("clientSecret" in auth):
        yield Finding((*CONFIG, "auth"), "needs clientId and clientSecret", needs=((*CONFIG, "auth"),))


# ----------------------------------------------------------------------------------------------------- templates


def _bad_templates(config: object, path: Path) -> Iterator[Finding]:
    """Templates that could not be filled in when the job is to start, which would be too late to hear of it."""
    for here, text in templates_in(config, path):
        yield from _bad_template(text, here)
        yield from _misplaced(text, here)


def templates_in(config: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text of a config that has templates, with its path."""
    waiting: list[tuple[Path, object]] = [(path, config)]
    while waiting:
        here, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(((*here, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*here, index), inner) for index, inner in enumerate(value))
        elif isinstance(value, str) and "${" in value:
            yield here, value


def _misplaced(text: str, path: Path) -> Iterator[Finding]:
    """What the target fills in itself, it fills in where it is made for that."""
    if JOB_ID in text and path[2:] != ("poll", "url"):
        yield Finding(
            path, f"{JOB_ID} is known in poll.url of an http job alone; our own id of the start is ${{RUN_ID}}"
        )


def sample_environment(text: str) -> dict[str, str]:
    """Which variables the controller's environment has is not known here; that they have the prefix is enough."""
    return dict.fromkeys(_ENVIRONMENT.findall(text), "")


def _bad_template(text: str, path: Path) -> Iterator[Finding]:
    environment = sample_environment(text)
    try:
        fill({"text": text}, _SAMPLE, run_id="run", attempt=1, environment=environment, where="")
    except InvalidValueError as error:
        yield Finding(path, str(error).removeprefix(".text: "))
