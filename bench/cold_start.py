"""What does a function load before its first invocation? Its package is imported in a Python with boto3 alone.

Milliseconds of processor time, the best of several, boto3 apart; the floor is msgspec and structlog, which nobody can
do without. In a development environment structlog loads rich with it, which no package has. The goal of 1.5 times the
floor is for that environment; in a package the floor is a tenth.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from bench.figures import Figure
from tools.packages.build import build, this_architecture
from tools.packages.imports import handler_module
from tools.terraform.offline import FUNCTIONS, environment_of

GOAL: Final = 1.5
ROUNDS: Final = 7
_CODE: Final = """\
import sys, time
sys.path[:0] = {path!r}
import boto3, botocore.config, botocore.exceptions
started = time.process_time()
import {modules}
print(time.process_time() - started)
"""


def main() -> None:
    """Build the packages, import each, print one JSON line."""
    clean, here = environment_of("lambda") / "bin" / "python", Path(sys.executable)
    figures: list[Figure] = []
    with TemporaryDirectory() as folder:
        build(Path(folder), this_architecture())
        for name in FUNCTIONS:
            stage = Path(folder) / name
            zipfile.ZipFile(Path(folder) / f"{name}.zip").extractall(stage)
            figures.append(_figure(f"load {name}, as packaged", clean, [str(stage)], name, None))
            figures.append(_figure(f"load {name}, as developed", here, [], name, GOAL))
    print(json.dumps({"bench": "cold_start", "figures": msgspec.to_builtins(figures)}))


def _figure(what: str, python: Path, path: list[str], function: str, goal: float | None) -> Figure:
    least, own = _best(python, path, "msgspec, structlog"), _best(python, path, handler_module(function))
    return Figure(what=what, value=round(own, 1), unit="ms", floor=round(least, 1), ratio_goal=goal)


def _best(python: Path, path: list[str], modules: str) -> float:
    command = [str(python), "-c", _CODE.format(path=path, modules=modules)]
    times = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(ROUNDS)]
    return 1000 * min(map(float, times))


if __name__ == "__main__":
    main()
