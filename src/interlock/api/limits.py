"""`[limits]` of `interlock.toml`: how much one peer, one token and one pipeline may take; the defaults are below.

[limits]
connections = 2000                    # at most half of the files that the process may have open
connections_per_peer = 1000           # of one address, or of one user of this machine; default: half of them
head_timeout = "30s"                  # for the head of a request
read_timeout = "20s"                  # for the client to read what it asked for
streams = 500                         # event streams at once
streams_per_peer = 100
streams_per_token = 50
sensors_per_pipeline = 10000          # that stay until they are deleted; those that expire: five times as many
bytes_per_pipeline = "256MiB"         # of its sensors
writes_per_second_per_token = 0       # 0: as many as it likes
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.config.problems import Finding
from interlock.config.suggestions import did_you_mean
from interlock.decide.quotas import SensorQuota
from interlock.model.durations import parse_duration
from interlock.model.errors import InvalidValueError
from interlock.model.sensor import MAX_SENSOR_BYTES
from interlock.model.sizes import parse_size

if TYPE_CHECKING:
    from interlock.api.connections import ConnectionLimits
    from interlock.api.stream_shares import StreamLimits

TABLE: Final = "limits"
_NUMBERS: Final = {
    "connections": (1, 100_000),
    "connections_per_peer": (1, 100_000),
    "streams": (1, 100_000),
    "streams_per_peer": (1, 100_000),
    "streams_per_token": (1, 100_000),
    "sensors_per_pipeline": (1, 10_000_000),
    "writes_per_second_per_token": (0, 1_000_000),
}
_TIMES: Final = ("head_timeout", "read_timeout")
_SIZES: Final = ("bytes_per_pipeline",)
_KEYS: Final = (*_NUMBERS, *_TIMES, *_SIZES)
_SHORTEST: Final = timedelta(milliseconds=100)
_LONGEST: Final = timedelta(hours=1)
_SMALLEST: Final = MAX_SENSOR_BYTES


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of an installation; None: the default."""

    connections: int | None = None
    connections_per_peer: int | None = None
    head_timeout: timedelta | None = None
    read_timeout: timedelta | None = None
    streams: int | None = None
    streams_per_peer: int | None = None
    streams_per_token: int | None = None
    sensors_per_pipeline: int | None = None
    bytes_per_pipeline: int | None = None
    writes_per_second_per_token: int = 0

    def of_connections(self) -> "ConnectionLimits":
        """How many connections, and how long they may take; never more than the process can afford."""
        # Commands read settings, too, and need no server for that.
        from interlock.api.connections import ConnectionLimits

        made = ConnectionLimits.of_this_process()
        if self.connections is not None:
            made = replace(made, connections=min(self.connections, made.connections))
        if self.connections_per_peer is not None:
            made = replace(made, per_peer=self.connections_per_peer)
        if self.head_timeout is not None:
            made = replace(made, head_seconds=self.head_timeout.total_seconds())
        if self.read_timeout is not None:
            made = replace(made, write_seconds=self.read_timeout.total_seconds())
        return made

    def of_streams(self) -> "StreamLimits":
        """How many event streams."""
        from interlock.api.stream_shares import StreamLimits

        default = StreamLimits()
        return StreamLimits(
            streams=self.streams or default.streams,
            per_peer=self.streams_per_peer or default.per_peer,
            per_token=self.streams_per_token or default.per_token,
        )

    def of_sensors(self) -> SensorQuota:
        """What the sensors of one pipeline may take."""
        default = SensorQuota()
        return SensorQuota(
            sensors=self.sensors_per_pipeline or default.sensors, bytes=self.bytes_per_pipeline or default.bytes
        )


def problems(plain: object) -> Iterator[Finding]:
    """All that is wrong with the table."""
    if not isinstance(plain, dict):
        yield Finding((TABLE,), f"is not a table: write [{TABLE}]")
        return
    for name, value in plain.items():
        if name in _NUMBERS:
            least, most = _NUMBERS[name]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                yield Finding((TABLE, name), f"{value!r} is not a number from {least} to {most}")
        elif name in _READERS:
            try:
                _READERS[name](value)
            except InvalidValueError as error:
                yield Finding((TABLE, name), str(error))
        else:
            yield Finding((TABLE, name), f"is not a setting{did_you_mean(name, _KEYS)}")


def limits(plain: Mapping[str, Any]) -> Limits:
    """The limits of a table in which nothing is wrong."""
    read: dict[str, Any] = {name: _READERS[name](value) if name in _READERS else value for name, value in plain.items()}
    return Limits(**read)


def _time(value: object) -> timedelta:
    if not isinstance(value, str):
        raise InvalidValueError(f"{value!r} is not a duration: write '30s', in quotes")
    found = parse_duration(value)
    if not _SHORTEST <= found <= _LONGEST:
        raise InvalidValueError(f"{value!r} is not between 100ms and 1h")
    return found


def _size(value: object) -> int:
    if not isinstance(value, str):
        raise InvalidValueError(f"{value!r} is not an amount of data: write '256MiB', in quotes")
    found = parse_size(value)
    if found < _SMALLEST:
        raise InvalidValueError(f"{value!r} is less than the 64KiB that one sensor may take")
    return found


_READERS: Final[dict[str, Callable[[object], Any]]] = dict.fromkeys(_TIMES, _time) | dict.fromkeys(_SIZES, _size)
