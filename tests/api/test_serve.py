"""The real `interlock serve`: a process, a folder, signals, and the death of the process."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.process.discovery import announce, find_server, server_file
from tests.api.running import GOLD, WAIT, Process, pipeline, problem, serving, until, write_pipeline

V1 = "/api/v1"


def interlock(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Another `interlock` command in the same folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return subprocess.run(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )


def command(name: str, *argv: str) -> dict[str, Any]:
    return pipeline(name, job={"type": "command", "config": {"command": list(argv)}})


def ready(client: httpx.Client, name: str, date: str) -> None:
    for key, data in (("rows", {"count": 50}), ("up", {"status": "ready"})):
        response = client.put(f"{V1}/pipelines/{name}/sensors/{key}", json={**data, "date": date})
        assert response.status_code == 200, response.text


def test_a_sensor_starts_a_command_and_the_run_completes(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", command("gold", "sh", "-c", "echo made > ${DATE}.txt"))
    with serving(tmp_path) as server:
        ready(server.client, "gold", "2026-03-03")
        run = server.await_status("gold", "2026-03-03", "COMPLETED")
        assert (tmp_path / "2026-03-03.txt").read_text() == "made\n"
        assert [one["event"] for one in run["jobLog"]] == ["success"]
        assert server.stop() == 0
    assert not server_file(server.store).exists()
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    seen = [line["event"] for line in lines]
    assert seen.index("serving") < seen.index("stopping") < seen.index("stopped")


def test_killed_and_started_again_nothing_is_lost(tmp_path: Path) -> None:
    """Killed while a job runs: the job goes on, its end is found, no second one is started."""
    script = "echo start >> starts.txt; while [ ! -e go ]; do sleep 0.05; done"
    write_pipeline(tmp_path, "gold", command("gold", "sh", "-c", script))
    with serving(tmp_path) as server:
        ready(server.client, "gold", "2026-03-03")
        server.await_status("gold", "2026-03-03", "RUNNING")
        until(lambda: (tmp_path / "starts.txt").exists() or None, "the command")
        server.kill()
    assert server_file(server.store).exists()
    assert find_server(server.store) is None
    (tmp_path / "go").touch()
    with serving(tmp_path) as server:
        run = server.await_status("gold", "2026-03-03", "COMPLETED")
        assert run["attempt"] == 1
        assert (tmp_path / "starts.txt").read_text() == "start\n"
        sensors = server.client.get(f"{V1}/pipelines/gold/sensors").json()["items"]
        assert [one["key"] for one in sensors] == ["rows", "up"]
        assert server.stop(signal.SIGINT) == 0


def test_stopped_in_order_while_a_stream_and_a_job_are_open(tmp_path: Path) -> None:
    script = "while [ ! -e go ]; do sleep 0.05; done"
    write_pipeline(tmp_path, "gold", command("gold", "sh", "-c", script))
    with serving(tmp_path) as server:
        ready(server.client, "gold", "2026-03-03")
        server.await_status("gold", "2026-03-03", "RUNNING")
        with httpx.stream("GET", f"{server.url}{V1}/events/stream", timeout=WAIT) as response:
            lines = response.iter_lines()
            assert next(lines).startswith(("retry", "id"))
            server.process.send_signal(signal.SIGTERM)
            assert any(line.startswith("event: closed") for line in lines)
        assert server.wait() == 0
    (tmp_path / "go").touch()
    with serving(tmp_path) as server:
        server.await_status("gold", "2026-03-03", "COMPLETED")


def test_one_controller_per_store(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        second = interlock(tmp_path, "serve", "--port", "0")
        assert second.returncode == 1
        assert "another controller runs on it" in second.stderr
        assert server.url in second.stderr
        assert "Traceback" not in second.stderr
        assert server.client.get("/readyz").status_code == 200


def test_a_port_that_is_taken_is_an_error_and_leaves_no_store(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    with serving(first) as server:
        port = server.url.rpartition(":")[2]
        refused = interlock(second, "serve", "--port", port)
        assert refused.returncode == 1
        assert "cannot listen" in refused.stderr
        assert list(second.iterdir()) == []


def test_beyond_this_machine_only_with_tokens(tmp_path: Path) -> None:
    refused = interlock(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 1
    assert "without a token" in refused.stderr
    made = interlock(tmp_path, "token", "create", "--scope", "admin", "--name", "me")
    token = made.stdout.strip()
    assert made.returncode == 0
    assert token.startswith("ilk_")
    with serving(tmp_path, "--host", "0.0.0.0") as server:
        assert server.client.get(f"{V1}/pipelines").status_code == 401
        headers = {"Authorization": f"Bearer {token}"}
        assert server.client.get(f"{V1}/pipelines", headers=headers).status_code == 200
        assert server.client.get("/healthz").status_code == 200
        listed = interlock(tmp_path, "token", "list", "--json")
        assert [one["name"] for one in json.loads(listed.stdout)["tokens"]] == ["me"]
        assert interlock(tmp_path, "token", "revoke", "me").returncode == 0

        def refused_now() -> bool:
            return server.client.get(f"{V1}/pipelines", headers=headers).status_code == 401

        until(lambda: refused_now() or None, "the end of the token")
        assert token not in server.log.read_text() + listed.stdout


def test_the_folder_is_followed(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", GOLD)
    with serving(tmp_path) as server:
        client = server.client
        client.put(f"{V1}/pipelines/by-hand", json=pipeline("by-hand"))

        def ids() -> list[str]:
            return [one["id"] for one in client.get(f"{V1}/pipelines").json()["items"]]

        assert ids() == ["by-hand", "gold"]
        silver = write_pipeline(tmp_path, "silver", pipeline("silver"))
        until(lambda: ids() == ["by-hand", "gold", "silver"] or None, "silver")
        before = client.get(f"{V1}/pipelines/gold").json()["version"]
        write_pipeline(tmp_path, "gold", pipeline("gold", sla={"deadline": "10:00"}))
        until(lambda: client.get(f"{V1}/pipelines/gold").json()["version"] != before or None, "the change")
        changed = client.get(f"{V1}/pipelines/gold").json()["version"]
        write_pipeline(tmp_path, "gold", {**GOLD, "jobb": {}})

        def events(type_: str, pipeline: str) -> Any:
            return client.get(f"{V1}/events", params={"pipeline": pipeline, "type": type_}).json()["items"]

        (seen,) = until(lambda: events("CONFIG_INVALID", "gold"), "CONFIG_INVALID")
        assert "jobb" in seen["message"]
        assert client.get(f"{V1}/pipelines/gold").json()["version"] == changed
        assert f"version {changed}, applied " in seen["message"]
        assert "stays in force" in seen["message"]
        assert changed in interlock(tmp_path, "status").stdout
        planned = interlock(tmp_path, "plan", "pipelines")
        assert planned.returncode == 1
        assert f"gold: version {changed} stays in force" in planned.stderr
        kept = client.delete(f"{V1}/pipelines/gold")
        assert problem(kept, 409, "file-remains")["detail"].startswith("gold comes from gold.json, which would bring")
        write_pipeline(tmp_path, "gold", GOLD)
        until(lambda: events("CONFIG_RESTORED", "gold"), "CONFIG_RESTORED")
        silver.unlink()
        until(lambda: ids() == ["by-hand", "gold"] or None, "silver's end")
        assert events("PIPELINE_REMOVED", "silver")


def test_a_lost_folder_disarms_nothing(tmp_path: Path) -> None:
    """A mount that fails while it runs, and is not there at the next start either; then `apply --prune`."""
    for name in ("bronze", "silver", "gold"):
        write_pipeline(tmp_path, name, pipeline(name))

    def ids(server: Process) -> list[str]:
        return [one["id"] for one in server.client.get(f"{V1}/pipelines").json()["items"]]

    def degraded(server: Process) -> Any:
        answer = server.client.get("/readyz")
        assert answer.status_code == 200
        return answer.json()["degraded"]

    lost = ["the folder of pipelines is lost: what came from it stays in force"]
    with serving(tmp_path) as server:
        assert degraded(server) == []
        (tmp_path / "pipelines").rename(tmp_path / "unmounted")
        until(lambda: degraded(server) == lost or None, "degraded")
        assert ids(server) == ["bronze", "gold", "silver"]
        params = {"type": "CONFIG_FOLDER_LOST"}
        (seen,) = server.client.get(f"{V1}/events", params=params).json()["items"]
        assert seen["severity"] == "error"
        assert "interlock_config_folder_lost 1.0" in server.client.get("/metrics").text
        assert "interlock_degraded 1.0" in server.client.get("/metrics").text
        status = interlock(tmp_path, "status")
        assert f"degraded: {lost[0]}" in status.stdout
        assert "it does not exist; bring the files back, or `interlock apply PATH --prune`" in status.stdout
        assert json.loads(interlock(tmp_path, "status", "--json").stdout)["degraded"] == lost
        assert "pipeline folder" in interlock(tmp_path, "doctor").stdout
        assert server.stop() == 0
    (tmp_path / "pipelines").mkdir()
    with serving(tmp_path, "--pipelines", str(tmp_path / "pipelines")) as server:
        assert ids(server) == ["bronze", "gold", "silver"]
        assert degraded(server) == lost
        assert len(server.client.get(f"{V1}/events", params=params).json()["items"]) == 1
        refused = interlock(tmp_path, "apply", "pipelines", "--prune")
        assert refused.returncode == 1
        assert "--allow-empty" in refused.stderr
        assert interlock(tmp_path, "apply", "pipelines", "--prune", "--allow-empty").returncode == 0
        until(lambda: not degraded(server) or None, "the end of the loss")
        assert ids(server) == []


def test_a_folder_that_was_followed_may_be_missing_at_the_start(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    misspelled = interlock(tmp_path, "serve", "--port", "0", "--pipelines", str(elsewhere))
    assert misspelled.returncode == 2
    assert "does not exist" in misspelled.stderr
    write_pipeline(tmp_path, "gold", GOLD)
    (tmp_path / "pipelines").rename(elsewhere)
    with serving(tmp_path, "--pipelines", str(elsewhere)) as server:
        assert server.stop() == 0
    elsewhere.rename(tmp_path / "unmounted")
    with serving(tmp_path, "--pipelines", str(elsewhere)) as server:
        assert [one["id"] for one in server.client.get(f"{V1}/pipelines").json()["items"]] == ["gold"]
        assert len(server.client.get("/readyz").json()["degraded"]) == 1


def test_a_removed_pipeline_is_shown_while_it_runs(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "slow", command("slow", "sleep", "60"))
    write_pipeline(tmp_path, "other", GOLD)
    with serving(tmp_path) as server:
        ready(server.client, "slow", "2026-03-02")
        until(lambda: [one for one in runs_of(server, "slow") if one["word"] == "running"], "the run")
        (tmp_path / "pipelines" / "slow.json").unlink()
        until(lambda: "slow" not in interlock(tmp_path, "plan", "pipelines").stdout or None, "its end")
        shown = until(lambda: server.client.get(f"{V1}/controller").json()["removed"], "the removed one")
        assert [(one["pipeline"], one["runs"][0]["date"]) for one in shown] == [("slow", "2026-03-02")]
        (row,) = [
            one for one in json.loads(interlock(tmp_path, "status", "--json").stdout)["pipelines"] if one["removed"]
        ]
        assert (row["pipeline"], row["run"]) == ("slow", "running")
        assert "removed: opens nothing new" in interlock(tmp_path, "status").stdout
        write_pipeline(tmp_path, "slow", command("slow", "sleep", "60"))
        until(lambda: server.client.get(f"{V1}/controller").json()["removed"] == [] or None, "its return")


def test_a_failure_says_which_budget_paid_and_which_did_not(tmp_path: Path) -> None:
    """`exit 1` is the code's fault: maxRetries: 2 does not retry it, and nobody should have to guess why."""
    job = {"type": "command", "config": {"command": ["sh", "-c", "exit 1"]}, "maxRetries": 2, "maxManualReruns": 0}
    write_pipeline(tmp_path, "code", pipeline("code", job=job))
    warned = interlock(tmp_path, "validate", "pipelines").stdout
    assert "job.maxRetries: warning: is for transient failures" in warned
    assert "set maxCodeRetries as well" in warned
    budget = (
        "code retry budget used up: 1 of 1 (job.maxCodeRetries); the failure is PERMANENT, and job.maxRetries (0 of 2"
        " used) is for failures that may pass by themselves"
    )
    with serving(tmp_path) as server:
        ready(server.client, "code", "2026-03-02")
        params = {"pipeline": "code", "type": "RETRY_EXHAUSTED"}
        (seen,) = until(lambda: server.client.get(f"{V1}/events", params=params).json()["items"], "the end")
        assert seen["message"] == f"code for 2026-03-02 failed for good: {budget}"
        params["type"] = "JOB_FAILED"
        failures = [one["message"] for one in server.client.get(f"{V1}/events", params=params).json()["items"]]
        assert sorted(failures) == [
            "the job of code for 2026-03-02 failed (permanent; code retry 1 of 1 follows): exit code 1",
            "the job of code for 2026-03-02 failed (permanent; no retry follows): exit code 1",
        ]
        why = " ".join(interlock(tmp_path, "why", "code", "--date", "2026-03-02").stdout.split())
        assert budget in why
        assert "raise job.maxManualReruns (0 of 0 used) and `interlock rerun code --date 2026-03-02`" in why
        refused = interlock(tmp_path, "rerun", "code", "--date", "2026-03-02")
        assert refused.returncode == 1
        assert "manual rerun budget used up: 0 of 0 (job.maxManualReruns)" in refused.stdout + refused.stderr


def runs_of(server: Process, name: str) -> Any:
    return server.client.get(f"{V1}/pipelines/{name}/runs").json()["items"]


def test_a_broken_file_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", GOLD)
    write_pipeline(tmp_path, "broken", {"pipeline": {"id": "broken"}})
    with serving(tmp_path) as server:
        assert [one["id"] for one in server.client.get(f"{V1}/pipelines").json()["items"]] == ["gold"]
        params = {"type": "CONFIG_INVALID", "pipeline": "broken"}
        (seen,) = server.client.get(f"{V1}/events", params=params).json()["items"]
        assert seen["severity"] == "error"
        assert server.stop() == 0
    # The same content is not reported again by the next start.
    with serving(tmp_path) as server:
        assert len(server.client.get(f"{V1}/events", params=params).json()["items"]) == 1


def test_settings_come_from_the_file_and_mistakes_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    write_pipeline(tmp_path / "conf", "gold", GOLD)
    toml = tmp_path / "interlock.toml"
    toml.write_text('pipelines = "conf/pipelines"\nstore = "sqlite:///interlock.db"\nwatchdog_interval = "2s"\n')
    with serving(tmp_path) as server:
        assert server.client.get(f"{V1}/pipelines/gold").status_code == 200
    toml.write_text(
        'prot = 1\nport = 99999\nwatchdog_interval = 5\n[jobs]\nallow = true\noutput_limit = 5\noutput_age = "long"\n'
        '[[alerts]]\nchannel = "fax"\n'
        '[[alerts]]\nchannel = "console"\npattern = { detail-type = ["JOB_FAILD"], detail = { pipeline = ["x"] } }\n'
    )
    refused = interlock(tmp_path, "serve")
    assert refused.returncode == 1
    for text in (
        "prot: is not a setting; did you mean port?",
        "port: 99999",
        "watchdog_interval",
        "jobs.allow",
        "jobs.output_limit: 5 is not text",
        "jobs.output_age: 'long'",
        "alerts[0].channel",
        'alerts[1].pattern: detail-type: "JOB_FAILD" is not an event type; did you mean JOB_FAILED?',
        "alerts[1].pattern: detail.pipeline: there is no such field; did you mean pipelineId?",
    ):
        assert text in refused.stderr, text


def test_the_middle_of_a_long_output_is_left_out_and_why_says_so(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text('[jobs]\noutput_limit = "256KiB"\n')
    write_pipeline(tmp_path, "gold", command("gold", "sh", "-c", "yes | head -c 5000000"))
    with serving(tmp_path) as server:
        ready(server.client, "gold", "2026-03-03")
        run = server.await_status("gold", "2026-03-03", "COMPLETED")
        (ended,) = run["jobLog"]
        assert ended["warning"].startswith("it wrote 4.8 MiB: the beginning and the end are kept, 4.")
        said = interlock(tmp_path, "why", "gold", "--date", "2026-03-03")
        assert ended["warning"] in " ".join(said.stdout.split())


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    """A target that hangs holds up an orderly end; a second signal does not wait for it."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    job = {"type": "http", "config": {"url": url, "timeout": "10m"}}
    write_pipeline(tmp_path, "gold", pipeline("gold", job=job))
    with serving(tmp_path, "--allow-private-addresses") as server, listener:
        ready(server.client, "gold", "2026-03-03")
        called, _ = listener.accept()
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "stopping" in server.log.read_text() or None, "the first signal")
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 130
        called.close()


# ------------------------------------------------------------------------------------------------------- discovery


def test_the_discovery_file_is_private_and_stale_ones_do_not_count(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    announce(store, "http://127.0.0.1:1", SystemClock().now())
    file = server_file(store)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = find_server(store)
    assert found is not None
    assert (found.url, found.pid) == ("http://127.0.0.1:1", os.getpid())
    seen = json.loads(file.read_text())
    for change in ({"pid": 2**22 - 1}, {"pid": 0}, {"processStart": "1"}):
        file.write_text(json.dumps({**seen, **change}))
        assert find_server(store) is None, change
    file.write_text("{")
    assert find_server(store) is None
    file.unlink()
    assert find_server(store) is None


@pytest.mark.parametrize(
    "arguments", [["--port", "99999"], ["--log-level", "loud"], ["--pipelines", "nowhere"]], ids=str
)
def test_what_is_not_understood_is_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    assert interlock(tmp_path, "serve", *arguments).returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_alerts_on_the_console_are_json_lines_where_the_log_is(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    err = tmp_path / "err.txt"
    with err.open("wb") as into, serving(tmp_path, stderr=into.fileno()) as server:
        body = {"status": "ready", "date": "soon"}
        assert server.client.put(f"{V1}/pipelines/gold/sensors/up", json=body).status_code == 200
        until(lambda: "SENSOR_INVALID" in err.read_text() or None, "the alert")
        assert server.stop() == 0
    lines = [json.loads(line) for line in err.read_text().splitlines()]
    (alert,) = [line for line in lines if line.get("event") == "alert"]
    assert (alert["level"], alert["type"], alert["pipeline"]) == ("warning", "SENSOR_INVALID", "gold")
