"""Which runs could read a sensor write: what is worth waking, re-opening or observing for it (SPEC 3, 5).

The answer follows from `sensors.candidate_keys`, which says what a rule reads: `key#D` for a run of D, otherwise `key`.
It may name a run that the write does not help, never leave out one that it could make pass; and it is narrow enough
that a back-fill of many periods concerns one of them at a time.
"""

from typing import Final

import msgspec

from interlock.decide.sensors import key_matches, period_of_write
from interlock.model.config import PipelineConfig
from interlock.model.periods import Period
from interlock.model.sensor import Sensor


class Reach(msgspec.Struct, frozen=True):
    """The runs of one period exactly, those that overlap it, or, without a period, all of a schedule."""

    period: Period | None = None
    exact: bool = False

    def covers(self, period: Period) -> bool:
        """Is a run of this period among them?"""
        if self.period is None:
            return True
        return period == self.period if self.exact else period.overlaps(self.period)

    @property
    def dates(self) -> str:
        """How the dates of these runs begin; those that overlap a period all lie in its day."""
        if self.period is None:
            return ""
        return str(self.period) if self.exact else self.period.day.isoformat()


_ALL: Final = Reach()


def reach(config: PipelineConfig, sensor: Sensor) -> Reach | None:
    """The runs of a config whose rules could read this write; None when no rule reads it."""
    rules = [rule for rule in config.validation.rules if key_matches(rule.key, sensor.key)]
    by_name = [rule for rule in rules if rule.key == sensor.key]
    if any(rule.period == "any" for rule in by_name):
        return _ALL
    if not by_name:
        # By its suffix alone: read for that period, and for no other.
        suffixed = period_of_write(sensor.key, {}).period
        return Reach(suffixed, exact=True) if rules else None
    own = period_of_write(sensor.key, sensor.data)
    if own.problem:
        return None  # about no run at all: it fails every rule that reads it
    return Reach(own.period)


def observed(config: PipelineConfig, sensor: Sensor) -> Reach:
    """The runs that anything in a config, its trigger and post-run rules included, could connect with this write."""
    if any(rule.period == "any" and key_matches(rule.key, sensor.key) for rule in config.validation.rules):
        return _ALL
    return Reach(period_of_write(sensor.key, sensor.data).period)
