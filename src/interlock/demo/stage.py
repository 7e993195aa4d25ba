"""The stage of the demo: the controller, its clock, and the world outside that feeds it.

What comes next is decided by events, never by how long something should have taken: on a slow machine the demo takes
longer and shows the same. Time passes slowly while something happens, so that no deadline is missed by an act that
took a second too long, and fast while everything is quiet.
"""

import json
import math
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from interlock.control import writing
from interlock.control.views import pipeline_views
from interlock.demo.example import DemoError
from interlock.demo.timeline import Note, Sight, Timeline
from interlock.embedded.clock import ScaledClock
from interlock.embedded.service import Service
from interlock.model.periods import Period

_FEED_SECONDS: Final = 60.0


class Pace(msgspec.Struct, frozen=True):
    """How fast time passes: while something happens, just before an instant that matters, and in between."""

    acting: float = 20.0
    watching: float = 60.0
    waiting: float = 900.0


class Stage:
    """What an act is played on.

    `patience`: for how many real seconds it waits for one event; `within`: for how many it waits in all.
    """

    def __init__(
        self,
        service: Service,
        clock: ScaledClock,
        timeline: Timeline,
        folder: Path,
        *,
        pace: Pace,
        patience: float,
        within: float = math.inf,
    ) -> None:
        self.timeline = timeline
        self._service = service
        self._clock = clock
        self._folder = folder
        self._pace = pace
        self._patience = patience
        self._until = time.monotonic() + within

    def now(self) -> datetime:
        """The time of the demo."""
        return self._clock.now()

    # ------------------------------------------------------------------------------------------------------- time

    def forward_to(self, at: datetime) -> None:
        """Let time pass quickly until an instant, while nothing is under way."""
        self._clock.set_speed(self._pace.waiting)
        try:
            while (left := (at - self._clock.now()).total_seconds()) > 0:
                self.timeline.rest(self._clock.real_seconds(left))
        finally:
            self._clock.set_speed(self._pace.acting)

    def wait_for(self, sight: Sight) -> None:
        """Go on when this has happened; an error when it does not happen at all."""
        seconds = max(min(self._patience, self._until - time.monotonic()), 0.0)
        if self.timeline.wait_for(sight, seconds) is None:
            raise DemoError(
                f"{sight} did not happen, though it was waited for {seconds:.0f} s; the store and the output of the "
                f"jobs are in {self._folder}: look there, or try again when the machine is less busy"
            )

    def watch_for(self, sight: Sight) -> None:
        """As `wait_for`, when it is time itself that brings it."""
        self._clock.set_speed(self._pace.watching)
        try:
            self.wait_for(sight)
        finally:
            self._clock.set_speed(self._pace.acting)

    # ------------------------------------------------------------------------------------------------------ feeds

    def land(self, source: str, hour: Period, part: str) -> int:
        """Have a feed write a part of an hour into bronze/; how many rows the hour has now."""
        script = f"feeds/{source}.py"
        try:
            done = subprocess.run(
                [sys.executable, script, str(hour), part],
                cwd=self._folder,
                capture_output=True,
                text=True,
                timeout=_FEED_SECONDS,
                check=True,
            )
            return int(json.loads(done.stdout)["rows"])
        except subprocess.CalledProcessError as error:
            raise DemoError(f"{script} {hour} {part} failed: {error.stderr.strip()}") from error
        except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
            raise DemoError(f"{script} {hour} {part} gave no number of rows: {error}") from error

    def observe(self, pipeline: str, key: str, hour: Period, **data: object) -> datetime:
        """Write a sensor, as a feed does when it has landed something; when that was."""
        at = self.now()
        observation = {"date": str(hour.day), "hour": hour.hour, **data}
        writing.write_sensor(self._service.control, pipeline, f"{key}#{hour}", observation, by="feed")
        return at

    # ------------------------------------------------------------------------------------------------------- notes

    def tell(self, kind: str, text: str, pipeline: str = "", hour: Period | None = None) -> None:
        """Put a line into the timeline."""
        date = "" if hour is None else str(hour)
        self.timeline.note(Note(at=self.now(), kind=kind, text=text, pipeline=pipeline, date=date))

    def tell_why(self, pipeline: str, hour: Period) -> None:
        """Put into the timeline what a run waits for, as the controller sees it."""
        found = pipeline_views.readiness_of(self._service.control.store, pipeline, self.now(), date=str(hour))
        word = "ready" if found.ready else "not ready, no job is started"
        self.tell("why", f"{word}: {found.summary}", pipeline, hour)
