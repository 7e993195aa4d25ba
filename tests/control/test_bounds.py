"""Bounds: what the watchdog looks at in one pass, and what a sensor write is warned of."""

from datetime import UTC, datetime, timedelta

from interlock.control import catalog, records, watchdog, writing
from interlock.model.config import PipelineConfig
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table, pipeline_pk, sensor_sk
from interlock.ports.store import Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

_START = datetime(2026, 3, 2, 8, tzinfo=UTC)


def _world() -> World:
    pipeline = {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "external"},
    }
    scenario = inline_scenario(start="2026-03-02T08:00:00Z", until="2026-03-02T08:00:00Z", pipelines=[pipeline])
    world = World(scenario)
    world.play()
    return world


def test_the_plain_trigger_sensor_is_seen_beside_many_of_other_periods_and_names() -> None:
    world = _world()
    control = world.engine.control
    pk = pipeline_pk("orders")
    old = _START - timedelta(days=90)
    for index in range(80):
        for key in (f"ready#2025-{index % 12 + 1:02d}-{index % 28 + 1:02d}", f"ready-{index}"):
            item = records.sensor_item({"n": index}, old)
            control.store.commit([Put(records.control_key(pk, sensor_sk(key)), item)])
    writing.write_sensor(control, "orders", "ready", {"n": 1})
    # The stream is not pumped: the start is lost, and only check 4 can find it.
    assert watchdog.run(control) == []
    assert records.get_run(control.store, RunKey("orders", "stream", "2026-03-02")) is not None
    kinds = {record.item["type"] for record in control.store.query(Table.EVENTS, pk)}
    assert EventType.TRIGGER_RECOVERED in kinds


def test_sla_states_of_runs_that_failed_are_not_all_read_at_every_pass() -> None:
    world = _world()
    control = world.engine.control
    config = catalog.current(control.store, "orders")
    assert isinstance(config, PipelineConfig)
    key = records.run_record(RunKey("orders", "stream", "2026-03-02"), "SLA#")
    for index in range(150):
        date = f"2025-{index // 28 + 1:02d}-{index % 28 + 1:02d}"
        item = {"pipeline": "orders", "schedule": "stream", "date": date, "version": 1, "configVersion": "x"}
        control.store.commit([Put(records.control_key(key.pk, f"SLA#stream#{date}"), item)])
    recent = records.recent_sla(control.store, "orders", "stream")
    assert len(recent) == 100
    assert recent[0].date > recent[-1].date


def test_a_ttl_in_the_past_is_stored_with_a_warning() -> None:
    control = _world().engine.control
    written = writing.write_sensor(control, "orders", "ready", {"n": 1}, ttl=3600)
    assert any("in the past" in warning for warning in written.warnings)
    assert not writing.write_sensor(control, "orders", "ready", {"n": 1}, ttl=int(_START.timestamp()) + 60).warnings


def test_a_trigger_write_that_does_not_fit_the_granularity_is_stored_with_a_warning() -> None:
    days = {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}, "granularity": "day"},
        "validation": {"rules": [{"key": "rows", "check": "exists"}]},
        "job": {"type": "external"},
    }
    at = "2026-03-02T08:00:00Z"
    world = World(inline_scenario(start=at, until=at, pipelines=[days]))
    world.play()
    control = world.engine.control
    (warning,) = writing.write_sensor(control, "orders", "ready", {"date": "2026-03-02", "hour": 7}).warnings
    assert warning == (
        "no run is started: 2026-03-02T07 is one hour, but schedule.granularity is day: write the day without an hour"
    )
    assert writing.write_sensor(control, "orders", "ready", {"date": "2026-03-02"}).warnings == ()
    assert writing.write_sensor(control, "orders", "rows", {"date": "2026-03-02", "hour": 7}).warnings == ()
