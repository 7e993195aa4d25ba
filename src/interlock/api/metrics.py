"""Prometheus metrics. No label has values that users choose: pipelines and keys are unbounded, and may be private."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from interlock import __version__
from interlock.api.served import Served
from interlock.control import config_files, records
from interlock.control.views.controller_view import Workload
from interlock.logs import get_logger
from interlock.model.errors import InterlockError
from interlock.model.events import CATALOGUE, Event, EventType
from interlock.model.run import RunStatus

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_METHODS: Final = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"})
_ACTIVE: Final = tuple(status for status in RunStatus if not status.terminal)
_KEPT_SECONDS: Final = 5.0
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_log = get_logger(__name__)


class HttpMetrics:
    """How long requests take, by route. A route is a template out of our own list."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "interlock_http_request_seconds",
            "Duration of HTTP requests.",
            ("method", "route", "status"),
            registry=registry,
            buckets=_BUCKETS,
        )

        self._failed_logins = Counter(
            "interlock_failed_logins", "Tokens, codes and sessions that were shown and do not work.", registry=registry
        )

    def login_failed(self) -> None:
        """Somebody showed a token that does not work."""
        self._failed_logins.inc()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request is over."""
        self.observer(method, route, status)(seconds)

    def observer(self, method: str, route: str, status: int) -> Callable[[float], None]:
        """What is called with the seconds of a request of this kind; finding it costs more than calling it."""
        name = method if method in _METHODS else "OTHER"
        return self._durations.labels(name, route, f"{status // 100}xx").observe


class Metrics:
    """Everything that is measured of one controller."""

    def __init__(self, service: Served) -> None:
        self._registry = CollectorRegistry()
        self.http = HttpMetrics(self._registry)
        self._events = Counter(
            "interlock_events",
            "Events published since this process started.",
            ("type", "severity"),
            registry=self._registry,
        )
        for type_ in (EventType.JOB_TRIGGERED, EventType.JOB_COMPLETED, EventType.JOB_FAILED, EventType.SLA_BREACH):
            self._events.labels(type_.value, CATALOGUE[type_].severity.value)
        self._registry.register(_State(service))
        service.subscribe(self._count)

    def _count(self, event: Event) -> None:
        self._events.labels(event.type.value, event.severity.value).inc()

    def text(self) -> bytes:
        """The metrics as Prometheus reads them."""
        return generate_latest(self._registry)


class _State(Collector):
    """What is read from the store at a scrape, at most every few seconds."""

    def __init__(self, service: Served) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._made: list[Metric] = []
        self._made_at: float | None = None

    def describe(self) -> Iterator[Metric]:
        """Nothing is read when it is registered."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The state now, or as it was a moment ago."""
        with self._lock:
            now = time.monotonic()
            if self._made_at is None or now - self._made_at > _KEPT_SECONDS:
                try:
                    self._made = list(self._read())
                except InterlockError as error:
                    _log.error("metrics cannot be read from the store", error=str(error))
                    self._made = []
                self._made_at = now
            return iter(self._made)

    def _read(self) -> Iterator[Metric]:
        service = self._service
        build = GaugeMetricFamily("interlock_build_info", "Always 1.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        pipelines = service.store.pipelines()
        yield GaugeMetricFamily("interlock_pipelines", "Pipelines that are applied.", value=len(pipelines))
        yield from self._configs()
        counts = dict.fromkeys(_ACTIVE, 0)
        for pipeline in pipelines:
            for key in records.active_runs(service.store, pipeline):
                run = records.get_run(service.store, key)
                if run is not None and run.status in counts:
                    counts[run.status] += 1
        runs = GaugeMetricFamily("interlock_active_runs", "Runs with an attempt under way.", labels=["status"])
        for status, count in counts.items():
            runs.add_metric([status.value], count)
        yield runs
        lag = GaugeMetricFamily("interlock_stream_lag", "Changes that a consumer has not passed.", labels=["consumer"])
        work = service.workload(service.clock.now())
        for one in work.functions:
            if one.reads_stream:
                lag.add_metric([one.name], one.lag)
        yield lag
        yield from self._work(work)

    def _configs(self) -> Iterator[Metric]:
        store = self._service.store
        lost = sum(bool(one.lost) for one in config_files.folders(store))
        yield GaugeMetricFamily("interlock_config_folder_lost", "1 while the folder of pipelines is lost.", value=lost)
        invalid = len(config_files.invalid_files(store))
        yield GaugeMetricFamily("interlock_config_files_invalid", "Config files that cannot be used.", value=invalid)
        degraded = len(self._service.degradations())
        yield GaugeMetricFamily("interlock_degraded", "What the controller works in spite of.", value=degraded)

    def _work(self, work: Workload) -> Iterator[Metric]:
        waiting = work.executions_waiting
        yield GaugeMetricFamily("interlock_executions_waiting", "Executions that wait for a time.", value=waiting)
        yield GaugeMetricFamily("interlock_timers", "Armed timers.", value=work.timers)
        alerts = sum(work.deliveries.values())
        yield GaugeMetricFamily("interlock_alerts_waiting", "Alerts that are to be delivered.", value=alerts)
        failing = work.failing_channels
        yield GaugeMetricFamily("interlock_alert_channels_failing", "Channels that do not take alerts.", value=failing)
        given_up = work.alerts_given_up
        yield GaugeMetricFamily("interlock_alerts_given_up", "Alerts that became dead letters.", value=given_up)
        streams = self._service.feed.listeners
        yield GaugeMetricFamily("interlock_event_streams", "Event streams that are open.", value=streams)
        letters = self._service.dead_letters.count()
        yield GaugeMetricFamily("interlock_dead_letters", "What was given up and waits for a person.", value=letters)
