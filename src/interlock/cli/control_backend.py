"""A store as a backend: the same answers as a server's, from the same control functions, without a server.

What is written is acted upon by whichever controller runs on the store, now or later. Which store it is, and what only
its runtime knows (deliveries, dead letters, whether a controller runs), is said by those who extend this.
"""

import getpass
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import uuid4

import msgspec

from interlock.client import answers
from interlock.client.errors import not_claimed
from interlock.control import records, reruns, writing
from interlock.control.attempts import cancelling, claiming
from interlock.control.context import Control
from interlock.control.views import event_views, job_output, pipeline_list, pipeline_views, run_views
from interlock.control.views.event_views import Wanted
from interlock.decide.templates import for_jobs
from interlock.model import keys
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import FailureCategory, JobEvent, RerunRequest
from interlock.model.times import parse_instant
from interlock.ports.clock import Clock
from interlock.ports.store import Store

T = TypeVar("T")

ALL: Final = 1_000_000_000
_PAGE: Final = 1000
# How far back is looked again for events that were committed late: longer than any commit takes.
_OVERLAP: Final = timedelta(seconds=5)


class ControlBackend(ABC):
    """Answers from a store, whichever it is."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    # -------------------------------------------------------------------------------- what the runtime alone knows

    @property
    @abstractmethod
    def control(self) -> Control:
        """What decides and writes."""

    @property
    @abstractmethod
    def _reading(self) -> Control:
        """A control whose targets can be asked what jobs wrote."""

    @abstractmethod
    def _decided_within(self) -> float:
        """How many seconds a controller may take to decide on a request; 0 where none runs."""

    @abstractmethod
    def _head(self) -> int:
        """How far the store has come, as far as it says."""

    @abstractmethod
    def _changed(self, head: int, seconds: float) -> bool:
        """Wait so many seconds at most for a commit; False when there surely was none since `head`."""

    @property
    @abstractmethod
    def _look_seconds(self) -> float:
        """How long following events waits before it looks again."""

    def control_with(self, environment: Mapping[str, str]) -> Control:
        """What decides, with the variables of this environment that templates may use."""
        settings = replace(self.control.settings, environment=for_jobs(environment))
        return replace(self.control, settings=settings)

    # ------------------------------------------------------------------------------------------------ sensors

    def write_sensor(
        self, pipeline: str, key: str, data: Mapping[str, Any], *, ttl: int | None = None
    ) -> answers.Written:
        """Write an observation; durable when this returns."""
        written = writing.write_sensor(self.control, pipeline, key, dict(data), ttl=ttl, by=who())
        return answer(written, answers.Written)

    def read_sensor(self, pipeline: str, key: str) -> answers.Sensor:
        """The latest observation of a key."""
        found = pipeline_views.sensor(self.store, pipeline, key)
        if found is None:
            raise _no_sensor(pipeline, key)
        return answer(found, answers.Sensor)

    def read_sensors(self, pipeline: str, *, limit: int | None = None) -> list[answers.Sensor]:
        """The sensors of a pipeline, by key."""
        page = pipeline_views.sensors(self.store, pipeline, self.clock.now(), limit=limit or ALL)
        return [answer(one, answers.Sensor) for one in page.items]

    def delete_sensor(self, pipeline: str, key: str) -> None:
        """Forget the observation of a key; an error when there is none."""
        if not writing.delete_sensor(self.control, pipeline, key):
            raise _no_sensor(pipeline, key)

    # ---------------------------------------------------------------------------------------------- pipelines

    def pipelines(self, *, limit: int | None = None) -> list[answers.Pipeline]:
        """Every pipeline, by id, with its latest run."""
        page = pipeline_list.pipelines(self.store, self.clock.now(), limit=limit or ALL)
        return [answer(one, answers.Pipeline) for one in page.items]

    def pipeline(self, pipeline: str) -> answers.PipelineDetail:
        """One pipeline, with its document."""
        return answer(pipeline_views.pipeline(self.store, pipeline, self.clock.now()), answers.PipelineDetail)

    def readiness(self, pipeline: str, date: str | None = None, *, schedule: str | None = None) -> answers.Readiness:
        """The rules as they stand for a run."""
        found = pipeline_views.readiness_of(self.store, pipeline, self.clock.now(), date=date, schedule=schedule)
        return answer(found, answers.Readiness)

    # --------------------------------------------------------------------------------------------------- runs

    def runs(self, pipeline: str, *, schedule: str | None = None, limit: int | None = 50) -> list[answers.Run]:
        """The runs of a pipeline, the latest date first."""
        page = run_views.runs(self.store, pipeline, schedule=schedule, limit=limit or ALL)
        if not page.items:
            pipeline_views.known(self.store, pipeline)
        return [answer(one, answers.Run) for one in page.items]

    def run(self, pipeline: str, date: str, *, schedule: str | None = None) -> answers.RunDetail:
        """One run with everything that hangs on it."""
        key = self._key(pipeline, date, schedule)
        found = run_views.run(self.store, key, self.clock.now())
        if found is None:
            raise InvalidValueError(f"{key} has never run: `interlock why {pipeline} --date {key.date}` says why")
        return answer(found, answers.RunDetail)

    def rerun(
        self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = "", force: bool = False
    ) -> answers.Rerun:
        """Ask for another attempt of a run; decided by the controller that runs on the store, if one does."""
        key = self._key(pipeline, date, schedule)
        undated = reruns.undated_sensors(self.control, key)
        asked = reruns.request(self.control, key, reason=reason, force=force, requested_by=who())
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
        chosen = pipeline_views.choose_schedule(pipeline_views.followed(self.store, pipeline), schedule)
        key = RunKey(pipeline, chosen.schedule_id, str(parse_period(date)))
        outcome = cancelling.cancel(self.control, key, reason=reason, by=who())
        return answers.Cancelled(pipeline=pipeline, schedule=key.schedule, date=key.date, outcome=outcome)

    def job_output(
        self, pipeline: str, date: str, *, schedule: str | None = None, attempt: int | None = None, offset: int = 0
    ) -> answers.JobOutput:
        """What a command wrote, from its file; the targets of other jobs are asked by a running controller."""
        chosen = pipeline_views.choose_schedule(pipeline_views.followed(self.store, pipeline), schedule)
        key = RunKey(pipeline, chosen.schedule_id, str(parse_period(date)))
        return answer(job_output.read(self._reading, key, attempt, offset=offset), answers.JobOutput)

    def _decision(self, asked: RerunRequest) -> tuple[str, str]:
        """What a controller made of it within a moment; without one nobody will."""
        where = records.control_key(asked.key.pk, keys.rerun_request_sk(asked.key, asked.id))
        end = time.monotonic() + self._decided_within()
        while (left := end - time.monotonic()) > 0:
            head = self._head()
            item = self.store.get(where) or {}
            if item.get("decision") is not None:
                return str(item["decision"]), str(item.get("decidedBecause", ""))
            self._changed(head, min(left, self._look_seconds / 5))
        return "pending", ""

    def claim(
        self, pipeline: str, date: str | None = None, *, schedule: str | None = None, claim_id: str | None = None
    ) -> answers.Claim:
        """Take the job of an external run; NotClaimedError when it is not the caller's."""
        meant = pipeline_views.readiness_of(self.store, pipeline, self.clock.now(), date=date, schedule=schedule)
        key = RunKey(pipeline, meant.schedule, meant.date)
        found = claiming.claim(self.control, key, claim_id=claim_id or uuid4().hex, by=who())
        if not found.claimed:
            raise not_claimed(f"{pipeline} for {key.date} is not claimed: {found.reason}", later=found.later)
        return answer(found, answers.Claim)

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
        chosen = pipeline_views.choose_schedule(pipeline_views.followed(self.store, pipeline), schedule)
        record = writing.report_job(
            self.control,
            RunKey(pipeline, chosen.schedule_id, str(parse_period(date))),
            JobEvent(result),
            attempt=attempt,
            run_id=run_id,
            category=None if category is None else FailureCategory(category),
            error=error,
            by=who(),
        )
        return answer(record, answers.JobRecord)

    def _key(self, pipeline: str, date: str, schedule: str | None) -> RunKey:
        chosen = pipeline_views.choose_schedule(pipeline_views.valid(self.store, pipeline), schedule)
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
        wanted = Wanted(pipeline=pipeline, types=_types(type), since=instant(since))
        if follow:
            return self._follow(wanted)
        page = event_views.page(self.store, wanted, self.clock.now(), limit=limit or ALL)
        return iter([answer(one, answers.Event) for one in reversed(page.items)])

    def _follow(self, wanted: Wanted) -> Iterator[answers.Event]:
        """Looks again whenever something was committed; what was given is remembered, and not given twice."""
        begin = wanted.since or self.clock.now()
        given: dict[str, datetime] = {}
        while True:
            head = self._head()
            now = self.clock.now()
            for event in self._since(wanted, begin):
                if event.id not in given:
                    given[event.id] = event.timestamp
                    yield event
            # What is older than the overlap cannot come any more.
            begin = max(begin, now - _OVERLAP)
            given = {id_: at for id_, at in given.items() if at >= begin}
            while not self._changed(head, self._look_seconds):
                pass

    def _since(self, wanted: Wanted, begin: datetime) -> Iterator[answers.Event]:
        asked = msgspec.structs.replace(wanted, since=begin, newest_first=False)
        cursor: str | None = None
        while True:
            page = event_views.page(self.store, asked, self.clock.now(), cursor=cursor, limit=_PAGE)
            yield from (answer(one, answers.Event) for one in page.items)
            cursor = page.next
            if cursor is None:
                return


def answer(value: msgspec.Struct, type_: type[T]) -> T:
    """The very value a program would get over HTTP: the views and the SDK's answers say the same."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type_)


def _no_sensor(pipeline: str, key: str) -> InvalidValueError:
    return InvalidValueError(f"pipeline {pipeline!r} has no sensor {key!r}: it was never written, or has expired")


def _types(given: str | Sequence[str] | None) -> tuple[EventType, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else given
    return tuple(EventType(name) for name in names)


def instant(given: datetime | str | None) -> datetime | None:
    """An instant that may have been given as text."""
    if given is None or isinstance(given, datetime):
        return given
    found = parse_instant(given)
    if found is None:
        raise InvalidValueError(f"{given!r} is not a time: write 2026-03-03T10:00:00Z")
    return found


def who() -> str:
    """Who acts: manual actions carry it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "cli"
