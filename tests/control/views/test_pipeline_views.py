"""What people are shown of a run under way is what that run goes by."""

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.control import catalog, records, writing
from interlock.control.views import pipeline_views
from interlock.model import keys
from interlock.model.errors import InvalidConfigError, InvalidValueError, UnknownPipelineError
from interlock.model.keys import RunKey
from interlock.ports.store import Delete, Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

DATE = "2026-03-02"
ORDERS: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"cron": "0 8 * * *"},
    "validation": {"rules": [{"key": "export", "check": "exists"}, {"key": "rows", "check": "gte", "value": 1000}]},
    "job": {"type": "external"},
}
ORDERS["validation"]["rules"][1]["field"] = "count"
LENIENT = ORDERS | {"validation": {"rules": [{"key": "export", "check": "exists"}], "trigger": "ANY"}}


def world_of(*steps: dict[str, Any], until: str = "+30m") -> World:
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until=until, pipelines=[ORDERS], steps=list(steps)))
    world.play()
    return world


def readiness(world: World, date: str = DATE) -> pipeline_views.ReadinessView:
    return pipeline_views.readiness_of(world.engine.store, "orders", world.clock.now(), date=date)


def test_readiness_of_a_waiting_run_is_judged_by_the_config_it_was_opened_with() -> None:
    world = world_of({"at": "+1m", "sensor": "orders/export", "data": {"done": True}}, {"at": "+10m", "apply": LENIENT})
    found = readiness(world)
    assert found.run is not None
    assert found.run.status == "PENDING"
    assert (found.ready, found.mode, [one.key for one in found.results]) == (False, "ALL", ["export", "rows"])
    assert found.config_changed


def test_readiness_of_a_period_without_an_active_run_is_judged_by_the_current_config() -> None:
    world = world_of(
        {"at": "+1m", "sensor": "orders/export", "data": {"done": True}},
        {"at": "+10m", "apply": LENIENT},
        until="+2h",
    )
    found = readiness(world)
    assert found.run is not None
    assert found.run.status == "FAILED_FINAL"
    assert (found.ready, found.mode) == (True, "ANY")
    assert not found.config_changed
    assert readiness(world, "2026-03-03").mode == "ANY"


def test_an_open_run_is_not_shown_as_excluded() -> None:
    world = world_of()
    excluded = ORDERS | {"schedule": {"cron": "0 8 * * *", "exclude": {"dates": [DATE]}}}
    config = inline_scenario(start=DATE + "T08:00:00Z", until="+1m", pipelines=[excluded]).pipelines[0]
    catalog.apply_config(world.engine.control, config.config, config.document)
    assert readiness(world).excluded is None
    writing.write_sensor(world.engine.control, "orders", "export", {"done": True})
    assert readiness(world, "2026-03-02T08").excluded is not None


# ------------------------------------------------------------------------------------------------------- which pipeline


def test_an_unknown_or_impossible_name_is_refused_with_the_nearest() -> None:
    store = world_of().engine.store
    assert pipeline_views.known(store, "orders").pipeline == "orders"
    with pytest.raises(UnknownPipelineError, match="there is no pipeline 'order'"):
        pipeline_views.known(store, "order")
    with pytest.raises(UnknownPipelineError, match="there is no pipeline ''"):
        pipeline_views.known(store, "")
    with pytest.raises(UnknownPipelineError) as caught:
        pipeline_views.known(store, "x" * 500)
    assert "x" * 129 not in str(caught.value)


def test_a_pipeline_whose_config_is_invalid_is_known_but_not_valid() -> None:
    world = world_of()
    where = records.control_key(keys.pipeline_pk("orders"), keys.CONFIG)
    world.engine.store.commit([Put(where, {"document": {"pipeline": {"id": "orders"}}})])
    assert pipeline_views.known(world.engine.store, "orders").config is None
    with pytest.raises(InvalidConfigError, match="the config of orders is invalid and is not run: "):
        pipeline_views.valid(world.engine.store, "orders")
    shown = pipeline_views.pipeline(world.engine.store, "orders", world.clock.now())
    assert shown.reads == []


def test_the_job_of_a_pipeline_that_is_gone_is_reported_by_the_config_it_was_opened_with() -> None:
    world = world_of()
    store = world.engine.store
    assert pipeline_views.followed(store, "orders").id == "orders"
    catalog.delete_config(world.engine.control, "orders")
    kept = pipeline_views.followed(store, "orders")
    assert [rule.key for rule in kept.validation.rules] == ["export", "rows"]
    store.commit([Delete(records.run_record(RunKey("orders", "cron", DATE), keys.RUN))])
    with pytest.raises(UnknownPipelineError):
        pipeline_views.followed(store, "orders")
    with pytest.raises(UnknownPipelineError):
        pipeline_views.followed(store, "")


def test_a_pipeline_is_shown_with_all_that_it_reads_each_once() -> None:
    config = ORDERS | {
        "schedule": {"cron": "0 8 * * *", "trigger": {"key": "export", "check": "exists"}},
        "postRun": {"rules": [{"key": "out", "check": "exists"}, {"key": "rows", "check": "exists"}]},
    }
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until="+1m", pipelines=[config]))
    world.play()
    shown = pipeline_views.pipeline(world.engine.store, "orders", world.clock.now())
    assert shown.reads == ["export", "rows", "out"]
    assert shown.first_applied_at is not None
    assert shown.document["job"] == {"type": "external"}


# -------------------------------------------------------------------------------------------------------------- sensors


def test_sensors_are_shown_in_pages_without_those_that_have_expired() -> None:
    world = world_of()
    control, store, now = world.engine.control, world.engine.store, world.clock.now()
    for key in ("export", "other", "rows#2026-03-02"):
        writing.write_sensor(control, "orders", key, {"count": 1}, by="ann")
    item = records.sensor_item({"count": 2}, now, ttl=int(now.timestamp()))
    store.commit([Put(records.control_key(keys.pipeline_pk("orders"), keys.sensor_sk("past")), item)])
    item = records.sensor_item({"count": 2}, now, ttl=int(now.timestamp()) + 1)
    store.commit([Put(records.control_key(keys.pipeline_pk("orders"), keys.sensor_sk("soon")), item)])
    found, after = list[str](), None
    for _ in range(10):
        page = pipeline_views.sensors(store, "orders", now, after=after, limit=2)
        found += [one.key for one in page.items]
        after = page.next
        if after is None:
            break
    assert found == ["export", "other", "rows#2026-03-02", "soon"]
    assert pipeline_views.sensors(store, "orders", now, limit=5).next is None
    shown = pipeline_views.sensor(store, "orders", "rows#2026-03-02")
    assert shown is not None
    assert (shown.pipeline, shown.data, shown.period, shown.read, shown.by) == (
        "orders", {"count": 1}, "2026-03-02", True, "ann",
    )  # fmt: skip
    assert shown.received_at == now
    assert shown.ttl is not None
    other = pipeline_views.sensor(store, "orders", "other")
    assert other is not None
    assert (other.period, other.read) == ("", False)
    assert pipeline_views.sensor(store, "orders", "never") is None


# --------------------------------------------------------------------------------------------------------- which period

TWO: dict[str, Any] = {name: part for name, part in ORDERS.items() if name != "schedule"} | {
    "schedules": [{"id": "early", "cron": "0 8 * * *"}, {"id": "late", "cron": "0 20 * * *"}]
}


def two(until: str) -> World:
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until=until, pipelines=[TWO]))
    world.play()
    return world


def test_of_several_schedules_one_has_to_be_named() -> None:
    config = pipeline_views.valid(two("+1m").engine.store, "orders")
    with pytest.raises(InvalidValueError, match=r"pipeline orders has several schedules \(early, late\): name one"):
        pipeline_views.choose_schedule(config, None)
    assert pipeline_views.choose_schedule(config, "late").schedule_id == "late"
    only = pipeline_views.valid(world_of().engine.store, "orders")
    assert pipeline_views.choose_schedule(only, None).schedule_id == "cron"


def test_without_a_date_the_active_run_s_is_meant_or_the_last_tick_s_or_today_s() -> None:
    world = two("2026-03-02T08:30:00Z")
    store = world.engine.store
    config = pipeline_views.valid(store, "orders")

    def meant(schedule: str, at: datetime) -> str:
        return pipeline_views.current_date(store, config, config.schedule_of(schedule), at)

    wednesday = datetime(2026, 3, 4, 9, tzinfo=UTC)
    assert meant("early", wednesday) == "2026-03-02", "it is still active"
    assert meant("late", wednesday) == "2026-03-03", "the tick of today is still to come"
    triggered = ORDERS | {"schedule": {"trigger": {"key": "export", "check": "exists"}, "timezone": "Asia/Tokyo"}}
    world = World(inline_scenario(start="2026-03-02T16:00:00Z", until="+1m", pipelines=[triggered]))
    world.play()
    assert pipeline_views.readiness_of(world.engine.store, "orders", world.clock.now()).date == "2026-03-03"


def test_readiness_names_what_it_is_of_and_what_it_waits_for() -> None:
    config = ORDERS | {"after": [{"pipeline": "raw"}]}
    raw = ORDERS | {"pipeline": {"id": "raw"}}
    world = World(inline_scenario(start="2026-03-02T07:00:00Z", until="+1m", pipelines=[raw, config]))
    world.play()
    now = world.clock.now()
    found = pipeline_views.readiness_of(world.engine.store, "orders", now, date="20260302", schedule="cron")
    assert (found.pipeline, found.schedule, found.date, found.evaluated_at) == ("orders", "cron", DATE, now)
    assert (found.ready, found.run, found.excluded, found.config_changed) == (False, None, None, False)
    assert [one for one in found.awaited_upstreams if "raw" in one]
    assert found.summary.startswith("0 of 2 rules pass")


def test_an_open_run_is_not_shown_as_waiting_for_upstreams() -> None:
    config = ORDERS | {"after": [{"pipeline": "raw"}]}
    raw = ORDERS | {"pipeline": {"id": "raw"}}
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until="+30m", pipelines=[raw, config]))
    world.play()
    found = readiness(world)
    assert found.run is not None
    assert found.awaited_upstreams == []
