"""Reading `job.config`: each target declares a Struct, and a config that does not fit it never reaches the target."""

from typing import Any, TypeVar

import msgspec

from interlock.model.durations import Duration, parse_duration
from interlock.model.errors import JobStartError
from interlock.ports.jobs import JobRequest

T = TypeVar("T", bound=msgspec.Struct)


def read_config(request: JobRequest, type_: type[T]) -> T:
    """The config of a job as its target's Struct; one that does not fit is refused for good, and says where."""
    try:
        return msgspec.convert(dict(request.config), type_, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise refused(request, str(error)) from error


def refused(request: JobRequest, problem: str) -> JobStartError:
    """The error for a config that cannot work however often it is tried."""
    return JobStartError(f"job.config of {request.key.pipeline}: {problem}", permanent=True)


def _decode(type_: type, value: object) -> Any:
    """Durations as everywhere in a config; a bare number is seconds."""
    if type_ is not Duration:
        raise NotImplementedError(f"no job config has values of type {type_.__name__}")
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return Duration(seconds=value)
    raise ValueError(f"{value!r} is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H")
