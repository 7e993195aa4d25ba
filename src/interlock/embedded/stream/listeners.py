"""Who listens to a feed of events: they join, hear what is new, leave, or hear that it is over."""

import threading
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from interlock.control.views.event_views import EventView
from interlock.logs import get_logger

_log = get_logger(__name__)

T = TypeVar("T")


class SensorWritten(NamedTuple):
    """A sensor was written; what it says is in the store."""

    pipeline: str
    key: str
    received_at: str


class FeedEvent(NamedTuple):
    """An event and its number in the order of commits; 0 where events have none."""

    seq: int
    event: EventView


Listener = Callable[[FeedEvent], None]


class SensorsWanted(NamedTuple):
    """Who is to be told of sensors, some at a time, and of which pipelines; of all when none is named."""

    listener: Callable[[tuple[SensorWritten, ...]], None]
    pipelines: frozenset[str] = frozenset()

    def of(self, written: Collection[SensorWritten]) -> tuple[SensorWritten, ...]:
        """Those that are wanted."""
        if not self.pipelines:
            return tuple(written)
        return tuple(one for one in written if one.pipeline in self.pipelines)


class _Listening(NamedTuple):
    events: Listener
    ended: Callable[[], None]
    sensors: SensorsWanted | None


class Listeners:
    """The listeners of one feed. `lock` guards them, and what its feed keeps in step with them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._changed = threading.Condition(self.lock)
        self._listening: dict[int, _Listening] = {}
        self._joined = 0
        self._stopping = threading.Event()

    def __len__(self) -> int:
        return len(self._listening)

    def add(self, listener: Listener, ended: Callable[[], None], sensors: SensorsWanted | None) -> int:
        """Another listener; its ticket. With the lock held."""
        self._joined += 1
        self._listening[self._joined] = _Listening(listener, ended, sensors)
        self._changed.notify_all()
        return self._joined

    def leave(self, ticket: int) -> None:
        """Tell this listener nothing more. Leaving twice is no error."""
        with self.lock:
            self._listening.pop(ticket, None)

    @property
    def events(self) -> list[Listener]:
        """Who hears of events. With the lock held."""
        return [one.events for one in self._listening.values()]

    @property
    def sensors(self) -> list[SensorsWanted]:
        """Who hears of sensors, and of which."""
        with self.lock:
            return [one.sensors for one in self._listening.values() if one.sensors is not None]

    @property
    def stopped(self) -> bool:
        """Will nothing come any more?"""
        return self._stopping.is_set()

    def wait(self) -> bool:
        """Wait until somebody listens; False when it is over."""
        with self.lock:
            self._changed.wait_for(lambda: self._listening or self._stopping.is_set())
        return not self._stopping.is_set()

    def pause(self, seconds: float) -> None:
        """Wait so long, or until it is over."""
        self._stopping.wait(seconds)

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self._stopping.set()
        with self.lock:
            self._changed.notify_all()

    def end(self) -> None:
        """Tell everybody that this is the end."""
        with self.lock:
            everybody, self._listening = list(self._listening.values()), {}
        for one in everybody:
            one.ended()


def notify(listener: Callable[[T], None], news: T) -> None:
    """Tell a listener; one that fails does not disturb the others."""
    try:
        listener(news)
    except Exception:  # noqa: BLE001  the others listen on
        _log.exception("a listener of the events failed")


def notify_of_sensors(wanted: Collection[SensorsWanted], written: Collection[SensorWritten]) -> None:
    """Tell each of the sensors that it wants to hear of."""
    for one in wanted:
        if chosen := one.of(written):
            notify(one.listener, chosen)
