"""Builds the packages.

    python -m tools.packages [--architecture arm64|x86_64] [--out build/lambda]

Each package holds the modules that its function imports, the packages of others that those name (as constraints.txt
pins them, wheels for the function's platform), and their byte code: a function cannot keep what it compiles, and would
compile at every cold start. So packages are for the Python that builds them. Two builds make the same bytes: files in
order, no dates, byte code that is told by its source.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import distributions, packages_distributions
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from interlock import __version__
from interlock.aws.operations.digest import source_digest
from tools.packages.imports import SOURCES, Imports, imports_of
from tools.terraform.offline import FUNCTIONS, ROOT

OUT: Final = ROOT / "build" / "lambda"
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
RUNTIMES: Final = ("3.11", "3.12", "3.13")
LARGEST: Final = 25_000_000
"""Bytes of a package on a function's disk."""
# Lambda's Python 3.11 has the glibc of Amazon Linux 2: manylinux2014 runs on all.
_PLATFORMS: Final = {"arm64": "aarch64-manylinux2014", "x86_64": "x86_64-manylinux2014"}
_PIP_PLATFORMS: Final = {"arm64": "manylinux2014_aarch64", "x86_64": "manylinux2014_x86_64"}
_KEPT_OF_METADATA: Final = ("METADATA", "LICENSE", "LICENCE", "COPYING", "NOTICE", "licenses")
_DROPPED: Final = (".pyi", ".pyx", ".pxd", ".c", ".h", ".po", ".pot")


class BuildError(Exception):
    """What keeps a package from being built, and what to do."""


def this_architecture() -> str:
    """The architecture of this machine, in Lambda's words."""
    return "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"


def build(out: Path, architecture: str, functions: Iterable[str] = FUNCTIONS) -> dict[str, Any]:
    """Build the packages into a folder; what is said of them in its manifest."""
    if PYTHON not in RUNTIMES:
        raise BuildError(f"Lambda has no Python {PYTHON}: build with one of {', '.join(RUNTIMES)} (make PYTHON=...)")
    out.mkdir(parents=True, exist_ok=True)
    wanted = {name: imports_of(name) for name in functions}
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        _install(
            sorted({one for found in wanted.values() for one in _distributions(found.packages)}), stage, architecture
        )
        shares = _shares(stage)
        for module in {path for found in wanted.values() for path in found.modules.values()}:
            _copy(module, stage / module.relative_to(SOURCES))
        _compile(stage)
        for name, found in wanted.items():
            _write(stage, name, list(_content(stage, found, shares)), out / f"{name}.zip")
    manifest = {
        "version": __version__,
        "source": source_digest(),
        "python": PYTHON,
        "architecture": architecture,
        "packages": {name: sha256((out / f"{name}.zip").read_bytes()).hexdigest() for name in wanted},
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


class Share(NamedTuple):
    """What a distribution puts into a package, and which others it needs."""

    files: frozenset[Path]
    needs: frozenset[str]


def _shares(stage: Path) -> dict[str, Share]:
    """By distribution: its files that a function may read, and what it needs on the function's platform."""
    found: dict[str, Share] = {}
    for one in distributions(path=[str(stage)]):
        requirements = map(Requirement, one.requires or ())
        needs = (need.name for need in requirements if need.marker is None or need.marker.evaluate({"extra": ""}))
        files = frozenset(Path(str(path)) for path in one.files or () if _kept(Path(str(path))))
        found[canonicalize_name(one.name)] = Share(files, frozenset(map(canonicalize_name, needs)))
    return found


def _kept(path: Path) -> bool:
    """Not what no function reads: programs, records of the installer, sources of compiled modules, type stubs."""
    if path.parts[0].endswith(".dist-info"):
        return path.parts[1].startswith(_KEPT_OF_METADATA)
    return path.parts[0] not in ("bin", "..") and "tests" not in path.parts and path.suffix not in _DROPPED


def _content(stage: Path, found: Imports, shares: Mapping[str, Share]) -> Iterator[Path]:
    """The files of one package, byte code included."""
    pending: list[str] = [canonicalize_name(name) for name in _distributions(found.packages)]
    done: set[str] = set()
    files = {path.relative_to(SOURCES) for path in found.modules.values()}
    while pending:
        name = pending.pop()
        if name not in done and name in shares:
            done.add(name)
            files |= shares[name].files
            pending += shares[name].needs
    for path in files:
        yield path
        compiled = Path(cache_from_source(str(path)))
        if path.suffix == ".py" and (stage / compiled).is_file():
            yield compiled


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _distributions(packages: Iterable[str]) -> set[str]:
    known = packages_distributions()
    missing = [name for name in packages if name not in known]
    if missing:
        raise BuildError(f"no installed distribution has the package {', '.join(missing)}: run make .venv/.stamp")
    return {known[name][0] for name in packages}


def _install(names: list[str], stage: Path, architecture: str) -> None:
    """Wheels for the function's platform, pinned, with what they need."""
    pins = ["-c", str(ROOT / "constraints.txt"), "--only-binary", ":all:", "--target", str(stage)]
    uv = Path(sys.executable).parent / "uv"
    if uv.is_file():
        platform_ = ["--python-platform", _PLATFORMS[architecture], "--python-version", PYTHON]
        command = [str(uv), "pip", "install", "-q", *platform_, *pins, *names]
    else:
        platform_ = ["--platform", _PIP_PLATFORMS[architecture], "--python-version", PYTHON]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
        command = [*pip, *platform_, *pins, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{', '.join(names)} cannot be had for {architecture}: {done.stderr.strip()}")


def _compile(stage: Path) -> None:
    """Byte code that is not compared with its source again: nothing changes on a function's disk."""
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    done = subprocess.run(
        [*command, "-s", str(stage), "-p", "/var/task", str(stage)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    if done.returncode:
        raise BuildError(f"the package cannot be compiled: {done.stdout}{done.stderr}")


def _write(stage: Path, function: str, files: list[Path], path: Path) -> None:
    size = sum((stage / one).stat().st_size for one in files)
    if size > LARGEST:
        raise BuildError(f"the package of {function} has {size:,} bytes: more than {LARGEST:,}")
    with zipfile.ZipFile(path, "w") as package:
        for one in sorted(files, key=lambda one: one.as_posix()):
            entry = zipfile.ZipInfo(one.as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if one.suffix == ".so" else 0o644) << 16
            entry.create_system = 3
            package.writestr(entry, (stage / one).read_bytes(), compresslevel=6)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="deploy/build", description="Build the packages of the functions.")
    parser.add_argument("--architecture", choices=sorted(_PLATFORMS), default="arm64")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    try:
        manifest = build(given.out, given.architecture)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    for name in manifest["packages"]:
        print(f"{given.out / name}.zip  {(given.out / f'{name}.zip').stat().st_size / 1e6:.1f} MB")
    print(f"for Python {PYTHON} on {given.architecture}, sources {manifest['source']}")
    return 0
