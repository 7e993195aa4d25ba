"""`interlock demo`, as a user runs it: a real process, real jobs, and every act found in the real events."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "interlock", "demo"]
ACTS = ("gating", "cascade", "late upstream", "retry", "drift", "closed day")
SECONDS = 100


def surroundings(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return {**kept, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}


def test_once_shows_every_act_and_leaves_its_results(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--once"],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert re.findall(r"^  ✓ ([a-z ]+):", done.stdout, re.MULTILINE) == list(ACTS)
    assert "✗" not in done.stdout
    for reported in ("SLA_WARNING", "JOB_FAILED", "POST_RUN_DRIFT", "PIPELINE_EXCLUDED", "needs >= 100"):
        assert reported in done.stdout
    (folder,) = tmp_path.glob("interlock-demo-*")
    assert str(folder) in done.stdout
    check_results(folder)


def check_results(folder: Path) -> None:
    hours = [f"2026-03-02T{hour}" for hour in (10, 11, 12)]
    for layer, suffix in (("bronze", "jsonl"), ("silver", "csv"), ("gold", "csv")):
        for feed in ("earthquake", "crypto"):
            assert sorted(file.name for file in (folder / layer / feed).iterdir()) == [
                f"{hour}.{suffix}" for hour in hours
            ]
    bronze = (folder / "bronze" / "earthquake" / f"{hours[2]}.jsonl").read_text().splitlines()
    measured = {row["id"] for row in map(json.loads, bronze) if row["magnitude"] is not None}
    with (folder / "gold" / "earthquake" / f"{hours[2]}.csv").open(newline="") as stream:
        gold = list(csv.DictReader(stream))
    # The correction, which came when gold was done, is in it.
    assert max(float(row["strongest"]) for row in gold) == 7.4
    assert abs(sum(int(row["quakes"]) for row in gold) - len(measured)) <= 3


@contextmanager
def demo(tmp_path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        found = re.search(pattern, line)
        if found is not None:
            return found
    raise AssertionError("the demo ended:\n" + "".join(seen))


@pytest.mark.parametrize("kept", [False, True])
def test_it_serves_the_api_until_it_is_interrupted(tmp_path: Path, kept: bool) -> None:
    with demo(tmp_path, *(["--keep"] if kept else [])) as process:
        url = read_until(process, r"http://127\.0\.0\.1:\d+")[0]
        read_until(process, r"TRIGGER_STARTED")
        page = httpx.get(f"{url}/api/v1/events", params={"type": "TRIGGER_STARTED"}, timeout=30).json()
        assert {item["pipelineId"] for item in page["items"]} <= {"earthquake-silver", "crypto-silver"}
        assert page["items"]
        (folder,) = tmp_path.glob("interlock-demo-*")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    assert str(folder) in output
    assert folder.exists() is kept


def test_an_address_that_is_taken_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        port = read_until(process, r"http://127\.0\.0\.1:(\d+)")[1]
        second = tmp_path / "second"
        second.mkdir()
        done = subprocess.run(
            [*COMMAND, "--port", port],
            cwd=second,
            env=surroundings(second),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 1
    assert "name another --port" in done.stderr
    assert list(second.iterdir()) == []
