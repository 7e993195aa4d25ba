"""The repository's own promises: the pins are exact and complete, and the clock ban bites."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import distribution
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pairs = [line.split("==") for line in lines]
    return {canonical(name): version for name, version in pairs}


def test_constraints_are_plain_exact_pins() -> None:
    for name, version in pins().items():
        assert re.fullmatch(r"[a-z0-9-]+", name), name
        assert re.fullmatch(r"[0-9][A-Za-z0-9.]*", version), f"{name}=={version}"


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = [re.match(r"[A-Za-z0-9._-]+", requirement) for group in groups for requirement in group]
    assert {canonical(name[0]) for name in names if name} <= pins().keys()


# Everything that `pip install interlock` brings, on Linux with CPython; each is there for a reason.
RUN_TIME = {
    "annotated-doc",  # typer
    "anyio",  # httpx
    "certifi",  # httpx
    "click",  # uvicorn
    "cronsim",
    "greenlet",
    "h11",  # httpcore, uvicorn
    "httpcore",
    "httptools",
    "httpx",
    "idna",  # httpx
    "markdown-it-py",  # rich
    "mdurl",  # rich
    "msgspec",
    "prometheus-client",
    "pygments",  # rich
    "pyyaml",
    "rich",
    "shellingham",  # typer
    "structlog",
    "typer",
    "typing-extensions",  # anyio
    "tzdata",
    "uvicorn",
    "uvloop",
}


def needed(names: list[str]) -> set[str]:
    """The packages that these need, and those that they need in turn, as their metadata says; no network."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        one = waiting.pop()
        name = canonical(one.name)
        if name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += [Requirement(text) for text in distribution(name).requires or []]
    return found


def test_what_is_installed_at_run_time_is_known() -> None:
    """A new package is a decision: add it here with its reason, and its size to docs/performance.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = needed(project["dependencies"])
    if sys.platform == "linux" and sys.version_info[:2] == (3, 11):
        assert found == RUN_TIME
    assert not found & {"litestar", "faker", "polyfactory", "starlette", "pydantic"}
    assert not found & {"holidays", "slack-sdk", "boto3"}, "an extra: see interlock.extras"
    assert len(found) < 30


def test_every_module_of_control_has_its_tests_under_its_name() -> None:
    source, tests = ROOT / "src/interlock/control", ROOT / "tests/control"
    modules = {path.relative_to(source) for path in source.rglob("*.py") if path.name != "__init__.py"}
    wanted = {path.with_name(f"test_{path.name}").as_posix() for path in modules}
    found = {path.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    assert sorted(wanted - found) == [], "write tests/control/<folder>/test_<module>.py"


def test_no_module_imports_itself_through_others() -> None:
    """`.importlinter` keeps the packages apart; within a package, too, imports point one way."""
    graph = grimp.build_graph("interlock", cache_dir=None)
    # The root package loads the SDK for those who ask, and everything imports the root package.
    modules = graph.modules - {"interlock"}
    imported = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
    assert len(imported) > 400
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


SLEEP = "import time\n\ntime.sleep(1)\n"
NOW = "from datetime import UTC, datetime\n\ndatetime.now(UTC)\n"


@pytest.mark.parametrize(
    ("source", "path", "banned"),
    [
        (SLEEP, "src/interlock/control/router.py", True),
        (NOW, "src/interlock/api/server.py", True),
        ("from time import time\n\ntime()\n", "src/interlock/decide/sla.py", True),
        ("import time\n\ntime.time_ns()\n", "src/interlock/embedded/runtime.py", True),
        ("import datetime as dt\n\ndt.date.today()\n", "tests/decide/test_sla.py", True),
        (NOW, "src/interlock/embedded/clock.py", False),
        (SLEEP, "tests/crash/test_kill.py", False),
        ("import time\n\ntime.monotonic()\n", "src/interlock/embedded/runtime.py", False),
    ],
)
def test_the_clock_is_read_in_one_file_only(source: str, path: str, banned: bool) -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--select=TID251", "--no-cache"]
    answer = subprocess.run(
        [*ruff, f"--stdin-filename={path}", "-"],
        input=source,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert answer.returncode == int(banned), answer.stdout + answer.stderr


# ------------------------------------------------------------------------------------------------------- the page


def test_the_lock_file_of_the_page_names_no_registry() -> None:
    locked = json.loads((ROOT / "dashboard/package-lock.json").read_text())
    assert len(locked["packages"]) > 100
    assert not [name for name, package in locked["packages"].items() if "resolved" in package]
    config = (ROOT / "dashboard/.npmrc").read_text()
    assert "omit-lockfile-registry-resolved=true" in config
    assert "registry=" not in config


def test_the_built_page_and_its_packages_are_not_committed() -> None:
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("this is no checkout")
    files = found.stdout.splitlines()
    assert not [name for name in files if name.startswith("src/interlock/web/dist/") or "node_modules" in name]


def test_the_types_of_the_page_are_those_of_the_api(tmp_path: Path) -> None:
    tool = ROOT / "dashboard/node_modules/.bin/openapi-typescript"
    if not tool.exists() or shutil.which("node") is None:
        pytest.skip("the packages of the page are not installed: `make ui`")
    described = subprocess.run(
        [sys.executable, ".ci/openapi.py"], cwd=ROOT, capture_output=True, check=True, timeout=60
    ).stdout
    (tmp_path / "openapi.json").write_bytes(described)
    made = tmp_path / "schema.d.ts"
    subprocess.run([tool, tmp_path / "openapi.json", "--output", made], check=True, capture_output=True, timeout=60)
    committed = ROOT / "dashboard/src/api/schema.d.ts"
    assert made.read_text() == committed.read_text(), "generate them again: make ui-schema"
