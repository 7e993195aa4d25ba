"""Rights that no journey uses: each is brought about on purpose, in a world of its own.

What is lost is taken away by hand, as somebody with a console could: the record of a timer, an entry of Scheduler, a
tick's place. Then the function whose business it is, and nobody else, finds it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from unittest import mock

from interlock.control import catalog
from interlock.control.attempts import parts
from interlock.control.watch import watch_slices
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.ports.channel import Alert, DeliveryError
from interlock.ports.store import Delete, Key
from interlock.simulation.scenario import Scenario, inline_scenario
from tests.aws.world.cloud import Cloud
from tests.aws.world.functions import Modules
from tests.aws.world.plan import PlannedFunction
from tests.aws.world.play import AwsWorld, on_aws
from tests.aws.world.terraform import shipped

Json = dict[str, Any]
_WATCHDOG: Final = "test-interlock-watchdog"


def _pipeline(name: str, cron: str, **more: Any) -> Json:
    return {
        "pipeline": {"id": name},
        "schedule": {"cron": cron, "evaluation": {"window": "2h", "interval": "5m"}},
        "validation": {"rules": [{"key": "rows", "check": "exists"}]},
        "job": {"type": "external"},
        **more,
    }


def _scenario(*pipelines: Json, until: str = "00:30") -> Scenario:
    return inline_scenario(
        name="rare",
        start="2026-03-05T00:00:00Z",
        until=f"2026-03-05T{until}:00Z",
        pipelines=list(pipelines),
        steps=[],
        jobs={},
    )


def the_next_in_the_line_for_a_pool() -> Cloud:
    """Who is woken for a slot and is not ready any more wakes the next."""

    def pooled(name: str) -> Json:
        one = _pipeline(name, "0 12 * * *", job={"type": "glue", "config": {"jobName": "x"}, "pool": "p"})
        evaluation = {"window": "3h", "interval": "1h"}
        return {**one, "schedule": {"trigger": {"key": "rows", "check": "exists"}, "evaluation": evaluation}}

    day = "2026-03-05"
    expires = int(datetime(2026, 3, 5, 0, 20, tzinfo=UTC).timestamp())
    steps: list[Json] = [
        {"at": f"+{minute}m", "sensor": f"{name}/rows", "data": {"date": day}}
        for minute, name in enumerate(("a", "b", "c"), 1)
    ]
    steps[1]["ttl"] = expires
    scenario = inline_scenario(
        name="rare",
        start=f"{day}T00:00:00Z",
        until=f"{day}T01:00:00Z",
        pipelines=[pooled(name) for name in ("a", "b", "c")],
        pools={"p": 1},
        steps=steps,
        jobs={name: [{"result": "success", "after": "30m"}] for name in ("a", "b", "c")},
    )
    with on_aws(scenario) as world:
        world.play()
        started = [event.pipeline_id for event in world.events if event.type is EventType.JOB_TRIGGERED]
        assert started == ["a", "c"]
        return world.cloud


def a_hand_over_that_is_repeated() -> Cloud:
    """An execution handed over, its function died before it could say so, and by then the next part has ended, too."""
    with on_aws(_scenario(_pipeline("a", "10 0 * * *"))) as world:
        world.play()
        key = RunKey("a", "cron", "2026-03-05")
        run = world.run_of(key)
        assert run is not None
        first = parts.execution_of(run)
        following = parts.follow(world.engine.control, key, 1, first)
        assert following is not None
        world.cloud.machine.lose(parts.execution_of(following))
        payload = {"mode": "hand-over", "pipeline": "a", "schedule": "cron", "date": key.date, "attempt": 1}
        _invoked(world, "test-interlock-orchestrator", {**payload, "execution": first})
        return world.cloud


def timers_of_an_sla_that_were_lost() -> Cloud:
    """The lifecycle confirms them, and arms again what is not there: soon, far ahead, and in place of an old entry."""
    sla = {"deadline": "03:00", "expectedDuration": "145m"}
    with on_aws(_scenario(_pipeline("a", "10 0 * * *", sla=sla))) as world:
        world.play()
        payload = {"mode": "schedule", "pipeline": "a", "schedule": "cron", "date": "2026-03-05"}
        for keep_entries in (True, False):
            _forget_timers(world, keep_entries=keep_entries)
            _invoked(world, "test-interlock-sla-monitor", payload)
        return world.cloud


def ticks_that_were_lost() -> Cloud:
    """The watchdog arms them again: far ahead, in place of an old entry, soon, and nearer than they were."""
    with on_aws(_scenario(_pipeline("far", "0 9 * * *"), _pipeline("soon", "40 0 * * *"))) as world:
        world.play()
        for keep_entries in (True, False):
            _forget_timers(world, keep_entries=keep_entries)
            for name in ("far", "soon"):
                world.engine.store.commit([Delete(Key(Table.CONTROL, f"PIPELINE#{name}", "TICK#cron"))])
            _invoked(world, _WATCHDOG, {"source": "interlock.schedule"})
        nearer = _scenario(_pipeline("far", "37 0 * * *")).pipelines[0]
        catalog.apply_config(world.engine.control, nearer.config, nearer.document)  # the stream is behind
        _invoked(world, _WATCHDOG, {"source": "interlock.schedule"})
        return world.cloud


def a_pass_in_slices() -> Cloud:
    """As with more than 500 pipelines."""
    scenario = _scenario(_pipeline("a", "0 9 * * *"), _pipeline("b", "0 9 * * *"))
    with mock.patch.object(watch_slices, "PIPELINES_PER_SLICE", 1), on_aws(scenario) as world:
        world.play()
        return world.cloud


class _Thread:
    """A channel as Slack is: it has threads; and it is down at first."""

    name = "webhook"

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.sent = 0

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> str | None:
        """Refused for an hour, then taken."""
        del alert, maybe_sent
        if self._now() < datetime(2026, 3, 5, 1, tzinfo=UTC):
            raise DeliveryError("the receiver is down")
        self.sent += 1
        return thread or "1772445000.000100"


class AlertedWorld(AwsWorld):
    """A world whose alerts go to that channel."""

    def __init__(self, scenario: Scenario) -> None:
        alerts = '[{"channel": "webhook", "url": "https://hooks.example.com/", "severity": "info"}]'
        super().__init__(scenario, shipped(variables={"ALERTS": alerts}))
        self.channel = _Thread(self.clock.now)

    def _prepare(self, modules: Modules, function: PlannedFunction) -> None:
        super()._prepare(modules, function)
        if function.name.endswith("-alert-dispatcher"):
            wiring: Any = modules["interlock.aws.controller"]
            made = wiring.Controller.dispatcher.func

            def dispatcher(controller: Any) -> Any:
                found = made(controller)
                found._channels = lambda: _ByAnyName(self.channel)
                return found

            wiring.Controller.dispatcher = property(dispatcher)


class _ByAnyName(Mapping[str, Any]):
    """The one channel, whatever name it is asked for by."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def __getitem__(self, name: str) -> Any:
        return self._channel

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


def alerts_with_a_thread_that_had_to_wait() -> Cloud:
    """Two alerts of a run: the first is refused for a while, the second goes into its thread."""
    world = AlertedWorld(_scenario(_pipeline("a", "10 0 * * *"), until="06:00"))
    with world.cloud.running():
        world.play()
        assert world.channel.sent > 1
    return world.cloud


ALL: Final[tuple[Callable[[], Cloud], ...]] = (
    the_next_in_the_line_for_a_pool,
    a_hand_over_that_is_repeated,
    timers_of_an_sla_that_were_lost,
    ticks_that_were_lost,
    a_pass_in_slices,
    alerts_with_a_thread_that_had_to_wait,
)


def _invoked(world: AwsWorld, function: str, payload: Json) -> None:
    answer = world.cloud.functions.invoke(function, json.dumps(payload))
    assert answer.error is None, (function, answer.error, answer.cause)


def _forget_timers(world: AwsWorld, *, keep_entries: bool) -> None:
    for item in list(world.cloud.tables.items(Table.CONTROL)):
        if item["PK"]["S"].startswith("TIMER#"):
            world.engine.store.commit([Delete(Key(Table.CONTROL, item["PK"]["S"], item["SK"]["S"]))])
    if not keep_entries:
        for entry in world.cloud.schedules.armed():
            world.cloud.schedules.remove(entry)
