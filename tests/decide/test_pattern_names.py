"""Patterns that name what does not exist, one row each; and those that do not."""

import json
from typing import Any

import pytest

from interlock.decide.pattern_names import unknown_names
from interlock.model.events import CATALOGUE, EventType

SEVERITIES = "info, warning, error, critical"


@pytest.mark.parametrize(
    ("pattern", "problems"),
    [
        ({"detail-type": ["JOB_FAILD"]}, ['detail-type: "JOB_FAILD" is not an event type; did you mean JOB_FAILED?']),
        ({"detail-type": ["sla_breach"]}, ['detail-type: "sla_breach" is not an event type; did you mean SLA_BREACH?']),
        ({"detail-type": ["JOB_FAILED", "NOPE"]}, ['detail-type: "NOPE" is not an event type']),
        ({"detail-type": [{"prefix": "SLAA_"}]}, ['detail-type: {"prefix":"SLAA_"} matches none of those there are']),
        ({"detail-type": [{"anything-but": ["NOPE"]}]}, ['detail-type: "NOPE" is not an event type']),
        ({"source": ["interlok"]}, ['source: "interlok" is not one of interlock; did you mean interlock?']),
        ({"detailType": ["SLA_BREACH"]}, ["detailType: there is no such field; did you mean detail-type?"]),
        ({"detail": {"pipeline": ["gold"]}}, ["detail.pipeline: there is no such field; did you mean pipelineId?"]),
        ({"detail": {"severity": ["high"]}}, [f'detail.severity: "high" is not one of {SEVERITIES}']),
        ({"detail": {"detail": {"jobName": ["x"]}}}, ["detail.detail.jobName: there is no such field"]),
        (
            {"detail-type": ["JOB_FAILED"], "detail": {"detail": {"deadline": [{"exists": True}]}}},
            ["detail.detail.deadline: there is no such field of JOB_FAILED"],
        ),
        ({"detail-type": [{"anything-but": "NOPE"}]}, ['detail-type: "NOPE" is not an event type']),
        ({"detail-type": ["JOB_FAILED"], "detail": {"xyz": [1]}}, ["detail.xyz: there is no such field"]),
        (
            {"detail-type": ["JOB_FAILED", "JOB_COMPLETED", "SLA_MET"], "detail": {"detail": {"xyz": [1]}}},
            ["detail.detail.xyz: there is no such field of JOB_COMPLETED, JOB_FAILED, SLA_MET"],
        ),
        (
            {"detail-type": [{"prefix": "JOB_"}], "detail": {"detail": {"xyz": [1]}}},
            ["detail.detail.xyz: there is no such field"],
        ),
        # A type that does not exist is named alone: nobody can say which fields it would have.
        (
            {"detail-type": ["NOPE"], "detail": {"detail": {"attempt": [1]}}},
            ['detail-type: "NOPE" is not an event type'],
        ),
        # Each choice has its own types, or those of the pattern around it.
        (
            {
                "$or": [
                    {"detail-type": ["JOB_FAILED"], "detail": {"detail": {"deadline": [{"exists": True}]}}},
                    {"detail-type": ["SLA_BREACH"], "detail": {"detail": {"deadline": [{"exists": True}]}}},
                ]
            },
            ["detail.detail.deadline: there is no such field of JOB_FAILED"],
        ),
        (
            {
                "detail-type": ["JOB_FAILED"],
                "$or": [{"detail": {"detail": {"deadline": [{"exists": True}]}}}, {"source": ["interlock"]}],
            },
            ["detail.detail.deadline: there is no such field of JOB_FAILED"],
        ),
        (
            {"$or": [{"detail-type": ["JOB_FAILD"]}, {"detail": {"sverity": ["error"]}}]},
            [
                'detail-type: "JOB_FAILD" is not an event type; did you mean JOB_FAILED?',
                "detail.sverity: there is no such field; did you mean severity?",
            ],
        ),
    ],
    ids=json.dumps,
)  # fmt: skip
def test_what_no_event_has_is_named(pattern: dict[str, Any], problems: list[str]) -> None:
    assert [one.partition("of ")[0] if "jobName" in one else one for one in unknown_names(pattern)] == problems


@pytest.mark.parametrize(
    "pattern",
    [
        {"detail-type": ["SLA_BREACH", {"prefix": "JOB_"}]},
        {"detail-type": [{"anything-but": {"prefix": "DRY_RUN_"}}]},
        {"detail-type": [{"equals-ignore-case": "sla_breach"}]},
        {"detail-type": [{"wildcard": "*_EXHAUSTED"}], "detail": {"detail": {"attempt": [1]}}},
        {"source": ["interlock"], "detail": {"pipelineId": [{"prefix": "gold"}], "date": [{"exists": True}]}},
        {"detail": {"severity": ["error", "critical"], "detail": {"category": ["PERMANENT"]}}},
        {"detail-type": ["VALIDATION_PASSED"], "detail": {"detail": {"results": {"passed": [True]}}}},
        {"$or": [{"detail-type": ["SLA_BREACH"]}, {"detail": {"severity": ["critical"]}}]},
    ],
    ids=json.dumps,
)
def test_what_there_is_may_be_named(pattern: dict[str, Any]) -> None:
    assert list(unknown_names(pattern)) == []


@pytest.mark.parametrize("type_", EventType)
def test_every_field_of_the_catalogue_may_be_named(type_: EventType) -> None:
    fields = {field: [{"exists": True}] for field in CATALOGUE[type_].fields}
    inner = {"detail": {"detail": fields}} if fields else {}
    assert list(unknown_names({"detail-type": [type_.value], **inner})) == []
