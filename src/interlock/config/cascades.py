"""Do the pipelines of a set fit together? `after` must lead somewhere, and never back."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from interlock.config.problems import Finding, Severity
from interlock.config.schedules import declared_periods
from interlock.config.suggestions import did_you_mean
from interlock.decide.values import show
from interlock.model.config import PipelineConfig
from interlock.model.periods import Granularity


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
    if config is None:
        return False
    return all(declared_periods(schedule) is Granularity.DAY for schedule in config.all_schedules)
