"""Plays a scenario: moves virtual time from instant to instant and drives the engine at each.

At one instant: steps, cron ticks, timers and polls, then the watchdog (SPEC 18); after each, what follows from it at
once. A crash drops everything the controller holds in memory, between two commits or at a scripted step, and wires a
new engine to the same store; jobs go on.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from interlock.control import catalog, records, reruns, writing
from interlock.control.attempts import cancelling
from interlock.control.context import Settings
from interlock.control.event_sink import event_of, is_event
from interlock.control.watch import watch_plan
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.embedded.stream.stream import StreamConsumer
from interlock.model.config import Calendar
from interlock.model.errors import InterlockError, UnknownPipelineError
from interlock.model.events import Event
from interlock.model.keys import RunKey, Table
from interlock.model.run import JobEvent, Run, Source
from interlock.ports.store import Change
from interlock.simulation.clock import VirtualClock
from interlock.simulation.jobs import ScriptedTargets
from interlock.simulation.probes import ScriptedProbes
from interlock.simulation.scenario import Pipeline, Scenario, Step, TimedStep

WATCHDOG_EVERY: Final = timedelta(minutes=5)
_SWEEP_EVERY: Final = timedelta(days=1)
_LIVELOCK: Final = 100_000


class SimulatedCrash(BaseException):
    """The controller dies here. Not an Exception: nothing may handle it."""


class Note(msgspec.Struct, frozen=True):
    """A line of the timeline that is not an event: what the scenario itself did."""

    at: datetime
    text: str


Line = Event | Note
Fault = Callable[[str], None]


class World:
    """One scenario being played."""

    def __init__(self, scenario: Scenario, *, fault: Fault | None = None, settings: Settings | None = None) -> None:
        self.scenario = scenario
        self._settings = replace(settings or Settings(), pools=scenario.pools)
        self.clock = VirtualClock(scenario.start)
        self.targets = ScriptedTargets(scenario.jobs, self.clock)
        self.probes = ScriptedProbes(scenario.probes, self.clock) if scenario.probes else None
        self.lines: list[Line] = []
        self.crashes = 0
        self.database = Database.open(None, clock=self.clock, inline=True, fault=fault)
        self._recorded = 0
        self._ids = itertools.count(1)
        self._engine: Engine | None = None
        self._next_watch = scenario.start
        self._watched_head = -1
        self._complete = False
        self._next_sweep = scenario.start + _SWEEP_EVERY
        self._quiet_until: datetime | None = None
        self._done = 0

    @property
    def engine(self) -> Engine:
        """The controller that is alive now."""
        if self._engine is None:
            raise InterlockError("the controller is not running")
        return self._engine

    @property
    def events(self) -> list[Event]:
        """Every event so far, in the order of their commits."""
        return [line for line in self.lines if isinstance(line, Event)]

    def play(self) -> list[Line]:
        """From the start to the end; the timeline."""
        self._until_done(self._begin)
        steps = list(self.scenario.steps)
        while True:
            now = self.clock.now()
            due: list[TimedStep] = []
            while steps and steps[0].at <= now:
                due.append(steps.pop(0))
            self._instant(due)
            following = self._next_instant(now, steps[0].at if steps else None)
            if following is None or following > self.scenario.until:
                break
            self.clock.move_to(following)
        self.clock.move_to(self.scenario.until)
        return self.lines

    def run_of(self, key: RunKey) -> Run | None:
        """A run as it stands."""
        return records.get_run(self.engine.store, key)

    def dead_letters(self) -> int:
        """How many changes or timers were given up; a simulation should have none."""
        return DeadLetters(self.database).count()

    # ------------------------------------------------------------------------------------------------ the controller

    def _wire(self) -> None:
        self._engine = Engine(
            self.database,
            self.clock,
            self.targets.runners(),
            new_id=lambda: f"{next(self._ids):06d}",
            settings=self._settings,
            probes=self.probes,
        )
        self._recorder = StreamConsumer(self.database, "timeline", (Table.EVENTS,), self._record)
        self._recorder.register()

    def _begin(self) -> None:
        self._wire()
        control = self.engine.control
        catalog.first_started(control)
        calendars = [catalog.put_calendar(calendar) for calendar in self.scenario.calendars]
        if calendars:
            control.store.commit(calendars)
        for pipeline in self.scenario.pipelines:
            catalog.apply_config(control, pipeline.config, pipeline.document)
        self.engine.prepare()
        self._pump()

    def _record(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.seq > self._recorded and is_event(change) and change.item:
                self._recorded = change.seq
                self.lines.append(event_of(change))

    def crash(self) -> None:
        """The controller dies and starts again from its store, taking no virtual time."""
        self.crashes += 1
        self.database.drop_deferred()
        self._wire()
        self._surviving(self._restart)

    def _restart(self) -> None:
        self.engine.prepare()
        self._watched_head = -1

    def _surviving(self, work: Callable[[], object]) -> bool:
        """Do it; a crash on the way restarts the controller, which goes on from its store. False after a crash."""
        try:
            work()
        except SimulatedCrash:
            self.crash()
            return False
        return True

    def _until_done(self, work: Callable[[], object]) -> None:
        """Do what is due at this instant, again after a crash: it is due for the restarted controller as well."""
        for _ in range(_LIVELOCK):
            if self._surviving(work):
                return
        raise InterlockError(f"the controller crashes at {self.clock.now()} whenever it starts again")

    # ---------------------------------------------------------------------------------------------------- one instant

    def _instant(self, steps: list[TimedStep]) -> None:
        now = self.clock.now()
        for step in steps:
            self._send(step)
            self._until_done(self._pump)
        self._until_done(lambda: self._tick(now))
        self._settle(now)
        if now >= self._next_watchdog():
            self._until_done(self._watch)
            self._settle(now)
            self._plan_watch(now)
        if now >= self._next_sweep:
            self._surviving(self._sweep)
            self._next_sweep = now + _SWEEP_EVERY

    def _tick(self, now: datetime) -> None:
        self.engine.calendar.deliver_due(now)
        self._pump()

    def _watch(self) -> None:
        # The turn before this one was a complete pass, or was left out because it could have found nothing.
        complete = self._complete and self.clock.now() > self.scenario.start
        self._complete = False
        self._complete = not self.engine.watch(quiet_to=self.clock.now() - WATCHDOG_EVERY if complete else None)

    def _sweep(self) -> None:
        while self.engine.sweep():
            pass

    def _settle(self, now: datetime) -> None:
        """Until nothing is left to do at this instant."""
        for _ in range(_LIVELOCK):
            crashes, self._done = self.crashes, 0
            self._surviving(partial(self._round, now))
            if self._done == 0 and self.crashes == crashes:
                return
        raise InterlockError(f"the controller does not come to rest at {now}: something wakes itself forever")

    def _round(self, now: datetime) -> None:
        self._done += self.engine.probes.look_at_all(now)
        self._done += self.engine.fire_timers(now)
        while (request := self.targets.ended(now)) is not None:
            writing.job_ended(self.engine.control, request.key, request.attempt)
            self.targets.heard()
            self._done += 1
        self._done += self.engine.executions.run_due(now)
        self._done += self._pump()

    def _pump(self) -> int:
        done = 0
        while moved := self.engine.router.pump() + self.engine.sink.pump() + self._recorder.pump():
            done += moved
        return done

    # ---------------------------------------------------------------------------------------------------------- steps

    def _send(self, timed: TimedStep) -> None:
        """Somebody acts from outside; when the controller dies before it has taken anything in, he sends it again."""
        if timed.step.crash:
            self.lines.append(Note(self.clock.now(), "the controller crashes and starts again"))
            self.crash()
        for act in self._acts(timed):
            before = self.database.head()
            while not self._surviving(partial(self._take, act)) and self.database.head() == before:
                pass

    def _acts(self, timed: TimedStep) -> list[Callable[[], object]]:
        """What a step asks of the controller, one write each."""
        step = timed.step
        if step.sensor is not None:
            return [partial(self._observe, step)]
        if step.rerun is not None:
            return [partial(self._rerun, step)]
        if step.job is not None:
            return [partial(self._report, step)]
        if step.cancel is not None:
            return [partial(self._cancel, step)]
        if step.remove is not None:
            return [partial(self._remove, step.remove)]
        if step.calendar is not None:
            return [partial(self._publish, step.calendar)]
        return [partial(self._apply, pipeline) for pipeline in timed.applied]

    def _take(self, act: Callable[[], object]) -> None:
        try:
            act()
        except InterlockError as error:
            self.lines.append(Note(self.clock.now(), f"refused: {error}"))

    def _observe(self, step: Step) -> None:
        pipeline, _, key = (step.sensor or "").partition("/")
        writing.write_sensor(self.engine.control, pipeline, key, step.data, ttl=step.ttl)

    def _rerun(self, step: Step) -> None:
        reason = "" if step.reason == "manual" else step.reason
        key = self._key(step.rerun or "", step)
        reruns.request(self.engine.control, key, source=Source.MANUAL, reason=reason, force=step.force)

    def _cancel(self, step: Step) -> None:
        cancelling.cancel(self.engine.control, self._key(step.cancel or "", step), reason=step.reason)

    def _apply(self, pipeline: Pipeline) -> None:
        if catalog.apply_config(self.engine.control, pipeline.config, pipeline.document):
            self.lines.append(Note(self.clock.now(), f"the config of {pipeline.config.id} is applied"))

    def _remove(self, pipeline: str) -> None:
        if not catalog.delete_config(self.engine.control, pipeline):
            raise UnknownPipelineError(f"there is no pipeline {pipeline!r} to remove")
        self.lines.append(Note(self.clock.now(), f"{pipeline} is removed"))

    def _publish(self, calendar: Calendar) -> None:
        self.engine.store.commit([catalog.put_calendar(calendar)])
        self.lines.append(Note(self.clock.now(), f"the calendar {calendar.name} is applied"))

    def _report(self, step: Step) -> None:
        writing.report_job(
            self.engine.control,
            self._key(step.job or "", step),
            JobEvent(step.result or ""),
            attempt=step.attempt,
            category=step.category,
            error=step.error,
        )

    def _key(self, pipeline: str, step: Step) -> RunKey:
        config = catalog.current(self.engine.store, pipeline)
        schedule = step.schedule or (config.all_schedules[0].schedule_id if config else "stream")
        return RunKey(pipeline, schedule, step.date or "")

    # ---------------------------------------------------------------------------------------------------- next instant

    def _plan_watch(self, now: datetime) -> None:
        """The next pass that could find anything: the next turn, or, while nothing is written, a later one."""
        self._next_watch = now + WATCHDOG_EVERY
        self._watched_head = self.database.head()
        self._quiet_until = watch_plan.next_look(self.engine.control)

    def _next_watchdog(self) -> datetime:
        """The first turn from now on, or, while nothing is written, the first that could find anything."""
        at = max(self.clock.now(), self._next_watch)
        if self.database.head() == self._watched_head and self._quiet_until is not None:
            at = max(at, self._quiet_until)
        # Turns are counted from the start, also when some of them were skipped.
        turns = -(-(at - self.scenario.start) // WATCHDOG_EVERY)
        return self.scenario.start + turns * WATCHDOG_EVERY

    def _next_instant(self, now: datetime, step_at: datetime | None) -> datetime | None:
        candidates = [
            step_at,
            self.engine.calendar.next_at(),
            self.engine.timers.next_at(),
            self.engine.executions.next_due(),
            self.targets.next_end(),
            self.engine.probes.next_at(),
            self._next_watchdog(),
        ]
        later = [max(at, now + timedelta(microseconds=1)) for at in candidates if at is not None]
        return min(later, default=None)
