"""Break the code on purpose, one place at a time, and see whether the tests notice.

    python -m tools.mutants src/interlock/control --sample 40 --seed 1 --json mutants.json

All mutants of a folder are listed (comparisons, boolean operators, conditions, constants, arithmetic, returned values,
dropped statements), and a sample is drawn by the seed. Of the tests named in `TESTS`, those that run the
changed lines (`tools/covering.py`) are run against each, until the first that fails: in a fork of a process that has
collected them (`tools/warm.py`), or in a process of their own. A mutant is killed when a test fails, or when the tests
do not end in time; it survives when all of them pass, or when no test runs its lines.

Why not a library: mutmut mutates everything it is given and offers no sample; a folder of 50 modules takes it a day on
two cores. cosmic-ray mutates the working tree in place, so that two at a time need two clones, and a sample has to be
made by editing its session database. Both keep state between runs. Here a run is a folder, a number and a seed.
"""

import argparse
import ast
import contextlib
import copy
import difflib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Literal

from tools.covering import Covering, environment_of, measured, statement_lines
from tools.warm import WarmTests

ROOT: Final = Path(__file__).parent.parent
# The tests that are there to notice: of these, those that run a mutant's lines are run against it. They run the code in
# their own process; what a test starts in another cannot be attributed to it.
_SHARED: Final = (
    "tests/journeys/test_journeys.py::test_a_journey_comes_out_as_it_says_and_the_same_when_played_again",
    "tests/control",
    "tests/config",
    "tests/simulation",
    "tests/alerts",
    "tests/probes",
    "tests/api/test_pipelines.py",
    "tests/api/test_events.py",
    "tests/cli/test_why.py",
    "tests/embedded/test_files.py",
)
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "src/interlock/decide": ("tests/decide", "tests/model", "tests/jobs/test_secrets.py", *_SHARED),
    "src/interlock/control": _SHARED,
}
# A run of the tests that takes this many times as long as all of them without a mutant does not end.
PATIENCE: Final = 3
LEAST_PATIENCE: Final = 60.0
# pytest, when a test that it was given by name is not there.
NOT_FOUND: Final = 4

Verdict = Literal["killed", "timed out", "survived"]

# --------------------------------------------------------------------------------------------------- the mutants

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
# What these say is for people, or cannot happen.
NOT_MUTATED_CALLS: Final = frozenset(
    {"assert_never", "debug", "info", "warning", "error", "exception", "cast", "TypeVar"}
)


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the characters from `start` to `end` replaced by `text`."""

    file: str
    line: int
    what: str
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """The file's text with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def diff(self, source: str) -> str:
        """The change as a unified diff without context."""
        before, after = source.splitlines(), self.apply(source).splitlines()
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def mutants_of_folder(folder: Path, root: Path = ROOT) -> list[Mutant]:
    """All mutants of the folder's files, or of a single file, always in the same order."""
    return [
        mutant
        for path in (sorted(folder.rglob("*.py")) if folder.is_dir() else [folder])
        for mutant in mutants_of_source(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    ]


def drawn(mutants: Sequence[Mutant], number: int, seed: str, root: Path = ROOT) -> list[Mutant]:
    """A sample by a seed, of those that can be compiled."""
    order = random.Random(seed).sample(mutants, len(mutants))
    sound = (mutant for mutant in order if _compiles(mutant.apply((root / mutant.file).read_text(encoding="utf-8"))))
    return list(itertools.islice(sound, number))


def survivors(mutants: Iterable[Mutant], outcomes: Iterable[Mapping[str, object]], root: Path = ROOT) -> list[Mutant]:
    """Those that survived an earlier run. They are known by their change: their lines may have moved."""
    left = {
        (outcome["file"], outcome["what"], outcome["diff"]) for outcome in outcomes if outcome["verdict"] == "survived"
    }
    texts = {file: (root / file).read_text(encoding="utf-8") for file in {str(file) for file, _, _ in left}}
    candidates = (mutant for mutant in mutants if mutant.file in texts)
    return [mutant for mutant in candidates if (mutant.file, mutant.what, mutant.diff(texts[mutant.file])) in left]


def mutants_of_source(source: str, file: str) -> list[Mutant]:
    """All mutants of one file, in the order of the text; a few cannot be compiled."""
    offsets = _Offsets(source)
    found: list[Mutant] = []
    for node in _mutable(ast.parse(source)):
        for replaced, what, text in _changes(node):
            start, end = offsets.span(replaced)
            found.append(Mutant(file, replaced.lineno, what, start, end, text))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.what, mutant.text))


Located = ast.expr | ast.stmt


class _Offsets:
    """Turns a node's lines and columns (in bytes) into places in the text (in characters)."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: Located) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True


def _mutable(node: ast.AST) -> Iterator[Located]:
    """The nodes below this node that may be changed: not types, texts for people, nor what cannot happen."""
    for child in _children(node):
        if isinstance(child, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Raise):
            if isinstance(child, ast.Raise):
                yield child
            continue
        if _is_docstring(child) or _is_not_mutated_call(child):
            continue
        if isinstance(child, ast.expr | ast.stmt):
            yield child
        yield from _mutable(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "keywords"} and not isinstance(node, ast.Call):
            continue
        if name == "keywords" and _is_zip(node):
            continue
        if name == "cls" or (isinstance(node, ast.Subscript) and name == "slice" and _is_type(node)):
            continue
        values = value if isinstance(value, list) else [value]
        yield from (child for child in values if isinstance(child, ast.AST))


def _is_zip(node: ast.AST) -> bool:
    """Its `strict` only guards against lists of different lengths, which the code around it never makes."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip"


def _is_type(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id[:1].isupper()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_not_mutated_call(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in NOT_MUTATED_CALLS


Change = tuple[Located, str, str]


def _changes(node: Located) -> Iterator[Change]:  # noqa: PLR0912 one case for each kind of node
    """What becomes of a node: the node that is replaced, the name of the change, and the text in its place."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                changed = copy.deepcopy(node)
                changed.ops[index] = COMPARISONS[type(operator)]()
                yield node, "comparison", _text(changed)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, "and/or", _text(ast.BoolOp(other, node.values))
            for index in range(len(node.values)):
                rest = node.values[:index] + node.values[index + 1 :]
                yield node, "dropped condition", _text(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        case ast.UnaryOp(op=ast.Not()):
            yield node, "removed not", _text(node.operand)
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            yield node, "arithmetic", _text(ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))
        case ast.IfExp() | ast.If():
            yield node.test, "condition always true", "True"
            yield node.test, "condition always false", "False"
        case ast.While():
            yield node.test, "condition always false", "False"
        case ast.Match():
            for guard in (case.guard for case in node.cases if case.guard is not None):
                yield guard, "condition always true", "True"
                yield guard, "condition always false", "False"
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for filter_ in (filter_ for generator in node.generators for filter_ in generator.ifs):
                yield filter_, "condition always true", "True"
        case ast.Constant():
            yield from _changed_constant(node)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield node, "returned None", "return None"
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield node, "dropped statement", "pass"
        case ast.Raise() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield node, "dropped statement", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "dropped statement", "pass"
        case _:
            return


def _changed_constant(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool():
            yield node, "constant", repr(not node.value)
        case int() | float():
            yield node, "constant", repr(node.value + 1)
        case str():
            yield node, "constant", repr(f"{node.value}~")
        case _:
            return


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


# ----------------------------------------------------------------------------------------------------- the tests


@dataclass(frozen=True)
class Outcome:
    """What the tests said of a mutant."""

    file: str
    line: int
    what: str
    verdict: Verdict
    seconds: float
    by: str
    diff: str


class Workshop:
    """A copy of the source, to be broken and mended while the working tree stays as it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._warm: WarmTests | None = None
        # How many of which tests pass in a fork when nothing is broken.
        self._passing: set[tuple[tuple[str, ...], int]] = set()
        self.source: Final = folder / "src"
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__", "dist"))

    def warm_up(self, tests: Sequence[str]) -> None:
        """Collect the tests, so that most mutants are judged in a fork. Cool down at the end."""
        self._warm = WarmTests(tests, self.source, ROOT, os.environ | environment_of(self.source))

    def cool_down(self) -> None:
        """End the process that has collected the tests."""
        if self._warm is not None:
            self._warm.close()

    def judge(self, mutant: Mutant, covering: Covering, limit: float, *, quick: bool = False) -> Outcome:
        """Run the tests of a mutant's lines against it. A survivor of a fork is judged again, unless `quick`."""
        sound = (self._folder / mutant.file).read_text(encoding="utf-8")
        tests = covering.of(mutant.file, statement_lines(sound, mutant.line))
        began = time.monotonic()
        verdict, by = self._verdict(mutant, sound, tests, limit, quick=quick)
        seconds = round(time.monotonic() - began, 1)
        return Outcome(mutant.file, mutant.line, mutant.what, verdict, seconds, by, mutant.diff(sound))

    def _verdict(
        self, mutant: Mutant, sound: str, tests: tuple[str, ...], limit: float, *, quick: bool
    ) -> tuple[Verdict, str]:
        if not tests:
            return "survived", "no test runs this line"
        if self._warm is not None:
            verdict, by = self._judge_in_fork(self._warm, mutant, sound, tests, limit)
            if verdict is not None and (verdict != "survived" or quick):
                return verdict, by
        with _replaced(self._folder / mutant.file, sound, mutant.apply(sound)):
            return self.run_tests(tests, limit)

    def _judge_in_fork(
        self, warm: WarmTests, mutant: Mutant, sound: str, tests: tuple[str, ...], limit: float
    ) -> tuple[Verdict | None, str]:
        """None where a fork cannot tell: it cannot be changed, or the same tests fail there when nothing is broken."""
        path = self._folder / mutant.file
        changed = mutant.apply(sound)
        with _replaced(path, sound, changed):
            answer, by, number = warm.run_changed(tests, limit, path, sound, changed)
        match answer:
            case "passed":
                return "survived", ""
            case "timed out":
                return "timed out", ""
            case "failed" if (tests, number) in self._passing or warm.run(tests, limit, most=number)[0] == "passed":
                self._passing.add((tests, number))
                return "killed", by
            case _:
                return None, ""

    def run_tests(self, tests: Sequence[str], limit: float) -> tuple[Verdict, str]:
        """Run them, for so many seconds at most; also the name of the first test that failed."""
        named = self._folder / "tests.txt"
        named.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header"]
        environment = os.environ | environment_of(self.source)
        with subprocess.Popen(
            [*command, "-o", "timeout=60", f"@{named}"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timed out", ""
        if process.returncode == NOT_FOUND and "not found" in output:
            return self.run_tests(list(dict.fromkeys(test.split("::")[0] for test in tests)), limit)
        return ("killed", _first_failure(output)) if process.returncode else ("survived", "")


@contextlib.contextmanager
def _replaced(path: Path, sound: str, changed: str) -> Iterator[None]:
    """The file has the changed text meanwhile."""
    path.write_text(changed, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(sound, encoding="utf-8")


def _first_failure(output: str) -> str:
    named = (line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    return next(named, output.strip().splitlines()[-1] if output.strip() else "").split(" - ")[0]


def judged(
    mutants: Sequence[Mutant], folder: str, tests: Sequence[str], parallel: int, *, quick: bool
) -> Iterator[Outcome]:
    """The outcomes, as they come in. Demands first that the tests pass when nothing is broken."""
    with tempfile.TemporaryDirectory(prefix="m-") as place, ThreadPoolExecutor(parallel) as pool:
        workshops = [Workshop(Path(place, str(number))) for number in range(parallel)]
        free: SimpleQueue[Workshop] = SimpleQueue()
        for workshop in workshops:
            free.put(workshop)
        began = time.monotonic()
        covering = measured(tests, folder, Path(place), ROOT, workshops[0].source)
        if isinstance(covering, str):
            sys.exit(f"the tests do not pass as the code stands:\n{covering}")
        limit = max(LEAST_PATIENCE, PATIENCE * (time.monotonic() - began))
        list(pool.map(lambda workshop: workshop.warm_up(tests), workshops))

        def judge(mutant: Mutant) -> Outcome:
            workshop = free.get()
            try:
                return workshop.judge(mutant, covering, limit, quick=quick)
            finally:
                free.put(workshop)

        try:
            yield from (future.result() for future in as_completed([pool.submit(judge, mutant) for mutant in mutants]))
        finally:
            for workshop in workshops:
                workshop.cool_down()


# ---------------------------------------------------------------------------------------------------- the report


def share_killed(outcomes: Iterable[Outcome]) -> float:
    """In percent; of none, all are killed."""
    verdicts = [outcome.verdict for outcome in outcomes]
    return 100 * sum(verdict != "survived" for verdict in verdicts) / len(verdicts) if verdicts else 100.0


def _line(outcome: Outcome) -> str:
    head = f"{outcome.verdict:9} {outcome.file}:{outcome.line} ({outcome.what}, {outcome.seconds} s) {outcome.by}"
    return head.rstrip() if outcome.verdict != "survived" else f"{head.rstrip()}\n{outcome.diff}"


def _known_tests(folder: Path) -> tuple[str, ...]:
    """Of a folder of the table, or of something in it."""
    return next((TESTS[part.as_posix()] for part in (folder, *folder.parents) if part.as_posix() in TESTS), ())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 when too few mutants were killed."""
    parser = argparse.ArgumentParser(prog="mutants", description="Break the code on purpose; see if the tests notice.")
    parser.add_argument("folder", help=f"what to break, for example {' or '.join(TESTS)}, or a file of one")
    parser.add_argument("--sample", type=int, default=40, help="how many mutants (default 40)")
    parser.add_argument("--seed", default="1", help="which of them (default 1)")
    parser.add_argument("--parallel", type=int, default=2, help="how many at a time (default 2)")
    parser.add_argument("--at-least", type=float, default=0, help="percent to be killed; below it, exit with 1")
    parser.add_argument("--tests", nargs="+", help="other tests than those of the table in this file")
    parser.add_argument("--quick", action="store_true", help="do not judge the survivors of a fork a second time")
    parser.add_argument("--again", type=Path, help="judge the survivors of an earlier run, by its --json file")
    parser.add_argument("--json", type=Path, help="write the outcomes into this file, too")
    parser.add_argument("--list", action="store_true", help="show the sample, and run nothing")
    options = parser.parse_args(arguments)
    folder = Path(options.folder.rstrip("/"))
    tests = options.tests or _known_tests(folder)
    if not tests:
        parser.error(f"no tests are known for {folder}: give them by --tests")
    everything = mutants_of_folder(ROOT / folder)
    if options.again:
        everything = survivors(everything, json.loads(options.again.read_text(encoding="utf-8"))["mutants"])
    sample = drawn(everything, options.sample, options.seed)
    print(f"{folder}: {len(sample)} of {len(everything)} mutants, seed {options.seed}", flush=True)
    if options.list:
        for mutant in sample:
            print(f"{mutant.file}:{mutant.line} ({mutant.what})\n{mutant.diff((ROOT / mutant.file).read_text())}")
        return 0
    outcomes: list[Outcome] = []
    measured_folder = folder.parent if folder.suffix else folder
    for outcome in judged(sample, measured_folder.as_posix(), tests, options.parallel, quick=options.quick):
        outcomes.append(outcome)
        print(_line(outcome), flush=True)
    share = share_killed(outcomes)
    print(f"{folder}: {share:.1f} % of {len(outcomes)} mutants killed (seed {options.seed})")
    if options.json:
        report = {"folder": str(folder), "seed": options.seed, "killed_percent": share, "of": len(everything)}
        ordered = sorted(map(asdict, outcomes), key=lambda entry: (entry["file"], entry["line"], entry["diff"]))
        options.json.write_text(json.dumps(report | {"mutants": ordered}, indent=2) + "\n", encoding="utf-8")
    return 1 if share < options.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
