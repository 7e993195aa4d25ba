"""The embedded controller on virtual time, with a real target: on loopback (`sites`) or on moto's AWS (`aws/targets`).

A `Target` is a system with something to run in it: what the config says, how its jobs end, how many there are. A
`TargetWorld` plays one run in it, and does at each instant what the test says happens there.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.control import catalog, records
from interlock.control.attempts import starting
from interlock.control.context import Control
from interlock.model.keys import RunKey
from interlock.model.run import JobRecord, Run
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobRequest, JobRunner
from interlock.simulation.jobs import ScriptedTargets
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

DAY: Final = "2026-03-02"
KEY: Final = RunKey("gold", "stream", DAY)
START: Final = f"{DAY}T08:00:00Z"
PASSING: Final = "Rate exceeded"
BROKEN: Final = "no such column"


class Target:
    """One system with something to run in it."""

    type: str
    config: dict[str, Any]

    def runners(self, clock: Clock) -> Mapping[str, JobRunner]:
        """What calls it, by type of job."""
        raise NotImplementedError

    def started(self) -> int:
        """How many jobs there are."""
        raise NotImplementedError

    def end(self, now: datetime, error: str = "") -> None:
        """The latest job ends."""
        raise NotImplementedError


def document(target: Target, **job: Any) -> dict[str, Any]:
    """A pipeline whose job is in the target."""
    return {
        "pipeline": {"id": "gold"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": target.type, "config": target.config, "maxCodeRetries": 0, **job},
    }


Act = Callable[["TargetWorld"], None]


class _Targets(ScriptedTargets):
    """The target's runners, and scripted ones of other types; what happens in the target happens at its instant."""

    def __init__(self, target: Target, clock: Clock, acts: list[tuple[datetime, Callable[[], None]]]) -> None:
        super().__init__({}, clock)
        self._target = target
        self._acts = sorted(acts, key=lambda act: act[0])

    def runners(self) -> dict[str, JobRunner]:
        return {**super().runners(), **self._target.runners(self._clock)}

    def next_end(self) -> datetime | None:
        return self._acts[0][0] if self._acts else None

    def ended(self, now: datetime) -> JobRequest | None:
        while self._acts and self._acts[0][0] <= now:
            self._acts.pop(0)[1]()
        return None


class TargetWorld(World):
    """One run of a pipeline whose job is in the target; its sensor is written a minute after the start."""

    def __init__(
        self,
        target: Target,
        acts: Mapping[str, Act],
        *,
        config: dict[str, Any] | None = None,
        sensor: str = "ready",
        key: RunKey = KEY,
        **job: Any,
    ) -> None:
        crashes = [{"at": at, "crash": True} for at, act in acts.items() if act is crash]
        written = {"at": "+1m", "sensor": f"{key.pipeline}/{sensor}#{DAY}", "data": {"status": "ready"}}
        pipelines = [config or document(target, **job)]
        super().__init__(inline_scenario(start=START, until="+3h", pipelines=pipelines, steps=[written, *crashes]))
        self.target = target
        self.key = key
        there = [(self._instant_of(at), self._bound(act)) for at, act in acts.items() if act is not crash]
        self.targets = _Targets(target, self.clock, there)

    def _instant_of(self, at: str) -> datetime:
        return self.scenario.start + timedelta(minutes=float(at.strip("+m")))

    def _bound(self, act: Act) -> Callable[[], None]:
        return lambda: act(self)

    @property
    def control(self) -> Control:
        return self.engine.control

    @property
    def run(self) -> Run:
        found = self.run_of(self.key)
        assert found is not None
        return found

    @property
    def job_log(self) -> list[JobRecord]:
        return records.job_log(self.engine.store, self.key)

    @property
    def runner(self) -> JobRunner:
        return self.control.jobs[self.target.type]

    def request(self) -> JobRequest:
        """The job of the latest attempt, as the controller would call its target."""
        run = self.run
        config = catalog.opened_with(self.engine.store, run.pipeline, run.config_version)
        return starting.request_of(self.control, config, run)

    def counts(self) -> dict[str, int]:
        types = [event.type.value for event in self.events]
        return {name: types.count(name) for name in dict.fromkeys(types)}

    def everything_kept(self) -> str:
        """All that the store has of the run, as text."""
        return msgspec.json.encode([self.events, self.job_log, self.run]).decode()


def crash(world: TargetWorld) -> None:
    """An act: the controller dies and starts again."""
    raise AssertionError("played as a step of the scenario")


def succeeds(world: TargetWorld) -> None:
    """An act: the latest job succeeds."""
    world.target.end(world.clock.now())


def breaks(world: TargetWorld) -> None:
    """An act: the latest job fails, by its own fault."""
    world.target.end(world.clock.now(), BROKEN)


def stumbles(world: TargetWorld) -> None:
    """An act: the latest job fails, by the world's fault."""
    world.target.end(world.clock.now(), PASSING)
