"""The tool that breaks the code on purpose (`make mutants`)."""

from pathlib import Path
from typing import Final

import pytest

from tools.covering import Covering, measured, named_by, remembered_lines, statement_lines
from tools.mutants import ROOT, TESTS, Mutant, Workshop, drawn, mutants_of_folder, mutants_of_source

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


def test_a_mutant_is_killed_by_a_test_that_notices_and_survives_another(tmp_path: Path) -> None:
    source = (ROOT / FILE).read_text(encoding="utf-8")
    broken = Mutant(FILE, 1, "dropped everything", 0, len(source), "")
    workshop = Workshop(tmp_path / "a")

    def verdict(test: str) -> tuple[str, str]:
        outcome = workshop.judge(broken, Covering((test,), {}, {FILE: frozenset({1})}), 60)
        return outcome.verdict, outcome.by.split("::")[0]

    assert verdict("tests/decide/test_masking.py") == ("killed", "ERROR tests/decide/test_masking.py")
    assert verdict("tests/decide/test_cron.py") == ("survived", "")
    assert (tmp_path / "a" / FILE).read_text(encoding="utf-8") == source


def test_a_mutant_that_no_test_runs_survives_at_once_and_a_test_by_a_lost_name_is_not_a_kill(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "a")
    harmless = Mutant(FILE, 1, "nothing", 0, 0, "")
    outcome = workshop.judge(harmless, Covering(("tests/decide",), {}, {}), 60)
    assert (outcome.verdict, outcome.by) == ("survived", "no test runs this line")
    renamed = Covering((), {FILE: {1: frozenset({"tests/decide/test_masking.py::test_of_old"})}}, {})
    assert workshop.judge(harmless, renamed, 60).verdict == "survived"


def test_the_tests_of_a_line_are_those_that_run_it(tmp_path: Path) -> None:
    tests = ("tests/decide/test_cron.py", "tests/decide/test_masking.py")
    covering = measured(tests, "src/interlock/decide", tmp_path, ROOT, ROOT / "src")
    assert isinstance(covering, Covering), covering
    source = (ROOT / FILE).read_text(encoding="utf-8")
    lines = source.splitlines()
    inside = next(line for line, text in enumerate(lines, start=1) if "self._" in text)
    found = covering.of(FILE, [inside])
    assert found
    assert {test.split("::")[0] for test in found} == {"tests/decide/test_masking.py"}
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
