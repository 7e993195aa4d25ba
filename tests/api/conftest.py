"""One controller for all tests of a file: each test uses pipelines of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.embedded.service import Service
from tests.api.running import pipeline, running


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, httpx.Client]]:
    folder: Path = tmp_path_factory.mktemp("controller")
    with running(folder) as found:
        yield found


@pytest.fixture(scope="module")
def service(controller: tuple[Service, httpx.Client]) -> Service:
    return controller[0]


@pytest.fixture(scope="module")
def api(controller: tuple[Service, httpx.Client]) -> httpx.Client:
    return controller[1]


@pytest.fixture
def apply(api: httpx.Client) -> Callable[..., str]:
    """Apply a pipeline like `gold` under another name."""

    def apply_(name: str, **changes: Any) -> str:
        response = api.put(f"/api/v1/pipelines/{name}", json=pipeline(name, **changes))
        assert response.status_code in (200, 201), response.text
        return name

    return apply_
