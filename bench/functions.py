"""What importing each function of AWS costs, boto3 apart, beside msgspec and structlog. `python -m bench.functions`.

As in a package: with compiled byte code, and without what is installed here and is not in a package (structlog loads
rich and greenlet where it finds them).
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Final

import msgspec

from bench.figures import Figure
from interlock.aws.names import Function

TURNS: Final = 9
_BOTO: Final = "import boto3, botocore.config, botocore.exceptions"
_BASE: Final = "import msgspec, structlog"
_MEASURED: Final = """
import sys

class NotInAPackage:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rich", "greenlet", "better_exceptions", "twisted"):
            raise ImportError(name)

sys.meta_path.insert(0, NotInAPackage())
import gc, time
gc.disable()
{before}
start = time.process_time()
{imports}
print(time.process_time() - start)
"""


def measure(turns: int = TURNS) -> list[Figure]:
    """Milliseconds of processor time; the floor is msgspec and structlog alone."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as compiled:
        base = _cost("", _BASE, compiled, turns)
        shared = _cost(_BOTO, _BASE, compiled, turns)
        found = []
        for function in Function:
            module = f"import interlock.aws.lambdas.{function.value.replace('-', '_')}"
            # boto3 brings modules that both need: what is counted is what the function adds to the floor.
            cost = base + _cost(_BOTO, module, compiled, turns) - shared
            found.append(_figure(function, cost, base))
        return found


def _figure(function: Function, cost: float, base: float) -> Figure:
    return Figure(
        what=f"import of {function}",
        size="processor, boto3 apart",
        value=round(cost, 1),
        unit="ms",
        floor=round(base, 1),
        ratio_goal=1.5,
    )


def _cost(before: str, imports: str, compiled: str, turns: int) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled
    code = _MEASURED.format(before=before, imports=imports)
    took = []
    for _ in range(turns + 1):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        took.append(float(done.stdout))
    return min(took[1:]) * 1000


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps({"bench": "functions", "figures": msgspec.to_builtins(measure())}))


if __name__ == "__main__":
    main()
