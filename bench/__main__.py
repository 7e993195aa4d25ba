"""`python -m bench [NAME...]`: run the measurements, all or those named, and print one JSON document.

Each runs in a process of its own: what one leaves in memory must not count for the next.
"""

import json
import subprocess
import sys
from typing import Any, Final

from bench.machine import machine

NAMES: Final = ("rules", "config_load", "store", "runs", "latency", "waiting", "api")


def main(wanted: list[str]) -> int:
    """The exit status: 2 for a name that is none, 1 when a measurement failed. A goal missed is no failure."""
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.stderr.write(f"there is no measurement {', '.join(unknown)}: there are {', '.join(NAMES)}\n")
        return 2
    results = {name: _run(name) for name in wanted or NAMES}
    print(json.dumps({"machine": machine(), "results": results}, indent=2))
    return 1 if any("error" in result for result in results.values()) else 0


def _run(name: str) -> dict[str, Any]:
    sys.stderr.write(f"measuring {name} ...\n")
    done = subprocess.run([sys.executable, "-m", f"bench.{name}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-2000:]}
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
