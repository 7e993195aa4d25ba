"""The nearest names of an unknown pipeline: for those who may see them, and never for long."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.running import Process, pipeline, problem, serving, write_pipeline
from tests.security.commands import interlock

_PIPELINES = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("many")
    for number in range(_PIPELINES):
        write_pipeline(folder, f"payroll-of-team-{number}", pipeline(f"payroll-of-team-{number}"))
    with serving(folder) as process:
        yield process


def _token(folder: Path, name: str, *scopes: str) -> dict[str, str]:
    options = [part for scope in scopes for part in ("--scope", scope)]
    done = interlock(folder, "token", "create", "--name", name, *options)
    assert done.returncode == 0, done.stderr
    (token,) = [word for word in done.stdout.split() if word.startswith("ilk_")]
    return {"Authorization": f"Bearer {token}"}


def test_a_batch_of_unknown_names_is_refused_quickly(server: Process) -> None:
    sensors = [{"pipeline": f"payroll-of-team-x{number}", "key": "rows", "data": {"n": 1}} for number in range(1000)]
    began = time.monotonic()
    found = problem(server.client.post("/api/v1/sensors:batch", json={"sensors": sensors}), 404, "unknown-pipeline")
    assert time.monotonic() - began < 5
    assert "did you mean" in found["errors"][0]["message"]
    assert not any("did you mean" in one["message"] for one in found["errors"][1:])


def test_only_who_may_read_hears_names(server: Process) -> None:
    unknown = "/api/v1/pipelines/payroll-of-team-x"
    body = {"date": "2026-03-02", "result": "success"}
    writer = _token(server.folder, "writer", "sensor:write", "job:write")
    reader = _token(server.folder, "reader", "read", "sensor:write")
    done = interlock(
        server.folder, "token", "create", "--name", "narrow", "--scope", "sensor:write", "--scope", "job:write",
        "--pipeline", "payroll-of-team-1",
    )  # fmt: skip
    narrow = {"Authorization": f"Bearer {next(word for word in done.stdout.split() if word.startswith('ilk_'))}"}
    for query in ("", "?ttl=9999999999"):
        path = f"{unknown}/sensors/rows{query}"
        reported = problem(server.client.put(path, json={"n": 1}, headers=writer), 404, "unknown-pipeline")
        assert "team-1" not in reported["detail"]
        reported = problem(server.client.put(path, json={"n": 1}, headers=reader), 404, "unknown-pipeline")
        assert "did you mean payroll-of-team-" in reported["detail"]
        problem(server.client.put(path, json={"n": 1}, headers=narrow), 403, "forbidden")
    problem(server.client.post(f"{unknown}/jobs", json=body, headers=narrow), 403, "forbidden")
    reported = problem(server.client.post(f"{unknown}/jobs", json=body, headers=writer), 404, "unknown-pipeline")
    assert "team-1" not in reported["detail"]
    sensors = [{"pipeline": "payroll-of-team-x", "key": "rows", "data": {"n": 1}}]
    problem(server.client.post("/api/v1/sensors:batch", json={"sensors": sensors}, headers=narrow), 403, "forbidden")
