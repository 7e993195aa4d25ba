"""Calendars over HTTP, and `why`."""

from collections.abc import Callable

import httpx


def test_an_applied_calendar_is_listed_and_can_be_named_by_a_pipeline(
    api: httpx.Client, apply: Callable[..., str]
) -> None:
    answer = api.put("/api/v1/calendars/month-end", json={"dates": ["2026-03-31"], "days": ["Mon"]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["days"] == ["monday"]
    names = [one["name"] for one in api.get("/api/v1/calendars").json()["items"]]
    assert "month-end" in names
    apply("with-calendar", schedule={"exclude": {"calendar": "month-end"}})


def test_a_wrong_calendar_is_refused_with_all_its_errors(api: httpx.Client) -> None:
    answer = api.put("/api/v1/calendars/odd", json={"name": "other", "dates": ["2026-13-01"], "days": []})
    assert answer.status_code == 422
    assert {one["path"] for one in answer.json()["errors"]} == {"name", "dates[0]"}
    assert "odd" not in [one["name"] for one in api.get("/api/v1/calendars").json()["items"]]


def test_why_explains_a_pipeline_that_never_ran(api: httpx.Client, apply: Callable[..., str]) -> None:
    name = apply("never-ran")
    answer = api.get(f"/api/v1/pipelines/{name}/why")
    assert answer.status_code == 200, answer.text
    assert answer.json()["pipeline"] == name


def test_why_of_an_unknown_pipeline_names_the_nearest(api: httpx.Client, apply: Callable[..., str]) -> None:
    apply("why-gold-revenue")
    answer = api.get("/api/v1/pipelines/why-gold-revenu/why")
    assert answer.status_code == 404
    assert "why-gold-revenue" in answer.json()["detail"]
