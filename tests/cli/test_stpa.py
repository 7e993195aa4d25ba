"""`interlock stpa`: coverage for people, for machines, and for CI."""

import json
from pathlib import Path

import pytest

from tests.cli.test_main import run
from tests.cli.test_plan import project
from tests.cli.test_simulate import PIPELINE

__all__ = ["project"]


def test_gaps_are_told_with_yaml_that_closes_them(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    outcome = run(capsys, "stpa", ".")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "gold"
    kinds = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert kinds == [
        "not given",
        "given when unsafe",
        "too early, too late or out of order",
        "stopped too soon or applied too long",
    ]
    at = lines.index("    ✗ the job succeeds, but its output is wrong: nothing")
    assert lines[at + 2 : at + 4] == [
        "          postRun:",
        "            rules: [{key: output-row-count, check: gte, field: count, value: 1}]",
    ]
    assert lines[-1].endswith(" 1 uncovered")


def test_strict_fails_until_the_gap_is_closed(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    assert run(capsys, "stpa", ".", "--strict").code == 1
    closed = PIPELINE + "postRun: {rules: [{key: out, check: gte, field: count, value: 1}]}\n"
    (project / "pipelines/gold.yaml").write_text(closed)
    assert run(capsys, "stpa", ".", "--strict").code == 0


def test_json(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    report = json.loads(run(capsys, "stpa", ".", "--json").out)
    (gold,) = report["pipelines"]
    assert gold["pipeline"] == "gold"
    uncovered = [one["hazard"] for one in gold["hazards"] if one["cover"] == "uncovered"]
    assert uncovered == ["the job succeeds, but its output is wrong"]


def test_errors_of_configs_come_first(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/bad.yaml").write_text("pipeline: {id: bad}\n")
    outcome = run(capsys, "stpa", ".")
    assert (outcome.code, outcome.out) == (1, "")
    assert "validation: is missing" in outcome.err
