"""The simulation skips watchdog passes that can find nothing; a pass at every turn finds no more."""

from datetime import datetime
from pathlib import Path

import pytest

from interlock.model.events import Event
from interlock.simulation.world import World
from tests.journeys.test_journeys import FILES, LONG, journey, named, scenario_of

Told = tuple[datetime, str, str, str, str]


class EveryTurn(World):
    """Passes at every turn, also while nothing was written and nothing is due."""

    def _plan_watch(self, now: datetime) -> None:
        super()._plan_watch(now)
        self._quiet_until = None


def reported(events: list[Event]) -> list[Told]:
    return [(one.timestamp, one.type.value, one.pipeline_id, one.date, one.message) for one in events]


@pytest.mark.parametrize("path", [path for path in FILES if named(path) not in LONG], ids=named)
def test_skipping_passes_changes_nothing(path: Path) -> None:
    world = EveryTurn(scenario_of(path))
    world.play()
    assert reported(journey(path).events) == reported(world.events)
