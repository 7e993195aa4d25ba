"""Alerts that do not get through are seen: the real `interlock serve`, and a webhook that is down, and up again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.alerts.receivers import Hook
from tests.api.running import Process, pipeline, problem, serving, until, write_pipeline
from tests.api.test_serve import V1, interlock

SETTINGS = """\
[jobs]
allow_private_addresses = true
[[alerts]]
channel = "webhook"
name = "pager"
url = "http://127.0.0.1:{port}/hook"
pattern = {{ detail-type = ["TRIGGER_STARTED"] }}
[[alerts]]
channel = "console"
name = "log"
"""


@pytest.fixture
def receiver() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture
def project(tmp_path: Path, receiver: Hook) -> Path:
    (tmp_path / "interlock.toml").write_text(SETTINGS.format(port=receiver.port))
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    return tmp_path


def ready(server: Process, date: str) -> None:
    answer = server.client.put(f"{V1}/pipelines/gold/sensors/up", json={"status": "ready", "date": date})
    assert answer.status_code == 200


def alerts(server: Process, **params: str) -> Any:
    answer = server.client.get(f"{V1}/alerts", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def degraded(server: Process) -> Any:
    answer = server.client.get("/readyz")
    assert answer.status_code == 200
    return answer.json()["degraded"]


def test_failing_deliveries_are_seen_everywhere_until_they_get_through(project: Path, receiver: Hook) -> None:
    with serving(project) as server:
        assert degraded(server) == []
        ready(server, "2026-03-02")
        (failing,) = until(lambda: [one for one in alerts(server) if one["error"]], "the failure")
        assert failing["channel"] == "pager"
        assert (failing["state"], failing["pipeline"]) == ("waiting", "gold")
        assert failing["tries"] >= 1
        assert failing["eventId"]
        assert failing["dueAt"] is not None
        assert failing["settledAt"] is None
        said = "alerts are not delivered on 1 channel: 1 alert waits (`interlock alerts list`)"
        assert degraded(server) == [said]
        metrics = server.client.get("/metrics").text
        assert "interlock_alert_channels_failing 1.0" in metrics
        assert "interlock_alerts_waiting 1.0" in metrics
        assert f"degraded: {said}" in interlock(project, "status").stdout
        assert "pager fails since" in interlock(project, "doctor").stdout
        listed = interlock(project, "alerts", "list", "--state", "waiting").stdout
        assert "pager" in listed
        assert "gold" in listed
        (row,) = json.loads(interlock(project, "alerts", "list", "--channel", "pager", "--json").stdout)["alerts"]
        assert row["id"] == failing["id"]
        tested = interlock(project, "alerts", "test", "pager")
        assert (tested.returncode, tested.stdout.startswith("pager: not sent: ")) == (1, True)

        receiver.up()
        assert interlock(project, "alerts", "test").stdout.splitlines() == ["log: sent", "pager: sent"]
        (sent,) = until(lambda: alerts(server, state="sent", channel="pager"), "the delivery")
        assert sent["id"] == failing["id"]
        assert sent["error"] == ""
        assert sent["settledAt"] is not None
        assert degraded(server) == []
        bodies = [json.loads(one.body) for one in receiver.requests]
        assert sum("nothing is wrong" in json.dumps(one) for one in bodies) == 1
        # The test is no event: nobody finds it in the history.
        assert server.client.get(f"{V1}/events", params={"type": "INFRA_ALARM"}).json()["items"] == []


def test_what_is_asked_for_wrongly_is_refused(project: Path) -> None:
    with serving(project) as server:
        answer = server.client.post(f"{V1}/alerts:test", json={"channel": "fax"})
        assert "there is no alert channel 'fax': log, pager" in problem(answer, 422, "invalid-value")["detail"]
        assert server.client.get(f"{V1}/alerts", params={"state": "lost"}).status_code == 422
        assert interlock(project, "alerts", "list", "--state", "lost").returncode == 2
        page = server.client.get(f"{V1}/alerts", params={"limit": 1}).json()
        assert page == {"items": [], "next": None}


def test_the_channels_can_be_tried_before_anything_runs(project: Path, receiver: Hook) -> None:
    receiver.up()
    tried = interlock(project, "alerts", "test", "--json")
    assert json.loads(tried.stdout)["channels"] == [
        {"channel": "log", "ok": True, "error": ""},
        {"channel": "pager", "ok": True, "error": ""},
    ]
    assert len(receiver.requests) == 1
    assert not (project / "interlock.db").exists()
