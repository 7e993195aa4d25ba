"""Reading `job.config` as its target's Struct (`model.job_configs`): one that does not fit never reaches the target.

The loader has checked it already, as far as that is possible before its templates are filled in. What they become is
text; where the Struct has a number or a boolean, text that reads as one is taken for it.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from interlock.decide.templates import CALLBACK_URL
from interlock.decide.values import read_duration
from interlock.model.durations import Duration
from interlock.model.errors import JobStartError
from interlock.model.job_configs import JobConfig
from interlock.ports.jobs import JobRequest

T = TypeVar("T", bound=JobConfig)


def read_config(request: JobRequest, type_: type[T]) -> T:
    """The config of a job as its target's Struct; one that does not fit is refused for good, and says where."""
    try:
        return msgspec.convert(dict(request.config), type_, dec_hook=_decode, strict=False)
    except msgspec.ValidationError as error:
        raise refused(request, str(error)) from error


def refused(request: JobRequest, problem: str) -> JobStartError:
    """The error for a config that cannot work however often it is tried."""
    return JobStartError(f"job.config of {request.key.pipeline}: {problem}", permanent=True)


def default_payload(request: JobRequest, callback: str = "") -> dict[str, Any]:
    """What a target is sent when the config says nothing else: which run this is, and where to report its end."""
    return {
        "pipeline": request.key.pipeline,
        "schedule": request.key.schedule,
        "date": request.key.date,
        "attempt": request.attempt,
        "runId": request.run_id,
        **({"callbackUrl": callback} if callback else {}),
    }


def with_callback(value: Any, callback: str) -> Any:
    """A value of a config with the address to report to filled in."""
    if isinstance(value, str):
        return value.replace(CALLBACK_URL, callback)
    if isinstance(value, Mapping):
        return {name: with_callback(inner, callback) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_callback(inner, callback) for inner in value]
    return value


def json_text(value: object) -> bytes:
    """A config's value as JSON; text that is JSON already stays as it is."""
    if isinstance(value, str):
        with suppress(msgspec.DecodeError):
            msgspec.json.decode(value)
            return value.encode()
    return msgspec.json.encode(value)


def _decode(type_: type, value: object) -> Any:
    if type_ is not Duration:
        raise NotImplementedError(f"no job config has values of type {type_.__name__}")
    return read_duration(value)
