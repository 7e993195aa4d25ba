"""Which tests run a line: measured once, so that a mutant is judged by those tests alone (`tools/mutants.py`).

A test that does not run a line cannot notice that the line has changed, so leaving it out changes no verdict. Two
kinds of lines are run on behalf of other tests than the one that was measured, and every test is asked about these:
lines that run when the module is imported, and functions that remember their results.
"""

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import coverage

_CACHES: Final = frozenset({"cache", "lru_cache", "cached_property"})
_SETTINGS: Final = """[run]
branch = false
concurrency = greenlet,thread
source = {source}
data_file = {data}
"""


@dataclass(frozen=True)
class Covering:
    """The tests of each line of each file; a file is named as in a mutant, a test as pytest names it."""

    tests: tuple[str, ...]
    by_line: Mapping[str, Mapping[int, frozenset[str]]]
    for_all: Mapping[str, frozenset[int]]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def of(self, file: str, lines: Iterable[int]) -> tuple[str, ...]:
        """The tests that run one of these lines: those named after the module first, then the quick ones.

        All tests where that is not known.
        """
        lines = frozenset(lines)
        if lines & self.for_all.get(file, frozenset()):
            return self.tests
        known = self.by_line.get(file, {})
        found = frozenset().union(*(known.get(line, frozenset()) for line in lines))
        own = f"test_{Path(file).stem}.py"
        return tuple(sorted(found, key=lambda test: (own not in test, self.seconds.get(test, 0.0), test)))


def measured(tests: Sequence[str], folder: str, place: Path, root: Path, source: Path) -> Covering | str:
    """Run the tests once with coverage of `folder`; their last lines where they do not pass as the code stands."""
    data, settings = place / "coverage.data", place / "coverage.ini"
    settings.write_text(_SETTINGS.format(source=source.parent / folder, data=data), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        "--no-header",
    ]
    # Coverage makes tests slower: none of them fails for that.
    timed = [f"--junitxml={place / 'seconds.xml'}", "-o", "junit_family=xunit1", "-o", "timeout=900"]
    done = subprocess.run(
        [*command, "--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=", *timed, *tests],
        cwd=root,
        env=os.environ | environment_of(source),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return "\n".join(done.stdout.splitlines()[-10:])
    found = coverage.CoverageData(str(data))
    found.read()
    by_line, for_all = {}, {}
    for name in found.measured_files():
        file = Path(name).relative_to(source.parent).as_posix()
        contexts = found.contexts_by_lineno(name)
        by_line[file] = {line: frozenset(named_by(run_by)) for line, run_by in contexts.items()}
        imported = frozenset(line for line, run_by in contexts.items() if "" in run_by)
        for_all[file] = imported | remembered_lines(Path(name).read_text(encoding="utf-8"))
    return Covering(tuple(tests), by_line, for_all, _seconds(place / "seconds.xml"))


def _seconds(report: Path) -> dict[str, float]:
    """How long each test took."""
    cases = ET.parse(report).iter("testcase")
    return {f"{case.get('file')}::{case.get('name')}": float(case.get("time", 0)) for case in cases}


def environment_of(source: Path) -> dict[str, str]:
    """For tests of the code below `source`, with the same examples of Hypothesis each time."""
    return {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "ci"}


def named_by(contexts: Iterable[str]) -> set[str]:
    """The tests of the contexts of a line. A fixture may serve the whole file: then all its tests are meant."""
    named = set()
    for context in contexts:
        test, _, phase = context.rpartition("|")
        if test:
            named.add(test if phase == "run" else test.split("::", maxsplit=1)[0])
    return {test for test in named if test.split("::", maxsplit=1)[0] not in named - {test}}


def statement_lines(source: str, line: int) -> range:
    """The lines of the statement that a line belongs to: of an `if` or a `for` only those above its block."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    around = [node for node in statements if node.lineno <= line <= (node.end_lineno or node.lineno)]
    if not around:
        return range(line, line + 1)
    inner = max(around, key=lambda node: (node.lineno, -(node.end_lineno or node.lineno)))
    below = [node.lineno for node in ast.walk(inner) if isinstance(node, ast.stmt) and node.lineno > line]
    return range(inner.lineno, min([*below, (inner.end_lineno or inner.lineno) + 1]))


def remembered_lines(source: str) -> frozenset[int]:
    """The lines of functions whose results are remembered: only the first caller runs them."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and any(_is_cache(decorator) for decorator in node.decorator_list):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def _is_cache(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")) in _CACHES
