"""Jobs of a real `interlock serve`: what they wrote, stopping them, and how many run at once."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.api.running import pipeline, serving, until, write_pipeline
from tests.api.test_serve import command, interlock, ready

V1 = "/api/v1"
DATE = "2026-03-03"


def output(client: httpx.Client, name: str, run_id: str, offset: int = 0) -> httpx.Response:
    response = client.get(f"{V1}/pipelines/{name}/jobs/{run_id}/output", params={"offset": offset})
    assert response.status_code == 200, response.text
    return response


def cancel(client: httpx.Client, name: str, **body: Any) -> httpx.Response:
    return client.post(f"{V1}/pipelines/{name}/runs/stream/{DATE}:cancel", json=body)


def test_what_a_command_writes_is_read_while_it_runs_and_afterwards(tmp_path: Path) -> None:
    write_pipeline(
        tmp_path, "gold", command("gold", "sh", "-c", "echo one; until [ -e go ]; do sleep 0.05; done; echo two")
    )
    with serving(tmp_path) as server:
        ready(server.client, "gold", DATE)
        run_id = server.await_status("gold", DATE, "RUNNING")["runId"]
        first = until(
            lambda: output(server.client, "gold", run_id) if output(server.client, "gold", run_id).text else None,
            "output",
        )
        assert first.text == "one\n"
        assert first.headers["content-type"].startswith("text/plain")
        assert first.headers["x-complete"] == "false"
        (tmp_path / "go").touch()
        server.await_status("gold", DATE, "COMPLETED")
        rest = output(server.client, "gold", run_id, int(first.headers["x-next-offset"]))
        assert (rest.text, rest.headers["x-complete"]) == ("two\n", "true")
        shown = interlock(tmp_path, "logs", "gold")
        assert (shown.returncode, shown.stdout) == (0, "one\ntwo\n")
        assert server.client.get(f"{V1}/pipelines/gold/jobs/gold-{DATE}-1-none/output").status_code == 422
        server.stop()
    shown = interlock(tmp_path, "logs", "gold", "--date", DATE, "--attempt", "1")
    assert (shown.returncode, shown.stdout) == (0, "one\ntwo\n")


def test_output_is_followed_to_its_end_and_cannot_move_the_cursor(tmp_path: Path) -> None:
    script = r"printf 'a\033[2Jb\n'; until [ -e go ]; do sleep 0.05; done; echo end"
    write_pipeline(tmp_path, "gold", command("gold", "sh", "-c", script))
    with serving(tmp_path) as server:
        ready(server.client, "gold", DATE)
        server.await_status("gold", DATE, "RUNNING")
        following = subprocess.Popen(
            [sys.executable, "-m", "interlock", "logs", "gold", "-f"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert following.stdout is not None
        assert following.stdout.readline() == "a[2Jb\n"
        (tmp_path / "go").touch()
        assert following.communicate(timeout=30)[0] == "end\n"
        assert following.returncode == 0


def test_a_running_command_is_stopped_with_its_whole_group(tmp_path: Path) -> None:
    script = "echo $$ > pid; sleep 300 & echo $! > child; wait"
    document = command("gold", "sh", "-c", script)
    document["job"]["maxRetries"] = 2
    write_pipeline(tmp_path, "gold", document)
    with serving(tmp_path) as server:
        ready(server.client, "gold", DATE)
        until(lambda: (tmp_path / "child").exists() or None, "the command")
        stopped = interlock(tmp_path, "cancel", "gold", "--reason", "wrong input")
        assert (stopped.returncode, stopped.stdout) == (0, f"gold stream {DATE} is cancelled\n"), stopped.stderr
        run = server.await_status("gold", DATE, "FAILED_FINAL")
        assert (run["finalReason"], run["attempt"], run["cancel"]["reason"]) == ("cancelled", 1, "wrong input")
        (event,) = [one for one in run["events"] if one["type"] == "JOB_CANCELLED"]
        assert event["detail"]["requestedBy"]
        for name in ("pid", "child"):
            pid = (tmp_path / name).read_text().strip()
            until(partial(_gone, pid), f"the end of {name}")
        again = cancel(server.client, "gold")
        assert again.status_code == 422
        assert "no active attempt" in again.json()["detail"]


def _gone(pid: str) -> bool | None:
    """True once a process has ended, reaped or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z" or None


def test_a_cancellation_survives_the_death_of_the_controller(tmp_path: Path) -> None:
    """Asked for while nobody runs: the next controller stops the job."""
    write_pipeline(tmp_path, "gold", command("gold", "sh", "-c", "echo $$ > pid; exec sleep 300"))
    with serving(tmp_path) as server:
        ready(server.client, "gold", DATE)
        server.await_status("gold", DATE, "RUNNING")
        until(lambda: (tmp_path / "pid").exists() or None, "the command")
        server.kill()
    asked = interlock(tmp_path, "cancel", "gold", "--date", DATE)
    assert asked.returncode == 0
    assert "is to be stopped" in asked.stdout
    with serving(tmp_path) as server:
        run = server.await_status("gold", DATE, "FAILED_FINAL")
        assert run["finalReason"] == "cancelled"
        until(partial(_gone, (tmp_path / "pid").read_text().strip()), "the end of the command")


def test_what_cannot_be_stopped_says_so_and_goes_on(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold", job={"type": "external"}))
    with serving(tmp_path) as server:
        ready(server.client, "gold", DATE)
        server.await_status("gold", DATE, "RUNNING")
        asked = interlock(tmp_path, "cancel", "gold", "--date", DATE)
        assert asked.returncode == 1
        assert f"gold stream {DATE} goes on: " in asked.stdout
        why = interlock(tmp_path, "why", "gold", "--date", DATE).stdout
        assert "asked to stop" in why
        assert server.await_status("gold", DATE, "RUNNING")["cancel"]["problem"]


def test_no_more_commands_run_at_once_than_their_pool_has_slots(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[pools]\ncommands = 2\n")
    for name in "abcde":
        write_pipeline(
            tmp_path, name, command(name, "sh", "-c", f"touch on-{name}; until [ -e go ]; do sleep 0.05; done")
        )
    with serving(tmp_path) as server:
        for name in "abcde":
            ready(server.client, name, DATE)
        until(lambda: len(list(tmp_path.glob("on-*"))) == 2 or None, "two commands")
        waiting = until(lambda: _in_line(server.client), "three in line")
        assert sorted(waiting) == ["1st of 3", "2nd of 3", "3rd of 3"]
        assert len(list(tmp_path.glob("on-*"))) == 2
        (tmp_path / "go").touch()
        for name in "abcde":
            server.await_status(name, DATE, "COMPLETED")


def _in_line(client: httpx.Client) -> list[str] | None:
    verdicts = [client.get(f"{V1}/pipelines/{name}/why", params={"date": DATE}).json()["verdict"] for name in "abcde"]
    found = [match[0] for text in verdicts if (match := re.search(r"\d\w\w of \d", text))]
    # Asked one after the other: the first may have been asked before the last had joined.
    return found if len(found) == 3 and all(one.endswith("of 3") for one in found) else None
