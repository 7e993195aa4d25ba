"""Reading the config of a probe as its Struct (`model.probe_configs`), and the JSON that probes answer with."""

from typing import Any, Final, TypeVar

import msgspec

from interlock.decide.values import read_duration
from interlock.model.durations import Duration
from interlock.model.errors import ProbeError
from interlock.model.job_configs import JobConfig
from interlock.model.sensor import MAX_SENSOR_BYTES
from interlock.ports.probes import ProbeRequest

T = TypeVar("T", bound=JobConfig)
_QUOTED: Final = 300


def read_config(request: ProbeRequest, type_: type[T]) -> T:
    """The config of a look as its kind's Struct; filled-in text that reads as a number is taken for it."""
    try:
        return msgspec.convert(dict(request.config), type_, dec_hook=_decode, strict=False)
    except msgspec.ValidationError as error:
        raise ProbeError(f"config: {error}") from error


def default_payload(request: ProbeRequest) -> dict[str, Any]:
    """What is sent to the system that is asked, unless the config says otherwise."""
    return {"pipeline": request.pipeline, "key": request.key, "date": request.date or None}


def observation_of(text: bytes, source: str) -> dict[str, Any]:
    """The JSON object of an answer."""
    if len(text) > MAX_SENSOR_BYTES:
        raise ProbeError(f"{source} is larger than the {MAX_SENSOR_BYTES} bytes that a sensor may have")
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = quoted(text.decode(errors="replace"))
        raise ProbeError(f"{source} is not JSON ({error}): {said or 'it is empty'}") from error
    if not isinstance(found, dict):
        raise ProbeError(f"{source} is not a JSON object: {quoted(text.decode(errors='replace'))}")
    return found


def quoted(text: str) -> str:
    """Foreign text for a message: one line, not too long."""
    cleaned = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return cleaned[:_QUOTED] + ("..." if len(cleaned) > _QUOTED else "")


def _decode(type_: type, value: object) -> Any:
    if type_ is not Duration:
        raise NotImplementedError(f"no probe config has values of type {type_.__name__}")
    return read_duration(value)
