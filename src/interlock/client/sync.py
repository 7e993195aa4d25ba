"""`Client`: the flows of the core, done one step after the other. Threads may share one."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, assert_never

from interlock.client import following
from interlock.client.answers import Event, Sensor, Written
from interlock.client.core import Core
from interlock.client.errors import ClientError
from interlock.client.handles import SensorHandle, SensorsHandle
from interlock.client.retries import RetryPolicy
from interlock.client.settings import Settings, settings_from
from interlock.client.steps import Came, Flow, Give, HangUp, Listen, NextChunk, NoAnswer, Pause, Send, Step
from interlock.client.wire import http_settings, no_answer, reply_of, stream_timeout

if TYPE_CHECKING:
    import httpx

P = ParamSpec("P")
T = TypeVar("T")


def _method(flow: Callable[Concatenate[Core, P], Flow[T]]) -> Callable[Concatenate["Client", P], T]:
    """A flow of the core as a method of the client: the same name, arguments and docstring."""

    @wraps(flow)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.perform(flow(client.core, *args, **kwargs))

    return method


class Client:
    """A server, for a program that waits for each answer.

    `url`, `token` and `ca_file` (of an authority of your own, for https) default to INTERLOCK_URL, INTERLOCK_TOKEN and
    INTERLOCK_CA_FILE.

    >>> client = Client("http://127.0.0.1:8765")
    >>> client.sensor("gold-revenue", "row-count").set(count=15432)
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retry: RetryPolicy | None = None,
        ca_file: str | None = None,
    ) -> None:
        import httpx

        self.core = Core(settings_from(url, token, timeout, retry, ca_file))
        self._http = httpx.Client(**http_settings(self.core.settings))
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.core.settings.url!r})"

    def close(self) -> None:
        """Close the connections; a wait in another thread ends."""
        self._closed.set()
        self._http.close()

    # ------------------------------------------------------------------------------------------------- the flows

    write_sensor = _method(Core.write_sensor)
    write_sensors = _method(Core.write_sensors)
    read_sensor = _method(Core.read_sensor)
    read_sensors = _method(Core.read_sensors)
    delete_sensor = _method(Core.delete_sensor)
    pipelines = _method(Core.pipelines)
    pipeline = _method(Core.pipeline)
    apply = _method(Core.apply)
    delete = _method(Core.delete)
    calendars = _method(Core.calendars)
    apply_calendar = _method(Core.apply_calendar)
    readiness = _method(Core.readiness)
    wait_until_ready = _method(following.wait_until_ready)
    why = _method(Core.why)
    runs = _method(Core.runs)
    run = _method(Core.run)
    rerun = _method(Core.rerun)
    claim = _method(Core.claim)
    cancel = _method(Core.cancel)
    job_output = _method(Core.job_output)
    report_job = _method(Core.report_job)
    stats = _method(Core.stats)
    controller = _method(Core.controller)
    run_watchdog = _method(Core.run_watchdog)
    alerts = _method(Core.alerts)
    test_alerts = _method(Core.test_alerts)
    run_probe = _method(Core.run_probe)
    audit = _method(Core.audit)
    dead_letters = _method(Core.dead_letters)
    redrive = _method(Core.redrive)

    def sensor(self, pipeline: str, key: str) -> SensorHandle[Written, Sensor, None]:
        """One sensor, to `set`, `get` and `delete`."""
        return SensorHandle(self.core, pipeline, key, self.perform, self.perform, self.perform)

    @property
    def sensors(self) -> SensorsHandle[list[Written], list[Sensor]]:
        """All sensors: `batch` and `list`."""
        return SensorsHandle(self.core, self.perform, self.perform)

    def events(
        self,
        *,
        follow: bool = False,
        pipeline: str | None = None,
        type: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        limit: int | None = 100,
    ) -> Iterator[Event]:
        """Events, oldest first: the latest `limit` (since an instant), or with `follow` those to come, forever."""
        return self._iterate(following.events(self.core, follow, pipeline, type, since, limit))

    # ---------------------------------------------------------------------------------------------------- driving

    def perform(self, flow: Flow[T]) -> T:
        """Do a flow to its end."""
        wire = _Wire(self._http, self.core.settings, self._closed)
        came: Came = None
        try:
            while True:
                came = wire.do(flow.send(came))
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            wire.hang_up()

    def _iterate(self, flow: Flow[None]) -> Iterator[Any]:
        wire = _Wire(self._http, self.core.settings, self._closed)
        came: Came = None
        try:
            while True:
                step = flow.send(came)
                if isinstance(step, Give):
                    yield step.value
                    came = None
                else:
                    came = wire.do(step)
        except StopIteration:
            return
        finally:
            wire.hang_up()


class _Wire:
    """Does steps. One per flow: a flow has at most one stream open."""

    def __init__(self, http: "httpx.Client", settings: Settings, closed: threading.Event) -> None:
        self._http = http
        self._settings = settings
        self._closed = closed
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def do(self, step: Step) -> Came:
        """Do a step; what came of it."""
        if self._closed.is_set():
            raise ClientError("this client is closed")
        match step:
            case Send():
                return self._send(step)
            case Pause(seconds=seconds):
                self._closed.wait(seconds)
                return None
            case Listen():
                return self._listen(step)
            case NextChunk():
                return self._next_chunk()
            case HangUp():
                self.hang_up()
                return None
            case Give():
                raise TypeError("a flow that gives values is iterated, not performed")
        assert_never(step)

    def _send(self, step: Send) -> Came:
        import httpx

        try:
            response = self._http.request(
                step.method, step.path, params=step.params, headers=step.headers, content=step.body
            )
        except httpx.RequestError as error:
            return no_answer(error)
        return reply_of(response, response.content)

    def _listen(self, step: Listen) -> Came:
        import httpx

        self.hang_up()
        request = self._http.build_request(
            "GET",
            step.path,
            params=step.params,
            headers=step.headers,
            timeout=stream_timeout(self._settings, step.silence),
        )
        try:
            self._response = response = self._http.send(request, stream=True)
            self._chunks = response.iter_bytes()
            return reply_of(response, response.read() if response.status_code >= 400 else b"")
        except httpx.RequestError as error:
            return no_answer(error)

    def _next_chunk(self) -> bytes | NoAnswer:
        import httpx

        try:
            return next(self._chunks, b"")
        except httpx.RequestError as error:
            return no_answer(error)

    def hang_up(self) -> None:
        """Close the open stream, if there is one."""
        response, self._response = self._response, None
        self._chunks = iter(())
        if response is not None:
            response.close()
