"""The guide's page: each printed config is valid, raises no warning, and is run as printed."""

import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from interlock.config.loader import load_paths
from interlock.control import records
from interlock.embedded.clock import ScaledClock
from interlock.embedded.service import Service, ServiceSettings
from interlock.embedded.targets import abilities
from interlock.model.config import ProbeType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from tests.api.running import until
from tests.jobs.api_server import ApiServer, Call, Reply

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "probes.md"
CONFIGS = {
    yaml.safe_load(text)["probes"][0]["type"]: text
    for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
}
DAY = "2026-03-02"


class Quality(ApiServer):
    def answer(self, call: Call) -> Reply:
        asked = (call.path, call.json(), call.headers["authorization"])
        good = asked == (("evaluate",), {"dataset": "orders", "day": DAY}, "Bearer q-q-q-q-q")
        return Reply(200, {"status": "pass"}) if good else Reply(404)


Scene = Callable[[Path, ExitStack, pytest.MonkeyPatch], dict[str, str]]


def file(folder: Path, _stack: ExitStack, _patch: pytest.MonkeyPatch) -> dict[str, str]:
    (folder / "landing" / DAY).mkdir(parents=True)
    (folder / "landing" / DAY / "orders.csv").write_text("1")
    at = datetime(2026, 3, 2, 7, tzinfo=UTC).timestamp()
    os.utime(folder / "landing" / DAY / "orders.csv", (at, at))
    return {}


def sql(folder: Path, _stack: ExitStack, _patch: pytest.MonkeyPatch) -> dict[str, str]:
    with sqlite3.connect(folder / "warehouse.db") as connection:
        connection.execute("CREATE TABLE orders (day TEXT, loaded_at TEXT)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(DAY, f"{DAY}T07:41:00Z")] * 1000)
    return {"INTERLOCK_SECRET_WAREHOUSE": f"sqlite:///{folder}/warehouse.db"}


def s3(_folder: Path, stack: ExitStack, patch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "nobody")
    stack.enter_context(mock_aws())
    client = boto3.client("s3", region_name="eu-west-1")
    client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    client.put_object(Bucket="lake", Key="orders/2026-03-01/_SUCCESS", Body=b"")
    return {}


def http(_folder: Path, stack: ExitStack, _patch: pytest.MonkeyPatch) -> dict[str, str]:
    server = stack.enter_context(Quality())
    return {"INTERLOCK_QUALITY_URL": server.url, "INTERLOCK_SECRET_QUALITY": "q-q-q-q-q"}


def command(folder: Path, _stack: ExitStack, _patch: pytest.MonkeyPatch) -> dict[str, str]:
    (folder / "probes").mkdir()
    (folder / "probes" / "lag.py").write_text(
        "import json, os, sys\n"
        "assert json.load(sys.stdin)['key'] == 'lag' and os.environ['TOPIC'] == 'orders'\n"
        "print(json.dumps({'minutes': 3}))\n"
    )
    return {}


SCENES: dict[str, Scene] = {"file": file, "sql": sql, "s3": s3, "http": http, "command": command}


def test_there_is_one_of_each_kind() -> None:
    assert set(CONFIGS) == set(SCENES) == {str(type_) for type_ in ProbeType}


@pytest.mark.parametrize("type_", SCENES)
def test_a_config_is_valid_as_printed(type_: str, tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(CONFIGS[type_])
    assert load_paths([tmp_path / "pipeline.yaml"], abilities=abilities()).problems == ()


@contextmanager
def running(folder: Path, clock: ScaledClock, environment: dict[str, str]) -> Iterator[Service]:
    settings = ServiceSettings(
        store=folder / "interlock.db",
        pipelines=folder / "pipelines",
        allow_private_addresses=True,
        working_folder=folder,
        environment={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **environment},
        watchdog_every=timedelta(hours=1),
    )
    service = Service(settings, clock=clock)
    try:
        assert service.start().problems == ()
        yield service
    finally:
        service.stop()


@pytest.mark.parametrize("type_", SCENES)
def test_a_config_is_run_as_printed(type_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "pipeline.yaml").write_text(CONFIGS[type_])
    document: dict[str, Any] = yaml.safe_load(CONFIGS[type_])
    date = "2026-03-01" if document["schedule"].get("period") == "previous" else DAY
    key = RunKey(document["pipeline"]["id"], "cron", date)
    clock = ScaledClock(datetime(2026, 3, 2, 7, 59, 50, tzinfo=UTC), 0.01)
    with ExitStack() as stack:
        environment = SCENES[type_](tmp_path, stack, monkeypatch)
        service = stack.enter_context(running(tmp_path, clock, environment))
        clock.set_speed(20)

        def done() -> bool:
            run = records.get_run(service.engine.store, key)
            return run is not None and run.status is RunStatus.COMPLETED

        until(done, "the run that waits for its probe")
