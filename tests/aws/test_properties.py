"""The nine safety properties on the in-process AWS: on the journeys, and on random scenarios in which services fail.

More examples: `SAFETY_EXAMPLES=200 HYPOTHESIS_PROFILE=dev pytest tests/aws/test_properties.py`.

An example of four busy pipelines over three days takes a minute or two here, sixty of them took hours and were never
waited for. So the many are of at most a day, and a failing example is reported as it was drawn: to make it smaller
means to play it hundreds of times (`SAFETY_SHRINK=1` does). It is printed as a scenario and a plan of faults.
"""

import os
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from interlock.simulation.scenario import inline_scenario
from tests.aws.test_journeys import SAMPLE
from tests.aws.world.faults import AwsFaults, faulty
from tests.journeys.test_journeys import FILES, named, scenario_of
from tests.safety.faults import Loss
from tests.safety.invariants import violations
from tests.safety.strategies import scenarios

ASKED: Final = os.environ.get("SAFETY_EXAMPLES")
_FEW: Final = int(ASKED or "5")
_MANY: Final = int(ASKED or "24")
_HOURS: Final = (12, 12, 24)
_DRAWN: Final = (Phase.explicit, Phase.reuse, Phase.generate)
_PHASES: Final = (*_DRAWN, Phase.shrink) if os.environ.get("SAFETY_SHRINK") else _DRAWN
_LARGE: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


@st.composite
def aws_faults(draw: st.DrawFn, most: int = 600, kills: int = 5) -> AwsFaults:
    """What goes wrong meanwhile; `most`: how many calls there are to strike.

    `kills`: how many functions die. Three, close together, may be one invocation and its two retries: a dead letter.
    """
    instants = st.integers(0, most // 5)
    losses = st.lists(st.builds(Loss, instants, st.integers(0, 3)), max_size=2)

    def numbers(most: int, size: int) -> tuple[int, ...]:
        return tuple(sorted(draw(st.sets(st.integers(0, most), max_size=size))))

    return AwsFaults(
        kills=numbers(most * 2 // 3, kills),
        throttled=numbers(most, 5),
        conflicts=numbers(most // 3, 5),
        lost=numbers(most // 3, 5),
        stale=draw(st.booleans()),
        twice=numbers(most // 5, 4),
        held=numbers(most // 5, 4),
        reordered=draw(st.booleans()),
        aborted=tuple(draw(losses)),
        unscheduled=tuple(draw(losses)),
        dropped=tuple(draw(losses)),
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


def examples(count: int) -> settings:
    """So many, each reported as it was drawn."""
    return settings(
        max_examples=count, derandomize=ASKED is None, suppress_health_check=_LARGE, deadline=None, phases=_PHASES
    )


@pytest.mark.timeout(0)
@examples(_FEW)
@given(fields=scenarios(_HOURS), plan=aws_faults())
def test_nothing_is_violated_whatever_goes_wrong(fields: dict[str, Any], plan: AwsFaults) -> None:
    _hold(fields, plan)


@pytest.mark.long
@pytest.mark.timeout(0)
@examples(_MANY)
@given(fields=scenarios(_HOURS), plan=aws_faults())
def test_nothing_is_violated_in_many_scenarios(fields: dict[str, Any], plan: AwsFaults) -> None:
    _hold(fields, plan)


@pytest.mark.long
@pytest.mark.timeout(0)
@examples(_MANY // 2)
@given(fields=scenarios(_HOURS))
def test_nothing_is_violated_when_nothing_goes_wrong(fields: dict[str, Any]) -> None:
    _hold(fields, AwsFaults())
