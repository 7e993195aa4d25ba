"""The tool that breaks the code on purpose (`make mutants`)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tools.covering import Covering, environment_of, measured, named_by, remembered_lines, statement_lines
from tools.mutants import ROOT, TESTS, Mutant, Workshop, drawn, mutants_of_folder, mutants_of_source, survivors
from tools.warm import WarmTests, replacements

SOURCE: Final = '''"""A docstring."""

from typing import Final

NAME: Final = "ä-name"


def judge(a: "int", b: int, *, strict: bool = False) -> str | None:
    """Another docstring."""
    if not strict and a < b:
        raise ValueError("a text for people")
    elif a in (1, 2):
        return f"{a + 1}"
    found = [n for n in range(3) if n != a]
    found.append(b)
    match a:
        case 3 if b > 4:
            return None
    return "both" if a is b else NAME
'''


def lines_of(source: str) -> list[str]:
    """Each mutant by its changed line."""
    found = [mutant.diff(source).splitlines() for mutant in mutants_of_source(source, "a.py")]
    return [next(line[1:].strip() for line in diff if line.startswith("+")) for diff in found]


@pytest.mark.parametrize(
    "changed",
    [
        'NAME: Final = \'ä-name~\'',
        'def judge(a: "int", b: int, *, strict: bool = True) -> str | None:',
        "if (not strict or a < b):",
        "if (a < b):",
        "if (not strict):",
        "if (strict) and a < b:",
        "if not strict and (a <= b):",
        "if True:",
        "pass",
        "elif (a not in (1, 2)):",
        "elif False:",
        "elif a in (2, 2):",
        "found = [n for n in range(3) if True]",
        "case 3 if (b >= 4):",
        "case 3 if False:",
        "case 4 if b > 4:",
        "return None",
        "return \"both\" if (a is not b) else NAME",
        "return \"both\" if False else NAME",
    ],
)  # fmt: skip
def test_a_change_of_each_kind_is_made(changed: str) -> None:
    assert changed in lines_of(SOURCE)


def test_docstrings_types_messages_and_imports_are_left_alone() -> None:
    mutated = {mutant.line for mutant in mutants_of_source(SOURCE, "a.py")}
    assert mutated & {1, 3, 9} == set()
    assert not any("people~" in line or '"int~' in line for line in lines_of(SOURCE))


def test_of_a_zip_only_the_guard_is_left_alone() -> None:
    lines = lines_of("pairs = list(zip(a, b + c, strict=True))\nnetwork = ip_network(text, strict=False)\n")
    assert lines == ["pairs = list(zip(a, (b - c), strict=True))", "network = ip_network(text, strict=True)"]


def test_every_mutant_compiles_and_differs_and_a_seed_always_draws_the_same() -> None:
    folder = ROOT / "src/interlock/decide"
    first, again = mutants_of_folder(folder), mutants_of_folder(folder)
    assert first == again
    assert drawn(first, 20, "1") == drawn(again, 20, "1") != drawn(first, 20, "2")
    for mutant in drawn(first, 100, "3"):
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        compile(mutant.apply(source), mutant.file, "exec")
        assert mutant.diff(source)


def test_the_tests_that_are_named_exist() -> None:
    named = [test for tests in TESTS.values() for test in tests]
    assert [test for test in named if not (ROOT / test.split("::")[0]).exists()] == []


FILE: Final = "src/interlock/decide/masking.py"
ITS_OWN: Final = "tests/decide/test_masking.py"
ANOTHER: Final = "tests/decide/test_early_ends.py"  # a short one, which does not import the file


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("w") / "a")


def test_a_mutant_is_killed_by_a_test_that_notices_and_survives_another(workshop: Workshop) -> None:
    source = (ROOT / FILE).read_text(encoding="utf-8")
    broken = Mutant(FILE, 1, "dropped everything", 0, len(source), "")

    def verdict(test: str) -> tuple[str, str]:
        outcome = workshop.judge(broken, Covering((test,), {}, {FILE: frozenset({1})}), 60)
        return outcome.verdict, outcome.by.split("::")[0]

    assert verdict(ITS_OWN) == ("killed", f"ERROR {ITS_OWN}")
    assert verdict(ANOTHER) == ("survived", "")
    assert (workshop.source.parent / FILE).read_text(encoding="utf-8") == source


def test_a_mutant_that_no_test_runs_survives_at_once_and_a_test_by_a_lost_name_is_not_a_kill(
    workshop: Workshop,
) -> None:
    harmless = Mutant(FILE, 1, "nothing", 0, 0, "")
    outcome = workshop.judge(harmless, Covering(("tests/decide",), {}, {}), 60)
    assert (outcome.verdict, outcome.by) == ("survived", "no test runs this line")
    renamed = Covering((), {FILE: {1: frozenset({f"{ITS_OWN}::test_of_old"})}}, {})
    assert workshop.judge(harmless, renamed, 60).verdict == "survived"


def test_the_tests_of_a_line_are_those_that_run_it(tmp_path: Path) -> None:
    tests = (ANOTHER, ITS_OWN)
    covering = measured(tests, "src/interlock/decide", tmp_path, ROOT, ROOT / "src")
    assert isinstance(covering, Covering), covering
    source = (ROOT / FILE).read_text(encoding="utf-8")
    lines = source.splitlines()
    inside = next(line for line, text in enumerate(lines, start=1) if "self._" in text)
    found = covering.of(FILE, [inside])
    assert found
    assert {test.split("::")[0] for test in found} == {ITS_OWN}
    imports = next(line for line, text in enumerate(lines, start=1) if text.startswith("import "))
    assert covering.of(FILE, [imports]) == tests, "an import is everybody's"
    assert set(found) <= set(covering.seconds)


def test_the_tests_named_after_the_module_come_first_and_a_fixture_means_its_whole_file() -> None:
    run_by = ["tests/control/test_a.py::test_x[1]|run", "tests/control/test_b.py::test_y|setup"]
    run_by += ["tests/control/test_b.py::test_z|run", "tests/journeys/test_journeys.py::test_j|run", ""]
    named = frozenset(named_by(run_by))
    assert named == {
        "tests/control/test_a.py::test_x[1]", "tests/control/test_b.py", "tests/journeys/test_journeys.py::test_j",
    }  # fmt: skip
    covering = Covering((), {"src/b.py": {3: named}}, {}, {"tests/control/test_a.py::test_x[1]": 2.5})
    order = [test.split("::")[0].rpartition("/")[2] for test in covering.of("src/b.py", [3])]
    assert order == ["test_b.py", "test_journeys.py", "test_a.py"], "the quick ones before the slow ones"


def test_a_function_that_remembers_its_results_is_everybodys() -> None:
    source = (
        "import functools\n\n\n@functools.lru_cache(maxsize=1)\ndef f(a):\n    return a\n\n\ndef g():\n    return 1\n"
    )
    assert remembered_lines(source) == {5, 6}


def test_the_lines_of_a_change_are_those_of_its_statement_but_not_of_the_block_below() -> None:
    source = "if (\n    a\n    and b\n):\n    c = [\n        1,\n    ]\nd = 2\n"
    assert list(statement_lines(source, 3)) == [1, 2, 3, 4]
    assert list(statement_lines(source, 6)) == [5, 6, 7]
    assert list(statement_lines(source, 8)) == [8]


def test_the_survivors_of_an_earlier_run_are_known_by_their_change(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"# a line more\n{SOURCE}", encoding="utf-8")
    now = mutants_of_source(f"# a line more\n{SOURCE}", "a.py")
    earlier = [
        {
            "file": "a.py",
            "what": mutant.what,
            "diff": mutant.diff(SOURCE),
            "verdict": "killed" if number else "survived",
        }
        for number, mutant in enumerate(mutants_of_source(SOURCE, "a.py"))
    ]
    assert [mutant.diff(f"# a line more\n{SOURCE}") for mutant in survivors(now, earlier, tmp_path)] == [
        earlier[0]["diff"]
    ]


# ------------------------------------------------------------------------------------------------ tests in forks

PROGRAM: Final = '''"""Is broken by the tests below."""

import functools

LIMIT = 3


class Rule:
    """Has a method and a default."""

    def passes(self, number: int, least: int = 1) -> bool:
        return least <= number < LIMIT


@functools.cache
def remembered() -> int:
    return 5


def outer(number: int) -> int:
    def inner() -> int:
        return number + 1

    return inner()


def loops(number: int) -> int:
    while number > 0:
        number -= 1
    return number
'''
ITS_TESTS: Final = """
import pytest

import program

at_import = program.remembered()
kept = program.Rule().passes


@pytest.mark.parametrize("number", [1, 2])
def test_passes(number):
    assert kept(number)


def test_refuses():
    assert not kept(0) and not kept(3)


def test_remembers():
    assert program.remembered() == 5


def test_adds():
    assert program.outer(1) == 2


def test_ends():
    assert program.loops(2) == 0


def test_fails_in_any_fork():
    assert False
"""
SOUND: Final = ["tests/test_program.py::test_passes", "tests/test_program.py::test_refuses"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("p")
    (folder / "src").mkdir()
    (folder / "tests").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\n", encoding="utf-8")
    (folder / "src" / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "tests" / "test_program.py").write_text(ITS_TESTS, encoding="utf-8")
    return folder / "src" / "program.py"


@pytest.fixture(scope="module")
def warm(program: Path) -> Iterator[WarmTests]:
    # The plugin is found in this project, the tests in the other.
    environment = environment_of(program.parent)
    environment["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    tests = WarmTests(["tests"], program.parent, program.parents[1], os.environ | environment)
    yield tests
    tests.close()


def broken(warm: WarmTests, program: Path, before: str, after: str, *tests: str, limit: float = 60) -> tuple[str, str]:
    assert PROGRAM.count(before) == 1
    named = [f"tests/test_program.py::{test}" for test in tests]
    answer, by, _ = warm.run_changed(named, limit, program, PROGRAM, PROGRAM.replace(before, after))
    return answer, by.rpartition("::")[2]


def test_a_change_of_a_function_is_noticed_in_a_fork_and_gone_in_the_next(warm: WarmTests, program: Path) -> None:
    """The tests hold methods of objects that were made, and results that were remembered, before the fork."""
    both = ("test_passes", "test_refuses")
    assert broken(warm, program, "least <= number", "least < number", *both) == ("failed", "test_passes[1]")
    assert broken(warm, program, "number < LIMIT", "number <= LIMIT", *both) == ("failed", "test_refuses")
    assert broken(warm, program, "number < LIMIT", "number < LIMIT + 0", *both) == ("passed", "")
    assert broken(warm, program, "return 5", "return 6", "test_remembers") == ("failed", "test_remembers")
    assert broken(warm, program, "number + 1", "number - 1", "test_adds") == ("failed", "test_adds")
    assert warm.run(SOUND, 60) == ("passed", "", 3)


def test_a_fork_that_does_not_end_is_ended(warm: WarmTests, program: Path) -> None:
    assert broken(warm, program, "number -= 1", "number -= 0", "test_ends", limit=1) == ("timed out", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("least: int = 1", "least: int = 2"),
        ("@functools.cache\n", "@functools.cache\n@id\n"),
    ],
)
def test_of_a_change_that_has_taken_effect_before_a_fork_nothing_is_known(
    warm: WarmTests, program: Path, before: str, after: str
) -> None:
    assert broken(warm, program, before, after, "test_passes", "test_refuses") == ("unknown", "")
    assert warm.run(["tests/test_program.py::test_of_old"], 60) == ("unknown", "", 0)


def test_code_that_closes_over_something_else_is_not_put_in_its_place() -> None:
    changed = PROGRAM.replace("        return number + 1", "        return 1")
    assert replacements(PROGRAM, changed, "program.py") is None


def test_a_test_that_fails_in_a_fork_as_the_code_stands_judges_nothing(tmp_path: Path, warm: WarmTests) -> None:
    """A kill counts when the same tests pass without the mutant; else a process of its own is asked."""
    asked: list[object] = []

    class Asked(Workshop):
        def __init__(self) -> None:
            self._folder, self._warm, self._passing = tmp_path, warm, set()

        def run_tests(self, tests: object, limit: float) -> tuple[str, str]:  # type: ignore[override]
            asked.append(tests)
            return "survived", ""

    (tmp_path / "src").mkdir()
    (tmp_path / "src/program.py").write_text(PROGRAM, encoding="utf-8")
    harmless = Mutant("src/program.py", 1, "nothing", 0, 0, "")
    test = "tests/test_program.py::test_fails_in_any_fork"
    covering = Covering((), {"src/program.py": {1: frozenset({test})}}, {})
    assert Asked().judge(harmless, covering, 60).verdict == "survived"
    assert asked == [(test,)]


def test_the_tests_that_cannot_be_collected_are_said(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "test_a.py").write_text("import nothing_like_it\n", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with pytest.raises(RuntimeError, match="nothing_like_it"):
        WarmTests(["test_a.py"], tmp_path / "src", tmp_path, environment)
