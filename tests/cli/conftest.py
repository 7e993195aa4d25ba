"""A real `interlock serve` for all tests of the commands that talk to one: each test uses a pipeline of its own."""

from collections.abc import Iterator

import pytest

from tests.api.running import Process, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with serving(tmp_path_factory.mktemp("served")) as process:
        yield process


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's own shell names must not decide a test."""
    for name in ("INTERLOCK_URL", "INTERLOCK_STORE", "INTERLOCK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
