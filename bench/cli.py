"""What a command of the CLI costs on top of the interpreter, in processor time. `python -m bench.cli`."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.figures import Figure
from bench.seeded import seed

TURNS: Final = 7
READING: Final = (["status"], ["events"], ["runs", "bronze-orders-0000"], ["why", "bronze-orders-0000"])


def measure(turns: int = TURNS) -> list[Figure]:
    """Milliseconds of processor time; the floor is the interpreter alone."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
        folder = Path(name)
        seed(folder / "interlock.db", pipelines=20, days=5)
        bare = _cost(["-c", "pass"], folder, turns)
        found = [_figure("--version", _cost(["-m", "interlock", "--version"], folder, turns), bare, 60 + bare)]
        for command in READING:
            cost = _cost(["-m", "interlock", *command], folder, turns)
            found.append(_figure(command[0], cost, bare, bare + 250))
    return found


def _figure(command: str, cost: float, bare: float, goal: float) -> Figure:
    what = f"interlock {command}"
    return Figure(what=what, size="processor", value=round(cost, 1), unit="ms", floor=round(bare, 1), goal=round(goal))


def _cost(arguments: list[str], folder: Path, turns: int) -> float:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    took: list[float] = []
    for _ in range(turns + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stderr[-2000:])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(took[1:]) * 1000


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps({"bench": "cli", "figures": msgspec.to_builtins(measure())}))


if __name__ == "__main__":
    main()
