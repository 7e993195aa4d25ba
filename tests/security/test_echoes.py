"""Secrets that are written into configs: `validate` names them, and what a target repeats of them is not stored."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.api.running import Process, pipeline, serving, until
from tests.security.commands import interlock

V1 = "/api/v1"


class _Echo(BaseHTTPRequestHandler):
    """Refuses everything, and repeats what it was sent."""

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        body = f"bad request: {self.path} {dict(self.headers)} {sent}".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def target() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def everything_said(server: Process, name: str) -> str:
    """Run, job log, events and the log of the controller."""
    pages = [f"runs/stream/{day}" for day in _days(server, name)]
    texts = [server.client.get(f"{V1}/pipelines/{name}/{page}").text for page in pages]
    texts.append(server.client.get(f"{V1}/events", params={"pipeline": name, "limit": 200}).text)
    return "\n".join([*texts, server.log.read_text()])


def _days(server: Process, name: str) -> list[str]:
    runs = server.client.get(f"{V1}/pipelines/{name}/runs").json()["items"]
    return [one["date"] for one in runs]


def test_what_a_target_repeats_is_not_stored(target: str, tmp_path: Path) -> None:
    config = {
        "url": target.replace("//", "//me:hunter-in-url@") + "/run?token=hunter-in-query&day=${DATE}",
        "headers": {"Authorization": "Bearer hunter-in-header-0123", "X-Key": "${INTERLOCK_SECRET_KEY}"},
        "body": {"password": "hunter-in-body", "note": "hunter-in-note", "day": "${DATE}"},
    }
    document = pipeline("gold", job={"type": "http", "config": config, "maxCodeRetries": 0})
    environment = {"INTERLOCK_SECRET_KEY": "hunter-by-reference"}
    with serving(tmp_path, "--allow-private-addresses", environment=environment) as server:
        assert server.client.put(f"{V1}/pipelines/gold", json=document).status_code == 201
        for key, data in (("rows", {"count": 50}), ("up", {"status": "ready"})):
            assert server.client.put(f"{V1}/pipelines/gold/sensors/{key}", json=data).status_code == 200
        said = until(lambda: _when_told(server), "the refusal of the target")
        assert "HTTP 400" in said or "400" in said
        assert "hunter" not in said
        assert "***" in said
        day = _days(server, "gold")[0]
        assert day in said, "what the run is for stays readable"


def _when_told(server: Process) -> str | None:
    text = everything_said(server, "gold")
    return text if "bad request" in text else None


def test_validate_names_the_place_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/gold.yaml").write_text(
        "pipeline: {id: gold}\n"
        "schedule: {trigger: {key: up, check: exists}}\n"
        "validation: {rules: [{key: up, check: exists}]}\n"
        "sla: {deadline: '10:00', expectedDuration: 30m}\n"
        "probes:\n"
        "  - key: rows\n"
        "    type: sql\n"
        "    config:\n"
        "      url: postgresql://me:hunter2@db/x\n"
        "      query: select 1 as count\n"
        "job:\n"
        "  type: http\n"
        "  config:\n"
        "    url: https://etl.example.com\n"
        "    headers:\n"
        "      Authorization: Bearer 0123456789abcdef\n"
        "      X-Key: ${INTERLOCK_SECRET_KEY}\n"
    )
    (tmp_path / "interlock.toml").write_text(
        'pipelines = "pipelines"\n\n[[alerts]]\nchannel = "webhook"\nurl = "https://alerts.example.com"\n'
        'headers = { X-Token = "hunter22" }\n'
    )
    done = interlock(tmp_path, "validate", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.replace("\n", " ")
    assert "gold.yaml:16 job.config.headers.Authorization: warning: looks like a bearer token" in said
    assert "gold.yaml:9 probes[0]" in said
    assert "${INTERLOCK_SECRET_NAME} or ${file:NAME}" in said
    assert "interlock.toml:6 alerts[0].headers.X-Token: warning: looks like the value of X-Token" in said
    assert "headers_env" in said
    assert "X-Key" not in said
    assert "hunter" not in said
    found = json.loads(interlock(tmp_path, "validate", ".", "--json").stdout)
    secrets = [one for one in found["warnings"] if "looks like" in one["message"]]
    assert sorted(one["line"] for one in secrets) == [6, 9, 16]
