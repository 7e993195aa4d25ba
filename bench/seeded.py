"""A store with many pipelines and a long past, written directly: what the page is measured and looked at with.

`python -m bench.seeded FILE [PIPELINES] [DAYS]` makes one. Most pipelines are daily and some hourly; most runs are
done, some failed, were held, are waiting or run, and a few were late. The same numbers give the same store.
"""

import random
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

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
from interlock.model.times import epoch_millis, format_instant

TEAMS: Final = ("analytics", "finance", "growth", "logistics", "payments", "platform", "risk", "search")
SUBJECTS: Final = ("orders", "revenue", "sessions", "refunds", "inventory", "clicks", "ledger", "shipments")
LAYERS: Final = ("bronze", "silver", "gold")
ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata")
# Out of a thousand runs.
_FAILED, _HELD, _LATE = 8, 6, 12

Row = tuple[Any, ...]


def seed(
    path: Path, *, pipelines: int = 1000, days: int = 90, hourly: float = 0.05, now: datetime | None = None
) -> None:
    """Write the store. `hourly`: which part of the pipelines runs every hour."""
    clock = SystemClock()
    with Database.open(path, clock=clock, inline=True) as database:
        seed_database(database, pipelines=pipelines, days=days, hourly=hourly, now=now or clock.now())


def seed_database(database: Database, *, pipelines: int, days: int, hourly: float, now: datetime) -> None:
    """Write into an open store without any."""
    now = now.replace(microsecond=0)
    chance = random.Random(7)
    database.write(lambda connection: _begin(connection, now - timedelta(days=days + 1)))
    for first in range(0, pipelines, 50):
        made = [_Pipeline(number, hourly, chance) for number in range(first, min(first + 50, pipelines))]
        database.write(lambda connection, made=made: _insert(connection, made, now, days, chance))  # type: ignore[misc]


def _begin(connection: sqlite3.Connection, first: datetime) -> None:
    item = {"firstStartedAt": format_instant(first)}
    _put(connection, Table.CONTROL, [(keys.CONTROLLER, keys.CONTROLLER, None, _json(item))])


class _Pipeline:
    def __init__(self, number: int, hourly: float, chance: random.Random) -> None:
        team, subject = TEAMS[number % len(TEAMS)], SUBJECTS[number // len(TEAMS) % len(SUBJECTS)]
        self.id = f"{LAYERS[number % 3]}-{subject}-{number:04d}"
        self.hourly = chance.random() < hourly
        self.hour = chance.randrange(24)
        self.document: dict[str, Any] = {
            "pipeline": {"id": self.id, "owner": f"{team}-team", "description": f"{subject} of {team}"},
            "schedule": {
                "cron": "5 * * * *" if self.hourly else f"{chance.randrange(0, 60, 5)} {self.hour} * * *",
                "timezone": "UTC" if self.hourly else ZONES[number % len(ZONES)],
            },
            "sla": {"deadline": ":50" if self.hourly else f"{(self.hour + 3) % 24:02d}:30", "expectedDuration": "30m"},
            "validation": {
                "rules": [
                    {"key": "upstream-complete", "check": "equals", "field": "status", "value": "ready"},
                    {"key": "row-count", "check": "gte", "field": "count", "value": 1000},
                ]
            },
            "job": {"type": "external", "maxRetries": 2},
        }
        parsed = read_stored(self.document, {})
        if not isinstance(parsed, PipelineConfig):
            raise TypeError(f"the seeded config is invalid: {parsed}")
        self.version = config_version(self.document)

    def slots(self, now: datetime, days: int) -> Iterator[tuple[str, datetime]]:
        """The periods of its past with about the time each was opened."""
        first = (now - timedelta(days=days)).date()
        for offset in range(days + 1):
            day: date = first + timedelta(days=offset)
            hours = range(24) if self.hourly else [self.hour]
            for hour in hours:
                opened = datetime(day.year, day.month, day.day, hour, 5, tzinfo=UTC)
                if opened <= now:
                    yield str(hour_period(day, hour) if self.hourly else day_period(day)), opened


def _insert(
    connection: sqlite3.Connection, made: list[_Pipeline], now: datetime, days: int, chance: random.Random
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
            control += _run_rows(run, late=late)
            events += _events(run, late=late)
    _put(connection, Table.CONTROL, control)
    connection.executemany(
        "INSERT OR REPLACE INTO events (pk, sk, ttl, item, type, at) VALUES (?, ?, ?, ?, ?, ?)", events
    )


def _run(
    pipeline: _Pipeline, period: str, opened: datetime, now: datetime, chance: random.Random, *, latest: bool
) -> tuple[Run, bool]:
    draw = chance.randrange(1000)
    common: dict[str, Any] = {
        "pipeline": pipeline.id,
        "schedule": "cron",
        "date": period,
        "version": 4,
        "attempt": 1,
        "source": Source.FIRST,
        "config_version": pipeline.version,
        "opened_at": opened,
        "first_opened_at": opened,
        "updated_at": opened,
        "opened_by": "cron",
        "tick_at": opened,
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


def _run_rows(run: Run, *, late: bool) -> Iterator[Row]:
    pk = run.key.pk
    yield pk, run.key.sk(keys.RUN), None, _json(records.plain(run))
    if run.active:
        yield pk, run.key.sk(keys.ACTIVE), None, _json(records.plain(Active(attempt=run.attempt, wake_seq=0)))
    breach = run.opened_at + timedelta(hours=3)
    done = run.status is RunStatus.COMPLETED
    if not done or run.opened_at > run.updated_at - timedelta(days=3):
        state = SlaState(
            pipeline=run.pipeline,
            schedule=run.schedule,
            date=run.date,
            version=1,
            config_version=run.config_version,
            deadline="in three hours",
            warning_at=breach - timedelta(minutes=30),
            breach_at=breach,
            fired={SlaKind.WARNING: breach} if late else {},
            outcome=SlaOutcome.MET if done else None,
        )
        ttl = None if not done else int((run.opened_at + timedelta(days=4)).timestamp())
        yield pk, run.key.sk(keys.SLA), ttl, _json(records.plain(state))


def _events(run: Run, *, late: bool) -> Iterator[Row]:
    told = [(EventType.TRIGGER_STARTED, run.opened_at, "opened by cron")]
    if run.ended_at is not None:
        ended = EventType.JOB_COMPLETED if run.status is RunStatus.COMPLETED else EventType.JOB_FAILED
        told.append((ended, run.ended_at, run.message or "the job completed"))
    if late:
        told.append((EventType.SLA_WARNING, run.opened_at + timedelta(minutes=40), "not finished at the warning"))
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


if __name__ == "__main__":
    given = sys.argv[1:]
    seed(
        Path(given[0]),
        pipelines=int(given[1]) if len(given) > 1 else 1000,
        days=int(given[2]) if len(given) > 2 else 90,
    )
