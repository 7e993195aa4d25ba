"""A morning on which something is late, something failed, something is held back and the rest waits, runs or is done.

`python -m bench.morning --port PORT` plays it in a folder that is gone afterwards, and goes on at the pace of the wall
clock from a quarter to eleven: what the pictures of the page are taken of. The past is written directly, the morning
itself happens: by cron, sensors and commands, on a real controller whose clock runs fast.
"""

import argparse
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from bench.seeded import write_past
from interlock.api import server
from interlock.config.alert_routes import AlertRoute, ChannelKind
from interlock.config.versions import config_version
from interlock.control import writing
from interlock.demo.stage import Pace, Stage
from interlock.demo.timeline import Sight, Stopped, Timeline
from interlock.embedded.clock import ScaledClock
from interlock.embedded.service import Service, ServiceSettings
from interlock.embedded.sqlite.database import Database
from interlock.model.events import EventType, Severity
from interlock.model.periods import day_period, hour_period
from interlock.model.times import zone

# A Tuesday; the same each time, so that two pictures can be compared.
_DAY: Final = datetime(2026, 3, 3, tzinfo=UTC)
_BEGINS: Final = _DAY + timedelta(hours=6, minutes=4)
_SHOWN: Final = _DAY + timedelta(hours=10, minutes=42)
_DAYS: Final = 60
_PACE: Final = Pace(acting=20.0, watching=60.0, waiting=900.0)
_PATIENCE: Final = 60.0
_HOURLY: Final = ("bronze-clicks", "bronze-orders", "bronze-payments")


class Lane:
    """A pipeline, its past included."""

    def __init__(self, name: str, owner: str, about: str, **parts: Any) -> None:
        self.id = name
        self.document: dict[str, Any] = {"pipeline": {"id": name, "owner": owner, "description": about}, **parts}
        # Of the past: what is applied at the start is a change to it, and so all that hangs on a config is stored.
        self.version = config_version({**self.document, "before": True})
        self.streamed = parts["schedule"].get("granularity") == "hour"

    def slots(self, now: datetime, days: int) -> Iterator[tuple[str, datetime]]:
        """The periods of its past with the time each was opened."""
        schedule = self.document["schedule"]
        for offset in range(days, -1, -1):
            day = (now - timedelta(days=offset)).date()
            if self.streamed:
                for hour in range(24):
                    opened = datetime(day.year, day.month, day.day, hour, 4, tzinfo=UTC) + timedelta(hours=1)
                    if opened < now:
                        yield str(hour_period(day, hour)), opened
            if "cron" not in schedule:
                continue
            minute, hour_ = (int(part) for part in schedule["cron"].split()[:2])
            opened = datetime(day.year, day.month, day.day, hour_, minute, tzinfo=zone(schedule["timezone"]))
            if opened < now:
                yield str(day_period(day)), opened.astimezone(UTC)


def _daily(cron: str, window: str = "6h", timezone: str = "UTC") -> dict[str, Any]:
    return {"cron": cron, "timezone": timezone, "evaluation": {"window": window, "interval": "5m"}}


def _rule(key: str, field: str, value: int) -> dict[str, Any]:
    return {"key": key, "check": "gte", "field": field, "value": value}


def _command(script: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "config": {"command": ["sh", "-c", script]}, **more}


def lanes() -> list[Lane]:
    """The pipelines of the morning, by what becomes of them."""
    done = _command("echo wrote 48211 rows")
    landed = {"key": "landed", "check": "equals", "field": "status", "value": "complete"}
    hourly = [
        Lane(
            name,
            "ingest",
            f"Raw {name.partition('-')[2]}, one hour at a time",
            schedule={"trigger": landed, "granularity": "hour"},
            validation={"rules": [landed]},
            sla={"deadline": ":30", "expectedDuration": "15m"},
            job=done,
        )
        for name in _HOURLY
    ]
    return [
        *hourly,
        Lane(
            "gold-revenue",
            "finance",
            "Revenue by country and day",
            schedule=_daily("0 3 * * *", timezone="America/New_York"),
            after=[{"pipeline": "silver-payments"}],
            validation={"rules": [_rule("row-count", "count", 1000)]},
            sla={"deadline": "05:30", "expectedDuration": "30m"},
            job=done,
        ),
        Lane(
            "gold-forecast",
            "finance",
            "Demand of the next two weeks",
            schedule=_daily("30 8 * * *"),
            validation={"rules": [_rule("prices", "countries", 27), _rule("holidays", "countries", 27)]},
            sla={"deadline": "11:00", "expectedDuration": "30m"},
            job=done,
        ),
        Lane(
            "silver-orders",
            "analytics",
            "Orders without duplicates",
            schedule=_daily("30 6 * * *"),
            validation={"rules": [_rule("orders", "rows", 1)]},
            sla={"deadline": "12:00", "expectedDuration": "40m"},
            job=_command(
                "echo writing /data/orders; echo no space left on device >&2; exit 1", maxCodeRetries=2, retryDelay="5m"
            ),
        ),
        Lane(
            "gold-orders",
            "analytics",
            "Orders by customer and week",
            schedule=_daily("0 7 * * *"),
            after=[{"pipeline": "silver-orders"}],
            sla={"deadline": "13:00", "expectedDuration": "30m"},
            job=done,
        ),
        Lane(
            "silver-inventory",
            "logistics",
            "Stock of every warehouse",
            schedule=_daily("15 7 * * *", window="1h"),
            validation={"rules": [_rule("stock-count", "warehouses", 12)]},
            sla={"deadline": "15:00", "expectedDuration": "20m"},
            job=done,
        ),
        Lane(
            "silver-payments",
            "finance",
            "Payments with their refunds",
            schedule=_daily("6 6 * * *"),
            validation={"rules": [_rule("payments", "rows", 1)]},
            sla={"deadline": "08:00", "expectedDuration": "20m"},
            job=done,
        ),
        Lane(
            "silver-sessions",
            "analytics",
            "Clicks by visit",
            schedule=_daily("0 10 * * *"),
            validation={"rules": [_rule("clicks", "hours", 24)]},
            sla={"deadline": "14:00", "expectedDuration": "1h"},
            job=_command("while test -e interlock.db; do sleep 1; done"),
        ),
        Lane(
            "gold-churn",
            "analytics",
            "Who may leave; observed only, nothing is started",
            dryRun=True,
            schedule={"trigger": _rule("sessions", "rows", 1)},
            validation={"rules": [_rule("sessions", "rows", 1)]},
            job=done,
        ),
    ]


def morning(stage: Stage, service: Service) -> None:
    """What happens between six and a quarter to eleven."""
    today = _DAY.date().isoformat()

    def write(clock: str, pipeline: str, key: str, **data: Any) -> None:
        hour, minute = (int(part) for part in clock.split(":"))
        stage.forward_to(_DAY + timedelta(hours=hour, minutes=minute))
        writing.write_sensor(service.control, pipeline, key, {"date": today, **data}, by="feed")

    def seen(type_: EventType, pipeline: str, date: str = today) -> None:
        stage.watch_for(Sight(type=type_, pipeline=pipeline, date=date))

    def landed(hour: int) -> None:
        for name in _HOURLY:
            write(f"{hour + 1:02d}:04", name, f"landed#{today}T{hour:02d}", hour=hour, status="complete")
        for name in _HOURLY:
            seen(EventType.JOB_COMPLETED, name, f"{today}T{hour:02d}")

    landed(5)
    write("06:12", "silver-payments", "payments", rows=18_204)
    seen(EventType.JOB_COMPLETED, "silver-payments")
    write("06:34", "silver-orders", "orders", rows=48_211)
    seen(EventType.RETRY_EXHAUSTED, "silver-orders")
    landed(6)
    write("07:20", "silver-inventory", "stock-count", warehouses=9)
    landed(7)
    write("08:20", "gold-revenue", "row-count", count=612)
    seen(EventType.VALIDATION_EXHAUSTED, "silver-inventory")
    write("08:40", "gold-forecast", "holidays", countries=27)
    write("09:10", "gold-churn", "sessions", rows=5_113)
    landed(8)
    write("09:40", "gold-revenue", "row-count", count=940)
    landed(9)
    write("10:16", "silver-sessions", "clicks", hours=24)
    seen(EventType.JOB_STARTED, "silver-sessions")
    seen(EventType.SLA_BREACH, "gold-revenue")
    stage.forward_to(_SHOWN)


def play(folder: Path, port: int) -> None:
    """Play it behind the HTTP API, until a signal."""
    clock = ScaledClock(_BEGINS, _PACE.acting)
    made = lanes()
    (folder / "pipelines").mkdir()
    for lane in made:
        (folder / "pipelines" / f"{lane.id}.json").write_text(json.dumps(lane.document))
    with Database.open(folder / "interlock.db", clock=clock, inline=True) as database:
        database.write(lambda connection: write_past(connection, made, now=_BEGINS, days=_DAYS, seed=3))

    @contextmanager
    def director(service: Service, url: str) -> Iterator[None]:
        timeline = Timeline(lambda entry: None)
        service.feed.join(timeline.committed, timeline.close)
        stage = Stage(service, clock, timeline, folder, pace=_PACE, patience=_PATIENCE)

        def direct() -> None:
            with suppress(Stopped):
                morning(stage, service)
                clock.set_speed(1.0)
                print(f"a quarter to eleven: {url}", flush=True)

        thread = threading.Thread(target=direct, name="interlock-morning", daemon=True)
        thread.start()
        try:
            yield
        finally:
            timeline.close()
            thread.join()

    server.serve(server.ServeSettings(service=_settings(folder), port=port), clock=clock, beside=director)


def _settings(folder: Path) -> ServiceSettings:
    return ServiceSettings(
        store=folder / "interlock.db",
        pipelines=folder / "pipelines",
        working_folder=folder,
        alerts=(AlertRoute(channel=ChannelKind.CONSOLE, name="on-call", severity=Severity.WARNING),),
        environment=dict(os.environ),
    )


def main() -> None:
    """Play one."""
    parser = argparse.ArgumentParser(prog="python -m bench.morning", description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interlock-morning-") as folder:
        play(Path(folder), given.port)


if __name__ == "__main__":
    main()
