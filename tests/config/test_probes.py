"""Probes in a config: every key by its kind, with the place of what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from interlock.config.loader import load_paths
from interlock.config.problems import format_path
from interlock.config.semantics import find_errors
from interlock.config.stored import read_stored
from interlock.config.warnings import Abilities, find_missing
from interlock.model.config import JobType, PipelineConfig, ProbeType

URL = "https://example.com/x"


def pipeline(*probes: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipeline": {"id": "gold"},
        "schedule": {"cron": "0 8 * * *"},
        "validation": {"rules": [{"key": "landed", "check": "exists"}]},
        "job": {"type": "command", "config": {"command": ["true"]}},
        "probes": list(probes),
    }


def errors(type_: str, config: dict[str, Any], **more: Any) -> list[str]:
    found = read_stored(pipeline({"key": "landed", "type": type_, "config": config, **more}), {})
    return [] if isinstance(found, PipelineConfig) else [f"{one.path}: {one.message}" for one in found]


@pytest.mark.parametrize(
    ("type_", "config"),
    [
        ("http", {"url": URL}),
        ("http", {"url": "${INTERLOCK_BASE}/x", "method": "get", "headers": {"x-key": "${INTERLOCK_SECRET_K}"}}),
        ("http", {"url": URL, "body": {"day": "${DATE}", "hour": "${HOUR}", "of": "${PIPELINE}", "at": "${PERIOD}"}}),
        ("command", {"command": "python look.py --day ${DATE}", "cwd": "x", "env": {"N": 1, "OK": True}}),
        ("command", {"command": ["python", "look.py"]}),
        ("sql", {"url": "postgresql://u:${INTERLOCK_SECRET_PW}@h/db", "query": "SELECT count(*) AS n FROM t"}),
        ("s3", {"bucket": "lake", "prefix": "orders/${DATE}/", "region": "eu-west-1"}),
        ("file", {"path": "/data/${DATE}/*.csv"}),
    ],
)
def test_every_kind_with_the_keys_of_the_documents(type_: str, config: dict[str, Any]) -> None:
    assert errors(type_, config) == []


@pytest.mark.parametrize(
    ("type_", "config", "message"),
    [
        ("http", {}, "probes[0].config.url: is missing: probes of type http need url"),
        ("http", {"url": "ftp://x"}, 'probes[0].config.url: "ftp://x" is not an http(s) address'),
        ("http", {"url": URL, "method": "FETCH"}, 'probes[0].config.method: "FETCH" is not one of POST, PUT'),
        ("http", {"url": URL, "verb": "GET"}, "probes[0].config.verb: unknown key: probes of type http take url"),
        ("command", {"command": "cat x | wc -l"}, "probes[0].config.command: | is for a shell"),
        ("command", {"command": []}, "probes[0].config.command: names no program"),
        ("sql", {"url": "sqlite:///x"}, "probes[0].config.query: is missing: probes of type sql need query"),
        ("sql", {"url": "warehouse", "query": "q"}, "probes[0].config.url: is not the address of a database"),
        ("s3", {"prefix": "x"}, "probes[0].config.bucket: is missing"),
        ("file", {"path": "${RUN_ID}.csv"}, "probes[0].config.path: ${RUN_ID} is not known: there are DATE, HOUR"),
        ("file", {"path": "${DATE"}, "probes[0].config.path: a template is not closed"),
        ("file", {"path": 5}, "probes[0].config.path: "),
        ("ftp", {}, 'probes[0].type: "ftp" is not one of http, command, sql, s3, file'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(type_: str, config: dict[str, Any], message: str) -> None:
    (found,) = errors(type_, config)
    assert found.startswith(message)


def test_times_and_names_are_checked() -> None:
    file = {"path": "x"}
    assert "too short" in errors("file", file, interval="1ms")[0]
    assert "longer than 10m" in errors("file", file, timeout="1h")[0]
    found = read_stored(pipeline({"key": "landed#2026-03-02", "type": "file", "config": file}), {})
    assert not isinstance(found, PipelineConfig)
    assert "names a period" in found[0].message


def test_lines_of_a_file_and_a_ttl_that_leaves_gaps(tmp_path: Path) -> None:
    text = """\
pipeline: {id: gold}
schedule: {cron: "0 8 * * *"}
validation: {rules: [{key: landed, check: exists}]}
job: {type: command, config: {command: ["true"]}}
probes:
  - key: landed
    type: file
    interval: 10m
    ttl: 1m
    config:
      pth: in.csv
"""
    (tmp_path / "gold.yaml").write_text(text)
    loaded = load_paths([tmp_path / "gold.yaml"])
    lines = {(problem.line, problem.path) for problem in loaded.problems}
    assert lines == {(11, "probes[0].config.pth"), (10, "probes[0].config.path")}
    (tmp_path / "gold.yaml").write_text(text.replace("pth", "path"))
    (warning,) = load_paths([tmp_path / "gold.yaml"]).problems
    assert (warning.line, warning.path) == (9, "probes[0].ttl")
    assert "absent between two looks" in warning.message


def test_a_missing_extra_is_an_error_that_names_it() -> None:
    config = read_stored(
        pipeline({"key": "landed", "type": "sql", "config": {"url": "sqlite://", "query": "SELECT 1 AS n"}}), {}
    )
    assert isinstance(config, PipelineConfig)
    assert find_errors(config, ()) == ()
    lacking = Abilities(job_types=frozenset(JobType), missing_probes={ProbeType.SQL: "pip install 'interlock[sql]'"})
    (found,) = find_missing(config, lacking)
    assert (format_path(found.path), found.message) == ("probes[0].type", "pip install 'interlock[sql]'")
