"""One figure, with what it is to be compared with: the floor that was measured beside it, and the goal."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`value` in `unit`, at a `size`. `floor`: the same by the least that could do it, in the same run.

    `goal` is a bound of the value, `ratio_goal` one of value / floor; `more_is_better` says which way.
    """

    what: str
    value: float
    unit: str
    size: str = ""
    floor: float | None = None
    goal: float | None = None
    ratio_goal: float | None = None
    more_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times the floor."""
        return None if not self.floor else self.value / self.floor

    @property
    def met(self) -> bool | None:
        """Is the goal met? None without any."""
        found = [(self.value, self.goal), (self.ratio, self.ratio_goal)]
        judged = [(one, goal) for one, goal in found if one is not None and goal is not None]
        return all(one >= goal if self.more_is_better else one <= goal for one, goal in judged) if judged else None


def progress(text: str) -> None:
    """Say on the way what is being measured."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def of_results(results: Mapping[str, Mapping[str, Any]]) -> list[Figure]:
    """The figures of every measurement, in order; those that failed have none."""
    found: list[Figure] = []
    for name, result in results.items():
        if "figures" in result:
            found += msgspec.convert(result["figures"], list[Figure])
        elif "error" not in result and name in _READERS:
            found += _READERS[name](result)
    return found


def table(figures: Iterable[Figure]) -> str:
    """As text, a line each."""
    rows = [("what", "size", "value", "floor", "x floor", "goal", "")]
    for one in figures:
        goal = one.goal if one.goal is not None else one.ratio_goal
        sign = "" if goal is None else (">= " if one.more_is_better else "<= ")
        times = "" if one.goal is not None or goal is None else " x"
        rows.append(
            (
                one.what,
                one.size,
                f"{number(one.value)} {one.unit}",
                "" if one.floor is None else number(one.floor),
                "" if one.ratio is None else f"{one.ratio:.2f}",
                "" if goal is None else f"{sign}{number(goal)}{times}",
                {None: "", True: "met", False: "missed"}[one.met],
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """A figure as people read it: three digits, or all of a large one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# --------------------------------------------------------------------------- measurements that report in their own form


def _rules(found: Mapping[str, Any]) -> list[Figure]:
    times = {
        name: one for name, one in found.get("microsecondsPerEvaluation", {}).items() if isinstance(one, int | float)
    }
    return [Figure(what="evaluate three rules", size=name, value=one, unit="us") for name, one in times.items()]


def _config_load(found: Mapping[str, Any]) -> list[Figure]:
    return [Figure(what="load configs", size=f"{found['files']} files", value=found["seconds"], unit="s")]


def _store(found: Mapping[str, Any]) -> list[Figure]:
    found, figures = found.get("disk", {}), list[Figure]()
    for name in ("get", "query50"):
        if name in found:
            figures.append(Figure(what=f"store {name}", value=found[name]["perSecond"], unit="/s", more_is_better=True))
    for name, one in found.get("commitOf3Writes", {}).items():
        figures.append(
            Figure(what="commit of 3 writes", size=name, value=one["perSecond"], unit="/s", more_is_better=True)
        )
    return figures


def _runs(found: Mapping[str, Any]) -> list[Figure]:
    return [
        Figure(
            what="complete runs",
            value=found["runsPerSecond"],
            unit="/s",
            goal=found["goalRunsPerSecond"],
            more_is_better=True,
        ),
        Figure(what="processor time of a run", value=found["cpuMillisecondsPerRun"], unit="ms"),
    ]


def _latency(found: Mapping[str, Any]) -> list[Figure]:
    what = "readiness to job start"
    return [
        Figure(what=what, size=f"p{part}", value=found[f"p{part}Milliseconds"], unit="ms", goal=goal)
        for part, goal in ((50, found["goalP50Milliseconds"]), (99, found["goalP99Milliseconds"]))
    ]


def _waiting(found: Mapping[str, Any]) -> list[Figure]:
    size = f"{found['executions']} waits"
    return [
        Figure(what="arm waiting runs", size=size, value=found["armedSeconds"], unit="s", floor=found["bareSeconds"]),
        Figure(what="memory", size=size, value=found["addedMegabytes"], unit="MB", goal=found["goalMegabytes"]),
        Figure(
            what="idle", size=size, value=found["idlePercentOfACore"], unit="% of a core", goal=found["goalPercent"]
        ),
    ]


def _api(found: Mapping[str, Any]) -> list[Figure]:
    size = f"{found['connections']} connections"
    return [
        Figure(
            what="sensor writes over HTTP",
            size=size,
            value=found["sensorWritesPerSecond"],
            unit="/s",
            floor=found["floorWritesPerSecond"],
            goal=found["goalSensorWritesPerSecond"],
            ratio_goal=found["goalOfFloor"],
            more_is_better=True,
        ),
        Figure(what="sensor write over HTTP", size=f"{size}, p99", value=found["p99Milliseconds"], unit="ms"),
        Figure(
            what="observations in batches",
            value=found["batchObservationsPerSecond"],
            unit="/s",
            goal=found["goalBatchObservationsPerSecond"],
            more_is_better=True,
        ),
    ]


_READERS = {
    "rules": _rules,
    "config_load": _config_load,
    "store": _store,
    "runs": _runs,
    "latency": _latency,
    "waiting": _waiting,
    "api": _api,
}
