"""`python -m bench.report`: `bench-results.json` as a page, docs/performance.md, with plots of what grows.

The page's own words stay as they are: only what stands between its two marks is written anew.
"""

import html
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.__main__ import RESULTS
from bench.figures import Figure, number, of_results

PAGE: Final = Path("docs/performance.md")
PLOTS: Final = Path("docs/diagrams")
BEGIN: Final = "<!-- figures: make bench-report -->"
END: Final = "<!-- end of figures -->"
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 24, 44
_COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2")

Series = dict[str, list[tuple[float, float]]]


def main() -> int:
    """Write the plots and the page."""
    if not RESULTS.exists():
        sys.stderr.write(f"there is no {RESULTS}: run `make bench` first\n")
        return 1
    found: Mapping[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    figures = of_results(found["results"])
    plots = []
    for by in ("events", "pipelines"):
        series = _series(figures, by)
        if series:
            name = f"performance-{by}.svg"
            (PLOTS / name).write_text(plot(series, f"{by} in the store", "ms"), encoding="utf-8")
            plots.append(f"![What people look at, by the number of {by}](diagrams/{name})")
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    goals = [one for one in figures if one.met is not None]
    parts = [described(found["machine"]), *_failures(found["results"]), "### Goals", _verdict(goals), _table(goals)]
    body = "\n\n".join([BEGIN, *parts, "### Growth", *plots, "### All figures", _table(figures), END])
    PAGE.write_text(f"{head}{body}{tail}", encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
    return 0


def _series(figures: Sequence[Figure], by: str) -> Series:
    """What was measured at several sizes of this kind."""
    found: Series = {}
    for one in figures:
        number, _, unit = one.size.partition(" ")
        if unit == by and one.unit == "ms":
            found.setdefault(one.what, []).append((float(number.replace(",", "")), one.value))
    return {what: sorted(points) for what, points in found.items() if len(points) > 1}


# ----------------------------------------------------------------------------------------------------------- the plot


def plot(series: Series, across: str, up: str) -> str:
    """Lines on two logarithmic axes: what is flat is flat, what grows with the size goes up by a decade per decade."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [max(y, 0.01) for points in series.values() for _, y in points]
    x_axis = _Axis(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)
    y_axis = _Axis(10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys))), _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' font-family="sans-serif" font-size="12"><title>{html.escape(up)} by {html.escape(across)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for value in y_axis.decades():
        y = y_axis.at(value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g} {up}</text>')
    for value in sorted(set(xs)):
        x = x_axis.at(value)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 24}" text-anchor="middle">{value:,.0f}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{html.escape(across)}</text>')
    for index, (what, points) in enumerate(series.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        placed = [(x_axis.at(x), y_axis.at(max(y, 0.01))) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        line = _TOP + 8 + index * 18
        parts.append(f'<rect x="{_WIDTH - _RIGHT + 12}" y="{line - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 28}" y="{line}">{html.escape(what)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axis:
    """A logarithmic axis between two places of the picture."""

    def __init__(self, least: float, most: float, start: float, end: float) -> None:
        self._least = math.log10(least)
        self._span = math.log10(most) - self._least or 1.0
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        """Where a value lies."""
        return self._start + (math.log10(value) - self._least) / self._span * (self._end - self._start)

    def decades(self) -> list[float]:
        """The powers of ten on it."""
        first, last = round(self._least), round(self._least + self._span)
        return [10.0**power for power in range(first, last + 1)]


# ----------------------------------------------------------------------------------------------------------- the page


def described(found: Mapping[str, Any]) -> str:
    """The machine in a sentence."""
    load = ", ".join(str(one) for one in found.get("loadAverage", []))
    return (
        f"Measured on {found.get('cores')} cores ({found.get('processor')}), {found.get('memoryMegabytes')} MB,"
        f" {found.get('system')}, Python {found.get('python')}, SQLite {found.get('sqlite')};"
        f" load average before the run: {load}."
    )


def _failures(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    failed = [name for name, result in results.items() if "error" in result]
    return [f"**Not measured, since the measurement failed: {', '.join(failed)}.**"] if failed else []


def _verdict(goals: Sequence[Figure]) -> str:
    missed = [f"{one.what} ({one.size})" if one.size else one.what for one in goals if not one.met]
    if not missed:
        return f"All {len(goals)} are met."
    return f"{len(goals) - len(missed)} of {len(goals)} are met. Missed: {'; '.join(missed)}."


def _table(figures: Sequence[Figure]) -> str:
    lines = ["| what | size | value | floor | times the floor | goal | |", "|---|---|---|---|---|---|---|"]
    for one in figures:
        goal = one.goal if one.goal is not None else one.ratio_goal
        sign = "≥" if one.more_is_better else "≤"
        cells = [
            one.what,
            one.size,
            f"{number(one.value)} {one.unit}",
            "" if one.floor is None else number(one.floor),
            "" if one.ratio is None else f"{one.ratio:,.2f}" if one.ratio < 100 else f"{one.ratio:,.0f}",
            "" if goal is None else f"{sign} {number(goal)}{'' if one.goal is not None else ' x'}",
            {None: "", True: "met", False: "missed"}[one.met],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
