"""Events as they happen, and waiting for readiness. Both listen to the server's stream, and neither asks in a loop.

A stream is resumed where it broke: the server numbers its events, and a reconnect names the last one that was seen.
"""

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from interlock.client import requests
from interlock.client.answers import Event, Readiness
from interlock.client.core import Core
from interlock.client.errors import ConnectionFailedError, NotReadyError, ServerFailedError, WithheldError
from interlock.client.sse import SseReader
from interlock.client.steps import Came, Flow, Give, HangUp, Listen, NextChunk, Params, Pause, Reply

# The server sends a heartbeat every 15 s: three missed ones are a dead connection.
_SILENCE: Final = 45.0
_FIRST_WAIT: Final = 0.5
# Shorter than a heartbeat, so that a wait ends by itself.
_LONGEST_WAIT: Final = 10.0
# What the server says of the stream itself: it is stopping, or this client is too slow. Both end in a reconnect.
_NOTICES: Final = ("closed", "dropped")
_REMEMBERED: Final = 500


def events(
    core: Core,
    follow_on: bool,
    pipeline: str | None,
    type_: str | Sequence[str] | None,
    since: datetime | str | None,
    limit: int | None,
) -> Flow[None]:
    """The latest events, oldest first; or those to come, those `since` an instant first."""
    if follow_on:
        yield from follow(core, requests.event_filters(pipeline, type_, since))
        return
    request = requests.list_events(pipeline, type_, since)
    for event in reversed((yield from core.exchange.pages(request, Event, limit))):
        yield Give(event)


def follow(core: Core, filters: Params, last_id: str = "") -> Flow[None]:
    """Every event from now (or behind `last_id`) on, forever; a lost connection is taken up again where it broke.

    An error that would only come again (no such pipeline, no access) is raised. A server that was never reached is
    given up after the usual retries; one that went away is waited for.
    """
    reader = SseReader(last_id)
    given: deque[str] = deque(maxlen=_REMEMBERED)
    failures, reached = 0, False
    while True:
        came = yield _listen(filters, reader.last_id, _SILENCE)
        failures += 1
        if isinstance(came, Reply) and came.status < 400:
            failures, reached = 1, True
            yield from _hand_on(core, reader, given)
            yield HangUp()
        elif (error := _final(core, came, reached=reached, failures=failures)) is not None:
            raise error
        reader.reconnected()
        named = reader.retry or 0.0
        yield Pause(max(named, core.settings.retry.delay(failures, core.settings.random())))


def _hand_on(core: Core, reader: SseReader, given: deque[str]) -> Flow[None]:
    """Give the events of an open stream, until it ends or breaks."""
    while isinstance(chunk := (yield NextChunk()), bytes) and chunk:
        for message in reader.feed(chunk):
            if message.event in _NOTICES:
                continue
            event = core.exchange.decoded(requests.STREAM, message.data.encode(), Event)
            # A resumed stream may begin with events of the millisecond it broke off in.
            if event.id not in given:
                given.append(event.id)
                yield Give(event)


def _final(core: Core, came: Came, *, reached: bool, failures: int) -> Exception | None:
    """The error that ends it; None when it is worth another try."""
    error = core.exchange.failure(came)
    passing = isinstance(error, ConnectionFailedError | ServerFailedError)
    return None if passing and (reached or failures <= core.settings.retry.retries) else error


def _listen(filters: Params, last_id: str, silence: float) -> Listen:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last_id:
        # Where it broke off says more than the instant it began with.
        filters = {name: value for name, value in filters.items() if name != "since"}
        headers["Last-Event-ID"] = last_id
    return Listen(path=requests.STREAM, params=filters, headers=headers, silence=silence)


def wait_until_ready(
    core: Core, pipeline: str, date: str | None = None, *, schedule: str | None = None, timeout: float | None = None
) -> Flow[Readiness]:
    """Wait until the rules pass for a run of that date (default: the current one), at most `timeout` seconds.

    Ready also means that no upstream is awaited. Raises NotReadyError, with what was missing, when the time is over,
    and WithheldError at once when a calendar withholds the date. Listens to the pipeline's events, so that what the
    controller notices is known here at once, and asks now and then besides: a write that nothing waits for is no event.
    """
    ends = None if timeout is None else core.settings.monotonic() + timeout
    wait = _FIRST_WAIT
    while True:
        left = _LONGEST_WAIT if ends is None else max(ends - core.settings.monotonic(), 0.0)
        silence = max(min(wait, left), 0.01)
        # Listen first, then ask: what happens in between is not missed.
        came = yield _listen({"pipeline": pipeline}, "", silence)
        found = yield from core.readiness(pipeline, date, schedule=schedule)
        if _settled(found):
            yield HangUp()
            return found
        if ends is not None and core.settings.monotonic() >= ends:
            yield HangUp()
            raise NotReadyError(_given_up(found, timeout or 0.0), found.summary)
        yield from _until_news(came, silence)
        yield HangUp()
        # The first answer decides which run is meant: at midnight "the current one" would be another.
        date, schedule = found.date, found.schedule
        wait = min(wait * 2, _LONGEST_WAIT)


def _settled(found: Readiness) -> bool:
    if found.excluded:
        raise WithheldError(f"{found.pipeline} for {found.date} will not run: {found.excluded}", found.summary)
    return found.ready and not found.awaited_upstreams


def _until_news(came: Came, silence: float) -> Flow[None]:
    """Until the stream says anything, or `silence` is over; without a stream, just that long."""
    if not isinstance(came, Reply) or came.status >= 400:
        yield Pause(silence)
        return
    reader = SseReader()
    while isinstance(chunk := (yield NextChunk()), bytes) and chunk:
        if reader.feed(chunk):
            return


def _given_up(found: Readiness, timeout: float) -> str:
    awaited = "".join(f"; upstream {name} has not completed" for name in found.awaited_upstreams)
    return f"{found.pipeline} for {found.date} was not ready within {timeout:g} s: {found.summary}{awaited}"
