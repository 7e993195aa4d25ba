"""The description of the API is true: whatever schemathesis makes of it, no failure and no undocumented answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.running import pipeline, running

V1 = "/api/v1"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
STREAM = ("GET", f"{V1}/events/stream")
ROUTES = [
    ("GET", f"{V1}/pipelines"),
    ("GET", f"{V1}/pipelines/{{pipeline}}"),
    ("PUT", f"{V1}/pipelines/{{pipeline}}"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/readiness"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/sensors"),
    ("PUT", f"{V1}/pipelines/{{pipeline}}/sensors/{{key}}"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/sensors/{{key}}"),
    ("POST", f"{V1}/sensors:batch"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/runs"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/runs/{{schedule}}/{{date}}"),
    ("POST", f"{V1}/pipelines/{{pipeline}}/reruns"),
    ("POST", f"{V1}/pipelines/{{pipeline}}/jobs"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/jobs/{{run_id}}/output"),
    ("POST", f"{V1}/callbacks/{{token}}"),
    ("GET", f"{V1}/events"),
    STREAM,
    ("POST", f"{V1}/lineage"),
    ("POST", f"{V1}/watchdog/run"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/why"),
    ("GET", f"{V1}/calendars"),
    ("PUT", f"{V1}/calendars/{{name}}"),
    ("GET", f"{V1}/alerts"),
    ("POST", f"{V1}/alerts:test"),
    ("POST", f"{V1}/pipelines/{{pipeline}}/probes:run"),
    ("GET", f"{V1}/dlq"),
    ("POST", f"{V1}/dlq/redrive"),
    ("GET", f"{V1}/stats"),
    ("GET", f"{V1}/overview"),
    ("GET", f"{V1}/alerts/routes"),
    ("GET", f"{V1}/stats/sla"),
    ("GET", f"{V1}/graph"),
    ("GET", f"{V1}/hazards"),
    ("GET", f"{V1}/audit"),
    ("GET", f"{V1}/tokens"),
    ("POST", f"{V1}/tokens"),
    ("DELETE", f"{V1}/tokens/{{name}}"),
    ("POST", f"{V1}/tokens/{{slot}}"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/trend"),
    ("GET", f"{V1}/pipelines/{{pipeline}}/upcoming"),
    ("POST", f"{V1}/pipelines/{{pipeline}}/reruns:preview"),
    ("GET", f"{V1}/controller"),
    ("GET", f"{V1}/session"),
    ("POST", f"{V1}/session"),
    ("DELETE", f"{V1}/session"),
    ("POST", f"{V1}/session/code"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("POST", f"{V1}/pipelines/{{pipeline}}/runs/{{schedule}}/{{slot}}"),
    ("DELETE", f"{V1}/pipelines/{{pipeline}}/sensors/{{key}}"),
    ("DELETE", f"{V1}/pipelines/{{pipeline}}"),
]
KNOWN = "gold-revenue"
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("openapi")
    with running(folder) as (_, client):
        client.put(f"{V1}/pipelines/{KNOWN}", json=pipeline(KNOWN))
        yield str(client.base_url)


@pytest.fixture(scope="module")
def described(base: str) -> Any:
    return schemathesis.openapi.from_url(f"{base}/openapi.json")


# The stream never ends by itself: it has tests of its own.
@pytest.mark.parametrize("route", [one for one in ROUTES if one != STREAM], ids=lambda route: f"{route[0]} {route[1]}")
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("examples", [8, pytest.param(20, marks=pytest.mark.long)])
def test_every_answer_is_documented(
    described: Any, base: str, route: tuple[str, str], mode: Any, examples: int
) -> None:
    method, path = route
    operation = described[path][method]
    if mode is schemathesis.GenerationMode.NEGATIVE and not (
        operation.body or operation.query or operation.path_parameters
    ):
        pytest.skip("there is nothing to get wrong")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def play(case: Any) -> None:
        # A pipeline that exists is asked more than one that does not; it is not the one to be deleted.
        if method != "DELETE" and "pipeline" in (case.path_parameters or {}):
            name = str(case.path_parameters["pipeline"])
            case.path_parameters["pipeline"] = KNOWN if len(name) % 2 else name
        case.call_and_validate(base_url=base, checks=CHECKS, timeout=30)

    play()


def test_the_description_has_every_route_with_examples(base: str) -> None:
    found = json.loads(httpx.get(f"{base}/openapi.json").content)
    routes = {(method.upper(), path) for path, item in found["paths"].items() for method in item}
    assert routes == set(ROUTES)
    for path, item in found["paths"].items():
        for method, operation in item.items():
            assert operation["summary"], (path, method)
            assert operation["operationId"], (path, method)
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                assert "examples" in content or "examples" in content["schema"], (path, method)
