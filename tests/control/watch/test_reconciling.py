"""What was lost on its way is taken up: rerun requests that nobody decided, attempts whose execution has gone.

Triggers and cascades whose changes were lost are in `test_watchdog`, executions that keep dying in `test_rare_events`.
"""

from datetime import timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.attempts import parts
from interlock.control.watch import reconciling, watch_plan, watchdog
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import RerunRequest, RunStatus, Source
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, pipeline, run_of, staged

NOON: Final = "2026-03-05T12:00:00Z"


def idle(**parts: Any) -> FaultyWorld:
    """`orders` at noon; nothing has been written."""
    return staged(pipeline(**parts), until=NOON, steps=[])


def of(date: str, schedule: str = "stream") -> RunKey:
    return RunKey("orders", schedule, date)


def ask(world: FaultyWorld, minutes: int) -> RerunRequest:
    """A rerun was requested so long ago; the change of the request is never looked at."""
    at = world.clock.now() - timedelta(minutes=minutes)
    asked = RerunRequest(pipeline="orders", schedule="stream", date="2026-03-05", id="r1", source=Source.MANUAL, at=at)
    where = records.control_key(KEY.pk, keys.rerun_request_sk(of("2026-03-05"), asked.id))
    control_of(world).store.commit([Put(where, records.plain(asked))])
    return asked


@pytest.mark.parametrize(("minutes", "accepted"), [(9, 0), (10, 1)])
def test_a_rerun_request_that_nobody_decided_is_decided_after_ten_minutes(minutes: int, accepted: int) -> None:
    world = idle()
    ask(world, minutes)
    assert watchdog.run(control_of(world)) == []
    assert (records.get_run(control_of(world).store, of("2026-03-05")) is not None) == bool(accepted)
    assert watchdog.run(control_of(world)) == []
    events = control_of(world).store.query(Table.EVENTS, KEY.pk)
    assert [one.item["type"] for one in events].count(EventType.RERUN_ACCEPTED) == accepted


def test_the_plan_of_the_watchdog_knows_of_undecided_requests() -> None:
    world = staged(pipeline(), until=NOON, steps=[])
    asked = ask(world, 9)
    assert watch_plan.next_look_at(control_of(world), "orders") == asked.at + timedelta(minutes=10)


def test_a_request_of_a_dry_run_is_refused_by_the_watchdog_too() -> None:
    world = idle(dryRun=True)
    ask(world, 10)
    assert watchdog.run(control_of(world)) == []
    assert count_events(world, EventType.RERUN_REJECTED) + count_events(world, EventType.DRY_RUN_RERUN_REJECTED) == 1


# ----------------------------------------------------------------------------------------------- what drives a run


def waiting() -> FaultyWorld:
    return staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="2026-03-05T00:15:00Z")


def test_an_execution_that_is_open_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = waiting()
    before = run_of(world)
    for answer in (True, False):
        monkeypatch.setattr(SqliteExecutions, "is_open", lambda executions, name, answer=answer: answer)
        reconciling.revive_all(control_of(world), "orders")
    assert run_of(world) == before
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 0, "`is_open` was seconds old"


def test_an_execution_that_was_never_started_is_started() -> None:
    world = waiting()
    name = parts.execution_of(run_of(world))
    world.database.write(
        lambda connection: connection.execute("DELETE FROM executions WHERE name = ?", (name,)).rowcount
    )
    reconciling.revive_all(control_of(world), "orders")
    assert control_of(world).executions.is_open(name)
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1


def test_an_attempt_within_its_lease_is_not_stale() -> None:
    world = waiting()
    reconciling.end_stale(control_of(world), "orders")
    assert run_of(world).status is RunStatus.PENDING
    lease = run_of(world).lease_until
    assert lease is not None
    world.clock.move_to(lease)
    reconciling.end_stale(control_of(world), "orders")
    assert run_of(world).status is RunStatus.FAILED_FINAL
