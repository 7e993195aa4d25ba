"""`interlock simulate` as a person and a CI job meet it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_main import run

PIPELINE = """
pipeline: {id: gold}
schedule: {cron: "0 8 * * *"}
sla: {deadline: "10:00", expectedDuration: 30m}
validation: {rules: [{key: row-count, check: gte, field: count, value: 1000}]}
job: {type: external}
"""

SCENARIO = """
name: gold waits for its row count
start: "2026-03-02T07:55:00Z"
until: "2026-03-02T12:00:00Z"
pipelines: [{file: ../pipelines/gold.yaml}]
steps:
  - {at: "+20m", sensor: gold/row-count, data: {count: 5000}}
expect:
  events: [{type: JOB_COMPLETED, pipeline: gold, at: "2026-03-02T08:16:00Z"}]
  never: [{type: SLA_BREACH}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("pipelines", "scenarios"):
        (tmp_path / name).mkdir()
    (tmp_path / "pipelines/gold.yaml").write_text(PIPELINE)
    (tmp_path / "scenarios/good.yaml").write_text(SCENARIO)
    return tmp_path


def write_failing(project: Path) -> None:
    text = SCENARIO.replace("count: 5000", "count: 5").replace("gold waits for its row count", "too few rows")
    (project / "scenarios/bad.yaml").write_text(text)


def summary(line: str) -> str:
    """A summary line without its time, the one thing that differs from run to run."""
    return line.rpartition(", ")[0]


def test_a_scenario_that_comes_out_as_expected(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    outcome = run(capsys, "simulate", "scenarios/good.yaml")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert lines[0] == (
        "2026-03-02 08:00:00Z  gold  2026-03-02  TRIGGER_STARTED    "
        "attempt 1 of gold for 2026-03-02 opened: cron 0 8 * * * at 2026-03-02 08:00 UTC"
    )
    assert [line.split()[4] for line in lines[:-2]] == [
        "TRIGGER_STARTED",
        "VALIDATION_PASSED",
        "JOB_TRIGGERED",
        "JOB_STARTED",
        "JOB_COMPLETED",
        "SLA_MET",
    ]
    assert summary(lines[-2]) == "ok  gold waits for its row count  (6 events"
    assert "✗" not in outcome.out
    assert "\x1b" not in outcome.out
    assert outcome.err == ""


def test_what_should_have_been_otherwise_is_marked(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    write_failing(project)
    outcome = run(capsys, "simulate", "scenarios/bad.yaml")
    assert outcome.code == 1
    marked = [line for line in outcome.out.splitlines() if line.startswith("✗")]
    assert [line.split()[:6] for line in marked[:1]] == [
        ["✗", "2026-03-02", "10:00:00Z", "gold", "2026-03-02", "SLA_BREACH"]
    ]
    assert marked[1:] == [
        "✗ expected, did not happen: JOB_COMPLETED gold at 2026-03-02T08:16:00Z",
        "✗ must never happen, and did: SLA_BREACH gold 2026-03-02 at 2026-03-02T10:00:00Z",
    ]
    assert "FAILED  too few rows  (" in outcome.out


def test_a_folder_is_all_of_its_files_and_quiet_is_short(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    write_failing(project)
    (project / "scenarios/notes.txt").write_text("not a scenario")
    outcome = run(capsys, "simulate", "--quiet", "scenarios")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["✗", "✗", "FAILED", "ok"]
    assert lines[-1] == "1 of 2 scenarios as expected"


def test_json_is_the_same_every_time(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    write_failing(project)
    first = run(capsys, "simulate", "--json", "scenarios")
    assert first.out == run(capsys, "simulate", "--json", "scenarios").out
    assert first.code == 1
    report = json.loads(first.out)
    bad, good = report["scenarios"]
    assert report["ok"] is False
    assert (good["file"], good["name"], good["ok"], good["failures"]) == (
        "scenarios/good.yaml",
        "gold waits for its row count",
        True,
        [],
    )
    assert good["timeline"][-1]["event"] == "SLA_MET"
    assert good["timeline"][-1]["time"] == "2026-03-02T08:16:00Z"
    assert [row["event"] for row in bad["timeline"] if row["unexpected"]] == ["SLA_BREACH"]
    assert len(bad["failures"]) == 2


def test_every_problem_of_an_unreadable_file_and_the_others_are_played(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    broken = SCENARIO.replace("07:55:00Z", "soon").replace("+20m", "later")
    (project / "scenarios/broken.yaml").write_text(broken)
    outcome = run(capsys, "simulate", "-q", "scenarios")
    assert outcome.code == 2
    assert [line.split(": ")[0] for line in outcome.err.splitlines()] == [
        "scenarios/broken.yaml:3 start",
        "scenarios/broken.yaml:7 steps[0].at",
    ]
    assert [line.split()[0] for line in outcome.out.splitlines()] == ["unreadable", "ok", "1"]


def test_a_crash_of_the_scenario_is_a_line_of_the_timeline(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    crashing = SCENARIO.replace("expect:", '  - {at: "+10m", crash: true}\nexpect:')
    (project / "scenarios/good.yaml").write_text(crashing)
    outcome = run(capsys, "simulate", "scenarios/good.yaml")
    assert outcome.code == 0
    assert any("(scenario)" in line and "crashes" in line for line in outcome.out.splitlines())


@pytest.mark.parametrize("arguments", [("simulate",), ("simulate", "gone.yaml"), ("simulate", "pipelines/empty")])
def test_usage_errors(capsys: pytest.CaptureFixture[str], project: Path, arguments: tuple[str, ...]) -> None:
    (project / "pipelines/empty").mkdir()
    outcome = run(capsys, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err


def test_as_a_process_without_unicode(project: Path) -> None:
    write_failing(project)
    answer = subprocess.run(
        [sys.executable, "-c", "from interlock.cli.main import main; main()", "simulate", "scenarios"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert answer.returncode == 1
    assert b"\nx expected, did not happen: JOB_COMPLETED" in answer.stdout
    assert answer.stderr == b""


def test_a_config_file_can_be_applied_and_removed_on_the_way(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/new.yaml").write_text(PIPELINE.replace("1000", "10000"))
    steps = """steps:
  - {at: "+1m", apply: {file: ../pipelines/new.yaml}}
  - {at: "+3h", remove: gold}
  - {at: "+3h1m", remove: gold}
"""
    (project / "scenarios/changed.yaml").write_text(SCENARIO.replace("steps:\n", steps))
    outcome = run(capsys, "simulate", "scenarios/changed.yaml")
    assert outcome.code == 1, "5000 rows are not enough any more"
    assert "VALIDATION_PASSED" not in outcome.out
    for line in (
        "the config of gold is applied",
        "gold is removed",
        "refused: there is no pipeline 'gold' to remove",
    ):
        assert line in outcome.out


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ('{at: "+1m", remove: silver}', "scenarios/broken.yaml:7 steps[0]: there is no pipeline 'silver'"),
        ('{at: "+1m", remove: gold, crash: true}', "this one has remove, crash"),
        ('{at: "+1m", apply: {pipeline: {id: gold}}}', "scenarios/broken.yaml:7 steps[0].apply"),
        ('{at: "+1m", calendar: {dates: ["2026-03-02"]}}', "scenarios/broken.yaml:7 steps[0].calendar"),
    ],
)
def test_what_is_wrong_with_a_change_is_told_with_its_line(
    capsys: pytest.CaptureFixture[str], project: Path, step: str, problem: str
) -> None:
    (project / "scenarios/broken.yaml").write_text(SCENARIO.replace("steps:\n", f"steps:\n  - {step}\n"))
    outcome = run(capsys, "simulate", "scenarios/broken.yaml")
    assert outcome.code == 2
    assert problem in outcome.out + outcome.err
