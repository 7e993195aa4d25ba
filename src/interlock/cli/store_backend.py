"""A store's file as a backend: the same answers as a server's, from the same control functions, without a server.

What is written is acted upon by whichever controller runs on the store, now or later.
"""

import getpass
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import msgspec

from interlock.cli.store_access import nearest_names
from interlock.client import answers
from interlock.client.errors import not_claimed
from interlock.control import (
    cancelling,
    claiming,
    controller_view,
    event_views,
    job_output,
    pipeline_list,
    records,
    reruns,
    run_views,
    views,
    writing,
)
from interlock.control.config_files import degradations
from interlock.control.context import Control
from interlock.control.event_views import Wanted
from interlock.decide.templates import for_jobs
from interlock.embedded import delivery_views
from interlock.embedded.clock import SystemClock
from interlock.embedded.database import Database
from interlock.embedded.dead_letters import DeadLetters
from interlock.embedded.delivery_rows import DeliveryState
from interlock.embedded.engine import Engine
from interlock.embedded.store import SqliteStore
from interlock.model import keys
from interlock.model.config import JobType
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import FailureCategory, JobEvent, RerunRequest
from interlock.model.times import parse_instant
from interlock.ports.jobs import JobRunner

T = TypeVar("T")

_PAGE: Final = 1000
_ALL: Final = 1_000_000_000
_DECISION_SECONDS: Final = 2.0
# How far back is looked again for events that were committed late: longer than any commit takes.
_OVERLAP: Final = timedelta(seconds=5)
_WAIT_SECONDS: Final = 0.5


@contextmanager
def opened(path: Path, *, writing: bool) -> "Iterator[StoreBackend]":
    """The store of that file; one that does not exist is an error, and stays that way."""
    clock = SystemClock()
    with (
        Database.open(path, clock=clock, create=False, read_only=not writing, inline=writing) as database,
        nearest_names(),
    ):
        yield StoreBackend(database, clock)


class StoreBackend:
    """Answers from the file of a store."""

    def __init__(self, database: Database, clock: SystemClock) -> None:
        self.database = database
        self.clock = clock
        self.store = SqliteStore(database, clock)

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.database, self.clock, {}, new_id=lambda: uuid4().hex[:12])

    @property
    def _control(self) -> Control:
        return self._engine.control

    def control_with(self, environment: Mapping[str, str]) -> Control:
        """What decides, with the variables of this environment that templates may use."""
        settings = replace(self._control.settings, environment=for_jobs(environment))
        return replace(self._control, settings=settings)

    # ------------------------------------------------------------------------------------------------ sensors

    def write_sensor(
        self, pipeline: str, key: str, data: Mapping[str, Any], *, ttl: int | None = None
    ) -> answers.Written:
        """Write an observation; durable when this returns."""
        written = writing.write_sensor(self._control, pipeline, key, dict(data), ttl=ttl, by=_who())
        return _answer(written, answers.Written)

    def read_sensor(self, pipeline: str, key: str) -> answers.Sensor:
        """The latest observation of a key."""
        found = views.sensor(self.store, pipeline, key)
        if found is None:
            raise _no_sensor(pipeline, key)
        return _answer(found, answers.Sensor)

    def read_sensors(self, pipeline: str, *, limit: int | None = None) -> list[answers.Sensor]:
        """The sensors of a pipeline, by key."""
        page = views.sensors(self.store, pipeline, self.clock.now(), limit=limit or _ALL)
        return [_answer(one, answers.Sensor) for one in page.items]

    def delete_sensor(self, pipeline: str, key: str) -> None:
        """Forget the observation of a key; an error when there is none."""
        if not writing.delete_sensor(self._control, pipeline, key):
            raise _no_sensor(pipeline, key)

    # ---------------------------------------------------------------------------------------------- pipelines

    def pipelines(self, *, limit: int | None = None) -> list[answers.Pipeline]:
        """Every pipeline, by id, with its latest run."""
        page = pipeline_list.pipelines(self.store, self.clock.now(), limit=limit or _ALL)
        return [_answer(one, answers.Pipeline) for one in page.items]

    def pipeline(self, pipeline: str) -> answers.PipelineDetail:
        """One pipeline, with its document."""
        return _answer(views.pipeline(self.store, pipeline, self.clock.now()), answers.PipelineDetail)

    def readiness(self, pipeline: str, date: str | None = None, *, schedule: str | None = None) -> answers.Readiness:
        """The rules as they stand for a run."""
        found = views.readiness_of(self.store, pipeline, self.clock.now(), date=date, schedule=schedule)
        return _answer(found, answers.Readiness)

    # --------------------------------------------------------------------------------------------------- runs

    def runs(self, pipeline: str, *, schedule: str | None = None, limit: int | None = 50) -> list[answers.Run]:
        """The runs of a pipeline, the latest date first."""
        page = run_views.runs(self.store, pipeline, schedule=schedule, limit=limit or _ALL)
        if not page.items:
            views.known(self.store, pipeline)
        return [_answer(one, answers.Run) for one in page.items]

    def run(self, pipeline: str, date: str, *, schedule: str | None = None) -> answers.RunDetail:
        """One run with everything that hangs on it."""
        key = self._key(pipeline, date, schedule)
        found = run_views.run(self.store, key, self.clock.now())
        if found is None:
            raise InvalidValueError(f"{key} has never run: `interlock why {pipeline} --date {key.date}` says why")
        return _answer(found, answers.RunDetail)

    def rerun(
        self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = "", force: bool = False
    ) -> answers.Rerun:
        """Ask for another attempt of a run; decided by the controller that runs on the store, if one does."""
        key = self._key(pipeline, date, schedule)
        undated = reruns.undated_sensors(self._control, key)
        asked = reruns.request(self._control, key, reason=reason, force=force, requested_by=_who())
        decision, because = self._decision(asked)
        return answers.Rerun(
            id=asked.id,
            pipeline=pipeline,
            schedule=key.schedule,
            date=key.date,
            decision=decision,
            reason=because,
            undated_sensors=undated if decision != "rejected" else [],
        )

    def cancel(self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = "") -> answers.Cancelled:
        """End a waiting attempt; a running job is stopped by the controller that runs on the store, if one does."""
        chosen = views.choose_schedule(views.followed(self.store, pipeline), schedule)
        key = RunKey(pipeline, chosen.schedule_id, str(parse_period(date)))
        outcome = cancelling.cancel(self._control, key, reason=reason, by=_who())
        return answers.Cancelled(pipeline=pipeline, schedule=key.schedule, date=key.date, outcome=outcome)

    def job_output(
        self, pipeline: str, date: str, *, schedule: str | None = None, attempt: int | None = None, offset: int = 0
    ) -> answers.JobOutput:
        """What a command wrote, from its file; the targets of other jobs are asked by a running controller."""
        chosen = views.choose_schedule(views.followed(self.store, pipeline), schedule)
        key = RunKey(pipeline, chosen.schedule_id, str(parse_period(date)))
        return _answer(job_output.read(self._reading, key, attempt, offset=offset), answers.JobOutput)

    @cached_property
    def _reading(self) -> Control:
        """A control whose only target is this machine's commands, to read what they wrote."""
        from interlock.jobs.command.target import make_command_runner
        from interlock.ports.job_targets import TargetSettings

        path = self.database.path
        folder = path.with_name(path.name + ".jobs") if path is not None else None
        runners: dict[str, JobRunner] = {}
        if folder is not None and folder.is_dir():
            runners[JobType.COMMAND] = make_command_runner(TargetSettings(clock=self.clock, folder=folder))
        return Engine(self.database, self.clock, runners, new_id=lambda: uuid4().hex[:12]).control

    def _decision(self, asked: RerunRequest) -> tuple[str, str]:
        """What a controller made of it within a moment; without one nobody will."""
        from interlock.embedded.discovery import find_server

        where = records.control_key(asked.key.pk, keys.rerun_request_sk(asked.key, asked.id))
        served = self.database.path is not None and find_server(self.database.path) is not None
        end = time.monotonic() + _DECISION_SECONDS
        while served and (left := end - time.monotonic()) > 0:
            head = self.database.head()
            item = self.store.get(where) or {}
            if item.get("decision") is not None:
                return str(item["decision"]), str(item.get("decidedBecause", ""))
            self.database.wait_for_change(head, min(left, 0.1))
        return "pending", ""

    def claim(
        self, pipeline: str, date: str | None = None, *, schedule: str | None = None, claim_id: str | None = None
    ) -> answers.Claim:
        """Take the job of an external run; NotClaimedError when it is not the caller's."""
        meant = views.readiness_of(self.store, pipeline, self.clock.now(), date=date, schedule=schedule)
        key = RunKey(pipeline, meant.schedule, meant.date)
        found = claiming.claim(self._control, key, claim_id=claim_id or uuid4().hex, by=_who())
        if not found.claimed:
            raise not_claimed(f"{pipeline} for {key.date} is not claimed: {found.reason}", later=found.later)
        return _answer(found, answers.Claim)

    def report_job(
        self,
        pipeline: str,
        date: str,
        result: str,
        *,
        schedule: str | None = None,
        attempt: int | None = None,
        run_id: str = "",
        category: str | None = None,
        error: str = "",
    ) -> answers.JobRecord:
        """Report how a job ended."""
        chosen = views.choose_schedule(views.followed(self.store, pipeline), schedule)
        record = writing.report_job(
            self._control,
            RunKey(pipeline, chosen.schedule_id, str(parse_period(date))),
            JobEvent(result),
            attempt=attempt,
            run_id=run_id,
            category=None if category is None else FailureCategory(category),
            error=error,
            by=_who(),
        )
        return _answer(record, answers.JobRecord)

    def _key(self, pipeline: str, date: str, schedule: str | None) -> RunKey:
        chosen = views.choose_schedule(views.valid(self.store, pipeline), schedule)
        return RunKey(pipeline, chosen.schedule_id, str(parse_period(date)))

    # ----------------------------------------------------------------------------------------------- operating

    def events(
        self,
        *,
        follow: bool = False,
        pipeline: str | None = None,
        type: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        limit: int | None = 100,
    ) -> Iterator[answers.Event]:
        """The latest events, oldest first; with `follow` those to come."""
        wanted = Wanted(pipeline=pipeline, types=_types(type), since=_instant(since))
        if follow:
            return self._follow(wanted)
        page = event_views.page(self.store, wanted, self.clock.now(), limit=limit or _ALL)
        return iter([_answer(one, answers.Event) for one in reversed(page.items)])

    def _follow(self, wanted: Wanted) -> Iterator[answers.Event]:
        """Looks again whenever something was committed; what was given is remembered, and not given twice."""
        begin = wanted.since or self.clock.now()
        given: dict[str, datetime] = {}
        while True:
            head = self.database.head()
            now = self.clock.now()
            for event in self._since(wanted, begin):
                if event.id not in given:
                    given[event.id] = event.timestamp
                    yield event
            # What is older than the overlap cannot come any more.
            begin = max(begin, now - _OVERLAP)
            given = {id_: at for id_, at in given.items() if at >= begin}
            while self.database.wait_for_change(head, _WAIT_SECONDS) <= head:
                pass

    def _since(self, wanted: Wanted, begin: datetime) -> Iterator[answers.Event]:
        asked = msgspec.structs.replace(wanted, since=begin, newest_first=False)
        cursor: str | None = None
        while True:
            page = event_views.page(self.store, asked, self.clock.now(), cursor=cursor, limit=_PAGE)
            yield from (_answer(one, answers.Event) for one in page.items)
            cursor = page.next
            if cursor is None:
                return

    def controller(self) -> answers.Controller:
        """How the controller stands, as far as its store says."""
        degraded = [*degradations(self.store), *delivery_views.degradations(self.database)]
        return _answer(controller_view.config_state(self.store, degraded), answers.Controller)

    def run_watchdog(self) -> answers.WatchdogPass:
        """One pass of the watchdog, now."""
        return answers.WatchdogPass(failed_checks=self._engine.watch())

    def alerts(
        self, *, state: str | None = None, channel: str | None = None, limit: int | None = 100
    ) -> list[answers.Delivery]:
        """Alerts on their way to people, the latest first."""
        wanted = None if state is None else DeliveryState(state)
        found = delivery_views.deliveries(self.database, state=wanted, channel=channel, limit=limit or _ALL)
        return [_answer(one, answers.Delivery) for one in found]

    def dead_letters(self, *, limit: int | None = 100) -> list[answers.DeadLetter]:
        """What was given up on, in the order it came."""
        found = DeadLetters(self.database).list(limit or _ALL)
        return [_answer(one, answers.DeadLetter) for one in found]

    def redrive(self, ids: Sequence[int] | None = None) -> int:
        """Have these dead letters (None: all) done again; how many there were."""
        return DeadLetters(self.database).redrive(ids)


def _answer(value: msgspec.Struct, type_: type[T]) -> T:
    """The very value a program would get over HTTP: the views and the SDK's answers say the same."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type_)


def _no_sensor(pipeline: str, key: str) -> InvalidValueError:
    return InvalidValueError(f"pipeline {pipeline!r} has no sensor {key!r}: it was never written, or has expired")


def _types(given: str | Sequence[str] | None) -> tuple[EventType, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else given
    return tuple(EventType(name) for name in names)


def _instant(given: datetime | str | None) -> datetime | None:
    if given is None or isinstance(given, datetime):
        return given
    found = parse_instant(given)
    if found is None:
        raise InvalidValueError(f"{given!r} is not a time: write 2026-03-03T10:00:00Z")
    return found


def _who() -> str:
    """Who acts: manual actions carry it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "cli"
