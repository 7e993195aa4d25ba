"""examples/medallion-aws: ingest functions on moto with a feed on loopback, pipelines, module, scripts."""

import importlib
import json
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from interlock.aws.dynamodb import attributes
from interlock.cli.main import main
from tools.terraform import offline

EXAMPLE = offline.ROOT / "examples" / "medallion-aws"
TABLE = "medallion-interlock-control"


class Feed:
    """A feed on loopback; what it answers may change."""

    def __init__(self) -> None:
        self.answer: Any = {}
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(feed.answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/"


class Stage:
    """A bucket, the control table, and the two functions."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.s3 = boto3.client("s3")
        self.dynamodb = boto3.client("dynamodb")
        self.s3.create_bucket(Bucket="lake")
        self.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
            BillingMode="PAY_PER_REQUEST",
        )

    def read(self, name: str, at: str) -> dict[str, int]:
        found: dict[str, int] = module(name).handler({"time": at}, None)
        return found

    def sensors(self) -> dict[tuple[str, str], dict[str, Any]]:
        items = self.dynamodb.scan(TableName=TABLE)["Items"]
        return {(one["PK"]["S"], one["SK"]["S"]): attributes.decode_item(one) for one in items}

    def bronze(self, key: str) -> list[dict[str, Any]]:
        body = self.s3.get_object(Bucket="lake", Key=key)["Body"].read().decode()
        return [json.loads(line) for line in body.splitlines()]


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    feed = Feed()
    monkeypatch.syspath_prepend(str(EXAMPLE / "ingest"))
    for name in ("landing", "earthquake", "crypto"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, value in {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "BUCKET": "lake",
        "CONTROL_TABLE": TABLE,
        "FEED_URL": feed.url,
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield Stage(feed)
    feed.server.shutdown()
    feed.server.server_close()
    for name in ("landing", "earthquake", "crypto"):
        sys.modules.pop(name, None)


def quake(id_: str, millis: int | None, magnitude: float | None = 2.5) -> dict[str, Any]:
    return {
        "id": id_,
        "properties": {"time": millis, "mag": magnitude, "place": "12 km SW of Volcano, Hawaii"},
        "geometry": {"coordinates": [-155.2, 19.4, 31.9]},
    }


AT_09_50 = 1_772_445_000_000
AT_10_05 = 1_772_445_900_000


def test_an_hour_of_earthquakes_is_told_of_when_it_is_over(stage: Stage) -> None:
    stage.feed.answer = {"features": [quake("a", AT_09_50), quake("b", AT_09_50), quake("no-time", None)]}
    assert stage.read("earthquake", "2026-03-02T09:55:00Z") == {"2026-03-02T08": 0, "2026-03-02T09": 2}
    assert stage.sensors() == {}, "the hour is not over, and nothing came in the hour before"

    stage.feed.answer = {"features": [quake("b", AT_09_50, 3.1), quake("c", AT_10_05)]}
    assert stage.read("earthquake", "2026-03-02T10:20:00Z") == {"2026-03-02T09": 2, "2026-03-02T10": 1}
    ((key, sensor),) = stage.sensors().items()
    assert key == ("PIPELINE#earthquake-silver", "SENSOR#hourly-status#20260302T09")
    assert (sensor["status"], sensor["rows"]) == ("landed", 2)
    assert sensor["ttl"] > AT_10_05 / 1000
    kept = stage.bronze("bronze/earthquake/date=2026-03-02/hour=09/records.jsonl")
    assert [(one["id"], one["magnitude"]) for one in kept] == [("a", 2.5), ("b", 3.1)], "a revised report replaces"


def test_a_late_report_is_told_of_with_more_rows(stage: Stage) -> None:
    stage.feed.answer = {"features": [quake("a", AT_09_50)]}
    stage.read("earthquake", "2026-03-02T10:20:00Z")
    stage.feed.answer = {"features": [quake("late", AT_09_50)]}
    stage.read("earthquake", "2026-03-02T10:40:00Z")
    (sensor,) = stage.sensors().values()
    assert sensor["rows"] == 2


def test_a_reading_may_be_repeated(stage: Stage) -> None:
    stage.feed.answer = {"features": [quake("a", AT_09_50)]}
    first = stage.read("earthquake", "2026-03-02T10:20:00Z")
    written = stage.s3.list_objects_v2(Bucket="lake")["Contents"]
    assert stage.read("earthquake", "2026-03-02T10:20:00Z") == first
    assert stage.s3.list_objects_v2(Bucket="lake")["Contents"] == written, "nothing new, nothing written"


def test_prices_have_three_snapshots_to_the_hour(stage: Stage) -> None:
    stage.feed.answer = {"data": [{"id": str(n), "symbol": f"C{n}", "price_usd": "1.5"} for n in range(100)]}
    for at in ("09:00:03", "09:20:02", "09:21:40", "09:40:01"):
        stage.read("crypto", f"2026-03-02T{at}Z")
    assert stage.read("crypto", "2026-03-02T10:00:02Z") == {"2026-03-02T09": 300, "2026-03-02T10": 100}
    ((key, sensor),) = stage.sensors().items()
    assert key == ("PIPELINE#crypto-silver", "SENSOR#hourly-status#20260302T09")
    assert sensor["rows"] == 300


def test_a_feed_that_is_down_fails_the_reading_and_keeps_what_is_there(stage: Stage) -> None:
    stage.feed.answer = ["not a feed"]
    with pytest.raises(TypeError):
        stage.read("earthquake", "2026-03-02T10:20:00Z")
    assert stage.sensors() == {}


def test_its_package_is_the_same_every_time(stage: Stage, tmp_path: Path) -> None:
    build = module("build").build
    for name in ("a.zip", "b.zip"):
        build(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.zip").namelist() == ["crypto.py", "earthquake.py", "landing.py"]
    sys.modules.pop("build", None)


def test_its_pipelines_are_those_that_were_validated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE)
    with pytest.raises(SystemExit) as ended:
        main(("validate", "--json", "."))
    found = json.loads(capsys.readouterr().out)
    assert (ended.value.code or 0, found["errors"], found["warnings"]) == (0, [], [])
    assert found == json.loads(Path("pipelines.json").read_text(encoding="utf-8")), (
        "in examples/medallion-aws: interlock validate --json . > pipelines.json"
    )
    jobs = {json.loads(one["document"])["job"]["config"]["jobName"] for one in found["configs"]}
    scripts = {path.stem.replace("_", "-") for path in EXAMPLE.glob("glue/*_*.py")}
    assert jobs == {f"${{INTERLOCK_JOB_PREFIX}}-{name}" for name in scripts}


def test_its_module_is_valid(tmp_path: Path) -> None:
    try:
        for arguments in (["init", "-input=false", "-backend=false"], ["validate"]):
            done = offline.run_terraform(*arguments, "-no-color", folder=EXAMPLE, data=tmp_path / "data")
            assert done.returncode == 0, done.stdout + done.stderr
    except offline.MissingToolError as error:
        pytest.skip(str(error))
