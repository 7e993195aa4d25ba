"""SLA alerts: what each says, when it is given, and that none is given once the run is decided."""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from interlock.alerts.messages import one_line
from interlock.control import records, sla_monitor
from interlock.model import keys
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.events import CATALOGUE, Event, EventType
from interlock.model.run import RunStatus, SlaOutcome
from interlock.ports.store import Delete, Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, staged, write

ROWS = {"key": "rows", "check": "gte", "field": "count", "value": 10}
ORDERS: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"cron": "0 8 * * *"},
    "sla": {"deadline": "08:30"},
    "validation": {"rules": [{"key": "rows", "check": "exists"}, ROWS, {"key": "export", "check": "exists"}]},
    "job": {"type": "glue", "config": {"jobName": "etl"}},
}
SEVERAL: dict[str, Any] = ORDERS | {"schedules": [{"id": "a", "cron": "0 8 * * *"}, {"id": "b", "cron": "0 20 * * *"}]}
del SEVERAL["schedule"]
FEW = {"at": "2026-03-02T08:10:00Z", "sensor": "orders/rows", "data": {"count": 5}}
EXPORTED = {"at": "2026-03-02T08:10:00Z", "sensor": "orders/export", "data": {"done": True}}


def breach(config: dict[str, Any], *steps: dict[str, Any], **more: Any) -> Event:
    scenario = inline_scenario(
        start="2026-03-02T07:55:00Z", until="2026-03-02T08:45:00Z", pipelines=[config], steps=list(steps), **more
    )
    world = World(scenario)
    world.play()
    (found,) = [event for event in world.events if event.type is EventType.SLA_BREACH]
    world.database.close()
    return found


def test_each_sensor_is_named_once_and_the_message_says_the_first() -> None:
    found = breach(ORDERS)
    assert found.detail["waitingFor"] == ["rows (no sensor rows)", "export (no sensor export)"]
    assert found.message == (
        "orders for 2026-03-02 has missed its deadline (2026-03-02T08:30:00Z): "
        "waiting for rows (no sensor rows) and 1 more"
    )
    assert one_line(found).count("no sensor rows") == 1


@pytest.mark.parametrize(
    ("config", "command"),
    [
        (ORDERS, "`interlock why orders --date 2026-03-02`"),
        (SEVERAL, "`interlock why orders --date 2026-03-02 --schedule a`"),
    ],
)
def test_the_hint_names_the_date(config: dict[str, Any], command: str) -> None:
    found = breach(config, FEW, EXPORTED)
    assert found.detail["waitingFor"] == ["rows (count is 5, needs >= 10)"]
    assert found.detail["actionHint"] == f"look at who writes rows; {command} says more"


def test_a_job_under_way_is_what_is_awaited() -> None:
    ready = {"at": "2026-03-02T08:10:00Z", "sensor": "orders/rows", "data": {"count": 50}}
    found = breach(ORDERS, ready, EXPORTED, jobs={"orders": [{"result": "hang"}]})
    assert found.message.endswith(f": running; waiting for {found.detail['waitingFor'][0]}")
    assert found.detail["waitingFor"][0].startswith("job ")


def test_a_run_that_was_held_says_why_it_ended() -> None:
    held = ORDERS | {"schedule": {"cron": "0 8 * * *", "evaluation": {"window": "10m", "interval": "5m"}}}
    found = breach(held)
    assert found.detail["status"] == "held"
    assert found.detail["actionHint"].startswith("it ended (validation-exhausted): ")
    assert "`interlock why orders --date 2026-03-02`" in found.detail["actionHint"]


# ------------------------------------------------------------------------------------------------------------ its modes

SLA: Final = {"deadline": "02:00", "expectedDuration": "30m", "dayOffset": 0}
WAITS: Final = {"rules": [{"key": "rows", "check": "exists"}]}
NAMES: Final = {"pipeline": "orders", "schedule": "stream", "date": "2026-03-05"}


def asked(world: FaultyWorld, mode: str) -> dict[str, Any]:
    return sla_monitor.handle(control_of(world), NAMES | {"mode": mode})


def timers(world: FaultyWorld) -> list[str]:
    """The kinds of the SLA timers that are armed, in order."""
    rows = world.database.read("SELECT payload FROM timers WHERE kind = 'sla' ORDER BY due_us", ())
    return [msgspec.json.decode(row[0])["kind"] for row in rows]


def test_a_call_that_names_no_run_or_no_mode_is_refused_with_what_is_missing() -> None:
    world = staged(pipeline(), until="+1m", steps=[])
    with pytest.raises(InvalidValueError, match="schedule, date is missing"):
        sla_monitor.handle(control_of(world), {"pipeline": "orders", "mode": "cancel"})
    with pytest.raises(InterlockError, match="has no mode 'wait': it has schedule, cancel"):
        asked(world, "wait")


def test_timers_are_armed_as_the_state_says_and_are_gone_once_it_is_decided() -> None:
    world = staged(pipeline(sla=SLA, validation=WAITS), until="+15m")
    assert timers(world) == ["warning", "breach"]
    assert asked(world, "schedule") == {"warning": "2026-03-05T01:30:00Z", "breach": "2026-03-05T02:00:00Z"}
    assert timers(world) == ["warning", "breach"], "the same timers, not more of them"
    assert asked(world, "cancel") == {"cancelled": True}
    assert timers(world) == []
    asked(world, "schedule")
    write(world, "rows", count=1)
    later(world, minutes=30)
    assert timers(world) == [], "it has completed in time"
    assert asked(world, "schedule") == {}


def test_the_instants_of_a_date_are_calculated_without_arming_anything() -> None:
    world = staged(pipeline(sla=SLA), until="+1m", steps=[])
    before = timers(world)
    later_date = NAMES | {"date": "2026-03-09", "mode": "calculate"}
    assert sla_monitor.handle(control_of(world), later_date) == {
        "warningAt": "2026-03-09T01:30:00Z",
        "breachAt": "2026-03-09T02:00:00Z",
    }
    assert timers(world) == before
    assert asked(staged(pipeline(), until="+1m", steps=[]), "calculate") == {}


def test_a_period_without_a_run_is_reconciled_once() -> None:
    world = staged(pipeline(sla=SLA), until="+1m", steps=[])
    day = NAMES | {"date": "2026-03-06", "mode": "reconcile"}
    assert sla_monitor.handle(control_of(world), day) == {"armed": True}
    assert sla_monitor.handle(control_of(world), day) == {"armed": False}


def fired_late(world: FaultyWorld) -> list[str]:
    """A timer that fires although it should be gone: what comes of it, at three in the morning."""
    world.clock.move_to(datetime(2026, 3, 5, 3, tzinfo=UTC))
    found: list[str] = asked(world, "fire-alert")["fired"]
    return found


def test_a_late_timer_gives_nothing_for_a_run_that_is_decided_and_the_breach_for_one_that_is_not() -> None:
    assert fired_late(staged(pipeline(sla=SLA), until="+30m")) == [], "completed"
    job = {"type": "glue", "config": {"jobName": "x"}, "maxCodeRetries": 0}
    failing = [{"after": "1m", "result": "fail", "category": "PERMANENT"}]
    assert fired_late(staged(pipeline(sla=SLA, job=job), until="+30m", jobs=failing)) == [], "retries used up"
    waiting = staged(pipeline(sla=SLA, validation=WAITS), until="+15m")
    assert fired_late(waiting) == ["breach"]
    assert fired_late(waiting) == [], "once"


def test_a_run_that_failed_for_good_is_not_breached_although_its_state_is_still_open() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "maxCodeRetries": 0}
    failing = [{"after": "1m", "result": "fail", "category": "PERMANENT"}]
    world = staged(pipeline(sla=SLA, job=job), until="+30m", jobs=failing)
    state = records.get_sla(control_of(world).store, KEY)
    assert state is not None
    open_again = replace(state, version=state.version + 1, outcome=None)
    control_of(world).store.commit([records.put_sla(open_again, state)])
    assert fired_late(world) == []


def test_nobody_waits_for_a_run_that_ended_and_whose_pipeline_was_deleted_since() -> None:
    world = staged(pipeline(sla=SLA, validation=WAITS), until="+15m")
    later(world, hours=1)
    control = control_of(world)
    assert run_of(world).status is RunStatus.FAILED_FINAL
    control.store.commit([Delete(records.control_key(KEY.pk, keys.CONFIG))])
    assert fired_late(world) == []
    state = records.get_sla(control.store, KEY)
    assert state is not None
    assert state.outcome is SlaOutcome.CANCELLED
    assert fired_late(world) == []
    assert records.get_sla(control.store, KEY) == state, "it is closed once"


def test_a_retry_that_waits_is_what_an_alert_says_and_a_config_that_is_gone_too() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1, "retryDelay": "1h"}
    failing = [{"after": "100m", "result": "fail", "category": "TRANSIENT", "error": "lost executor"}]
    world = staged(pipeline(sla=SLA, job=job | {"jobPollWindowSeconds": 14400}), until="+115m", jobs=failing)
    assert run_of(world).status is RunStatus.FAILED
    later(world, minutes=10)
    world._pump()
    (found,) = [event for event in world.events if event.type is EventType.SLA_BREACH]
    assert found.detail["waitingFor"] == ["the retry"]
    assert "lost executor" in found.detail["actionHint"]
    assert found.detail["dedupKey"] == "orders/stream/2026-03-05/SLA_BREACH"


# --------------------------------------------------------------------------------------------------- what an alert says


def alerts(world: FaultyWorld, *types: EventType) -> list[Event]:
    world._pump()
    return [event for event in world.events if event.type in types]


def test_each_kind_of_alert_says_what_it_is_about_with_its_instants() -> None:
    sla = {"deadline": "02:00", "readyBy": "01:00", "expectedDuration": "30m", "dayOffset": 0}
    schedule = {"trigger": {"key": "ready", "check": "exists"}, "evaluation": {"window": "9h"}}
    world = staged(pipeline(sla=sla, schedule=schedule, validation=WAITS), until="+15m")
    later(world, hours=2)
    (late,) = alerts(world, EventType.READINESS_LATE)
    assert "is not ready, and should have been by 01:00 (2026-03-05T01:00:00Z)" in late.message
    (warning,) = alerts(world, EventType.SLA_WARNING)
    assert "may miss its deadline (2026-03-05T02:00:00Z)" in warning.message
    (breach,) = alerts(world, EventType.SLA_BREACH)
    assert "has missed its deadline (2026-03-05T02:00:00Z): waiting for rows (no sensor rows)" in breach.message
    assert breach.detail["status"] == "waiting"
    state = records.get_sla(control_of(world).store, KEY)
    assert state is not None
    assert [kind.value for kind in state.fired] == ["readiness", "warning", "breach"]


def test_a_duration_that_is_over_is_said_to_be() -> None:
    schedule = {"trigger": {"key": "ready", "check": "exists"}, "evaluation": {"window": "9h"}}
    world = staged(pipeline(sla={"maxDuration": "1h"}, schedule=schedule, validation=WAITS), until="+15m")
    later(world, hours=2)
    (warning,) = alerts(world, EventType.RELATIVE_SLA_WARNING)
    assert "may miss its deadline (2026-03-05T01:10:00Z)" in warning.message
    (breach,) = alerts(world, EventType.RELATIVE_SLA_BREACH)
    assert "has missed its deadline (2026-03-05T01:10:00Z)" in breach.message


@pytest.mark.parametrize("critical", [True, False])
def test_a_critical_pipeline_s_alerts_are_more_severe(critical: bool) -> None:
    sla = SLA | {"critical": critical}
    world = staged(pipeline(sla=sla, validation=WAITS), until="+15m")
    later(world, hours=2)
    (breach,) = alerts(world, EventType.SLA_BREACH)
    usual = CATALOGUE[EventType.SLA_BREACH].severity
    assert breach.severity is (usual.raised() if critical else usual)


def test_a_period_that_nothing_has_opened_says_so() -> None:
    world = staged(pipeline(sla=SLA), until="+5m", steps=[])
    item = records.sensor_item({"status": "ready"}, world.clock.now())
    control_of(world).store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk("ready")), item)])
    world.clock.move_to(world.clock.now().replace(hour=2))
    asked(world, "reconcile")
    assert "breach" in asked(world, "fire-alert")["fired"]
    (breach,) = alerts(world, EventType.SLA_BREACH)
    assert (breach.detail["status"], breach.detail["waitingFor"]) == ("not started", ["its start"])
    assert breach.message.endswith(": not started; waiting for its start")
    assert breach.detail["actionHint"].startswith("the rules pass but nothing has opened the run: look at ")


def test_a_run_whose_job_is_about_to_start_says_so() -> None:
    world = staged(pipeline(sla=SLA, validation=WAITS), until="+15m")
    item = records.sensor_item({"n": 1}, world.clock.now())
    control_of(world).store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk("rows")), item)])
    assert fired_late(world) == ["breach"]
    (breach,) = alerts(world, EventType.SLA_BREACH)
    assert breach.detail["waitingFor"] == ["its start"]
    assert breach.detail["actionHint"].startswith("the rules pass: its job is about to be started; ")


def test_the_promise_of_a_pipeline_that_is_gone_is_withdrawn_and_alerts_nobody() -> None:
    world = staged(pipeline(sla=SLA), until="+5m", steps=[])
    asked(world, "reconcile")
    assert records.get_sla(control_of(world).store, KEY) is not None
    control_of(world).store.commit([Delete(records.control_key(KEY.pk, keys.CONFIG))])
    assert fired_late(world) == []
    assert records.get_sla(control_of(world).store, KEY) is None


def test_an_alert_is_given_by_the_state_as_it_is_and_its_version_counts() -> None:
    world = staged(pipeline(sla=SLA, validation=WAITS), until="+15m")
    before = records.get_sla(control_of(world).store, KEY)
    assert asked(world, "fire-alert") == {"fired": []}, "nothing is due"
    assert records.get_sla(control_of(world).store, KEY) == before
    fired_late(world)
    after = records.get_sla(control_of(world).store, KEY)
    assert before is not None
    assert after is not None
    assert after.version == before.version + 1
    assert asked(staged(pipeline(), until="+1m", steps=[]), "fire-alert") == {"fired": []}


@pytest.mark.parametrize("document", [{"pipeline": {"id": "orders"}}, pipeline(sla=SLA, dryRun=True)])
def test_a_run_that_ended_is_abandoned_only_if_its_pipeline_became_a_dry_run(document: dict[str, Any]) -> None:
    world = staged(pipeline(sla=SLA, validation=WAITS), until="+15m")
    later(world, hours=1)
    assert run_of(world).status is RunStatus.FAILED_FINAL
    control_of(world).store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), {"document": document})])
    assert fired_late(world) == ([] if document.get("dryRun") else ["breach"])
