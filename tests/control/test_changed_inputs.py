"""What changed under a run: which rerun is asked for, once, by whoever notices."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from interlock.control import catalog, changed_inputs, records
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Marker, RerunRequest, Source
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, pipeline, run_of, staged, write

AFTER: Final = [{"pipeline": "silver"}, {"pipeline": "bronze"}]
READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}


def running(**parts: Any) -> FaultyWorld:
    """`orders`, whose job has been running since ten past midnight."""
    return staged(pipeline(**parts), until="+15m")


def config_of(world: FaultyWorld) -> PipelineConfig:
    found = catalog.current(control_of(world).store, "orders")
    assert found is not None
    return found


def completed(world: FaultyWorld, upstream: str, at: datetime, *, again: bool = True, **more: Any) -> None:
    date = more.pop("date", KEY.date)
    marker = Marker(date=date, upstream=upstream, completed_at=at, attempt=more.pop("attempt", 2), again=again, **more)
    sk = f"{keys.MARKER}stream#{date}#{upstream}"
    control_of(world).store.commit([Put(records.control_key(KEY.pk, sk), records.plain(marker))])


def asked(world: FaultyWorld) -> RerunRequest | None:
    now = world.clock.now()
    return changed_inputs.upstream_again(control_of(world), config_of(world), run_of(world), now)


def test_nothing_that_changed_asks_for_nothing() -> None:
    world = running()
    found = changed_inputs.changed_meanwhile(control_of(world), config_of(world), run_of(world), world.clock.now())
    assert found == ([], [], {"status": "ready", "rows": 1})


def test_a_payload_that_changed_while_the_job_ran_is_late_data_and_is_remembered() -> None:
    world = running()
    write(world, "ready", status="ready", rows=2)
    now = world.clock.now()
    events, writes, payload = changed_inputs.changed_meanwhile(control_of(world), config_of(world), run_of(world), now)
    assert [(one.type, one.detail["changed"]) for one in events] == [(EventType.LATE_DATA_ARRIVAL, ["rows"])]
    assert payload == {"status": "ready", "rows": 2}
    (put,) = writes
    assert isinstance(put, Put)
    assert (put.item["source"], put.item["reason"]) == ("late-data", "rows changed while the job ran")
    assert put.item["requestedBy"] == "interlock"


def test_a_time_or_an_id_that_changed_is_no_late_data() -> None:
    world = running()
    write(world, "ready", status="ready", rows=1, updatedAt="2026-03-05T00:14:00Z", batchId="b-2")
    events, writes, _ = changed_inputs.changed_meanwhile(
        control_of(world), config_of(world), run_of(world), world.clock.now()
    )
    assert (events, writes) == ([], [])


def test_late_data_goes_before_an_upstream_and_one_request_is_enough() -> None:
    world = running(after=AFTER)
    completed(world, "silver", world.clock.now())
    write(world, "ready", status="ready", rows=2)
    _, writes, _ = changed_inputs.changed_meanwhile(
        control_of(world), config_of(world), run_of(world), world.clock.now()
    )
    assert [one.item["source"] for one in writes if isinstance(one, Put)] == ["late-data"]


def test_an_upstream_that_completed_again_is_asked_for_under_the_name_of_its_newest_completion() -> None:
    world = running(after=AFTER)
    assert asked(world) is None
    completed(world, "silver", world.clock.now() - timedelta(minutes=2), attempt=2)
    completed(world, "bronze", world.clock.now() - timedelta(minutes=1), attempt=3, upstream_schedule="nightly")
    request = asked(world)
    assert request is not None
    assert (request.source, request.id) == (Source.UPSTREAM, "upstream-bronze-2026-03-05-3-nightly")
    assert request.reason == "bronze completed 2026-03-05 again (attempt 3)"


def test_a_first_completion_or_one_of_another_period_or_pipeline_is_not_again() -> None:
    world = running(after=AFTER)
    now = world.clock.now()
    completed(world, "silver", now, again=False)
    completed(world, "bronze", now, date="2026-03-05T07")
    completed(world, "gold", now)
    assert asked(world) is None


def test_what_the_run_has_read_is_not_asked_for_again() -> None:
    world = running(after=AFTER)
    passed = run_of(world).passed_at
    assert passed is not None
    completed(world, "silver", passed)
    assert asked(world) is None
    completed(world, "silver", passed + timedelta(seconds=1))
    assert asked(world) is not None


def test_a_marker_made_before_the_run_passed_and_stored_after_it_is_noticed_by_what_it_says() -> None:
    rules = {"rules": [READY, {"key": "upstream:silver", "check": "exists"}]}
    world = running(after=AFTER[:1], validation=rules)
    completed(world, "silver", datetime(2026, 3, 5, 0, 5, tzinfo=UTC), again=False, attempt=1)
    world = staged(pipeline(after=AFTER[:1], validation=rules), until="+1m", steps=[])
    completed(world, "silver", world.clock.now(), again=False, attempt=1)
    write(world, "ready", status="ready")
    world._settle(world.clock.now())
    passed = run_of(world).passed_at
    assert passed is not None
    assert "upstream:silver" in run_of(world).inputs
    completed(world, "silver", passed - timedelta(seconds=30), attempt=2)
    assert asked(world) is not None
    completed(world, "silver", passed - timedelta(seconds=90), attempt=2)
    assert asked(world) is None, "too old to have been stored only now"


def test_a_request_that_waits_for_its_decision_is_enough() -> None:
    world = running(after=AFTER)
    completed(world, "silver", world.clock.now())
    request = asked(world)
    assert request is not None
    control = control_of(world)
    control.store.commit(changed_inputs.request_writes(control, request))
    assert asked(world) is None
    (record,) = control.store.query(Table.CONTROL, KEY.pk, keys.RERUN_REQUEST)
    control.store.commit([Put(record.key, record.item | {"decision": "accepted"})])
    assert asked(world) is not None


def test_the_same_request_is_written_once() -> None:
    world = running()
    control = control_of(world)
    request = changed_inputs.rerun_request(KEY, Source.DATA_DRIFT, "why", world.clock.now(), "1")
    assert (request.id, request.key) == ("data-drift-1", RunKey("orders", "stream", "2026-03-05"))
    writes = changed_inputs.request_writes(control, request)
    assert len(writes) == 1
    control.store.commit(writes)
    assert changed_inputs.request_writes(control, request) == []
    assert changed_inputs.request_writes(control, None) == []
    assert control.store.commit([changed_inputs.put_request(request)]) is not None, "not over the one there is"
