"""The nine safety properties on the in-process AWS: on the journeys, and on random scenarios in which services fail.

More examples: `SAFETY_EXAMPLES=200 HYPOTHESIS_PROFILE=dev pytest tests/aws/test_properties.py`.
"""

import os
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from interlock.simulation.scenario import inline_scenario
from tests.aws.test_journeys import SAMPLE
from tests.aws.world.faults import AwsFaults, faulty
from tests.journeys.test_journeys import FILES, named, scenario_of
from tests.safety.faults import Loss
from tests.safety.invariants import violations
from tests.safety.strategies import scenarios

_ASKED: Final = os.environ.get("SAFETY_EXAMPLES")
_FEW: Final = int(_ASKED or "5")
_MANY: Final = int(_ASKED or "60")
_LARGE: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


@st.composite
def aws_faults(draw: st.DrawFn) -> AwsFaults:
    """What goes wrong meanwhile."""
    instants = st.integers(0, 120)
    losses = st.lists(st.builds(Loss, instants, st.integers(0, 3)), max_size=2)

    def numbers(most: int, size: int) -> tuple[int, ...]:
        return tuple(sorted(draw(st.sets(st.integers(0, most), max_size=size))))

    return AwsFaults(
        kills=numbers(400, 5),
        throttled=numbers(600, 5),
        conflicts=numbers(200, 5),
        lost=numbers(200, 5),
        stale=draw(st.booleans()),
        twice=numbers(120, 4),
        held=numbers(120, 4),
        reordered=draw(st.booleans()),
        aborted=tuple(draw(losses)),
        unscheduled=tuple(draw(losses)),
    )


def _hold(fields: dict[str, Any], plan: AwsFaults) -> None:
    with faulty(inline_scenario(**fields), plan) as world:
        found = violations(world.finish())
        if found:
            note(f"faults: {plan}\nscenario: {fields}")
        assert found == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "path",
    [pytest.param(one, marks=() if named(one) in SAMPLE else (pytest.mark.long,), id=named(one)) for one in FILES],
)
def test_a_journey_keeps_the_nine_properties(path: Path) -> None:
    with faulty(scenario_of(path)) as world:
        assert violations(world.finish()) == []


@pytest.mark.timeout(0)
@settings(max_examples=_FEW, derandomize=_ASKED is None, suppress_health_check=_LARGE, deadline=None)
@given(fields=scenarios(), plan=aws_faults())
def test_nothing_is_violated_whatever_goes_wrong(fields: dict[str, Any], plan: AwsFaults) -> None:
    _hold(fields, plan)


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=_MANY, derandomize=_ASKED is None, suppress_health_check=_LARGE, deadline=None)
@given(fields=scenarios(), plan=aws_faults())
def test_nothing_is_violated_in_many_scenarios(fields: dict[str, Any], plan: AwsFaults) -> None:
    _hold(fields, plan)


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=_MANY // 2, derandomize=_ASKED is None, suppress_health_check=_LARGE, deadline=None)
@given(fields=scenarios())
def test_nothing_is_violated_when_nothing_goes_wrong(fields: dict[str, Any]) -> None:
    _hold(fields, AwsFaults())
