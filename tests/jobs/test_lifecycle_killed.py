"""A real controller is killed while a job runs elsewhere; the next one follows the same job to its end."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from interlock.embedded.clock import SystemClock
from tests.api.running import Process, until
from tests.jobs.sites import SECRETS, Airflow3, Databricks, HttpPoll, Site, served
from tests.jobs.stage import DAY, document


@pytest.fixture(params=[Airflow3, Databricks, HttpPoll], ids=lambda kind: kind.__name__)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    made: Site = request.param()
    with served(made):
        yield made


def test_the_job_of_a_killed_controller_is_followed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[jobs]\nallow_private_addresses = true\n")
    (tmp_path / "pipelines").mkdir()
    config = document(site, pollInterval="1s")
    (tmp_path / "pipelines" / "gold.json").write_bytes(msgspec.json.encode(config))
    first = Process(tmp_path, environment=SECRETS)
    try:
        written = first.client.put("/api/v1/pipelines/gold/sensors/ready", json={"status": "ready", "date": DAY})
        assert written.status_code == 200, written.text
        until(lambda: first.run("gold", DAY).get("status") == "RUNNING", "the start")
    finally:
        first.kill()
        first.client.close()
    site.end(SystemClock().now())
    second = Process(tmp_path, environment=SECRETS)
    try:
        found = until(lambda: run if (run := second.run("gold", DAY))["status"] == "COMPLETED" else None, "the end")
        assert found["attempt"] == 1
        assert site.started() == 1
    finally:
        second.stop()
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not [name for name, value in SECRETS.items() if value.encode() in everything]
