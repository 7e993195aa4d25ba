"""What is gathered for a run, which of it counts, and what an upstream looks like to a rule."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.config.stored import read_stored
from interlock.control import catalog, readiness, records
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.run import Marker
from interlock.ports.store import Put
from tests.safety.stage import KEY, control_of, pipeline, run_of, staged, write

NOW: Final = datetime(2026, 3, 5, 12, tzinfo=UTC)
READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
ROWS: Final = {"key": "rows", "check": "gte", "field": "count", "value": 5}


def config_of(**parts: Any) -> PipelineConfig:
    found = read_stored(pipeline(**parts), {})
    assert isinstance(found, PipelineConfig), found
    return found


def test_what_an_attempt_is_decided_on_are_its_rules_its_trigger_and_its_upstreams() -> None:
    config = config_of(
        validation={"rules": [ROWS, READY]},
        after=[{"pipeline": "silver"}],
        postRun={"rules": [{"key": "out", "check": "exists"}, ROWS]},
    )
    names = [one.key for one in readiness.input_readings(config, config.all_schedules[0])]
    assert names == ["rows", "ready", "upstream:silver"]
    assert readiness.post_run_names(config) == ["out", "rows"]
    assert [one.key for one in readiness.all_readings(config, "stream")] == [*names, "out", "rows"]
    assert readiness.post_run_names(config_of()) == []
    assert readiness.post_run_values(config_of(), {}) == {}


@pytest.mark.parametrize(
    ("sensor", "read"), [("ready", True), ("ready#2026-03-05", True), ("ready-too", False), ("rows", False)]
)
def test_a_rule_reads_its_key_with_or_without_a_period(sensor: str, read: bool) -> None:
    assert readiness.reads(config_of(), sensor) is read


def test_the_sensor_of_the_period_counts_before_the_plain_one() -> None:
    world = staged(pipeline(), until="+15m")
    control, config = control_of(world), config_of()
    assert readiness.readiness(control.store, config, KEY, world.clock.now()).passed
    write(world, "ready#2026-03-05", status="not yet")
    verdict = readiness.readiness(control.store, config, KEY, world.clock.now())
    assert not verdict.passed
    assert verdict.results[0].actual == "not yet"
    tomorrow = RunKey("orders", "stream", "2026-03-06")
    assert not readiness.readiness(control.store, config, tomorrow, world.clock.now()).passed


def test_the_trigger_s_observation_is_for_this_very_run_and_not_only_good_enough() -> None:
    world = staged(pipeline(), until="+15m")
    store, config, now = control_of(world).store, config_of(), world.clock.now()
    assert readiness.trigger_payload(store, config, KEY, now) == {"status": "ready", "rows": 1}
    yesterday = RunKey("orders", "stream", "2026-03-04")
    assert readiness.readiness(store, config, yesterday, now).passed, "it came after that day began"
    assert readiness.trigger_observation(store, config, yesterday, now) is None
    without = config_of(schedule={"cron": "0 8 * * *"})
    assert readiness.trigger_payload(store, without, RunKey("orders", "cron", "2026-03-05"), now) is None


def test_a_rerun_of_a_past_period_names_the_sensors_of_today_that_it_would_read() -> None:
    world = staged(pipeline(validation={"rules": [READY, ROWS]}), until="+15m")
    write(world, "rows#2026-03-04", count=9)
    store, now = control_of(world).store, world.clock.now()
    config = config_of(validation={"rules": [READY, ROWS]})
    yesterday = RunKey("orders", "stream", "2026-03-04")
    assert readiness.undated_inputs(store, config, yesterday, None, now) == ["ready"]
    assert readiness.undated_inputs(store, config, KEY, run_of(world), now) == []


# ------------------------------------------------------------------------------------------------------ upstreams


def completed(control: Control, upstream: str, date: str, at: datetime = NOW, attempt: int = 1) -> None:
    """The marker of an upstream's run."""
    marker = Marker(date=date, upstream=upstream, upstream_schedule="cron", completed_at=at, attempt=attempt)
    sk = f"{keys.MARKER}stream#{date}#{upstream}"
    control.store.commit([Put(records.control_key(KEY.pk, sk), records.plain(marker))])


def hourly(name: str, **schedule: Any) -> dict[str, Any]:
    return pipeline(pipeline={"id": name}, schedule={"cron": "0 */6 * * *", **schedule})


def test_an_upstream_of_the_same_period_reads_like_a_sensor() -> None:
    config = config_of(
        after=[{"pipeline": "silver"}], validation={"rules": [{"key": "upstream:silver", "check": "exists"}]}
    )
    control = control_of(staged(pipeline(after=[{"pipeline": "silver"}]), until="+1m", steps=[]))
    assert readiness.gather(control.store, config, KEY, ["upstream:silver"]) == {}
    assert readiness.awaited_upstreams(control.store, config, KEY) != ()
    completed(control, "silver", "2026-03-04")
    completed(control, "other", "2026-03-05")
    assert readiness.gather(control.store, config, KEY, ["upstream:silver"]) == {}
    completed(control, "silver", "2026-03-05")
    found = readiness.gather(control.store, config, KEY, ["upstream:silver"])["upstream:silver"]
    assert (found.data["date"], found.received_at) == ("2026-03-05", NOW)
    assert readiness.gather(control.store, config, KEY, ["ready"]) == {}, "only what is asked for"
    assert readiness.awaited_upstreams(control.store, config, KEY) == ()


def test_all_hours_are_there_when_every_hour_of_the_day_is_and_the_latest_says_when() -> None:
    entry = {"pipeline": "silver", "require": "all-hours"}
    world = staged(pipeline(), until="+1m", steps=[])
    control, config = control_of(world), config_of(after=[entry])
    document = hourly("silver")
    upstream = read_stored(document, {})
    assert isinstance(upstream, PipelineConfig)
    catalog.apply_config(control, upstream, document)

    def seen() -> dict[str, Any] | None:
        found = readiness.upstream_sensor(control.store, config, KEY, config.after[0])
        return None if found is None else found.data | {"received": found.received_at}

    for index, hour in enumerate(("00", "12", "06")):
        completed(control, "silver", f"2026-03-05T{hour}", NOW + timedelta(hours=index))
    assert seen() is None
    assert "2026-03-05T18" in " ".join(readiness.awaited_upstreams(control.store, config, KEY))
    completed(control, "silver", "2026-03-05T18", NOW - timedelta(hours=1))
    found = seen()
    assert found is not None
    assert (found["date"], found["received"]) == ("2026-03-05", NOW + timedelta(hours=2))
    assert readiness.awaited_upstreams(control.store, config, KEY) == ()


def test_a_run_that_is_to_be_opened_again_reads_no_undated_sensor_of_the_next_day() -> None:
    world = staged(pipeline(), until="+15m")
    run = run_of(world)
    scope = readiness.reopening_scope(config_of(), run)
    assert scope.until == datetime(2026, 3, 6, tzinfo=UTC)
    assert replace(scope, until=None) == readiness.scope(config_of(), KEY)
