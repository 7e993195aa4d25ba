"""What an SLA alert says: once, with what is awaited, and the command that says more."""

from typing import Any

import pytest

from interlock.alerts.messages import one_line
from interlock.model.events import Event, EventType
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

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
