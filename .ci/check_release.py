"""Is what `make release` built fit to be published? The wheel is installed into an empty environment and used."""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

# What a build has lost before: files that are no Python, and the licence.
NEEDED = (
    "interlock/control/lifecycle.asl.json",
    "interlock/demo/medallion/pipelines/",
    "interlock/py.typed",
    "interlock/web/dist/index.html",
    "interlock/web/dist/assets/index-",
    "interlock/web/dist/licences.txt",
    ".dist-info/licenses/LICENSE",
)
# The page is built, not committed: an sdist without it could be installed only where there is Node.js.
IN_SDIST = (
    "pyproject.toml",
    "src/interlock/web/dist/index.html",
    "src/interlock/web/dist/licences.txt",
)


def main(folder: Path) -> int:
    """Check the two files of a release; say what is missing."""
    wheels, archives = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        print(f"{folder}: expected one wheel and one sdist, found {[path.name for path in folder.iterdir()]}")
        return 1
    found = problems(wheels[0], archives[0])
    for problem in found:
        print(f"{wheels[0].name}: {problem}")
    return 1 if found else _used(wheels[0])


def problems(wheel: Path, sdist: Path) -> list[str]:
    """What the two files lack, and what should not be in them."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    with tarfile.open(sdist) as archive:
        packed = archive.getnames()
    missing = [needed for needed in NEEDED if not any(needed in name for name in names)]
    missing += [f"{needed} (sdist)" for needed in IN_SDIST if not any(name.endswith(f"/{needed}") for name in packed)]
    stray = [name for name in names if name.endswith((".map", ".db", ".pyc")) or name.startswith("tests/")]
    stray += [f"{name} (sdist)" for name in packed if name.endswith(".map")]
    return [f"missing: {name}" for name in missing] + [f"should not be there: {name}" for name in stray]


def _used(wheel: Path) -> int:
    """Install it as a user would, and run what a user runs first."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        pip = (place / "env/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
        commands = (
            [*pip, "-c", "constraints.txt", wheel],
            [place / "env/bin/interlock", "--version"],
            [place / "env/bin/interlock", "init", place / "project"],
            [place / "env/bin/interlock", "validate", place / "project"],
            [place / "env/bin/interlock", "simulate", place / "project/scenarios"],
        )
        for command in commands:
            done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{' '.join(str(part) for part in command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
                return 1
    print(f"{wheel.name}: installs, and plays its own scenario")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
