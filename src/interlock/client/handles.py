"""`client.sensor(pipeline, key)` and `client.sensors`: the way most programs touch the SDK.

Generic over what a call gives, so that both shells have the same ones: a value, or something to await.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from interlock.client.answers import Sensor, Written
from interlock.client.core import Core
from interlock.client.errors import ClientError
from interlock.client.requests import Observation
from interlock.client.steps import Flow

WrittenT = TypeVar("WrittenT")
SensorT = TypeVar("SensorT")
DeletedT = TypeVar("DeletedT")
BatchT = TypeVar("BatchT")
ListT = TypeVar("ListT")


class SensorHandle(Generic[WrittenT, SensorT, DeletedT]):
    """One sensor: `handle.set(count=15432)`, `handle.get()`, `handle.delete()`."""

    def __init__(
        self,
        core: Core,
        pipeline: str,
        key: str,
        write: Callable[[Flow[Written]], WrittenT],
        read: Callable[[Flow[Sensor]], SensorT],
        delete: Callable[[Flow[None]], DeletedT],
    ) -> None:
        self.pipeline = pipeline
        self.key = key
        self._core = core
        self._write = write
        self._read = read
        self._delete = delete

    def set(self, data: Mapping[str, Any] | None = None, /, *, ttl: int | None = None, **fields: Any) -> WrittenT:
        """Write an observation: a mapping, fields by name, or both. Durable when it returns.

        `date` (and `hour`) are fields like any other, and say which period the observation is about.
        """
        twice = sorted(set(data or {}) & set(fields))
        if twice:
            raise ClientError(f"sensor {self.key}: {', '.join(twice)} given twice, in the mapping and by name")
        return self._write(self._core.write_sensor(self.pipeline, self.key, {**(data or {}), **fields}, ttl=ttl))

    def get(self) -> SensorT:
        """The latest observation; NotFoundError when it was never written, or has expired."""
        return self._read(self._core.read_sensor(self.pipeline, self.key))

    def delete(self) -> DeletedT:
        """Forget the observation; NotFoundError when there is none."""
        return self._delete(self._core.delete_sensor(self.pipeline, self.key))


class SensorsHandle(Generic[BatchT, ListT]):
    """All sensors: `client.sensors.batch([...])`, `client.sensors.list("gold-revenue")`."""

    def __init__(
        self,
        core: Core,
        write: Callable[[Flow[list[Written]]], BatchT],
        read: Callable[[Flow[list[Sensor]]], ListT],
    ) -> None:
        self._core = core
        self._write = write
        self._read = read

    def batch(self, observations: Iterable[Observation | Mapping[str, Any]]) -> BatchT:
        """Write several observations with one request; each has `pipeline`, `key`, `data` and maybe `ttl`."""
        return self._write(self._core.write_sensors(observations))

    def list(self, pipeline: str, *, limit: int | None = None) -> ListT:
        """The sensors of a pipeline, by key."""
        return self._read(self._core.read_sensors(pipeline, limit=limit))
