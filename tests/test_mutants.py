"""The tool that breaks the code on purpose (`make mutants`)."""

from pathlib import Path
from typing import Final

import pytest

from tools.mutants import ALSO, ROOT, TESTS, Mutant, Workshop, also_for, drawn, mutants_of_folder, mutants_of_source

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
    named = [test for tests in (*TESTS.values(), *ALSO.values()) for test in tests]
    assert [test for test in named if not (ROOT / test.split("::")[0]).exists()] == []
    assert [start for start in ALSO if not list((ROOT / start).parent.glob(f"{Path(start).name}*.py"))] == []
    assert also_for("src/interlock/control/alert_channels.py") == ALSO["src/interlock/control/alert_"]
    assert also_for("src/interlock/control/router.py") == ()


def test_a_mutant_is_killed_by_a_test_that_notices_and_survives_another(tmp_path: Path) -> None:
    file = "src/interlock/decide/masking.py"
    source = (ROOT / file).read_text(encoding="utf-8")
    broken = Mutant(file, 1, "dropped everything", 0, len(source), "")
    before = (tmp_path / "a", tmp_path / "b")
    assert Workshop(before[0], ["tests/decide/test_masking.py"]).judge(broken, 60).verdict == "killed"
    assert Workshop(before[1], ["tests/decide/test_cron.py"]).judge(broken, 60).verdict == "survived"
    assert (before[0] / file).read_text(encoding="utf-8") == source
