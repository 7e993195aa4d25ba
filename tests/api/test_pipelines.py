"""Pipelines over HTTP: applied, refused with every error, listed, deleted; their secrets stay hidden."""

from collections.abc import Callable

import httpx
import pytest

from interlock.extras import Extra
from interlock.jobs import registry
from interlock.jobs.registry import Registered
from tests.api.running import GOLD, pipeline, problem, until

Apply = Callable[..., str]
V1 = "/api/v1"


def test_applying_a_pipeline(api: httpx.Client) -> None:
    first = api.put(f"{V1}/pipelines/applied", json=pipeline("applied"))
    assert (first.status_code, first.json()["changed"]) == (201, True)
    again = api.put(f"{V1}/pipelines/applied", json=pipeline("applied"))
    assert (again.status_code, again.json()["changed"]) == (200, False)
    changed = api.put(f"{V1}/pipelines/applied", json=pipeline("applied", sla={"deadline": "10:00"}))
    assert (changed.status_code, changed.json()["changed"]) == (200, True)
    assert changed.json()["version"] != first.json()["version"]
    found = api.get(f"{V1}/pipelines/applied").json()
    assert found["valid"] is True
    assert found["owner"] == "analytics"
    assert found["document"]["sla"] == {"deadline": "10:00"}
    assert found["reads"] == ["up", "rows"]
    assert "applied" in [one["id"] for one in api.get(f"{V1}/pipelines").json()["items"]]


def test_a_job_whose_package_is_missing_is_refused(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Registered("interlock.jobs.aws.glue:TARGET", Extra("aws", "no_such_package", "no_such_package"))
    monkeypatch.setattr(registry, "BUILT_IN", {**registry.BUILT_IN, "glue": missing})
    document = pipeline("unstartable", job={"type": "glue", "config": {"jobName": "etl"}})
    found = problem(api.put(f"{V1}/pipelines/unstartable", json=document), 422, "invalid-config")
    assert [error["path"] for error in found["errors"]] == ["job.type"]
    assert found["errors"][0]["message"].endswith("pip install 'interlock[aws]'")


def test_an_invalid_pipeline_is_refused_with_every_error(api: httpx.Client) -> None:
    document = pipeline("broken", job={"type": "external", "maxRetrys": 1, "maxCodeRetries": 9})
    found = problem(api.put(f"{V1}/pipelines/broken", json=document), 422, "invalid-config")
    paths = {one["path"] for one in found["errors"]}
    assert {"job.maxRetrys", "job.maxCodeRetries"} <= paths
    assert any("maxRetries" in one["message"] for one in found["errors"])
    assert api.get(f"{V1}/pipelines/broken").status_code == 404


def test_the_id_in_the_document_is_the_one_in_the_address(api: httpx.Client) -> None:
    found = problem(api.put(f"{V1}/pipelines/other", json=GOLD), 422, "invalid-config")
    assert found["errors"] == [{"path": "pipeline.id", "message": "is 'gold', but the address names 'other'"}]


def test_a_deleted_pipeline_is_gone_but_its_runs_are_not(api: httpx.Client, apply: Apply) -> None:
    apply("deleted")
    api.put(f"{V1}/pipelines/deleted/sensors/up", json={"status": "ready", "date": "2026-03-03"})
    until(lambda: api.get(f"{V1}/pipelines/deleted/runs").json()["items"], "the run")
    assert api.delete(f"{V1}/pipelines/deleted").status_code == 204
    problem(api.get(f"{V1}/pipelines/deleted"), 404, "unknown-pipeline")
    problem(api.delete(f"{V1}/pipelines/deleted"), 404, "unknown-pipeline")
    problem(api.put(f"{V1}/pipelines/deleted/sensors/up", json={}), 404, "unknown-pipeline")
    assert len(api.get(f"{V1}/pipelines/deleted/runs").json()["items"]) == 1


def test_an_unknown_pipeline_has_a_suggestion(api: httpx.Client, apply: Apply) -> None:
    apply("silver-orders")
    for path in ("", "/sensors", "/sensors/up", "/readiness", "/runs", "/runs/stream/2026-03-03"):
        found = problem(api.get(f"{V1}/pipelines/silver-order{path}"), 404, "unknown-pipeline")
        assert "did you mean silver-orders?" in found["detail"]


def test_pipelines_are_paged(api: httpx.Client, apply: Apply) -> None:
    names = [apply(f"paged-{index}") for index in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = api.get(f"{V1}/pipelines", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["items"]) <= 2
        seen += [one["id"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert [one for one in seen if one.startswith("paged-")] == names
    assert len(seen) == len(set(seen))


def test_secrets_in_a_document_are_not_shown_and_not_stored_back(api: httpx.Client) -> None:
    job = {
        "type": "http",
        "config": {
            "url": "https://etl.example.com/run",
            "auth": {"type": "bearer", "token": "s3cr3t-token"},
            "headers": {"X-Api-Key": "${INTERLOCK_KEY}", "Authorization": "s3cr3t-header"},
        },
    }
    assert api.put(f"{V1}/pipelines/hidden", json=pipeline("hidden", job=job)).status_code == 201
    response = api.get(f"{V1}/pipelines/hidden")
    assert "s3cr3t" not in response.text
    config = response.json()["document"]["job"]["config"]
    assert config["auth"] == {"type": "bearer", "token": "***"}
    assert config["headers"] == {"X-Api-Key": "${INTERLOCK_KEY}", "Authorization": "***"}
    found = problem(api.put(f"{V1}/pipelines/hidden", json=response.json()["document"]), 422, "invalid-config")
    assert {one["path"] for one in found["errors"]} == {"job.config.auth.token", "job.config.headers.Authorization"}
