"""Play a scenario and judge it: what `interlock simulate` and the tests call."""

from pathlib import Path

import msgspec

from interlock.control.context import Settings
from interlock.simulation.judge import Failure, default_key, judge
from interlock.simulation.scenario import Scenario, load_scenario
from interlock.simulation.world import Fault, Line, World


class Played(msgspec.Struct, frozen=True):
    """A scenario that was played: its timeline, and what came out differently."""

    scenario: Scenario
    lines: list[Line]
    failures: list[Failure]
    world: World

    @property
    def ok(self) -> bool:
        """Everything as expected."""
        return not self.failures


def play(scenario: Scenario, *, fault: Fault | None = None, settings: Settings | None = None) -> Played:
    """Play a scenario to its end."""
    world = World(scenario, fault=fault, settings=settings)
    lines = world.play()
    failures = judge(scenario, world.events, lambda wanted: world.run_of(default_key(scenario, wanted)))
    dead = world.dead_letters()
    if dead:
        failures.append(Failure(f"{dead} changes or timers could not be handled and became dead letters"))
    return Played(scenario, lines, failures, world)


def play_file(path: Path) -> Played:
    """Read and play a scenario file; raises ScenarioError when it cannot be read."""
    return play(load_scenario(path))
