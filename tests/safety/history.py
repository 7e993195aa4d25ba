"""What was in force when: the configs and calendars of a scenario over its time, as its steps changed them.

Steps take effect at their instant, and what happens at the same instant may come before or after them. So the answer
for an instant is every value that was in force during it, and a property is violated only if none of them allows it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from typing import Generic, TypeVar

import msgspec

from interlock.decide.sensors import key_matches
from interlock.model.config import Calendar, PipelineConfig
from interlock.simulation.scenario import Scenario, Step, TimedStep

T = TypeVar("T")


class Era(msgspec.Struct, Generic[T], frozen=True):
    """A time with one value; the last one has no end."""

    value: T
    since: datetime
    until: datetime | None = None

    def holds(self, at: datetime) -> bool:
        """Was it in force during this instant?"""
        return self.since <= at and (self.until is None or at <= self.until)


class Eras(Generic[T]):
    """One thing over time."""

    def __init__(self, value: T, since: datetime) -> None:
        self.all: list[Era[T]] = [Era(value, since)]

    def change(self, value: T, at: datetime) -> None:
        """From now on it is this; the same again is no change."""
        last = self.all[-1]
        if last.value != value:
            self.all[-1] = Era(last.value, last.since, at)
            self.all.append(Era(value, at))

    def at(self, instant: datetime) -> list[T]:
        """What was in force during an instant."""
        return [era.value for era in self.all if era.holds(instant)]

    @property
    def last(self) -> Era[T]:
        """How it stands in the end."""
        return self.all[-1]


class History:
    """The configs (None while there is none) and the calendars of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._steps = [step for step in scenario.steps if step.at <= scenario.until]
        self._start = scenario.start
        applied = [one for step in scenario.steps for one in step.applied]
        names = dict.fromkeys(one.config.id for one in (*scenario.pipelines, *applied))
        first = {one.config.id: one.config for one in scenario.pipelines}
        self.configs: dict[str, Eras[PipelineConfig | None]] = {
            name: Eras(first.get(name), scenario.start) for name in names
        }
        self.calendars: dict[str, Eras[Calendar]] = {one.name: Eras(one, scenario.start) for one in scenario.calendars}
        for timed in self._steps:
            self._follow(timed)

    def _follow(self, timed: TimedStep) -> None:
        for pipeline in timed.applied:
            self.configs[pipeline.config.id].change(pipeline.config, timed.at)
        if timed.step.remove is not None:
            self.configs[timed.step.remove].change(None, timed.at)
        calendar = timed.step.calendar
        if calendar is not None:
            self.calendars.setdefault(calendar.name, Eras(calendar, timed.at)).change(calendar, timed.at)

    def calendars_at(self, instant: datetime) -> Iterator[Mapping[str, Calendar]]:
        """Every set of calendars that was in force during an instant."""
        known = {name: found for name, eras in self.calendars.items() if (found := eras.at(instant))}
        for chosen in product(*known.values()):
            yield dict(zip(known, chosen, strict=True))

    def sensor_writes(self, pipeline: str) -> Iterator[tuple[datetime, str, Step]]:
        """What the scenario writes to the sensors of a pipeline: when, which, and the step."""
        for timed in self._steps:
            name, _, key = (timed.step.sensor or "").partition("/")
            if name == pipeline:
                yield timed.at, key, timed.step

    def disturbed_at(self, pipeline: str, names: Iterable[str], now: datetime) -> datetime:
        """When something last changed that no sensor write told of; the start if nothing did.

        A config or a calendar that was applied, whoever's: an upstream's says which hours are awaited. Or a sensor of
        these names that expired.
        """
        found = [self._start]
        found += [era.since for eras in self.configs.values() for era in eras.all]
        found += [era.since for eras in self.calendars.values() for era in eras.all]
        wanted = list(names)
        for at, key, step in self.sensor_writes(pipeline):
            if step.ttl is not None and any(key_matches(name, key) for name in wanted):
                found += [max(at, datetime.fromtimestamp(step.ttl, UTC))]
        return max(at for at in found if at <= now)
