"""Playing the demo: once to its end, or for as long as somebody looks at it."""

import csv
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from interlock.api import server
from interlock.config.alert_routes import AlertRoute, ChannelKind
from interlock.config.problems import Severity
from interlock.demo.acts import Act, missing
from interlock.demo.example import DemoError, lay_out
from interlock.demo.stage import Pace, Stage
from interlock.demo.story import hour_after_hour, story
from interlock.demo.timeline import Entry, Stopped, Timeline
from interlock.embedded.clock import ScaledClock, SystemClock
from interlock.embedded.files import Applied
from interlock.embedded.service import Service, ServiceSettings
from interlock.model.errors import InterlockError
from interlock.model.events import Severity as EventSeverity

# A Monday; the same each time, so that two plays can be compared.
_FIRST_HOUR: Final = datetime(2026, 3, 2, 10, tzinfo=UTC)
_BEFORE_THE_HOUR: Final = timedelta(minutes=2)
_WATCHDOG_EVERY: Final = timedelta(minutes=10)
# Real seconds for one event. An event takes a few tenths of a second; a machine may be very busy.
_PATIENCE: Final = 60.0
_IN_ALL: Final = 180.0
# While somebody looks, an hour passes in half a minute.
_LEISURE: Final = Pace(acting=20.0, watching=60.0, waiting=150.0)

Printer = Callable[[Entry], None]


class Proof(msgspec.Struct, frozen=True):
    """An act, and what the events do not show of it: nothing, when it happened."""

    title: str
    missing: list[str]


class Table(msgspec.Struct, frozen=True):
    """A file of the gold layer: its name, and its rows with their header."""

    file: str
    rows: list[list[str]]


class Outcome(msgspec.Struct, frozen=True):
    """What came of the demo: its acts, and what the gold layer says."""

    acts: list[Proof]
    gold: list[Table]
    trouble: str = ""
    """Why it was not played to its end; nothing, when it was."""

    @property
    def ok(self) -> bool:
        """Did every act happen?"""
        return not self.trouble and not any(act.missing for act in self.acts)


def play_once(folder: Path, printer: Printer) -> Outcome:
    """Play every act in a folder that is empty, and prove each from the events."""
    lay_out(folder)
    clock = _clock(_FIRST_HOUR, Pace())
    timeline = Timeline(printer)
    with _controller(folder, clock) as service:
        service.feed.join(timeline.committed, timeline.close)
        _check(service.start())
        stage = Stage(service, clock, timeline, folder, pace=Pace(), patience=_PATIENCE, within=_IN_ALL)
        played: list[Act] = []
        trouble = ""
        try:
            # One by one: what was played before a trouble counts.
            for act in story(stage, _FIRST_HOUR):
                played.append(act)
        except DemoError as error:
            trouble = str(error)
        events = timeline.events
        timeline.close()
    return Outcome([Proof(act.title, missing(act, events)) for act in played], gold_tables(folder), trouble)


def play_on(folder: Path, port: int, printer: Printer, serving: Callable[[str], None]) -> None:
    """Play in a folder that is empty, behind the HTTP API, until a signal. `serving` is given the address."""
    lay_out(folder)
    first = SystemClock().now().replace(minute=0, second=0, microsecond=0)
    clock = _clock(first, _LEISURE)

    @contextmanager
    def director(service: Service, url: str) -> Iterator[None]:
        timeline = Timeline(printer)
        service.feed.join(timeline.committed, timeline.close)
        serving(url)
        stage = Stage(service, clock, timeline, folder, pace=_LEISURE, patience=_PATIENCE)
        thread = threading.Thread(target=_direct, args=(stage, first), name="interlock-demo", daemon=True)
        thread.start()
        try:
            yield
        finally:
            timeline.close()
            thread.join()

    server.serve(server.ServeSettings(service=_settings(folder), port=port), clock=clock, beside=director)


def _direct(stage: Stage, first: datetime) -> None:
    with suppress(Stopped):
        try:
            for _ in story(stage, first):
                pass
            hour_after_hour(stage, first + timedelta(hours=3))
        except InterlockError as error:
            stage.tell("act", f"the feeds have stopped: {error}")


def gold_tables(folder: Path) -> list[Table]:
    """What the gold layer says of the latest hour of each feed."""
    tables = []
    for feed in sorted((folder / "gold").iterdir()) if (folder / "gold").is_dir() else []:
        latest = max(feed.glob("*.csv"), default=None)
        if latest is not None:
            with latest.open(newline="") as stream:
                tables.append(Table(str(latest.relative_to(folder)), list(csv.reader(stream))))
    return tables


@contextmanager
def _controller(folder: Path, clock: ScaledClock) -> Iterator[Service]:
    """A controller that is stopped however its play ends."""
    service = Service(_settings(folder), clock=clock)
    try:
        yield service
    finally:
        service.stop()


def _clock(first: datetime, pace: Pace) -> ScaledClock:
    return ScaledClock(first + timedelta(hours=1) - _BEFORE_THE_HOUR, pace.acting)


def _settings(folder: Path) -> ServiceSettings:
    # The jobs are run by `python3`: by this very Python, where there is one of that name beside it.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return ServiceSettings(
        store=folder / "interlock.db",
        pipelines=folder / "pipelines",
        watchdog_every=_WATCHDOG_EVERY,
        working_folder=folder,
        # The timeline shows every event already: only what must not happen here is alerted of as well.
        alerts=(AlertRoute(channel=ChannelKind.CONSOLE, name="console", severity=EventSeverity.CRITICAL),),
        environment={**os.environ, "PATH": path},
    )


def _check(applied: Applied) -> None:
    errors = [str(problem) for problem in applied.problems if problem.severity is Severity.ERROR]
    if errors:
        raise DemoError("the example's pipelines are invalid:\n" + "\n".join(errors))
