"""`python -m bench [NAME...]`: run the measurements, all or those named, print a table and write `bench-results.json`.

Each runs in a process of its own: what one leaves in memory must not count for the next.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from bench.figures import of_results, table
from bench.machine import machine

NAMES: Final = (
    "rules",
    "config_load",
    "store",
    "growth",
    "start",
    "cli",
    "runs",
    "latency",
    "commands",
    "functions",
    "waiting",
    "api",
)
RESULTS: Final = Path("bench-results.json")


def main(wanted: list[str]) -> int:
    """The exit status: 2 for a name that is none, 1 when a measurement failed. A goal missed is no failure."""
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.stderr.write(f"there is no measurement {', '.join(unknown)}: there are {', '.join(NAMES)}\n")
        return 2
    before = machine()
    results = {name: _run(name) for name in wanted or NAMES}
    RESULTS.write_text(json.dumps({"machine": before, "results": results}, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(table(of_results(results)))
    failed = {name: result["error"] for name, result in results.items() if "error" in result}
    for name, error in failed.items():
        sys.stderr.write(f"{name} failed:\n{error}\n")
    sys.stderr.write(f"all figures are in {RESULTS}; `make bench-report` draws them\n")
    return 1 if failed else 0


def _run(name: str) -> dict[str, Any]:
    sys.stderr.write(f"measuring {name} ...\n")
    done = subprocess.run([sys.executable, "-m", f"bench.{name}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-2000:]}
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
