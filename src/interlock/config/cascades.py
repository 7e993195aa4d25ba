"""Do the pipelines of a set fit together? `after` must lead somewhere, and never back."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from interlock.config.problems import Finding, Severity
from interlock.config.schedules import SCHEDULES, declared_periods
from interlock.config.suggestions import did_you_mean
from interlock.decide.values import show
from interlock.model.config import Mode, PipelineConfig
from interlock.model.keys import UPSTREAM
from interlock.model.periods import Granularity

_WORDS: Final = {Granularity.DAY: "daily", Granularity.HOUR: "hourly", Granularity.MINUTE: "more than one an hour"}


class Cycle(msgspec.Struct, frozen=True):
    """Pipelines that wait for one another: `members[0]` closes it, with its `after[index]`."""

    members: tuple[str, ...]
    index: int

    def finding(self) -> Finding:
        """As an error of the pipeline that closes it."""
        closed = " -> ".join((*self.members, self.members[0]))
        return Finding(("after", self.index), f"waits for itself ({closed}): remove one of these")


def check_upstreams(
    config: PipelineConfig, others: Mapping[str, PipelineConfig], known: Collection[str], *, unknown: Severity
) -> Iterator[Finding]:
    """The upstreams of one pipeline. `known` also has those that could not be read."""
    for index, entry in enumerate(config.after):
        if entry.pipeline not in known:
            near = did_you_mean(entry.pipeline, set(known) - {config.id})
            message = f"there is no pipeline {show(entry.pipeline)} among these files{near}"
            yield Finding(("after", index, "pipeline"), message, unknown)
        elif entry.require == "all-hours" and _daily(others.get(entry.pipeline)):
            message = f"all-hours waits for hourly runs, and those of {entry.pipeline} are daily: write same-period"
            yield Finding(("after", index, "require"), message)
    yield from _unlike_periods(config, others)


def _unlike_periods(config: PipelineConfig, others: Mapping[str, PipelineConfig]) -> Iterator[Finding]:
    """`same-period` of an upstream whose periods are never those of this pipeline: its marker never fits a run."""
    own = _periods(config) if config.schedule is not None else None
    for index, entry in enumerate(config.after):
        theirs = Granularity.DAY if entry.require == "all-hours" else _periods(others.get(entry.pipeline))
        if theirs is None:
            continue
        if own is None:
            own = theirs  # the first upstream whose periods are known: the others must have the same
        elif theirs is not own and entry.require == "same-period":
            yield _never_comes(config, index, theirs, own)


def _never_comes(config: PipelineConfig, index: int, theirs: Granularity, own: Granularity) -> Finding:
    entry = config.after[index]
    daily_of_hourly = (theirs, own) == (Granularity.HOUR, Granularity.DAY)
    instead = "write require: all-hours" if daily_of_hourly else "their periods are never the same"
    needed = any(rule.key == UPSTREAM + entry.pipeline for rule in config.validation.rules) and (
        config.validation.trigger is Mode.ALL or len(config.validation.rules) == 1
    )
    # Where something else opens the runs and no rule asks for the upstream, `after` merely does nothing.
    opened = any(one.cron or one.trigger or one.include for one in config.all_schedules)
    effect = "a rule waits for it and can never pass" if needed else "it can never open a run"
    message = f"the runs of {entry.pipeline} are {_WORDS[theirs]}, these are {_WORDS[own]}: {effect}; {instead}"
    severity = Severity.ERROR if needed or not opened else Severity.WARNING
    return Finding(("after", index, "require"), message, severity, needs=SCHEDULES)


def find_cycles(configs: Mapping[str, PipelineConfig]) -> Iterator[Cycle]:
    """Each cycle once. Depth first on a stack of our own: a chain may be longer than the interpreter's."""
    finished: set[str] = set()
    for start in configs:
        if start not in finished:
            yield from _cycles_from(start, configs, finished)


def _cycles_from(start: str, configs: Mapping[str, PipelineConfig], finished: set[str]) -> Iterator[Cycle]:
    trail = {start: 0}  # the pipelines on the way here, in order, each with the entry of `after` to follow next
    while trail:
        here, index = next(reversed(trail.items()))
        after = configs[here].after
        if index == len(after):
            finished.add(here)
            del trail[here]
            continue
        trail[here] = index + 1
        upstream = after[index].pipeline
        if upstream in trail:
            way = list(trail)
            yield Cycle((here, *way[way.index(upstream) : -1]), index)
        elif upstream in configs and upstream not in finished:
            trail[upstream] = 0


def _daily(config: PipelineConfig | None) -> bool:
    return _periods(config) is Granularity.DAY


def _periods(config: PipelineConfig | None) -> Granularity | None:
    """How long the periods of all its schedules are; None where they differ, or nothing says so."""
    found = {declared_periods(schedule) for schedule in config.all_schedules} if config is not None else {None}
    return found.pop() if len(found) == 1 else None
