"""What `make bench-ui` measures: `python -m bench.ui_report begin`, `print`, and `write` into docs/performance-ui.md.

The page's own words stay as they are: only what stands between its two marks is written anew.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.figures import Figure, table
from bench.machine import machine
from bench.report import described

RESULTS: Final = Path("bench-ui-results.json")
PAGE: Final = Path("docs/performance-ui.md")
BEGIN: Final = "<!-- figures: make bench-ui-report -->"
END: Final = "<!-- end of figures -->"


def main(given: Sequence[str]) -> int:
    """The exit status. A goal missed is no failure."""
    if given == ["begin"]:
        RESULTS.write_text(json.dumps({"machine": machine(), "figures": []}, indent=2) + "\n", encoding="utf-8")
        return 0
    if not RESULTS.exists():
        sys.stderr.write(f"there is no {RESULTS}: run `make bench-ui` first\n")
        return 1
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    figures = msgspec.convert(found["figures"], list[Figure])
    if given == ["write"]:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8"), figures, found["machine"]), encoding="utf-8")
        sys.stdout.write(f"wrote {PAGE}\n")
    else:
        sys.stdout.write(table(figures))
        sys.stderr.write(f"all figures are in {RESULTS}; `make bench-ui-report` draws them\n")
    return 0


def drawn(page: str, figures: Sequence[Figure], on: dict[str, Any]) -> str:
    """The page with these figures."""
    lines = ["| what | size | measured | goal | |", "|---|---|---|---|---|"]
    for one in figures:
        sign = "≥" if one.more_is_better else "≤"
        goal = "" if one.goal is None else f"{sign} {_number(one.goal)} {one.unit}".strip()
        met = {None: "", True: "met", False: "missed"}[one.met]
        lines.append(f"| {one.what} | {one.size} | {_number(one.value)} {one.unit} | {goal} | {met} |")
    head, tail = page.partition(BEGIN)[0], page.partition(END)[2]
    return head + "\n\n".join([BEGIN, described(on), "\n".join(lines), END]) + tail


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
