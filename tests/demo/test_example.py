"""The example as a whole: it validates without a warning, its scenarios come true, and it travels with the package."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from interlock.config.loader import load_paths
from interlock.demo.example import example_folder, lay_out
from interlock.simulation.play import play_file

EXAMPLE = example_folder()
ROOT = Path(__file__).parent.parent.parent
SCENARIOS = [EXAMPLE / "scenario.yaml", *sorted((EXAMPLE / "scenarios").glob("*.yaml"))]


def test_the_example_of_a_checkout_is_the_one_in_examples() -> None:
    assert EXAMPLE == ROOT / "examples" / "medallion"


def test_the_pipelines_have_neither_errors_nor_warnings() -> None:
    loaded = load_paths([EXAMPLE])
    assert [str(problem) for problem in loaded.problems] == []
    assert {one.config.id for one in loaded.configs} == {
        "crypto-gold",
        "crypto-silver",
        "earthquake-gold",
        "earthquake-silver",
    }


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_comes_true(path: Path) -> None:
    played = play_file(path)
    assert [failure.message for failure in played.failures] == []
    played.world.database.close()


def test_every_folder_that_the_demo_lays_out_is_part_of_the_package(tmp_path: Path) -> None:
    lay_out(tmp_path)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    included = build["targets"]["wheel"]["force-include"]
    assert {
        f"examples/medallion/{folder.name}": f"interlock/demo/medallion/{folder.name}" for folder in tmp_path.iterdir()
    } == included


def test_an_installed_package_finds_the_example_beside_itself(tmp_path: Path) -> None:
    package = tmp_path / "site" / "interlock"
    (package / "demo" / "medallion").mkdir(parents=True)
    lay_out(package / "demo" / "medallion")
    code = (ROOT / "src" / "interlock" / "demo" / "example.py").read_text()
    (package / "demo" / "example.py").write_text(code)
    program = (
        "import importlib.util, sys;"
        f"spec = importlib.util.spec_from_file_location('installed', {str(package / 'demo' / 'example.py')!r});"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module);"
        "print(module.example_folder())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(package / "demo" / "medallion")
