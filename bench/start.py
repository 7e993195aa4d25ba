"""How long `interlock serve` takes to be ready, by the number of its pipelines. `python -m bench.start`.

First on a new store, then again with nothing changed. The floor is the interpreter alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import msgspec

from bench.config_load import _write
from bench.figures import Figure, progress
from interlock.embedded.process.discovery import find_server

SIZES: Final = (1, 1_000, 5_000)
GOALS: Final = {(1, "new"): 0.7, (5_000, "new"): 4.0, (5_000, "again"): 1.5}
_PATIENCE: Final = 120.0


def measure(sizes: tuple[int, ...] = SIZES) -> list[Figure]:
    """Seconds until it is ready."""
    floor = _bare()
    found: list[Figure] = []
    for size in sizes:
        progress(f"starting with {size:,} pipelines")
        with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
            folder = Path(name)
            _write(folder, size)
            for turn in ("new", "again"):
                found.append(
                    Figure(
                        what=f"serve ready, {'new store' if turn == 'new' else 'nothing changed'}",
                        size=f"{size:,} pipelines",
                        value=round(_ready(folder), 2),
                        unit="s",
                        floor=round(floor, 3),
                        goal=GOALS.get((size, turn)),
                    )
                )
    return found


def _bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


def _ready(folder: Path) -> float:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "interlock", "serve", "--port", "0", "--log-level", "warning"]
    began = time.perf_counter()
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stderr=log, stdout=log, env=environment)
    try:
        while not _is_ready(folder / "interlock.db"):
            if server.poll() is not None or time.perf_counter() - began > _PATIENCE:
                raise RuntimeError((folder / "log").read_text()[-2000:])
            time.sleep(0.005)
        return time.perf_counter() - began
    finally:
        server.terminate()
        server.wait(60)


def _is_ready(store: Path) -> bool:
    found = find_server(store)
    if found is None:
        return False
    try:
        with urlopen(f"{found.url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps({"bench": "start", "figures": msgspec.to_builtins(measure())}))


if __name__ == "__main__":
    main()
