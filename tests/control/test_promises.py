"""What is promised of periods without a run, at the seams: changes nobody has routed yet, and what is remembered."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from interlock.control import catalog, promises, records, reruns
from interlock.model import keys
from interlock.model.config import Calendar
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import FinalReason, Run, RunStatus, SlaOutcome, SlaState, Source
from interlock.ports.store import Put
from tests.control.test_rare_events import DOCUMENT, START, Installation, Target

KEY = RunKey("orders", "stream", "2026-03-02")
LANDED = {"key": "landed", "check": "equals", "field": "status", "value": "done"}
SENSOR_DRIVEN: dict[str, Any] = {
    "schedule": {"trigger": LANDED, "exclude": {"calendar": "office"}},
    "sla": {"deadline": "10:00", "dayOffset": 0, "expectedDuration": "30m"},
}


@pytest.fixture
def installation() -> Iterator[Installation]:
    made = Installation(Target())
    calendar(made)
    document = DOCUMENT | SENSOR_DRIVEN
    made.put(keys.CONFIG, {"document": document, "version": "v1"})
    yield made
    made.database.close()


def calendar(installation: Installation, *dates: str, routed: bool = True) -> None:
    stored = catalog.put_calendar(Calendar(name="office", dates=[*dates, "2026-12-25"]))
    installation.engine.store.commit([stored])
    if routed:
        installation.settle()


def state(installation: Installation, key: RunKey = KEY) -> SlaState | None:
    return records.get_sla(installation.engine.store, key)


def at(clock_time: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock_time}:00+00:00")


def fire(installation: Installation, clock_time: str) -> None:
    """The timers of an instant, and nothing else: what was written is not routed yet."""
    installation.clock.move_to(at(clock_time))
    installation.engine.fire_timers(installation.clock.now())


def test_a_period_is_armed_when_the_config_is_routed(installation: Installation) -> None:
    armed = state(installation)
    assert armed is not None
    assert (armed.warning_at, armed.breach_at) == (at("09:30"), at("10:00"))


def test_an_alert_is_judged_by_the_calendar_of_its_instant(installation: Installation) -> None:
    calendar(installation, "2026-03-02", routed=False)
    fire(installation, "10:00")

    assert installation.events(EventType.SLA_BREACH) == []
    assert state(installation) is None
    installation.settle()
    assert installation.events(EventType.SLA_BREACH) == []


def test_an_alert_is_judged_by_the_config_of_its_instant(installation: Installation) -> None:
    later = DOCUMENT | SENSOR_DRIVEN | {"sla": {"deadline": "11:00", "dayOffset": 0}}
    store = installation.engine.store
    item = store.get(records.control_key(KEY.pk, keys.CONFIG))
    assert item is not None
    store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), item | {"document": later})])
    fire(installation, "10:00")

    assert installation.events(EventType.SLA_BREACH) == []
    revised = state(installation)
    assert revised is not None
    assert revised.breach_at == at("11:00")
    installation.go_to("11:00:00")
    assert [event.detail["deadline"] for event in installation.events(EventType.SLA_BREACH)] == ["11:00"]


def test_a_deadline_that_is_moved_into_the_past_alerts_at_once(installation: Installation) -> None:
    installation.go_to("09:00:00")
    earlier = DOCUMENT | SENSOR_DRIVEN | {"sla": {"deadline": "08:30", "dayOffset": 0}}
    applied = {"document": earlier, "firstAppliedAt": "2026-03-02T07:55:00Z"}
    installation.put(keys.CONFIG, applied)

    (breach,) = installation.events(EventType.SLA_BREACH)
    assert (breach.timestamp, breach.detail["deadline"]) == (at("09:00"), "08:30")


def test_an_invalid_config_silences_nothing(installation: Installation) -> None:
    installation.put(
        keys.CONFIG, {"document": {"pipeline": {"id": "orders"}}, "firstAppliedAt": "2026-03-02T07:55:00Z"}
    )
    installation.go_to("10:30:00")

    assert len(installation.events(EventType.CONFIG_INVALID)) == 1
    (breach,) = installation.events(EventType.SLA_BREACH)
    assert "interlock validate" in breach.detail["actionHint"]


def test_what_was_given_is_remembered_while_the_date_is_excluded(installation: Installation) -> None:
    installation.go_to("09:40:00")
    calendar(installation, "2026-03-02")
    withdrawn = state(installation)
    assert withdrawn is not None
    assert (withdrawn.breach_at, len(withdrawn.fired)) == (None, 1)
    calendar(installation)
    installation.go_to("10:30:00")

    assert len(installation.events(EventType.SLA_WARNING)) == 1
    assert len(installation.events(EventType.SLA_BREACH)) == 1


def test_following_again_writes_nothing(installation: Installation) -> None:
    before = installation.database.head()
    promises.follow_config(installation.engine.control, "orders")
    promises.follow(installation.engine.control, KEY)
    assert installation.database.head() == before
    calendar(installation, "2026-03-02")
    before = installation.database.head()
    promises.follow_calendar(installation.engine.control, "office")
    assert installation.database.head() == before


def test_others_go_on_after_each_pipeline_that_follows_a_calendar(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands may name it, and all of them are followed on the one thread that commits."""
    for number in range(3):
        installation.put(keys.CONFIG, {"document": DOCUMENT | SENSOR_DRIVEN, "version": f"v{number}"})
        document = DOCUMENT | SENSOR_DRIVEN | {"pipeline": {"id": f"more-{number}"}}
        installation.engine.store.commit(
            [Put(records.control_key(keys.pipeline_pk(f"more-{number}"), keys.CONFIG), {"document": document})]
        )
    installation.settle()
    seen: list[str] = []
    control = dataclasses.replace(installation.engine.control, pause=lambda: seen.append("pause"))
    monkeypatch.setattr(promises, "follow_config", lambda _, pipeline: seen.append(pipeline))
    monkeypatch.setattr(promises, "_READ_AT_ONCE", 2)
    promises.follow_calendar(control, "office")
    followed = [one for one in seen if one != "pause"]
    assert followed == ["more-0", "more-1", "more-2", "orders"]
    assert all(seen[seen.index(one) + 1] == "pause" for one in followed), seen


def test_a_calendar_that_is_not_named_concerns_nobody(installation: Installation) -> None:
    installation.engine.store.commit([catalog.put_calendar(Calendar(name="other", dates=["2026-03-02"]))])
    installation.settle()
    assert state(installation) is not None


@pytest.mark.parametrize("how", ["deleted", "dry run"])
def test_nobody_waits_for_a_run_that_was_held_before_its_pipeline_was_stopped(
    installation: Installation, how: str
) -> None:
    installation.sensor("landed", status="done")
    installation.go_to("09:10:00")
    held = records.get_run(installation.engine.store, KEY)
    assert held is not None
    assert held.final_reason is FinalReason.VALIDATION_EXHAUSTED
    if how == "deleted":
        catalog.delete_config(installation.engine.control, "orders")
        installation.settle()
    else:
        installation.put(keys.CONFIG, {"document": DOCUMENT | SENSOR_DRIVEN | {"dryRun": True}})
    installation.go_to("10:30:00")

    assert installation.events(EventType.SLA_WARNING) == []
    assert installation.events(EventType.SLA_BREACH) == []
    closed = state(installation)
    assert closed is not None
    assert closed.outcome is SlaOutcome.CANCELLED


def test_a_trigger_write_for_an_hour_promises_no_hour_of_a_daily_pipeline(installation: Installation) -> None:
    installation.put(
        keys.CONFIG, {"document": DOCUMENT | SENSOR_DRIVEN | {"sla": {"deadline": "10:00", "maxDuration": "4h"}}}
    )
    installation.sensor("landed", status="loading", date="2026-03-02", hour=7)
    stray = state(installation, RunKey("orders", "stream", "2026-03-02T07"))

    assert stray is not None
    assert (stray.breach_at, stray.relative_breach_at) == (None, START + timedelta(hours=4))


def test_a_manual_run_of_a_promise_that_is_due_but_not_given_yet_is_no_back_fill(installation: Installation) -> None:
    installation.clock.move_to(at("10:10"))  # the controller was away, and the request comes before its timers
    reruns.request(installation.engine.control, KEY)
    while installation.engine.router.pump():
        pass
    opened = state(installation)
    assert opened is not None
    assert not opened.back_fill
    installation.settle()
    assert len(installation.events(EventType.SLA_BREACH)) == 1


def test_runs_that_only_the_watchdog_recorded_say_nothing_of_days_or_hours(installation: Installation) -> None:
    def put(date: str, reason: FinalReason | None = None) -> None:
        run = Run(
            pipeline="orders",
            schedule="stream",
            date=date,
            status=RunStatus.FAILED_FINAL if reason is not None else RunStatus.COMPLETED,
            version=1,
            attempt=1,
            source=Source.FIRST,
            config_version="v1",
            opened_at=START,
            first_opened_at=START,
            updated_at=START,
            final_reason=reason,
        )
        installation.engine.store.commit([records.put_run(run, None)])

    for date in ("2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01"):
        put(date)
    for hour in range(24):
        put(f"2026-03-02T{hour:02}", FinalReason.DEADLINE_EXPIRED)
    latest = promises.latest_of(installation.engine.store, "orders", "stream")

    dates = ("2026-03-01", "2026-02-28", "2026-02-27", "2026-02-26")
    assert latest() == [parse_period(date) for date in dates]


def test_a_promise_that_is_closed_is_left_as_it_is(installation: Installation) -> None:
    control = installation.engine.control
    promises.follow_config(control, "orders")
    state = records.get_sla(control.store, KEY)
    assert state is not None
    closed = msgspec.structs.replace(state, version=state.version + 1, outcome=SlaOutcome.CANCELLED)
    control.store.commit([records.put_sla(closed, state)])
    calendar(installation, KEY.date, routed=False)
    promises.follow(control, KEY)
    assert records.get_sla(control.store, KEY) == closed
