"""What the clock opens, and who delivers it: a tick that may still be delivered is never reported as missed."""

from datetime import timedelta
from typing import Any

import pytest

from interlock.control import catalog, records
from interlock.model import keys
from interlock.model.config import Calendar
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from tests.control.test_rare_events import DOCUMENT, KEY, START, Installation, Target


def away(installation: Installation, **delta: float) -> None:
    """The controller was away for a time, and starts again; its watchdog looks before its clock has delivered."""
    installation.clock.move_to(START + timedelta(**delta))
    installation.start()
    assert installation.engine.watch() == []
    installation.settle()


@pytest.fixture
def installation() -> Installation:
    return Installation(Target())


def test_after_a_restart_what_is_due_is_delivered_before_anything_is_missed(installation: Installation) -> None:
    installation.apply()
    away(installation, minutes=35)

    assert installation.events(EventType.SCHEDULE_MISSED) == []
    assert installation.run().tick_at == START + timedelta(minutes=5)
    installation.go_to("08:31:00")  # the clock delivers it, too
    assert len(installation.events(EventType.TRIGGER_STARTED)) == 1
    assert installation.events(EventType.SCHEDULE_MISSED) == []


def test_so_are_the_inclusion_dates(installation: Installation) -> None:
    installation.apply(schedule={"include": {"dates": ["2026-03-02"]}, "time": "08:00"})
    away(installation, minutes=35)

    run = records.get_run(installation.engine.store, RunKey("orders", "stream", "2026-03-02"))
    assert run is not None
    assert run.status is RunStatus.PENDING
    assert installation.events(EventType.IRREGULAR_SCHEDULE_MISSED) == []


def test_of_several_ticks_only_those_beyond_the_window_are_missed(installation: Installation) -> None:
    installation.apply(schedule={"cron": "0 * * * *", "evaluation": {"window": "90m", "interval": "5m"}})
    away(installation, hours=3, minutes=20)  # 11:15

    missed = [event.date for event in installation.events(EventType.SCHEDULE_MISSED)]
    assert missed == ["2026-03-02T08", "2026-03-02T09"]
    opened = [event.date for event in installation.events(EventType.TRIGGER_STARTED)]
    assert opened == ["2026-03-02T10", "2026-03-02T11"]


@pytest.mark.parametrize(
    "schedule",
    [
        {"cron": "0 8 * * *", "exclude": {"dates": ["2026-03-02"]}},
        {"include": {"dates": ["2026-03-02"]}, "exclude": {"days": ["monday"]}, "time": "08:00"},
    ],
)
def test_what_the_calendar_withholds_is_neither_delivered_nor_missed(
    installation: Installation, schedule: dict[str, Any]
) -> None:
    installation.apply(schedule=schedule)
    away(installation, minutes=35)

    assert installation.events(EventType.TRIGGER_STARTED) == []
    assert installation.events(EventType.SCHEDULE_MISSED) == []
    assert installation.events(EventType.IRREGULAR_SCHEDULE_MISSED) == []


@pytest.mark.parametrize(("minutes", "opened"), [(30, 1), (90, 0)])
def test_a_date_that_leaves_the_calendar_after_its_tick_is_opened_late_or_missed(minutes: int, opened: int) -> None:
    installation = Installation(Target())
    store = installation.engine.store
    store.commit([catalog.put_calendar(Calendar(name="office", dates=["2026-03-02"]))])
    installation.put(
        keys.CONFIG, {"document": DOCUMENT | {"schedule": {"cron": "0 8 * * *", "exclude": {"calendar": "office"}}}}
    )
    for later in range(0, minutes, 5):
        installation.go_to(f"{8 + later // 60:02}:{later % 60:02}:00")
        assert installation.engine.watch() == []
    store.commit([catalog.put_calendar(Calendar(name="office", dates=["2026-12-25"]))])
    installation.settle()
    assert installation.engine.watch() == []

    assert len(installation.events(EventType.PIPELINE_EXCLUDED)) == 1
    assert len(installation.events(EventType.TRIGGER_STARTED)) == opened
    assert len(installation.events(EventType.SCHEDULE_MISSED)) == 1 - opened


def test_a_tick_before_the_pipeline_was_applied_is_nobodys(installation: Installation) -> None:
    installation.clock.move_to(START + timedelta(minutes=10))
    installation.apply()
    assert installation.engine.watch() == []
    assert records.get_run(installation.engine.store, KEY) is None
