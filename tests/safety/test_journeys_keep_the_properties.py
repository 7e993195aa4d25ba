"""The journeys say what must happen; here they are asked what must never happen."""

from pathlib import Path

import pytest

from tests.journeys.test_journeys import FILES, journey, named


@pytest.mark.parametrize("path", FILES, ids=named)
def test_journey_keeps_the_nine_properties(path: Path) -> None:
    assert journey(path).violations == []
