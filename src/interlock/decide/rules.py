"""Readiness: the rules of a pipeline against the sensors that count for a run (SPEC 4).

Every rule is evaluated, also when the verdict is already certain: the results are what people read to learn what a run
waits for. One evaluation uses one `now`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from interlock.decide.checks import RuleResult, check_observation_of, unmet
from interlock.decide.sensors import RunScope, reading_of, select
from interlock.model.config import Mode, Rule
from interlock.model.sensor import Sensor

_FAILURES_SHOWN: Final = 3


class Verdict(msgspec.Struct, frozen=True):
    """What the rules came to together, with the result of every one, in their order."""

    passed: bool
    results: tuple[RuleResult, ...]

    @property
    def failing(self) -> tuple[RuleResult, ...]:
        """The results that do not pass."""
        return tuple(result for result in self.results if not result.passed)

    def summary(self) -> str:
        """One line: how many rules pass, and what is wrong with those that do not."""
        failing = self.failing
        count = len(self.results)
        head = f"{count - len(failing)} of {count} {'rule passes' if count == 1 else 'rules pass'}"
        if not failing:
            return head
        if self.passed:
            return f"{head}; one is enough"
        shown = [_described(result) for result in failing[:_FAILURES_SHOWN]]
        more = len(failing) - len(shown)
        return "; ".join([head, *shown, *([f"and {more} more"] if more else [])])


def _described(result: RuleResult) -> str:
    # A reason about the sensor itself names it already.
    named = result.reason.startswith((result.key, f"no sensor {result.key}"))
    return result.reason if named else f"{result.key}: {result.reason}"


def evaluate(
    rules: Sequence[Rule], mode: Mode, sensors: Mapping[str, Sensor], scope: RunScope, now: datetime
) -> Verdict:
    """Evaluate the rules for a run; `sensors` are by full stored key (see `candidate_keys`).

    ALL of no rules passes, ANY of no rules does not.
    """
    results: list[RuleResult] = []
    for rule in rules:
        selected = select(reading_of(rule), sensors, scope, now)
        if selected.sensor is None:
            results.append(unmet(rule, selected.reason))
        else:
            results.append(check_observation_of(rule, selected.sensor, now))
    combine = all if mode is Mode.ALL else any
    return Verdict(combine([result.passed for result in results]), tuple(results))
