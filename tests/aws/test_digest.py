"""The digest of the functions' sources."""

from pathlib import Path

import pytest

import interlock
from interlock.aws.operations import digest


def test_the_description_is_read_back() -> None:
    assert digest.read_description(digest.describe()) == (interlock.__version__, digest.source_digest())
    assert digest.read_description("a function of somebody else") is None


def test_it_follows_the_sources_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "aws"
    (package / "inner").mkdir(parents=True)
    for name in digest.PACKAGES:
        (tmp_path / name).mkdir(exist_ok=True)
    (package / "a.py").write_text("one")
    (package / "inner" / "b.json").write_text("{}")
    monkeypatch.setattr(digest, "files", lambda _: tmp_path)
    first = digest.source_digest()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.py").write_text("compiled")
    (package / "notes.txt").write_text("x")
    assert digest.source_digest() == first
    (package / "inner" / "b.json").write_text("[]")
    assert digest.source_digest() != first
    (package / "inner" / "b.json").rename(package / "b.json")
    (package / "b.json").write_text("{}")
    assert digest.source_digest() != first
