"""The simulation skips watchdog passes that can find nothing; a pass at every turn finds no more."""

from datetime import datetime
from pathlib import Path

import pytest

from interlock.simulation.world import World
from tests.journeys.test_journeys import FILES, LONG, named, scenario_of

Told = tuple[datetime, str, str, str, str]


class EveryTurn(World):
    """Passes at every turn, also while nothing was written and nothing is due."""

    def _plan_watch(self, now: datetime) -> None:
        super()._plan_watch(now)
        self._quiet_until = None


def reported(world: World) -> list[Told]:
    world.play()
    return [(one.timestamp, one.type.value, one.pipeline_id, one.date, one.message) for one in world.events]


@pytest.mark.parametrize("path", [path for path in FILES if named(path) not in LONG], ids=named)
def test_skipping_passes_changes_nothing(path: Path) -> None:
    assert reported(World(scenario_of(path))) == reported(EveryTurn(scenario_of(path)))
