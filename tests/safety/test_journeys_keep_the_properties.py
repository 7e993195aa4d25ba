"""The journeys say what must happen; here they are asked what must never happen."""

from pathlib import Path
from typing import Final

import pytest

from interlock.simulation.play import play_file
from tests.safety.invariants import violations

_JOURNEYS: Final = sorted((Path(__file__).parent.parent / "journeys").glob("*.yaml"))


@pytest.mark.parametrize("path", _JOURNEYS, ids=lambda path: path.stem)
def test_journey_keeps_the_nine_properties(path: Path) -> None:
    assert violations(play_file(path).world) == []
