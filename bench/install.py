"""What an installation weighs: a fresh virtual environment without pip, as `pip install .` makes it.

`python -m bench.install`. The bytecode that pip makes counts, since it lies on the disk. The floor is the interpreter's
own standard library.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench.figures import Figure, progress

GOAL_MEGABYTES: Final = 60
GOAL_PACKAGES: Final = 30
LARGEST: Final = 8
_ROOT: Final = Path(__file__).parents[1]
_NOT_OURS: Final = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")


def measure() -> list[Figure]:
    """Install, and look."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
        progress("installing into a fresh environment")
        site = _installed(Path(name))
        sizes = {one.name: _bytes(one) for one in site.iterdir() if not one.name.startswith(_NOT_OURS)}
    library = _bytes(Path(sysconfig.get_paths()["stdlib"]), without="site-packages")
    packages = [name for name in sizes if name.endswith(".dist-info")]
    largest = sorted(sizes.items(), key=lambda one: -one[1])[:LARGEST]
    return [
        Figure(
            what="installation",
            size="without pip",
            value=_mebibytes(sum(sizes.values())),
            unit="MiB",
            floor=_mebibytes(library),
            goal=GOAL_MEGABYTES,
        ),
        Figure(what="packages of an installation", value=len(packages), unit="packages", goal=GOAL_PACKAGES),
        *(Figure(what="of it", size=name, value=_mebibytes(size), unit="MiB") for name, size in largest),
    ]


def _installed(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    environment = dict(os.environ)
    if not (_ROOT / "src/interlock/web/dist/index.html").exists():
        progress("without the page: it is not built")
        environment["INTERLOCK_WITHOUT_PAGE"] = "1"
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "-c", str(_ROOT / "constraints.txt"), str(_ROOT)], check=True, env=environment, stdout=sys.stderr
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages"


def _bytes(path: Path, without: str = "") -> int:
    """What it takes on the disk, in whole blocks."""
    found = path.lstat().st_blocks * 512
    if path.is_dir() and not path.is_symlink():
        found += sum(_bytes(one) for one in path.iterdir() if one.name != without)
    return found


def _mebibytes(size: int) -> float:
    return round(size / 2**20, 1)


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps({"bench": "install", "figures": msgspec.to_builtins(measure())}))


if __name__ == "__main__":
    main()
