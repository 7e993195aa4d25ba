"""Each kind of probe against the real thing: a server on loopback, processes, files, SQLite, S3 as moto plays it."""

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from moto import mock_aws

from interlock import extras
from interlock.decide.probes import fill_probe
from interlock.jobs.secrets import SecretStore
from interlock.model.config import Probe, ProbeType
from interlock.model.errors import ProbeError
from interlock.model.periods import parse_period
from interlock.ports.probes import ProbeRequest
from interlock.probes import registry
from interlock.probes.registry import Probes, ProbeSettings
from tests.jobs.api_server import ApiServer, Call, Reply

SECRET = "s3cr3t-s3cr3t"
ENVIRONMENT = {"INTERLOCK_SECRET_KEY": SECRET, "PATH": os.environ["PATH"], "HOME": "/nowhere", "SLACK_BOT_TOKEN": "x"}


class Evaluator(ApiServer):
    """Answers with `reply`."""

    reply: Reply = Reply(200, {"rows": 7})

    def answer(self, call: Call) -> Reply:
        return self.reply


@pytest.fixture
def probes(tmp_path: Path) -> Iterator[Probes]:
    settings = ProbeSettings(environment=ENVIRONMENT, allow_private=("127.0.0.1",), working_folder=tmp_path)
    made = Probes(settings, SecretStore(ENVIRONMENT))
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[Evaluator]:
    with Evaluator() as running:
        yield running


def request(type_: str, config: dict[str, Any], *, date: str = "", seconds: float = 10) -> ProbeRequest:
    probe = Probe(key="landed", type=ProbeType(type_), config=config)
    filled = fill_probe(probe, "gold", parse_period(date) if date else None, {}, where="config")
    return ProbeRequest(
        pipeline="gold", key="landed", type=probe.type, config=filled, timeout=timedelta(seconds=seconds), date=date
    )


def failure(probes: Probes, asked: ProbeRequest) -> str:
    with pytest.raises(ProbeError) as caught:
        probes.look(asked)
    assert SECRET not in str(caught.value)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------ http


def test_http_posts_what_is_asked_and_takes_the_json_back(probes: Probes, server: Evaluator) -> None:
    headers = {"x-key": "${INTERLOCK_SECRET_KEY}"}
    assert probes.look(request("http", {"url": f"{server.url}/rows", "headers": headers})) == {"rows": 7}
    (call,) = server.calls
    assert (call.method, call.path, call.headers["x-key"]) == ("POST", ("rows",), SECRET)
    assert call.json() == {"pipeline": "gold", "key": "landed", "date": None}


def test_http_with_a_body_of_its_own_and_a_date(probes: Probes, server: Evaluator) -> None:
    config = {"url": f"{server.url}/${{DATE}}", "method": "put", "body": {"hour": "${HOUR}"}}
    probes.look(request("http", config, date="2026-03-02T07"))
    (call,) = server.calls
    assert (call.method, call.path, call.json()) == ("PUT", ("2026-03-02",), {"hour": "07"})


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(503, {"detail": f"not now, {SECRET}"}), "answered 503 Service Unavailable"),
        (Reply(200, [1, 2]), "is not a JSON object"),
        (Reply(200, b"<html>"), "is not JSON"),
        (Reply(200, b""), "it is empty"),
        (Reply(302, {}, {"location": "http://169.254.169.254/"}), "answered 302"),
        (Reply(200, {"long": "x" * 70_000}), "larger than"),
    ],
)
def test_http_answers_that_are_no_observation(probes: Probes, server: Evaluator, reply: Reply, message: str) -> None:
    server.reply = reply
    asked = request("http", {"url": f"{server.url}/?token=${{INTERLOCK_SECRET_KEY}}"})
    assert message in failure(probes, asked)


def test_http_keeps_its_timeout_and_the_address_guard(probes: Probes, server: Evaluator, tmp_path: Path) -> None:
    assert "no answer within" in failure(probes, request("http", {"url": f"{server.url}/hang"}, seconds=0.000001))
    strict = Probes(ProbeSettings(environment=ENVIRONMENT, working_folder=tmp_path), SecretStore(ENVIRONMENT))
    assert "loopback address 127.0.0.1, which jobs and probes may not call" in failure(
        strict, request("http", {"url": server.url})
    )
    strict.close()


def test_a_secret_that_is_echoed_is_hidden_in_the_observation(probes: Probes, server: Evaluator) -> None:
    server.reply = Reply(200, {"you": [f"said {SECRET}"]})
    asked = request("http", {"url": server.url, "body": {"key": "${INTERLOCK_SECRET_KEY}"}})
    assert probes.look(asked) == {"you": ["said ***"]}


# --------------------------------------------------------------------------------------------------------- command


def python(code: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", code]}


def test_command_is_given_json_and_answers_with_json(probes: Probes, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    code = (
        "import json, os, sys; asked = json.load(sys.stdin);"
        " print(json.dumps({**asked, 'cwd': os.getcwd(), 'env': sorted(os.environ), 'day': sys.argv[1]}))"
    )
    config = {"command": [sys.executable, "-c", code, "${DATE}"], "cwd": "here", "env": {"N": 1, "OK": True}}
    seen = probes.look(request("command", config, date="2026-03-02"))
    assert seen["cwd"] == str(tmp_path / "here")
    assert (seen["pipeline"], seen["key"], seen["date"], seen["day"]) == ("gold", "landed", "2026-03-02", "2026-03-02")
    assert {"N", "OK", "PATH", "HOME"} <= set(seen["env"])
    assert "SLACK_BOT_TOKEN" not in seen["env"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (python("import sys; sys.exit('no such table')"), "exited with 1: no such table"),
        (python("import os; os.kill(os.getpid(), 9)"), "was killed by signal 9"),
        (python("print('hello')"), "is not JSON"),
        (python("print('x' * 70000)"), "larger than"),
        ({"command": "no-such-program-here"}, "there is no program 'no-such-program-here' on the PATH"),
        ({"command": ["./gone"]}, "cannot be started"),
        ({"command": ["true"], "cwd": "gone"}, "there is no folder"),
        ({"command": ["true"], "env": {"A=B": "x"}}, "cannot be the name of a variable"),
    ],
)
def test_command_that_fails(probes: Probes, config: dict[str, Any], message: str) -> None:
    assert message in failure(probes, request("command", config))


def _ended(pid: int) -> bool:
    """A signal is delivered when its process is next scheduled, and nobody may be there to reap it."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        threading.Event().wait(0.01)
    return False


def test_command_that_hangs_is_killed_with_its_children(probes: Probes, tmp_path: Path) -> None:
    config = {"command": ["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/child; wait"]}
    assert "had not ended after 500ms, and was killed" in failure(probes, request("command", config, seconds=0.5))
    child = int((tmp_path / "child").read_text())
    assert _ended(child)


# ------------------------------------------------------------------------------------------------------------- sql


@pytest.fixture
def database(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "warehouse.db") as connection:
        connection.execute("CREATE TABLE orders (day TEXT, amount REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [("2026-03-02", 1.5), ("2026-03-02", 2.5)])
    return f"sqlite:///{tmp_path / 'warehouse.db'}"


def test_sql_takes_the_one_row(probes: Probes, database: str) -> None:
    query = "SELECT count(*) AS count, sum(amount) AS total, max(day) AS day, NULL AS no, ':x' AS colon FROM orders"
    seen = probes.look(
        request("sql", {"url": database, "query": f"{query} WHERE day = '${{DATE}}'"}, date="2026-03-02")
    )
    assert seen == {"count": 2, "total": 4.0, "day": "2026-03-02", "no": None, "colon": ":x"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT day FROM orders", "more than one row"),
        ("SELECT day FROM orders WHERE 0", "gave no row"),
        ("SELECT * FROM missing", "no such table: missing"),
        ("SELECT x'00' AS b", "column b: a bytes has no place in a sensor"),
    ],
)
def test_sql_that_fails(probes: Probes, database: str, query: str, message: str) -> None:
    assert message in failure(probes, request("sql", {"url": database, "query": query}))


def test_sql_that_takes_too_long_is_cancelled(probes: Probes, database: str) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n"
    assert "had not ended after 200ms" in failure(
        probes, request("sql", {"url": database, "query": endless}, seconds=0.2)
    )


def test_sql_changes_nothing_and_hides_the_password(probes: Probes, database: str, tmp_path: Path) -> None:
    failure(probes, request("sql", {"url": database, "query": "DELETE FROM orders"}))
    assert probes.look(request("sql", {"url": database, "query": "SELECT count(*) AS n FROM orders"})) == {"n": 2}
    url = "nosuch+driver://me:${INTERLOCK_SECRET_KEY}@host/db"
    assert failure(probes, request("sql", {"url": url, "query": "SELECT 1 AS n"})).startswith("url: ")


# -------------------------------------------------------------------------------------------------------- file, s3


def test_file_says_how_many_how_large_and_how_old(probes: Probes, tmp_path: Path) -> None:
    config = {"path": "in/${DATE}/**/*.csv"}
    assert probes.look(request("file", config, date="2026-03-02")) == {"exists": False, "count": 0, "size": 0}
    for name, size, at in (("a.csv", 10, 1_772_400_000), ("deep/b.csv", 5, 1_772_400_060), ("c.txt", 1, 1_772_500_000)):
        file = tmp_path / "in" / "2026-03-02" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
        os.utime(file, (at, at))
    (tmp_path / "in" / "2026-03-02" / "folder.csv").mkdir()
    (tmp_path / "in" / "2026-03-02" / "gone.csv").symlink_to("nowhere")
    assert probes.look(request("file", config, date="2026-03-02")) == {
        "exists": True,
        "count": 2,
        "size": 15,
        "modifiedAt": "2026-03-01T21:21:00Z",
        "oldestAt": "2026-03-01T21:20:00Z",
    }


def test_s3_counts_what_lies_below_a_prefix(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="lake")
        for key, body in (("orders/", b""), ("orders/a.csv", b"12345"), ("orders/b.csv", b"1"), ("else", b"1")):
            s3.put_object(Bucket="lake", Key=key, Body=body)
        config = {"bucket": "lake", "prefix": "orders/", "region": "us-east-1"}
        seen = probes.look(request("s3", config))
        assert (seen["exists"], seen["count"], seen["size"]) == (True, 2, 6)
        assert seen["modifiedAt"] >= seen["oldestAt"]
        nothing = probes.look(request("s3", {**config, "prefix": "none/"}))
        assert nothing == {"exists": False, "count": 0, "size": 0}
        assert "AWS answered NoSuchBucket" in failure(probes, request("s3", {**config, "bucket": "gone"}))


# --------------------------------------------------------------------------------------------------- what they need


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, probes: Probes) -> None:
    assert registry.missing_probes() == {}
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    missing = registry.missing_probes()
    assert "pip install 'interlock[sql]'" in missing[ProbeType.SQL]
    assert "pip install 'interlock[aws]'" in missing[ProbeType.S3]
    assert "interlock[sql]" in failure(probes, request("sql", {"url": "sqlite://", "query": "SELECT 1 AS n"}))


def test_a_secret_that_is_not_there_is_said(probes: Probes) -> None:
    said = failure(probes, request("file", {"path": "${INTERLOCK_SECRET_GONE}"}))
    assert said == "the secret ${INTERLOCK_SECRET_GONE} is not set where the controller runs"
