"""One writer cannot fill the store: a pipeline has as many sensors as it may have, and no more."""

import json
from pathlib import Path

import pytest

from interlock.api.problems import RequestError
from interlock.api.write_rates import WriteRates
from tests.api.running import pipeline, problem, serving
from tests.security.commands import interlock, refused

_LIMITS = '[limits]\nsensors_per_pipeline = 3\nbytes_per_pipeline = "192KiB"\n'


def test_a_pipeline_has_as_many_sensors_as_it_may(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(_LIMITS)
    with serving(tmp_path) as server:
        api = server.client
        for name in ("gold", "silver"):
            assert api.put(f"/api/v1/pipelines/{name}", json=pipeline(name)).status_code == 201
        sensors = "/api/v1/pipelines/gold/sensors"
        for number in range(3):
            assert api.put(f"{sensors}/k{number}", json={"n": number}).status_code == 200
        # By each way to write: alone, with a query, in a batch; and the command.
        reported = problem(api.put(f"{sensors}/k3", json={"n": 3}), 422, "quota-exceeded")
        assert "sensors_per_pipeline" in reported["detail"]
        batch = {"sensors": [{"pipeline": "gold", "key": "k4", "data": {}}]}
        assert "sensors_per_pipeline" in api.post("/api/v1/sensors:batch", json=batch).text
        refused(interlock(tmp_path, "sensor", "set", "gold", "k5", "n=1"), "sensors_per_pipeline")
        # What is there may be written again, other pipelines are not concerned, and room can be made.
        assert api.put(f"{sensors}/k1", json={"n": 10}).status_code == 200
        assert api.put("/api/v1/pipelines/silver/sensors/k9", json={"n": 1}).status_code == 200
        assert api.delete(f"{sensors}/k0").is_success
        assert api.put(f"{sensors}/k3", json={"n": 3}).status_code == 200
        # Sensors of a period expire, and count apart.
        assert api.put(f"{sensors}/k%2320260303", json={"n": 3}).status_code == 200
        assert api.get(f"{sensors}/k%2320260303").json()["ttl"] is not None


def test_the_sensors_of_a_pipeline_take_as_many_bytes_as_they_may(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(_LIMITS)
    with serving(tmp_path) as server:
        api = server.client
        assert api.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        sensors, large = "/api/v1/pipelines/gold/sensors", {"text": "x" * 64_000}
        for key in ("a#20260301", "a#20260302", "a#20260303"):
            assert api.put(f"{sensors}/{key.replace('#', '%23')}", json=large).status_code == 200
        reported = problem(api.put(f"{sensors}/a%2320260304", json=large), 422, "quota-exceeded")
        assert "bytes_per_pipeline" in reported["detail"]
        assert api.put(f"{sensors}/a%2320260303", json={"text": "small"}).status_code == 200
        assert api.put(f"{sensors}/a%2320260304", json={"text": "small"}).status_code == 200


def test_who_writes_too_fast_is_told_when_to_come_back(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[limits]\nwrites_per_second_per_token = 5\n")
    tokens = {}
    for name in ("fast", "slow"):
        done = interlock(tmp_path, "token", "create", "--name", name, "--scope", "admin", "--json")
        tokens[name] = {"Authorization": f"Bearer {json.loads(done.stdout)['token']}"}
    with serving(tmp_path) as server:
        api = server.client
        made = api.put("/api/v1/pipelines/gold", json=pipeline("gold"), headers=tokens["slow"])
        assert made.status_code == 201
        sensor = "/api/v1/pipelines/gold/sensors/rows"
        batch = {"sensors": [{"pipeline": "gold", "key": "rows", "data": {"n": n}} for n in range(200)]}
        assert api.post("/api/v1/sensors:batch", json=batch, headers=tokens["fast"]).status_code == 200
        for path in (sensor, f"{sensor}?ttl=4102444800"):
            answer = api.put(path, json={"n": 1}, headers=tokens["fast"])
            problem(answer, 429, "too-many-requests")
            assert 30 < int(answer.headers["retry-after"]) <= 40
        assert api.get(sensor, headers=tokens["fast"]).status_code == 200
        assert api.put(sensor, json={"n": 1}, headers=tokens["slow"]).status_code == 200


def test_a_bucket_fills_at_its_rate() -> None:
    now = 100.0
    rates = WriteRates(2, lambda: now)
    for _ in range(2):
        rates.take("a")
    with pytest.raises(RequestError) as caught:
        rates.take("a")
    assert caught.value.headers["Retry-After"] == "1"
    rates.take("b")
    now += 0.5
    rates.take("a")
    with pytest.raises(RequestError):
        rates.take("a")
    WriteRates().take("a")


def test_limits_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(
        '[limits]\nsensors_per_pipline = 3\nstreams = 0\nhead_timeout = 3\nbytes_per_pipeline = "1KiB"\n'
    )
    refused(
        interlock(tmp_path, "serve"),
        "limits.sensors_per_pipline: is not a setting; did you mean sensors_per_pipeline?",
        "limits.streams: 0 is not a number from 1 to 100000",
        "limits.head_timeout: 3 is not a duration",
        "limits.bytes_per_pipeline: '1KiB' is less than the 64KiB",
    )
