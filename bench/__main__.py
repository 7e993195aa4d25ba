"""`python -m bench [NAME...]`: run the measurements, all or those named, print a table and write `bench-results.json`.

Each runs in a process of its own: what one leaves in memory must not count for the next.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from bench.figures import of_results, table
from bench.machine import machine

NAMES: Final = (
    "install",
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
    began, names = time.monotonic(), wanted or list(NAMES)
    results: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(names, 1):
        sys.stderr.write(f"[{number}/{len(names)}, after {time.monotonic() - began:.0f} s] measuring {name} ...\n")
        results[name] = _run(name)
    RESULTS.write_text(json.dumps({"machine": before, "results": results}, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(table(of_results(results)))
    failed = {name: result["error"] for name, result in results.items() if "error" in result}
    for name, error in failed.items():
        sys.stderr.write(f"{name} failed:\n{error}\n")
    took = time.monotonic() - began
    sys.stderr.write(f"took {took:.0f} s; all figures are in {RESULTS}; `make bench-report` draws them\n")
    return 1 if failed else 0


def _run(name: str) -> dict[str, Any]:
    """One measurement. What it says of its progress is shown as it comes."""
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.Popen([sys.executable, "-m", f"bench.{name}"], stdout=said, stderr=subprocess.PIPE, text=True)
        tail: deque[str] = deque(maxlen=40)
        assert done.stderr is not None
        for line in done.stderr:
            tail.append(line)
            sys.stderr.write(f"    {line}")
        if done.wait() != 0:
            return {"error": "".join(tail).strip()[-2000:] or f"exit status {done.returncode}"}
        said.seek(0)
        measured: dict[str, Any] = json.load(said)
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
