"""A sensor: the latest observation of `(pipeline, key)`."""

import math
from datetime import datetime
from typing import Any, Final

import msgspec

from interlock.model.errors import SensorRefusedError, SensorTooLargeError
from interlock.model.keys import UPSTREAM, check_sensor_key

MAX_SENSOR_BYTES: Final = 64 * 1024
# A store takes 31 levels (`ports.limits`), of which the observation's own place in its item is one.
_MAX_DEPTH: Final = 30


class Sensor(msgspec.Struct, frozen=True, rename="camel"):
    """What was observed, and when it was received."""

    key: str
    data: dict[str, Any]
    received_at: datetime
    ttl: int | None = None

    def expired(self, now: datetime) -> bool:
        """A sensor past its ttl is absent."""
        return self.ttl is not None and self.ttl <= now.timestamp()


class SensorUse(msgspec.Struct, frozen=True):
    """What a pipeline's sensors take: those that stay until they are deleted, those that expire, the bytes of both."""

    kept: int = 0
    expiring: int = 0
    bytes: int = 0


def check_observation(key: str, data: object) -> dict[str, Any]:
    """The observation itself if it may be stored under that key, or a clear error."""
    check_sensor_key(key)
    if not isinstance(data, dict):
        raise SensorRefusedError(f"sensor {key!r}: the data must be a JSON object, not {_kind(data)}")
    _check_numbers(key, data, key, 0)
    try:
        size = len(msgspec.json.encode(data))
    except (TypeError, ValueError, OverflowError) as error:
        raise SensorRefusedError(f"sensor {key!r}: the data is not JSON: {error}") from error
    if size > MAX_SENSOR_BYTES:
        raise SensorTooLargeError(f"sensor {key!r}: {size} bytes is more than the {MAX_SENSOR_BYTES} a sensor may have")
    return data


def _check_numbers(key: str, value: object, path: str, depth: int) -> None:
    if depth > _MAX_DEPTH and isinstance(value, dict | list | tuple):
        raise SensorRefusedError(f"sensor {key!r}: nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, float) and not math.isfinite(value):
        raise SensorRefusedError(f"sensor {key!r}: {path} is {value}, which is not a JSON number")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_numbers(key, inner, f"{path}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check_numbers(key, inner, f"{path}[{index}]", depth + 1)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", list: "an array", tuple: "an array", str: "text"}.get(type(value), "a number")


def is_upstream(key: str) -> bool:
    """Does a rule of this key read a cascade marker rather than a sensor?"""
    return key.startswith(UPSTREAM)
