"""The cost page of the AWS guide: what was measured (`tests/aws/units.json`) at the prices of one dated file.

    python -m tools.costs

writes the tables between their marks in `docs/guide/aws/cost.md`; building the documentation makes them anew.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools.terraform.offline import ROOT

PAGE: Final = ROOT / "docs" / "guide" / "aws" / "cost.md"
UNITS: Final = ROOT / "tests" / "aws" / "units.json"
PRICES: Final = Path(__file__).parent / "aws_prices.json"
MEMORY_GB: Final = 0.25
"""`lambda_memory_size` as the module sets it."""
SECONDS: Final = 0.1
"""How long an invocation is taken to last: an assumption, nothing was measured on AWS."""
_BEGIN: Final = "<!-- made by tools/costs.py: {} -->"
_END: Final = "<!-- end -->"
_SHOWN: Final = ("transitions", "write units", "read units", "invocations", "events", "schedules")
_ROWS: Final = {
    "run": "a run that is ready at once and whose job ends at once",
    "wait": "each further evaluation of a waiting run",
    "poll": "each poll of a running job",
    "sla": "a run with an SLA, besides",
    "watchdog pass": "a pass of the watchdog",
    "idle pipeline in a pass": "each pipeline in a pass of which nothing is to be said",
}
_PASSES: Final = 12 * 24 * 30
_DAYS: Final = 30


def dollars(units: Mapping[str, float], prices: Mapping[str, Any]) -> float:
    """What these units cost."""
    each = prices["per million"]
    found = sum(count * each[name] / 1e6 for name, count in units.items() if name in each)
    return float(found + units.get("invocations", 0) * SECONDS * MEMORY_GB * prices["lambda GB-second"])


def units_table() -> str:
    """Every kind of thing that happens: its units, and a thousand of them in dollars."""
    units, prices = _load(UNITS), _load(PRICES)
    lines = [f"| | {' | '.join(_SHOWN)} | a thousand |", f"|---|{'---|' * (len(_SHOWN) + 1)}"]
    for name, what in _ROWS.items():
        counts = " | ".join(_number(units[name].get(unit, 0)) for unit in _SHOWN)
        lines.append(f"| {what} | {counts} | ${1000 * dollars(units[name], prices):.3f} |")
    return "\n".join(lines)


def months_table() -> str:
    """A month of some installations."""
    units, prices = _load(UNITS), _load(PRICES)
    cost = {name: dollars(units[name], prices) for name in _ROWS}
    run = cost["run"] + cost["sla"]
    lines = ["| a month of | runs | waiting | polls | watchdog | together |", "|---|---|---|---|---|---|"]
    for pipelines, runs, waits, polls in ((10, 1, 12, 10), (100, 1, 12, 10), (100, 24, 3, 5), (1000, 24, 3, 5)):
        count = pipelines * runs * _DAYS
        parts = (
            count * run,
            count * waits * cost["wait"],
            count * polls * cost["poll"],
            _PASSES * (cost["watchdog pass"] + pipelines * cost["idle pipeline in a pass"]),
        )
        what = f"{pipelines:,} pipelines, {'daily' if runs == 1 else 'hourly'}; {waits} waits and {polls} polls a run"
        lines.append(f"| {what} | {' | '.join(f'${one:,.2f}' for one in parts)} | **${sum(parts):,.2f}** |")
    return "\n".join(lines)


def prices_table() -> str:
    """The prices that were used, and where they come from."""
    prices = _load(PRICES)
    seen = prices["seen"]
    rows = [f"| {name} | ${price:g} a million | {seen[name]} |" for name, price in prices["per million"].items()]
    gigabyte, alarm = prices["lambda GB-second"], prices["alarm per month"]
    rows.append(f"| Lambda, arm64 | ${gigabyte:.10f} a GB-second | {seen['lambda GB-second']} |")
    rows.append(f"| an alarm | ${alarm:.2f} a month | {seen['alarm per month']} |")
    head = f"{prices['region']}, as of {prices['date']}, without free tiers and taxes:"
    return "\n".join([head, "", "| unit | price | compared with |", "|---|---|---|", *rows])


TABLES: Final = {"units": units_table, "months": months_table, "prices": prices_table}


def with_tables(text: str) -> str:
    """The page with its tables made anew."""
    for name, make in TABLES.items():
        before, begin, rest = text.partition(_BEGIN.format(name))
        if not begin:
            raise ValueError(f"{PAGE} has no mark for the table {name}")
        _, end, after = rest.partition(_END)
        text = f"{before}{begin}\n\n{make()}\n\n{end}{after}"
    return text


def _number(value: float) -> str:
    return f"{value:g}" if value else ""


def _load(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def main() -> int:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
