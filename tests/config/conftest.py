"""A folder of configs, made from texts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.config.loader import LoadResult, load_paths

Load = Callable[..., LoadResult]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Write files (`__` in a name is a slash) and load them; paths in messages are relative to their folder."""

    def write_and_load(*paths: str, **files: str | bytes) -> LoadResult:
        monkeypatch.chdir(tmp_path)
        for name, content in files.items():
            folder, _, stem = name.rpartition("__")
            suffix = ".json" if stem.endswith("_json") else ".yaml"
            target = Path(folder.replace("__", "/") or "pipelines") / (
                stem.removesuffix("_json").replace("_", "-") + suffix
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_paths([Path(path) for path in paths or (".",)])

    return write_and_load
