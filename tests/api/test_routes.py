"""Sensors, runs and operation over HTTP: what each route answers, and which problem document when it cannot."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from interlock.control import records
from interlock.embedded.health import HealthCheck, HealthChecks
from interlock.embedded.service import Service
from interlock.model.errors import StoreError
from interlock.ports.store import Delete, Put
from tests.api.running import problem, until

Apply = Callable[..., str]
V1 = "/api/v1"


# ---------------------------------------------------------------------------------------------------------- sensors


@pytest.mark.parametrize(
    "key", ["rows", "a/b", "/lead", "trail/", "hourly#2026-03-03T10", "s3://x/y?z=1&b", "ä ö", "..."]
)
def test_a_sensor_is_read_back_under_the_key_it_was_written(api: httpx.Client, apply: Apply, key: str) -> None:
    apply("keys")
    path = f"{V1}/pipelines/keys/sensors/{_quoted(key)}"
    written = api.put(path, json={"count": 5})
    assert written.status_code == 200, written.text
    assert written.json()["key"] == key
    found = api.get(path).json()
    assert (found["key"], found["data"]) == (key, {"count": 5})
    assert key in [one["key"] for one in api.get(f"{V1}/pipelines/keys/sensors").json()["items"]]


def _quoted(key: str) -> str:
    return quote(key, safe="")


def test_a_sensor_answer_tells_period_and_warnings(api: httpx.Client, apply: Apply) -> None:
    apply("warned")
    good = api.put(f"{V1}/pipelines/warned/sensors/rows", json={"count": 5, "date": "2026-03-03", "hour": 7}).json()
    assert (good["period"], good["warnings"]) == ("2026-03-03T07", [])
    odd = api.put(f"{V1}/pipelines/warned/sensors/nobody", json={"date": "yesterday"}).json()
    assert odd["period"] == ""
    assert len(odd["warnings"]) == 2
    assert "no rule of warned reads 'nobody'" in odd["warnings"][1]


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        (b"[1, 2]", 422, "invalid-request"),
        (b"5", 422, "invalid-request"),
        (b"null", 422, "invalid-request"),
        (b'{"a": NaN}', 400, "malformed"),
        (b'{"a": Infinity}', 400, "malformed"),
        (b'{"a": 1e999}', None, None),
        (b'{"a": ', 400, "malformed"),
        (b"", None, None),
        (b'{"a": 1%s}' % (b"0" * 60), 422, "invalid-value"),
        (b'{"a": "%s"}' % (b"x" * 70_000), 413, "too-large"),
        (b'{"a": "%s"}' % (b"x" * 200_000), 413, "too-large"),
        (b"[" * 10_000, None, None),
        (b'{"a":' * 40 + b"1" + b"}" * 40, 422, "invalid-value"),
        (b'{"": 1}', None, None),
    ],
    ids=lambda value: repr(value)[:16],
)
def test_what_is_no_observation_is_refused(
    api: httpx.Client, apply: Apply, body: bytes, status: int | None, slug: str | None
) -> None:
    apply("refusing")
    response = api.put(f"{V1}/pipelines/refusing/sensors/odd", content=body)
    if status is None or slug is None:
        # One or the other refusal, or none; but never a failure of the server.
        assert response.status_code in (200, 400, 422), response.text
        return
    problem(response, status, slug)
    assert api.get(f"{V1}/pipelines/refusing/sensors/odd").status_code in (200, 404)


def test_no_infinite_number_is_ever_stored(api: httpx.Client, apply: Apply) -> None:
    apply("finite")
    api.put(f"{V1}/pipelines/finite/sensors/rows", content=b'{"a": 1e999}')
    response = api.get(f"{V1}/pipelines/finite/sensors/rows")
    if response.status_code == 200:
        assert math.isfinite(response.json()["data"]["a"])


@pytest.mark.parametrize("key", ["_own", "upstream:silver", "tab\there", "x" * 600])
def test_reserved_and_impossible_keys_are_refused(api: httpx.Client, apply: Apply, key: str) -> None:
    apply("reserved")
    problem(api.put(f"{V1}/pipelines/reserved/sensors/{_quoted(key)}", json={"a": 1}), 422, "invalid-value")


def test_a_sensor_with_a_ttl_expires(api: httpx.Client, apply: Apply) -> None:
    apply("expiring")
    api.put(f"{V1}/pipelines/expiring/sensors/rows", json={"count": 5}, params={"ttl": 4_000_000_000})
    assert api.get(f"{V1}/pipelines/expiring/sensors/rows").json()["ttl"] == 4_000_000_000
    api.put(f"{V1}/pipelines/expiring/sensors/rows", json={"count": 5}, params={"ttl": 1_000_000_000})
    problem(api.get(f"{V1}/pipelines/expiring/sensors/rows"), 404, "not-found")
    assert api.get(f"{V1}/pipelines/expiring/sensors").json()["items"] == []
    problem(api.put(f"{V1}/pipelines/expiring/sensors/rows", json={}, params={"ttl": "soon"}), 422, "invalid-request")


def test_a_deleted_sensor_is_absent(api: httpx.Client, apply: Apply) -> None:
    apply("forgetting")
    path = f"{V1}/pipelines/forgetting/sensors/{_quoted('a/b#2026-03-03')}"
    api.put(path, json={"count": 5})
    assert api.delete(path).status_code == 204
    problem(api.get(path), 404, "not-found")
    problem(api.delete(path), 404, "not-found")
    problem(api.delete(f"{V1}/pipelines/forgetting/sensors/_own"), 422, "invalid-value")
    problem(api.delete(f"{V1}/pipelines/forgotten/sensors/rows"), 404, "unknown-pipeline")


def test_a_batch_is_written_whole_or_not_at_all(api: httpx.Client, apply: Apply) -> None:
    apply("batch-a")
    apply("batch-b")
    sensors: list[dict[str, Any]] = [
        {"pipeline": name, "key": f"k{index}", "data": {"count": index}}
        for name in ("batch-a", "batch-b")
        for index in range(120)
    ]
    sensors.append({"pipeline": "batch-a", "key": "k0", "data": {"count": 999}})
    bad = [*sensors, {"pipeline": "batch-x", "key": "k", "data": {}}, {"pipeline": "batch-a", "key": "_k", "data": {}}]
    found = problem(api.post(f"{V1}/sensors:batch", json={"sensors": bad}), 404, "unknown-pipeline")
    assert [one["path"] for one in found["errors"]] == ["sensors[241]", "sensors[242]"]
    assert api.get(f"{V1}/pipelines/batch-a/sensors").json()["items"] == []
    good = api.post(f"{V1}/sensors:batch", json={"sensors": sensors})
    assert (good.status_code, len(good.json()["written"])) == (200, 241)
    assert api.get(f"{V1}/pipelines/batch-a/sensors/k0").json()["data"] == {"count": 999}
    first = api.get(f"{V1}/pipelines/batch-b/sensors", params={"limit": 100}).json()
    second = api.get(f"{V1}/pipelines/batch-b/sensors", params={"limit": 100, "cursor": first["next"]}).json()
    assert len(first["items"]) + len(second["items"]) == 120
    assert second["next"] is None


# --------------------------------------------------------------------------------------------------- runs, readiness


def test_readiness_names_every_rule(api: httpx.Client, apply: Apply) -> None:
    apply("asking")
    api.put(f"{V1}/pipelines/asking/sensors/rows", json={"count": 5, "date": "2026-03-03"})
    found = api.get(f"{V1}/pipelines/asking/readiness", params={"date": "2026-03-03"}).json()
    assert (found["ready"], found["schedule"], found["date"]) == (False, "stream", "2026-03-03")
    assert [(one["key"], one["passed"]) for one in found["results"]] == [("up", False), ("rows", False)]
    assert found["results"][1]["actual"] == 5
    assert found["run"] is None
    today = api.get(f"{V1}/pipelines/asking/readiness").json()
    assert today["date"] == datetime.now(UTC).date().isoformat()  # noqa: TID251
    problem(api.get(f"{V1}/pipelines/asking/readiness", params={"date": "someday"}), 422, "invalid-value")
    problem(api.get(f"{V1}/pipelines/asking/readiness", params={"schedule": "cron"}), 422, "invalid-value")


def open_run(api: httpx.Client, name: str, date: str = "2026-03-03") -> dict[str, Any]:
    """A run whose (external) job is running."""
    api.put(f"{V1}/pipelines/{name}/sensors/rows", json={"count": 50, "date": date})
    api.put(f"{V1}/pipelines/{name}/sensors/up", json={"status": "ready", "date": date})
    return await_run(api, name, "RUNNING", date)


def await_run(api: httpx.Client, name: str, status: str, date: str = "2026-03-03") -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        response = api.get(f"{V1}/pipelines/{name}/runs/stream/{date}")
        found: dict[str, Any] = response.json()
        return found if found.get("status") == status else None

    return until(look, f"{name} {status}")


def test_a_run_from_sensor_to_report_to_rerun(api: httpx.Client, apply: Apply) -> None:
    apply("whole")
    problem(api.get(f"{V1}/pipelines/whole/runs/stream/2026-03-03"), 404, "not-found")
    started = open_run(api, "whole")
    assert started["word"] == "running"
    assert [one["passed"] for one in started["rules"]] == [True, True]
    assert started["rulesLive"] is False
    reported = api.post(f"{V1}/pipelines/whole/jobs", json={"date": "2026-03-03", "result": "success"})
    assert reported.status_code == 201, reported.text
    assert reported.json()["reportedBy"] == "local"
    done = await_run(api, "whole", "COMPLETED")
    assert [one["event"] for one in done["jobLog"]] == ["success"]
    types = [one["type"] for one in done["events"]]
    assert (
        types == ["TRIGGER_STARTED", "VALIDATION_PASSED", "JOB_TRIGGERED", "JOB_STARTED", "JOB_COMPLETED"][: len(types)]
    )
    refused = api.post(f"{V1}/pipelines/whole/reruns", json={"date": "2026-03-03", "reason": "again"})
    assert refused.status_code == 202
    assert refused.json()["decision"] == "rejected", refused.text
    asked = {"date": "2026-03-03", "reason": "again", "force": True}
    accepted = api.post(f"{V1}/pipelines/whole/reruns", json=asked)
    assert accepted.json()["decision"] == "accepted", accepted.text
    again = until(lambda: _attempt(api, "whole", 2), "attempt 2")
    assert again["requestedBy"] == "local"
    assert [(one["attempt"], one["source"]) for one in again["attempts"]] == [(1, "first"), (2, "manual")]
    assert again["attempts"][0]["outcome"] == "completed"
    assert [one["attempt"] for one in again["reruns"]] == [2]


def _attempt(api: httpx.Client, name: str, number: int) -> dict[str, Any] | None:
    found: dict[str, Any] = api.get(f"{V1}/pipelines/{name}/runs/stream/2026-03-03").json()
    return found if found.get("attempt") == number and found["status"] == "RUNNING" else None


def test_a_waiting_run_shows_its_rules_as_they_are_now(api: httpx.Client, apply: Apply) -> None:
    apply("waiting")
    api.put(f"{V1}/pipelines/waiting/sensors/up", json={"status": "ready", "date": "2026-03-03"})
    found = await_run(api, "waiting", "PENDING")
    assert (found["word"], found["rulesLive"]) == ("waiting", True)
    assert [one["passed"] for one in found["rules"]] == [True, False]


def test_runs_are_paged_the_latest_first(api: httpx.Client, apply: Apply) -> None:
    apply("many")
    dates = [f"2026-03-{day:02}" for day in range(1, 8)]
    for date in dates:
        api.put(f"{V1}/pipelines/many/sensors/{_quoted('up#' + date)}", json={"status": "ready"})
    until(lambda: len(api.get(f"{V1}/pipelines/many/runs").json()["items"]) == 7, "seven runs")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = api.get(
            f"{V1}/pipelines/many/runs", params={"limit": 3, **({"cursor": cursor} if cursor else {})}
        ).json()
        seen += [one["date"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == dates[::-1]


@pytest.mark.parametrize(
    "body",
    [
        {"date": "2026-03-03", "result": "success"},
        {"date": "2026-03-03", "result": "done"},
        {"date": "never", "result": "fail"},
        {"result": "fail"},
        {"date": "2026-03-03", "result": "fail", "unknown": 1},
        {"date": "2026-03-03", "result": "fail", "attempt": 0},
        {"date": "2026-03-03", "result": "fail", "category": "ODD"},
        {"date": "2026-03-03", "result": "fail", "schedule": "cron"},
    ],
    ids=str,
)
def test_an_outcome_of_nothing_is_refused(api: httpx.Client, apply: Apply, body: dict[str, Any]) -> None:
    apply("nothing-ran")
    response = api.post(f"{V1}/pipelines/nothing-ran/jobs", json=body)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_a_failed_job_keeps_its_category_and_error(api: httpx.Client, apply: Apply) -> None:
    apply("failing")
    run = open_run(api, "failing")
    body = {
        "date": "2026-03-03",
        "result": "fail",
        "category": "TRANSIENT",
        "error": "lost executor",
        "runId": run["runId"],
        "attempt": 1,
    }
    assert api.post(f"{V1}/pipelines/failing/jobs", json=body).status_code == 201
    found = await_run(api, "failing", "FAILED_FINAL")
    assert (found["jobLog"][0]["category"], found["jobLog"][0]["error"]) == ("TRANSIENT", "lost executor")
    assert (found["word"], found["finalReason"]) == ("failed", "retries-used-up")


# ------------------------------------------------------------------------------------------------------- operation


def test_statistics_count_what_happened(api: httpx.Client, apply: Apply) -> None:
    apply("counted", sla={"deadline": "23:59", "dayOffset": 31})
    open_run(api, "counted", datetime.now(UTC).date().isoformat())  # noqa: TID251
    date = datetime.now(UTC).date().isoformat()  # noqa: TID251
    api.post(f"{V1}/pipelines/counted/jobs", json={"date": date, "result": "success"})
    await_run(api, "counted", "COMPLETED", date)
    found = api.get(f"{V1}/stats", params={"pipeline": "counted", "days": 2}).json()
    assert found["sla"] == {"runs": 1, "met": 1, "recovered": 0, "breached": 0, "compliance": 1.0}
    assert found["durations"]["count"] == 1
    assert [(one["opened"], one["completed"]) for one in found["days"]] == [(0, 0), (1, 1)]
    assert [one["pipeline"] for one in found["pipelines"]] == ["counted"]
    everything = api.get(f"{V1}/stats").json()
    assert everything["sla"]["runs"] >= 1
    assert len(everything["days"]) == 7


def test_the_watchdog_runs_on_request(api: httpx.Client) -> None:
    assert api.post(f"{V1}/watchdog/run").json() == {"failedChecks": []}


def test_dead_letters_are_listed_and_redriven(api: httpx.Client, service: Service, apply: Apply) -> None:
    apply("poisoned")
    # A run record that is none: the stream-router cannot read it, and says so for good.
    key = records.control_key("PIPELINE#poisoned", "TRIGGER#stream#2026-01-01")
    service.engine.store.commit([Put(key, {"odd": True})])
    letters = until(lambda: api.get(f"{V1}/dlq").json()["items"], "the dead letter")
    assert letters[0]["source"] == "stream-router"
    assert letters[0]["record"]["sk"] == "TRIGGER#stream#2026-01-01"
    problem(api.post(f"{V1}/dlq/redrive", json={"ids": [987654]}), 422, "invalid-value")
    service.engine.store.commit([Delete(key)])
    assert api.post(f"{V1}/dlq/redrive", json={"ids": [letters[0]["id"]]}).json() == {"redriven": 1}
    assert until(lambda: api.get(f"{V1}/dlq").json()["items"] == [] or None, "the letter going")


def test_what_it_can_work_in_spite_of_is_said_and_it_stays_ready(api: httpx.Client, service: Service) -> None:
    def lost() -> list[str]:
        raise StoreError("store /secret/place: reading failed")

    wrong: list[HealthCheck] = [lambda: ["a receiver of alerts is down"], lost]
    before, service.degradation_checks = service.degradation_checks, HealthChecks()
    try:
        for check in wrong:
            service.degradation_checks.add(check)
        response = api.get("/readyz")
    finally:
        service.degradation_checks = before
    assert response.status_code == 200
    expected = ["a receiver of alerts is down", "a health check failed: the log says why"]
    assert response.json() == {"ready": True, "problems": [], "degraded": expected}


def test_health_readiness_and_metrics(api: httpx.Client, apply: Apply) -> None:
    apply("measured")
    assert api.get("/healthz").json()["status"] == "ok"
    assert api.get("/readyz").json() == {"ready": True, "problems": [], "degraded": []}
    text = api.get("/metrics").text
    for name in (
        "interlock_build_info",
        'interlock_active_runs{status="PENDING"}',
        'interlock_stream_lag{consumer="stream-router"}',
        "interlock_dead_letters",
        "interlock_executions_waiting",
        'interlock_events_total{severity="info",type="JOB_TRIGGERED"}',
        'interlock_http_request_seconds_count{method="PUT",route="/api/v1/pipelines/{pipeline}",status="2xx"}',
    ):
        assert name in text, name
    assert "measured" not in text


def test_unknown_addresses_and_methods_are_problems(api: httpx.Client) -> None:
    problem(api.get("/api/nowhere"), 404, "not-found")
    problem(api.get(f"{V1}/nowhere"), 404, "not-found")
    problem(api.post(f"{V1}/pipelines"), 405, "method-not-allowed")
    problem(api.get("/nowhere/" + "x" * 9000), 414, "too-large")


def test_a_request_id_is_taken_over_or_made(api: httpx.Client) -> None:
    assert api.get("/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = api.get("/healthz", headers={"X-Request-ID": "no good, that"})
    assert len(made.headers["x-request-id"]) == 16
