"""OpenLineage run events, by the real client, become sensors of the pipelines that name them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import nominal_time_run, output_statistics_output_dataset
from openlineage.client.transport.http import HttpConfig, HttpTransport
from openlineage.client.uuid import generate_new_uuid

from tests.api.running import until

Apply = Callable[..., str]
V1 = "/api/v1"
TABLE = "lineage:postgres://db:5432/shop.public.orders"
PRODUCER = "https://example.com/etl"


def reading(key: str, **rule: Any) -> dict[str, Any]:
    condition = {"key": key, "check": "equals", "field": "eventType", "value": "COMPLETE"}
    return {
        "schedule": {"trigger": condition},
        "validation": {"rules": [condition, {"key": key, "check": "gte", "field": "rowCount", "value": 10, **rule}]},
    }


def emit(api: httpx.Client, state: RunState, minute: int = 0, rows: int | None = None, **run: Any) -> None:
    transport = HttpTransport(HttpConfig.from_dict({"type": "http", "url": str(api.base_url)}))
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows, size=1024)
    event = RunEvent(
        eventType=state,
        eventTime=datetime(2026, 3, 3, 7, minute, tzinfo=UTC).isoformat(),
        run=Run(runId=str(generate_new_uuid()), facets=run),
        job=Job(namespace="etl", name="orders"),
        producer=PRODUCER,
        outputs=[
            OutputDataset(
                namespace="postgres://db:5432",
                name="shop.public.orders",
                outputFacets={} if rows is None else {"outputStatistics": statistics},
            )
        ],
    )
    OpenLineageClient(transport=transport).emit(event)


def test_a_complete_event_opens_and_starts_a_run(api: httpx.Client, apply: Apply) -> None:
    apply("lineage-reader", **reading(TABLE))
    apply("lineage-stranger")
    nominal = nominal_time_run.NominalTimeRunFacet(
        nominalStartTime="2026-03-02T00:00:00Z", nominalEndTime="2026-03-03T00:00:00Z"
    )
    emit(api, RunState.START, 0, nominalTime=nominal)
    found = api.get(f"{V1}/pipelines/lineage-reader/sensors/{_quoted(TABLE)}").json()
    assert found["data"]["eventType"] == "START"
    assert api.get(f"{V1}/pipelines/lineage-reader/runs").json()["items"] == []
    emit(api, RunState.COMPLETE, 5, rows=1500, nominalTime=nominal)
    until(lambda: api.get(f"{V1}/pipelines/lineage-reader/runs").json()["items"], "the run")
    run = api.get(f"{V1}/pipelines/lineage-reader/runs/stream/2026-03-02").json()
    assert run["openedBy"].startswith(f"sensor {TABLE}")
    data = api.get(f"{V1}/pipelines/lineage-reader/sensors/{_quoted(TABLE)}").json()["data"]
    assert data.pop("runId")
    assert data.pop("eventTime").startswith("2026-03-03T07:05:00")
    assert data == {
        "eventType": "COMPLETE",
        "job": "etl/orders",
        "producer": PRODUCER,
        "date": "2026-03-02",
        "rowCount": 1500,
        "size": 1024,
    }
    assert api.get(f"{V1}/pipelines/lineage-stranger/sensors").json()["items"] == []


def _quoted(key: str) -> str:
    return quote(key, safe="")


def test_an_older_event_does_not_undo_a_later_one(api: httpx.Client, apply: Apply) -> None:
    apply("lineage-order", **reading(TABLE))
    emit(api, RunState.COMPLETE, 30, rows=5)
    emit(api, RunState.RUNNING, 29)
    data = api.get(f"{V1}/pipelines/lineage-order/sensors/{_quoted(TABLE)}").json()["data"]
    assert data["eventType"] == "COMPLETE"


def test_an_hourly_nominal_time_is_an_hour(api: httpx.Client, apply: Apply) -> None:
    apply("lineage-hourly", **reading("lineage:etl/orders"))
    nominal = nominal_time_run.NominalTimeRunFacet(
        nominalStartTime="2026-03-02T10:00:00+02:00", nominalEndTime="2026-03-02T11:00:00+02:00"
    )
    emit(api, RunState.COMPLETE, 40, nominalTime=nominal)
    found = api.get(f"{V1}/pipelines/lineage-hourly/sensors/{_quoted('lineage:etl/orders')}").json()
    assert (found["data"]["date"], found["data"]["hour"], found["period"]) == ("2026-03-02", 10, "2026-03-02T10")


def test_what_nobody_names_is_accepted_and_said_so(api: httpx.Client) -> None:
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-03-03T07:00:00Z",
        "run": {"runId": "1"},
        "job": {"namespace": "who", "name": "knows"},
        "outputs": [{"namespace": "x", "name": "y"}],
    }
    found = api.post(f"{V1}/lineage", json=event)
    assert found.status_code == 200
    expected = ["lineage:who/knows: no pipeline names it", "lineage:x/y: no pipeline names it"]
    assert found.json() == {"written": [], "ignored": expected}
    dataset = {"dataset": {"namespace": "x", "name": "y"}, "eventTime": "2026-03-03T07:00:00Z"}
    assert api.post(f"{V1}/lineage", json=dataset).json() == {"written": [], "ignored": []}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"eventType": "COMPLETE"},
        {"run": {}, "job": {"namespace": "a", "name": "b"}, "eventTime": "2026-03-03T07:00:00Z"},
        {"run": {}, "job": {"namespace": "a", "name": "b"}, "eventType": "COMPLETE", "eventTime": "noon"},
        {"run": {}, "job": {}, "eventType": "COMPLETE", "eventTime": "2026-03-03T07:00:00Z"},
        {
            "run": {},
            "job": {"namespace": "a", "name": "b" * 600},
            "eventType": "X",
            "eventTime": "2026-03-03T07:00:00Z",
        },
    ],
    ids=str,
)
def test_what_is_no_run_event_is_refused(api: httpx.Client, event: dict[str, Any]) -> None:
    response = api.post(f"{V1}/lineage", json=event)
    assert response.status_code == 422, response.text
    assert response.json()["type"] == "urn:interlock:problem:invalid-lineage"
