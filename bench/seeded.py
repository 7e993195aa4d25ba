"""A store with many pipelines and a long past, written directly: what the page is measured and looked at with.

`python -m bench.seeded FILE [--pipelines N] [--days N]` makes one, in seconds. Most pipelines are daily and some are
hourly; most runs are done, some failed, were held, are waiting or run, and a few were late. The same numbers give the
same store. With `--streamed`, that part of the pipelines is opened by a sensor instead of the clock and has had no run
for four hours, so that a test can make them run.
"""

import argparse
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from interlock.config.stored import read_stored
from interlock.config.versions import config_version
from interlock.control import records
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.events import EVENT_TTL_DAYS, Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import day_period, hour_period
from interlock.model.run import Active, FinalReason, Run, RunStatus, SlaKind, SlaOutcome, SlaState, Source
from interlock.model.times import epoch_millis, format_instant, zone

TEAMS: Final = ("analytics", "finance", "growth", "logistics", "payments", "platform", "risk", "search")
SUBJECTS: Final = ("orders", "revenue", "sessions", "refunds", "inventory", "clicks", "ledger", "shipments")
LAYERS: Final = ("bronze", "silver", "gold")
ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata")
# Pipelines that a sensor opens have had no run for this long.
_QUIET: Final = timedelta(hours=4)
_READY: Final = {"key": "upstream-complete", "check": "equals", "field": "status", "value": "ready"}
# Out of a thousand runs.
_FAILED, _HELD, _LATE = 8, 6, 12

Row = tuple[Any, ...]


def seed(
    path: Path,
    *,
    pipelines: int = 1000,
    days: int = 90,
    hourly: float = 0.05,
    streamed: float = 0.0,
    now: datetime | None = None,
) -> None:
    """Write the store. `hourly`, `streamed`: which part of the pipelines runs every hour, and which by a sensor."""
    clock = SystemClock()
    now = (now or clock.now()).replace(microsecond=0)
    with Database.open(path, clock=clock, inline=True):
        pass  # has made the tables
    # Nobody needs this store if the machine fails meanwhile: one transaction, and no wait for the disk.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA cache_size = -500000")
        for step in _steps(pipelines, days, hourly, streamed, now):
            step(connection)
        connection.commit()


def seed_database(database: Database, *, pipelines: int, days: int, hourly: float, now: datetime) -> None:
    """Write into an open store without any."""
    for step in _steps(pipelines, days, hourly, 0.0, now.replace(microsecond=0)):
        database.write(step)


def _steps(
    pipelines: int, days: int, hourly: float, streamed: float, now: datetime
) -> Iterator[Callable[[sqlite3.Connection], None]]:
    chance = random.Random(7)
    yield partial(_begin, first=now - timedelta(days=days + 1))
    for first in range(0, pipelines, 50):
        numbers = range(first, min(first + 50, pipelines))
        made = [_Pipeline(number, hourly, streamed, chance) for number in numbers]
        yield partial(_insert, made=made, now=now, days=days, chance=chance)


def _begin(connection: sqlite3.Connection, first: datetime) -> None:
    item = {"firstStartedAt": format_instant(first)}
    _put(connection, Table.CONTROL, [(keys.CONTROLLER, keys.CONTROLLER, None, _json(item))])


class _Pipeline:
    def __init__(self, number: int, hourly: float, streamed: float, chance: random.Random) -> None:
        team, subject = TEAMS[number % len(TEAMS)], SUBJECTS[number // len(TEAMS) % len(SUBJECTS)]
        self.id = f"{LAYERS[number % 3]}-{subject}-{number:04d}"
        self.hourly = chance.random() < hourly
        self.streamed = number % 100 < streamed * 100
        self.hour, self.minute = chance.randrange(24), 5 if self.hourly else chance.randrange(0, 60, 5)
        self.zone = "UTC" if self.hourly or self.streamed else ZONES[number % len(ZONES)]
        by_clock: dict[str, Any] = {
            "schedule": {"cron": f"{self.minute} {'*' if self.hourly else self.hour} * * *", "timezone": self.zone},
            "sla": {"deadline": ":50" if self.hourly else f"{(self.hour + 3) % 24:02d}:30", "expectedDuration": "30m"},
        }
        self.document: dict[str, Any] = {
            "pipeline": {"id": self.id, "owner": f"{team}-team", "description": f"{subject} of {team}"},
            **({"schedule": {"trigger": _READY, "granularity": "hour"}} if self.streamed else by_clock),
            "validation": {"rules": [_READY, {"key": "row-count", "check": "gte", "field": "count", "value": 1000}]},
            "job": {"type": "external", "maxRetries": 2},
        }
        parsed = read_stored(self.document, {})
        if not isinstance(parsed, PipelineConfig):
            raise TypeError(f"the seeded config is invalid: {parsed}")
        self.version = config_version(self.document)

    def slots(self, now: datetime, days: int) -> Iterator[tuple[str, datetime]]:
        """The periods of its past with the time each was opened."""
        first = (now - timedelta(days=days)).date()
        for offset in range(days + 1):
            day: date = first + timedelta(days=offset)
            hours = range(24) if self.hourly and not self.streamed else [self.hour]
            for hour in hours:
                opened = datetime(day.year, day.month, day.day, hour, self.minute, tzinfo=zone(self.zone)).astimezone(
                    UTC
                )
                if opened <= now - (_QUIET if self.streamed else timedelta(0)):
                    by_hour = self.hourly or self.streamed
                    yield str(hour_period(day, hour) if by_hour else day_period(day)), opened


class Past(Protocol):
    """A pipeline that has run before."""

    id: str
    document: dict[str, Any]
    version: str
    streamed: bool

    def slots(self, now: datetime, days: int) -> Iterator[tuple[str, datetime]]:
        """The periods of its past with the time each was opened."""
        ...


def write_past(connection: sqlite3.Connection, made: Sequence[Past], *, now: datetime, days: int, seed: int) -> None:
    """The past of some pipelines, into a store that has none yet."""
    _begin(connection, first=now - timedelta(days=days + 1))
    _insert(connection, made, now, days, random.Random(seed), verdicts=True)


def _insert(
    connection: sqlite3.Connection,
    made: Sequence[Past],
    now: datetime,
    days: int,
    chance: random.Random,
    *,
    verdicts: bool = False,
) -> None:
    control: list[Row] = []
    events: list[Row] = []
    for pipeline in made:
        pk = keys.pipeline_pk(pipeline.id)
        applied = format_instant(now - timedelta(days=days + 1))
        item = {"document": pipeline.document, "version": pipeline.version, "appliedAt": applied}
        control.append((pk, keys.CONFIG, None, _json({**item, "firstAppliedAt": applied})))
        control.append((pk, keys.CONFIG_VERSION + pipeline.version, None, _json({"document": pipeline.document})))
        slots = list(pipeline.slots(now, days))
        for index, (period, opened) in enumerate(slots):
            latest = index == len(slots) - 1
            run, late = _run(pipeline, period, opened, now, chance, latest=latest)
            sla = None if pipeline.streamed else _sla(run, now, late=late)
            control += _run_rows(run, sla, now)
            events += _events(run, sla, verdicts=verdicts)
    _put(connection, Table.CONTROL, control)
    connection.executemany(
        "INSERT OR REPLACE INTO events (pk, sk, ttl, item, type, at) VALUES (?, ?, ?, ?, ?, ?)", events
    )


def _run(
    pipeline: Past, period: str, opened: datetime, now: datetime, chance: random.Random, *, latest: bool
) -> tuple[Run, bool]:
    draw = chance.randrange(1000)
    common: dict[str, Any] = {
        "pipeline": pipeline.id,
        "schedule": "stream" if pipeline.streamed else "cron",
        "date": period,
        "version": 4,
        "attempt": 1,
        "source": Source.FIRST,
        "config_version": pipeline.version,
        "opened_at": opened,
        "first_opened_at": opened,
        "updated_at": opened,
        **({"opened_by": "sensor"} if pipeline.streamed else {"opened_by": "cron", "tick_at": opened}),
    }
    passed = min(opened + timedelta(minutes=chance.randrange(1, 30)), now)
    ended = min(passed + timedelta(minutes=chance.randrange(2, 40)), now)
    if draw < _FAILED:
        why: dict[str, Any] = {
            "final_reason": FinalReason.RETRIES_USED_UP,
            "message": "exit 1: no space left on device, attempt 3 of 3",
        }
        return Run(**{**common, "attempt": 3}, status=RunStatus.FAILED_FINAL, ended_at=ended, **why), draw % 2 == 0
    if draw < _FAILED + _HELD:
        why = {
            "final_reason": FinalReason.VALIDATION_EXHAUSTED,
            "message": "the window closed: no sensor row-count",
        }
        return Run(**common, status=RunStatus.FAILED_FINAL, ended_at=opened + timedelta(hours=1), **why), True
    job: dict[str, Any] = {"passed_at": passed, "triggered_at": passed, "run_id": f"r-{draw}", "job_id": f"j-{draw}"}
    if latest and now - opened < timedelta(hours=1):
        if draw % 2:
            return Run(**common, status=RunStatus.RUNNING, lease_until=now + timedelta(hours=5), **job), False
        return Run(**common, status=RunStatus.PENDING, lease_until=now + timedelta(hours=5)), draw % 5 == 0
    done: dict[str, Any] = {"ended_at": ended, "first_completed_at": ended}
    return Run(**common, status=RunStatus.COMPLETED, **job, **done), draw > 1000 - _LATE


def _sla(run: Run, now: datetime, *, late: bool) -> SlaState:
    """What was alerted of a run: a run that was never done has breached, and a late one was warned of."""
    breach = run.opened_at + timedelta(hours=3)
    warning, done = breach - timedelta(minutes=30), run.status is RunStatus.COMPLETED
    fired = {SlaKind.WARNING: warning} if late or (not done and warning <= now) else {}
    return SlaState(
        pipeline=run.pipeline,
        schedule=run.schedule,
        date=run.date,
        version=1,
        config_version=run.config_version,
        deadline="in three hours",
        warning_at=warning,
        breach_at=breach,
        fired={**fired, SlaKind.BREACH: breach} if not done and breach <= now else fired,
        outcome=SlaOutcome.MET if done else None,
    )


def _run_rows(run: Run, sla: SlaState | None, now: datetime) -> Iterator[Row]:
    pk = run.key.pk
    yield pk, run.key.sk(keys.RUN), None, _json(records.plain(run))
    if run.active:
        yield pk, run.key.sk(keys.ACTIVE), None, _json(records.plain(Active(attempt=run.attempt, wake_seq=0)))
    # Those of runs that are done are kept for some days only.
    kept = run.opened_at + timedelta(days=4)
    if sla is not None and (sla.outcome is None or kept > now):
        ttl = None if sla.outcome is None else int(kept.timestamp())
        yield pk, run.key.sk(keys.SLA), ttl, _json(records.plain(sla))


def _events(run: Run, sla: SlaState | None, *, verdicts: bool) -> Iterator[Row]:
    told = [(EventType.TRIGGER_STARTED, run.opened_at, f"opened by {run.opened_by}")]
    if run.ended_at is not None:
        ended = EventType.JOB_COMPLETED if run.status is RunStatus.COMPLETED else EventType.JOB_FAILED
        told.append((ended, run.ended_at, run.message or "the job completed"))
    for kind, at in (sla.fired if sla is not None else {}).items():
        breached = kind is SlaKind.BREACH
        message = "not finished at the deadline" if breached else "not finished at the warning"
        told.append((EventType.SLA_BREACH if breached else EventType.SLA_WARNING, at, message))
    if verdicts and sla is not None and sla.outcome is SlaOutcome.MET and run.ended_at is not None:
        told.append((EventType.SLA_MET, run.ended_at, "completed before its deadline"))
    for number, (type_, at, message) in enumerate(told):
        event: Event = records.event(
            type_, RunKey(run.pipeline, run.schedule, run.date), at, message, attempt=run.attempt
        )
        millis = epoch_millis(at)
        ttl = millis // 1000 + EVENT_TTL_DAYS * 86_400
        sk = keys.event_sk(millis, type_, f"{number:012x}")
        yield run.key.pk, sk, ttl, _json(records.plain(event)), type_.value, millis


def _put(connection: sqlite3.Connection, table: Table, rows: list[Row]) -> None:
    connection.executemany(f"INSERT OR REPLACE INTO {table} (pk, sk, ttl, item) VALUES (?, ?, ?, ?)", rows)


def _json(item: object) -> str:
    return msgspec.json.encode(item).decode()


def main() -> None:
    """Make one."""
    parser = argparse.ArgumentParser(prog="python -m bench.seeded", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--pipelines", type=int, default=1000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--hourly", type=float, default=0.05, help="the part of the pipelines that runs every hour")
    parser.add_argument("--streamed", type=float, default=0.0, help="the part of the pipelines that a sensor opens")
    given = parser.parse_args()
    seed(given.file, pipelines=given.pipelines, days=given.days, hourly=given.hourly, streamed=given.streamed)


if __name__ == "__main__":
    main()
