"""All nine properties, on scenarios and faults that nobody thought of.

The same examples are drawn every time, so that a red build stays red. To look for new ones, say how many:
`SAFETY_EXAMPLES=2000 HYPOTHESIS_PROFILE=dev pytest tests/safety/test_random_scenarios.py`. A counterexample is shrunk,
printed and written as a scenario file that `python -m tests.safety.replay` plays again.
"""

import os
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, note, settings

from interlock.simulation.scenario import inline_scenario
from tests.safety.faults import FaultPlan, FaultyWorld
from tests.safety.invariants import violations
from tests.safety.replay import as_text, replay
from tests.safety.strategies import fault_plans, scenarios

_ASKED: Final = os.environ.get("SAFETY_EXAMPLES")
_EXAMPLES: Final = int(_ASKED or "25")
_MANY: Final = 65
_ALIKE: Final = _ASKED is None
_LARGE: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
# Outside the tree: a test run leaves nothing in it.
_COUNTEREXAMPLE: Final = Path(tempfile.gettempdir()) / "interlock-counterexample.yaml"


def _hold(fields: dict[str, Any], plan: FaultPlan) -> None:
    world = FaultyWorld(inline_scenario(**fields), plan).finish()
    found = violations(world)
    if found:
        text = as_text(fields, plan, found)
        _COUNTEREXAMPLE.write_text(text, encoding="utf-8")
        note(f"written to {_COUNTEREXAMPLE}:\n{text}")
    assert found == []


@pytest.mark.timeout(0)
@settings(max_examples=_EXAMPLES, derandomize=_ALIKE, suppress_health_check=_LARGE)
@given(fields=scenarios())
def test_nothing_is_violated_when_nothing_goes_wrong(fields: dict[str, Any]) -> None:
    _hold(fields, FaultPlan())


@pytest.mark.timeout(0)
@settings(max_examples=_EXAMPLES, derandomize=_ALIKE, suppress_health_check=_LARGE)
@given(fields=scenarios(), plan=fault_plans())
def test_nothing_is_violated_whatever_goes_wrong(fields: dict[str, Any], plan: FaultPlan) -> None:
    _hold(fields, plan)


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=_MANY, derandomize=True, suppress_health_check=_LARGE)
@given(fields=scenarios())
def test_nothing_is_violated_in_many_scenarios_when_nothing_goes_wrong(fields: dict[str, Any]) -> None:
    _hold(fields, FaultPlan())


@pytest.mark.long
@pytest.mark.timeout(0)
@settings(max_examples=_MANY, derandomize=True, suppress_health_check=_LARGE)
@given(fields=scenarios(), plan=fault_plans())
def test_nothing_is_violated_in_many_scenarios_whatever_goes_wrong(fields: dict[str, Any], plan: FaultPlan) -> None:
    _hold(fields, plan)


@settings(max_examples=5, derandomize=True, suppress_health_check=_LARGE)
@given(fields=scenarios(), plan=fault_plans())
def test_a_counterexample_that_was_written_down_plays_the_same_again(fields: dict[str, Any], plan: FaultPlan) -> None:
    world = FaultyWorld(inline_scenario(**fields), plan).finish()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(as_text(fields, plan, ["for the test"]), encoding="utf-8")
        lines, _ = replay(path)
    assert lines == world.lines
