"""Two functions at one time, on the in-process AWS: what `tests/safety/test_races.py` plays on SQLite."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import pytest

from interlock.control import records, writing
from interlock.control.attempts import orchestrator, starting
from interlock.model import keys
from interlock.model.run import JobEvent, RunStatus
from interlock.simulation.scenario import inline_scenario
from tests.aws.world.play import AwsWorld, on_aws
from tests.safety.interleaving import interrupted, touches
from tests.safety.stage import KEY, pipeline

CHECK: Final = {"mode": "check-job", "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1}


@pytest.fixture
def over() -> Iterator[AwsWorld]:
    """A run whose job is over, which nobody has noticed yet."""
    ready = {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}}
    played = inline_scenario(
        name="races",
        start="2026-03-05T00:00:00Z",
        until="2026-03-05T00:15:00Z",
        pipelines=[pipeline()],
        jobs={"orders": [{"after": "10m", "result": "success"}]},
        steps=[ready],
    )
    with on_aws(played) as world:
        world.play()
        run = world.run_of(KEY)
        assert run is not None
        assert run.status is RunStatus.RUNNING
        world.clock.move_to(run.opened_at + timedelta(minutes=11))
        yield world


def outcomes(world: AwsWorld) -> list[tuple[JobEvent, str]]:
    log = records.job_log(world.engine.control.store, KEY)
    return [(one.event, one.reported_by) for one in log if one.event.outcome]


def test_an_end_that_eventbridge_reports_while_the_lifecycle_looks_is_logged_once(over: AwsWorld) -> None:
    control = over.engine.control

    def meanwhile() -> None:
        assert writing.job_ended(control, KEY, 1)

    assert orchestrator.handle(interrupted(control, meanwhile, touches(keys.JOB)), CHECK) == {"event": "success"}
    assert outcomes(over) == [(JobEvent.SUCCESS, "")]


def test_an_end_that_the_lifecycle_sees_while_eventbridge_reports_it_is_logged_once(over: AwsWorld) -> None:
    control = over.engine.control

    def meanwhile() -> None:
        assert orchestrator.handle(control, CHECK) == {"event": "success"}

    assert not writing.job_ended(interrupted(control, meanwhile, touches(keys.JOB)), KEY, 1)
    assert outcomes(over) == [(JobEvent.SUCCESS, starting.BY_LIFECYCLE)]
