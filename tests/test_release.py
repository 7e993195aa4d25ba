"""A release carries the built page: the build hook refuses without it, and the check of a release sees what is wrong.

A small tree is built by the project's own build settings, with a page of a few bytes.
"""

import importlib.util
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.test_repository import ROOT

Builder = WheelBuilder | SdistBuilder

PAGE = "src/interlock/web/dist"
SETTINGS = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", ".ci/page_hook.py")
FILES = (
    "src/interlock/__init__.py",
    "src/interlock/py.typed",
    "src/interlock/control/lifecycle.asl.json",
    f"{PAGE}/index.html",
    f"{PAGE}/licences.txt",
    f"{PAGE}/assets/index-B0Ct3x9a.js",
    *(f"examples/medallion/{folder}/one.yaml" for folder in ("calendars", "feeds", "jobs", "pipelines")),
)


@pytest.fixture(autouse=True)
def page_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERLOCK_WITHOUT_PAGE", raising=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with little in it; git ignores the page, as in the real one."""
    root = tmp_path / "checkout"
    for name in SETTINGS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("what it says\n")
    (root / ".git").mkdir()
    return root


def build(root: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of a tree."""
    return built(WheelBuilder(str(root)), root), built(SdistBuilder(str(root)), root)


def built(builder: Builder, root: Path) -> Path:
    (made,) = builder.build(directory=str(root.parent / "dist"), versions=["standard"])
    return Path(made)


def script(name: str) -> ModuleType:
    """A file of `.ci`, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f".ci/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return script("check_release")


def test_wheel_and_sdist_carry_the_page_with_its_licences(tree: Path, check: ModuleType) -> None:
    wheel, sdist = build(tree)
    with zipfile.ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if "web/dist" in name}
        assert opened.read("interlock/web/dist/licences.txt") == b"what it says\n"
    names = ("index.html", "licences.txt", "assets/index-B0Ct3x9a.js")
    assert packed == {f"interlock/web/dist/{name}" for name in names}
    with tarfile.open(sdist) as archive:
        assert {name.partition("/")[2] for name in archive.getnames()} >= {f"{PAGE}/{name}" for name in names}
    assert check.problems(wheel, sdist) == []


@pytest.mark.parametrize("lost", ["index.html", "licences.txt"])
@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_nothing_is_built_without_the_page(tree: Path, lost: str, builder: Callable[[str], Builder]) -> None:
    (tree / PAGE / lost).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{PAGE}/{lost} is not there: build the page with `make ui`"):
        built(builder(str(tree)), tree)


def test_an_editable_install_needs_no_page(tree: Path) -> None:
    shutil.rmtree(tree / PAGE)
    hook = script("page_hook").PageHook(str(tree), {}, None, None, "", "wheel")
    hook.initialize("editable", {})
    with pytest.raises(FileNotFoundError):
        hook.initialize("standard", {})


def test_a_release_that_was_built_without_the_page_on_purpose_is_not_published(
    tree: Path, check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INTERLOCK_WITHOUT_PAGE", "1")
    shutil.rmtree(tree / PAGE)
    wheel, _ = build(tree)
    assert check.main(wheel.parent) == 1
    said = capsys.readouterr().out.splitlines()
    assert f"{wheel.name}: missing: interlock/web/dist/index.html" in said
    assert f"{wheel.name}: missing: interlock/web/dist/licences.txt" in said
    assert f"{wheel.name}: missing: {PAGE}/index.html (sdist)" in said


def test_a_source_map_is_not_published(tree: Path, check: ModuleType) -> None:
    (tree / PAGE / "assets/index-B0Ct3x9a.js.map").write_text("{}")
    wheel, sdist = build(tree)
    place = "assets/index-B0Ct3x9a.js.map"
    assert check.problems(wheel, sdist) == [
        f"should not be there: interlock/web/dist/{place}",
        f"should not be there: interlock-0.1.0/{PAGE}/{place} (sdist)",
    ]


def test_two_wheels_are_no_release(tree: Path, check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    wheel, _ = build(tree)
    shutil.copy(wheel, wheel.with_name("interlock-0.0.1-py3-none-any.whl"))
    assert check.main(wheel.parent) == 1
    assert "expected one wheel and one sdist" in capsys.readouterr().out
