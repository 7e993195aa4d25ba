"""What makes no sense together, one row each; and the warnings."""

from collections.abc import Mapping
from typing import Any

import pytest

from interlock.config.decode import decode
from interlock.config.problems import Severity, format_path
from interlock.config.semantics import check_calendar, find_errors
from interlock.config.warnings import Abilities, find_warnings
from interlock.model.config import Calendar, JobType, PipelineConfig, ProbeType

RULE = {"key": "k", "check": "exists"}
TRIGGER = {"key": "landed", "check": "exists"}


def pipeline(**changes: object) -> dict[str, Any]:
    """A config without errors or warnings, changed."""
    document = {
        "pipeline": {"id": "p"},
        "schedule": {"cron": "0 8 * * *"},
        "validation": {"rules": [RULE]},
        "job": {"type": "external"},
        **changes,
    }
    return {key: value for key, value in document.items() if value is not None}


def found(document: Mapping[str, object], abilities: Abilities | None = None) -> tuple[list[str], list[str]]:
    config = decode(document, PipelineConfig)
    assert isinstance(config, PipelineConfig), config
    findings = find_errors(config, ["us-federal", "month-end"]) or tuple(find_warnings(config, abilities))
    lines = [(one.severity, f"{format_path(one.path)}: {one.message}") for one in findings]
    return (
        [line for severity, line in lines if severity is Severity.ERROR],
        [line for severity, line in lines if severity is Severity.WARNING],
    )


def rule(**changes: object) -> dict[str, Any]:
    return pipeline(validation={"rules": [{"key": "k", "field": "f", **changes}]})


def job(type_: str, *, retry: str = "0s", **config: object) -> dict[str, Any]:
    return pipeline(job={"type": type_, "config": config, "retryDelay": retry})


def schedule(**changes: object) -> dict[str, Any]:
    return pipeline(schedule=changes, sla={"deadline": "10:00", "expectedDuration": "1h"})


def test_the_base_of_these_tests_is_clean() -> None:
    assert found(pipeline()) == ([], [])


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        (pipeline(job=None), "job", "is missing"),
        (pipeline(schedule={"cron": "61 * * * *"}), "schedule.cron", "is not a valid minute"),
        (pipeline(schedule={"cron": "0 8 * *"}), "schedule.cron", "not five"),
        (pipeline(schedule={"cron": "0 8 30 2 *"}), "schedule.cron", "never fires"),
        (
            pipeline(schedule={"cron": "0 8 * * *", "include": {"dates": ["2026-03-31"]}}),
            "schedule.include",
            "a cron or inclusion dates, not both",
        ),
        (schedule(timezone="Europe/Berln"), "schedule.timezone", "did you mean Europe/Berlin?"),
        (schedule(exclude={"dates": ["2026-02-30"]}), "schedule.exclude.dates[0]", "not a day of the calendar"),
        (schedule(exclude={"calendar": "us-fed"}), "schedule.exclude.calendar", "did you mean us-federal?"),
        (schedule(exclude={"holidays": "XX"}), "schedule.exclude.holidays", "no country 'XX'"),
        (schedule(exclude={"holidays": "US-ZZ"}), "schedule.exclude.holidays", "no subdivision 'ZZ'"),
        (schedule(include={}), "schedule.include", "includes no day at all"),
        (schedule(include={"dates": ["2026-13-01"]}), "schedule.include.dates[0]", "not a day of the calendar"),
        (schedule(include={"calendar": "month"}), "schedule.include.calendar", "did you mean month-end?"),
        (schedule(evaluation={"interval": "500ms"}), "schedule.evaluation.interval", "500ms is shorter than 1s"),
        (schedule(trigger={"key": "_x", "check": "exists"}), "schedule.trigger.key", "reserved"),
        (schedule(trigger={"key": "upstream:x", "check": "exists"}), "schedule.trigger.key", "reserved"),
        (schedule(trigger={"key": "x", "check": "equals", "value": 1}), "schedule.trigger.field", "is missing"),
        (
            pipeline(schedule={"cron": "0 8 * * *", "trigger": {**TRIGGER, "deadline": ":30"}}),
            "schedule.trigger.deadline",
            "gives daily ones",
        ),
        (pipeline(schedules=[{"id": "a", "cron": "0 8 * * *"}]), "schedules", "stands beside `schedule`"),
        (pipeline(schedule=None, schedules=[{"cron": "0 8 * * *"}]), "schedules[0].id", "is missing"),
        (
            pipeline(schedule=None, schedules=[{"id": "a", "cron": "0 8 * * *"}, {"id": "a", "cron": "0 9 * * *"}]),
            "schedules[1].id",
            '"a" is the id of schedules[0] already',
        ),
        (
            pipeline(schedule=None, schedules=[{"id": "a", "cron": "x"}]),
            "schedules[0].cron",
            "has 1 field(s), not five",
        ),
        (
            pipeline(schedule=None, schedules=[{"id": "a", "cron": "0 8 * * *"}], after=[{"pipeline": "q"}]),
            "after",
            "needs a single `schedule`",
        ),
        (pipeline(sla={}), "sla", "says nothing"),
        (pipeline(sla={"expectedDuration": "30m"}), "sla", "says nothing"),
        (pipeline(sla={"deadline": "10:00", "timezone": "Mars"}), "sla.timezone", "not an IANA time zone"),
        (pipeline(sla={"deadline": ":30"}), "sla.deadline", "cron '0 8 * * *' gives daily ones"),
        (
            pipeline(schedule={"include": {"dates": ["2026-03-31"]}}, sla={"deadline": ":30"}),
            "sla.deadline",
            "inclusion dates give daily ones",
        ),
        (pipeline(sla={"readyBy": ":30"}), "sla.readyBy", "cron '0 8 * * *' gives daily ones"),
        (
            pipeline(schedule={"trigger": TRIGGER, "granularity": "day"}, sla={"deadline": ":30"}),
            "sla.deadline",
            "granularity day gives daily ones",
        ),
        (
            pipeline(schedule={"trigger": {**TRIGGER, "deadline": ":30"}, "granularity": "day"}),
            "schedule.trigger.deadline",
            "granularity day gives daily ones",
        ),
        (
            pipeline(schedule={"cron": "0 * * * *", "granularity": "hour"}),
            "schedule.granularity",
            "stands beside `cron`",
        ),
        (
            pipeline(schedule={"include": {"dates": ["2026-03-31"]}, "granularity": "hour"}),
            "schedule.granularity",
            "hour needs schedule.trigger",
        ),
        (
            pipeline(schedule={"granularity": "hour"}, after=[{"pipeline": "q", "require": "all-hours"}]),
            "after[0].require",
            "write same-period",
        ),
        (pipeline(sla={"maxDuration": "4h"}), "sla.maxDuration", "needs schedule.trigger"),
        (
            pipeline(schedule={"trigger": TRIGGER}, sla={"maxDuration": "25h"}),
            "sla.maxDuration",
            "1d1h is not more than 0s and at most 24h",
        ),
        (pipeline(schedule={"trigger": TRIGGER}, sla={"maxDuration": "0s"}), "sla.maxDuration", "at most 24h"),
        (pipeline(dryRun=True), "dryRun", "needs schedule.trigger"),
        (pipeline(after=[{"pipeline": "q"}, {"pipeline": "q"}]), "after[1].pipeline", "listed already"),
        (
            pipeline(schedule={"cron": "0 * * * *"}, after=[{"pipeline": "q", "require": "all-hours"}]),
            "after[0].require",
            "write same-period",
        ),
        (pipeline(postRun={"driftField": ""}), "postRun.driftField", "must not be empty"),
        (pipeline(postRun={"evaluation": {"interval": "0s"}}), "postRun.evaluation.interval", "shorter than 1s"),
        (pipeline(postRun={"rules": [{"key": "_k", "check": "exists"}]}), "postRun.rules[0].key", "reserved"),
        (pipeline(probes=[{"key": "_k", "type": "sql"}]), "probes[0].key", "reserved"),
        (
            pipeline(probes=[{"key": "k", "type": "sql"}, {"key": "k", "type": "file"}]),
            "probes[1].key",
            "written by another probe already",
        ),
        (pipeline(probes=[{"key": "k", "type": "sql", "interval": "10ms"}]), "probes[0].interval", "too short"),
        (pipeline(probes=[{"key": "k", "type": "sql", "timeout": "0s"}]), "probes[0].timeout", "too short"),
        (rule(key="_x", check="exists"), "validation.rules[0].key", "reserved"),
        (rule(key="upstream:q", check="exists"), "validation.rules[0].key", "not listed in `after`"),
        (rule(check="exists", value=1), "validation.rules[0].value", "exists takes no value"),
        (rule(check="exists", field=""), "validation.rules[0].field", "is missing"),
        (rule(check="equals"), "validation.rules[0].value", "is missing: equals needs a value"),
        (rule(check="equals", value=[1]), "validation.rules[0].value", "write `check: in`"),
        (rule(check="ne", value=[1]), "validation.rules[0].value", "ne compares with one value"),
        (rule(check="gte", field=None, value=1), "validation.rules[0].field", "gte compares a field"),
        (rule(check="gt", value="many"), "validation.rules[0].value", '"many" is not a number'),
        (rule(check="lt", value=True), "validation.rules[0].value", "true is not a number"),
        (rule(check="lte", value=[1]), "validation.rules[0].value", "is not a number"),
        (rule(check="in", value="ready"), "validation.rules[0].value", "needs a list"),
        (rule(check="in", value=[]), "validation.rules[0].value", "needs a list"),
        (rule(check="age_lt", value="soon"), "validation.rules[0].value", "'soon' is not a duration"),
        (rule(check="age_gt", value=30), "validation.rules[0].value", "30 is not a duration"),
        (job("external", retry="61m"), "job.retryDelay", "1h1m is longer than 1h"),
        (
            pipeline(job={"type": "external", "jobPollWindowSeconds": 59}),
            "job.jobPollWindowSeconds",
            "59 is not in 60..86400",
        ),
        (pipeline(job={"type": "external", "pollInterval": "999ms"}), "job.pollInterval", "shorter than 1s"),
        (job("command"), "job.config.command", "jobs of type command need command"),
        (job("command", command=[]), "job.config.command", "is missing"),
        (job("command", command=["run", 5]), "job.config.command", "quote numbers"),
        (job("command", command="echo 'x"), "job.config.command", "cannot be split into words"),
        (job("command", command="# x"), "job.config.command", None),
        (job("command", command=" "), "job.config.command", "names no program"),
        (job("command", command={"a": 1}), "job.config.command", "neither a list of texts"),
        (job("command", command=["x"], timeout="long"), "job.config.timeout", "'long' is not a duration"),
        (job("http"), "job.config.url", "jobs of type http need url"),
        (job("http", url="ftp://x"), "job.config.url", "not an http(s) address"),
        (job("http", url=5), "job.config.url", "5 is not text"),
        (job("airflow", url="https://a"), "job.config.dagId", "is missing"),
        (job("glue"), "job.config.jobName", "is missing"),
        (job("emr"), "job.config.clusterId", "is missing"),
        (job("emr-serverless"), "job.config.applicationId", "is missing"),
        (job("step-function"), "job.config.stateMachineArn", "is missing"),
        (job("databricks", host="h"), "job.config.jobId", "(or submit)"),
        (job("databricks", jobId=1), "job.config.host", "(or url)"),
        (job("lambda"), "job.config.functionName", "is missing"),
        (job("external", a=[{"b": "${DAET}"}]), "job.config.a[0].b", "${DAET} is not known"),
        (job("external", a="${DATE"), "job.config.a", "a template is not closed"),
    ],
)
def test_errors(document: dict[str, Any], path: str, words: str | None) -> None:
    errors, warnings = found(document)
    if words is None:  # a shell comment is a word like any other: no shell is involved
        assert errors == []
        return
    assert [error for error in errors if error.startswith(f"{path}: ")], errors
    assert len(errors) == 1, errors
    assert words in errors[0]
    assert warnings == []


@pytest.mark.parametrize(
    "document",
    [
        schedule(exclude={"holidays": "US-CA"}),
        schedule(exclude={"holidays": "NO", "calendar": "us-federal"}),
        schedule(include={"calendar": "month-end"}),
        schedule(evaluation={"window": "0s"}),
        schedule(evaluation={"window": "1m"}),
        pipeline(schedule={"cron": "0 * * * *"}, sla={"deadline": ":30", "expectedDuration": "5m"}),
        pipeline(schedule={"trigger": {**TRIGGER, "deadline": ":30"}, "granularity": "hour"}),
        pipeline(schedule={"trigger": TRIGGER, "granularity": "day"}, sla={"readyBy": "09:00"}),
        pipeline(schedule={"include": {"dates": ["2026-03-31"]}, "granularity": "day"}),
        # The upstream says what the periods are.
        pipeline(schedule=None, after=[{"pipeline": "q"}], sla={"deadline": ":30", "expectedDuration": "5m"}),
        pipeline(schedule={"trigger": TRIGGER}, sla={"maxDuration": "12h"}),
        pipeline(schedule={"trigger": TRIGGER}, dryRun=True),
        pipeline(after=[{"pipeline": "q", "require": "all-hours"}]),
        pipeline(after=[{"pipeline": "q"}], validation={"rules": [{"key": "upstream:q", "check": "exists"}]}),
        rule(check="exists"),
        rule(check="equals", value=False),
        rule(check="gt", value="1e3"),
        rule(check="lt", value=0.5),
        rule(check="in", value=["a", 1, None]),
        rule(check="age_lt", value="PT2H"),
        job("command", command="python etl.py --day '${DATE}'", timeout="30m"),
        job("command", command=["python", "etl.py"], env={"A": "b"}),
        job("http", url="HTTPS://x", timeout=30, whatever=1),
        job("http", url="${INTERLOCK_JOBS}/run"),
        job("airflow", url="https://a", dagId="d"),
        job("databricks", url="https://a", submit={"tasks": []}),
        job("external", text="$${DATE} ${RUN_ID} ${INTERLOCK_X}"),
        pipeline(job={"type": "external", "jobPollWindowSeconds": 0, "retryDelay": "1h", "pollInterval": "1s"}),
        pipeline(postRun={"rules": []}),
    ],
)
def test_what_is_fine_is_left_in_peace(document: dict[str, Any]) -> None:
    assert found(document) == ([], [])


UNNOTICED = "nothing notices if this never starts: it has no cron, no SLA, no trigger deadline, no inclusion dates"


@pytest.mark.parametrize(
    ("document", "warnings"),
    [
        (pipeline(sla={"deadline": "10:00"}), ["sla: no expectedDuration: there will be no warning before the breach"]),
        (
            pipeline(sla={"deadline": "07:00", "expectedDuration": "1h"}),
            ["sla.deadline: the breach comes 23h after the start: is that meant?"],
        ),
        (
            pipeline(
                schedule={"include": {"dates": ["2026-03-31"]}}, sla={"deadline": "13:00", "expectedDuration": "1h"}
            ),
            ["sla.deadline: the breach comes 13h after the start: is that meant?"],
        ),
        (
            pipeline(
                schedule={"time": "06:00", "include": {"dates": ["2026-03-31"]}},
                sla={"deadline": "13:00", "expectedDuration": "1h"},
            ),
            [],
        ),
        # 20:00 in Tokyo is 11:00 in UTC: three hours after the start, not twelve.
        (pipeline(sla={"deadline": "20:00", "timezone": "Asia/Tokyo", "expectedDuration": "1h"}), []),
        (
            pipeline(sla={"deadline": "06:00", "timezone": "Asia/Tokyo", "expectedDuration": "1h"}),
            ["sla.deadline: the breach comes 13h after the start: is that meant?"],
        ),
        # 13 hours after the start in winter, 12 in summer: not always, so not worth a warning.
        (pipeline(sla={"deadline": "16:00", "timezone": "America/New_York", "expectedDuration": "1h"}), []),
        (
            pipeline(schedule={"trigger": TRIGGER}, sla={"maxDuration": "13h"}),
            ["sla.maxDuration: the breach comes more than 12h after the start"],
        ),
        (pipeline(schedule={"cron": "0 8 29 2 *"}, sla={"deadline": "09:00", "expectedDuration": "1h"}), []),
        (
            pipeline(job={"type": "external", "jobPollWindowSeconds": 10801}),
            [
                "job.jobPollWindowSeconds: evaluation window (1h) and job poll window (3h1s) together pass the"
                " execution timeout of 4h on AWS (sfn_timeout_seconds)"
            ],
        ),
        (pipeline(job={"type": "external", "jobPollWindowSeconds": 10800}), []),
        (
            pipeline(schedule={"cron": "0 8 * * *", "evaluation": {"window": "6h"}}),
            [
                "schedule.evaluation: evaluation window (6h) and job poll window (1h) together pass the"
                " execution timeout of 4h on AWS (sfn_timeout_seconds)"
            ],
        ),
        (
            pipeline(
                schedule={"trigger": {**TRIGGER, "deadline": ":20"}},
                sla={"deadline": ":30", "readyBy": ":10", "expectedDuration": "5m"},
            ),
            [
                "sla.deadline: :30 is for hourly runs, and nothing says that these are hourly: add"
                " schedule.granularity: hour",
                "sla.readyBy: :10 is for hourly runs, and nothing says that these are hourly: add"
                " schedule.granularity: hour",
                "schedule.trigger.deadline: :20 is for hourly runs, and nothing says that these are hourly: add"
                " schedule.granularity: hour",
            ],
        ),
        (
            pipeline(schedule={"cron": "0 * * * *"}, sla={"deadline": "10:30", "expectedDuration": "5m"}),
            [
                "sla.deadline: 10:30 is one time a day, and the runs are hourly: write :30 for each hour's own time",
            ],
        ),
        (
            pipeline(schedule={"trigger": TRIGGER, "granularity": "hour"}, sla={"readyBy": "09:00"}),
            ["sla.readyBy: 09:00 is one time a day, and the runs are hourly: write :00 for each hour's own time"],
        ),
        (pipeline(schedule=None), [f"pipeline: {UNNOTICED}"]),
        (pipeline(schedule={"trigger": TRIGGER}), [f"schedule: {UNNOTICED}"]),
        (pipeline(schedule={"trigger": TRIGGER}, dryRun=True), []),
        (
            pipeline(schedule=None, schedules=[{"id": "a", "cron": "0 8 * * *"}, {"id": "b", "trigger": TRIGGER}]),
            [f"schedules[1]: {UNNOTICED}"],
        ),
    ],
)
def test_warnings_are_few_and_true(document: dict[str, Any], warnings: list[str]) -> None:
    assert found(document) == ([], warnings)


GLUE = {"type": "glue", "config": {"jobName": "etl"}}
FILE = {"key": "landed", "type": "file", "config": {"path": "in.csv"}}
HTTP = {"key": "rows", "type": "http", "config": {"url": "https://example.com/"}}
NOT_STARTED = "job.type: jobs of type glue cannot be started by this installation yet: it starts command, external"
NOT_RUN = "probes: probes are not run by this installation yet: somebody else has to write"


@pytest.mark.parametrize(
    ("document", "warnings"),
    [
        (pipeline(), []),
        (pipeline(job=GLUE), [NOT_STARTED]),
        # Nothing is ever started in dry-run mode; the rules are evaluated there, too.
        (pipeline(job=GLUE, probes=[FILE], schedule={"trigger": TRIGGER}, dryRun=True), [f"{NOT_RUN} landed"]),
        (pipeline(job=GLUE, probes=[FILE, HTTP]), [NOT_STARTED, f"{NOT_RUN} landed, rows"]),
    ],
)
def test_what_the_installation_can_not_do_yet_is_warned_of(document: dict[str, Any], warnings: list[str]) -> None:
    able = Abilities(job_types=frozenset({JobType.COMMAND, JobType.EXTERNAL}))
    assert found(document, able) == ([], warnings)


def test_what_it_can_do_is_not() -> None:
    everything = Abilities(job_types=frozenset(JobType), probe_types=frozenset(ProbeType))
    document = pipeline(job=GLUE, probes=[FILE, HTTP])
    assert found(document, everything) == found(document) == ([], [])


def test_a_calendar_needs_days_that_exist() -> None:
    assert check_calendar(Calendar(name="x", dates=["2026-01-01"])) == ()
    (error,) = check_calendar(Calendar(name="x", dates=["2026-01-01", "2025-02-29"]))
    assert (error.path, error.severity) == (("dates", 1), Severity.ERROR)
    (warning,) = check_calendar(Calendar(name="x"))
    assert warning.severity is Severity.WARNING
