"""What makes no sense together, one row each; and the warnings."""

from collections.abc import Mapping
from typing import Any

import pytest

from interlock.config.decode import decode
from interlock.config.problems import Severity, format_path
from interlock.config.semantics import check_calendar, find_errors
from interlock.config.warnings import Abilities, find_warnings
from interlock.model.config import Calendar, JobType, PipelineConfig

RULE = {"key": "k", "check": "exists"}
TRIGGER = {"key": "landed", "check": "exists"}
FILE = {"key": "landed", "type": "file", "config": {"path": "in.csv"}}
HTTP = {"key": "rows", "type": "http", "config": {"url": "https://example.com/"}}
AGES = [
    {"key": "k", "field": "f", "check": "age_lt", "value": "1h"},
    {"key": "k", "field": "f", "check": "age_gt", "value": "2h"},
]


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
    findings = find_errors(config, ["us-federal", "month-end"]) or tuple(find_warnings(config, abilities, document))
    lines = [(one.severity, f"{format_path(one.path)}: {one.message}") for one in findings]
    return (
        [line for severity, line in lines if severity is Severity.ERROR],
        [line for severity, line in lines if severity is Severity.WARNING],
    )


def rule(**changes: object) -> dict[str, Any]:
    return pipeline(validation={"rules": [{"key": "k", "field": "f", **changes}]})


def upstream_rule(**changes: object) -> dict[str, Any]:
    return pipeline(after=[{"pipeline": "q"}], validation={"rules": [{"key": "upstream:q", **changes}]})


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
        (pipeline(probes=[{**FILE, "key": "_k"}]), "probes[0].key", "reserved"),
        (
            pipeline(probes=[FILE, FILE]),
            "probes[1].key",
            "written by another probe already",
        ),
        (pipeline(probes=[{**FILE, "interval": "10ms"}]), "probes[0].interval", "too short"),
        (pipeline(probes=[{**FILE, "timeout": "0s"}]), "probes[0].timeout", "too short"),
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
        (job("command", command=[]), "job.config.command", "names no program"),
        (job("command", command=["", "x"]), "job.config.command[0]", "names no program"),
        (job("command", command=["run", 5]), "job.config.command[1]", "5 is a number, not text; quote it"),
        (job("command", command="echo 'x"), "job.config.command", "cannot be split into words"),
        (job("command", command="# x"), "job.config.command", None),
        (job("command", command=" "), "job.config.command", "names no program"),
        (job("command", command={"a": 1}), "job.config.command", "is a mapping, not a list or text"),
        (job("command", command=["x"], timeout="long"), "job.config.timeout", "'long' is not a duration"),
        (job("http"), "job.config.url", "jobs of type http need url"),
        (job("http", url="ftp://x"), "job.config.url", "not an http(s) address"),
        (job("http", url=5), "job.config.url", "5 is a number, not text; quote it"),
        (job("http", url=""), "job.config.url", "must not be empty"),
        (job("http", url="http://a", timeout=60), "job.config.timeout", "write 60s for seconds"),
        (job("http", url="http://a", timeout="60"), "job.config.timeout", "write 60s for seconds"),
        (job("http", url="http://a", timeout="0s"), "job.config.timeout", "longer than nothing"),
        (job("http", url="http://a", method="FETCH"), "job.config.method", "is not one of POST, PUT"),
        (job("http", url="http://a", expect=[200, 999]), "job.config.expect[1]", "999 is not in 100..599"),
        (job("http", url="http://a", callback="soon"), "job.config.callback", "is text, not true or false"),
        (job("http", url="http://a", heders={}), "job.config.heders", "did you mean headers?"),
        (job("http", url="http://a", auth={"token": "x"}), "job.config.auth.type", "is missing: write b"),
        (job("http", url="http://a", auth={"type": "digest"}), "job.config.auth.type", "is not one of b"),
        (job("http", url="http://a", auth={"type": "basic"}), "job.config.auth.username", "is missing"),
        (
            job("http", url="http://a", callback=True, poll={"url": "http://a", "path": "s", "done": "ok"}),
            "job.config.poll",
            "reported, or asked for, not both",
        ),
        (
            job("http", url="http://a", poll={"url": "http://a/${JOB_ID}", "path": "s", "done": "ok"}),
            "job.config.poll.url",
            "needs jobIdPath",
        ),
        (job("http", url="http://a/${JOB_ID}"), "job.config.url", "${JOB_ID} is known in poll.url"),
        (job("http", url="http://a", body=["${CALLBACK_URL}"]), "job.config.body[0]", "needs callback: true"),
        (job("lambda", functionName="f", payload="${CALLBACK_URL}"), "job.config.payload", "with mode: async"),
        (job("glue", jobName="j", arguments={"--to": "${CALLBACK_URL}"}), "job.config.arguments.--to", "is known to"),
        (job("http", url="http://a/${INTERLOCK_TOKEN}"), "job.config.url", "is a setting of the controller itself"),
        (job("http", url="http://a", headers={"x": "${file:../y}"}), "job.config.headers.x", "not a file below"),
        (job("airflow", url="https://a"), "job.config.dagId", "is missing"),
        (job("glue"), "job.config.jobName", "is missing"),
        (job("glue", jobName="x", numberOfWorkers=0), "job.config.numberOfWorkers", "0 is not 1 or more"),
        (job("glue", jobName="x", roleArn="etl"), "job.config.roleArn", "is not an ARN"),
        (job("glue", jobName="x", endpointUrl="vpce-1"), "job.config.endpointUrl", "not an http(s) address"),
        (job("emr", arguments=["x"]), "job.config.clusterId", "jobs of type emr need clusterId"),
        (job("emr", clusterId="j-1", arguments=[]), "job.config.arguments", "must not be empty"),
        (
            job("emr", clusterId="j-1", arguments=["x"], actionOnFailure="continue"),
            "job.config.actionOnFailure",
            "did you mean CONTINUE?",
        ),
        (
            job("emr-serverless", applicationId="a", executionRoleArn="arn:aws:iam::1:role/x"),
            "job.config.jobDriver",
            "is missing",
        ),
        (job("step-function"), "job.config.stateMachineArn", "is missing"),
        (job("databricks", host="h"), "job.config.jobId", "need jobId, jobName or submit"),
        (job("databricks", jobId=1), "job.config.host", "is missing"),
        (job("databricks", host="h", jobId=1, jobName="x"), "job.config.jobName", "stands beside jobId"),
        (job("databricks", host="h", jobId=1, auth={"clientId": "x"}), "job.config.auth", "needs clientId and"),
        (job("databricks", host="h", jobId=1, auth={}), "job.config.auth", "is {token}, or {clientId, clientSecret}"),
        (job("airflow", url="https://a", dagId="d", apiVersion="v3"), "job.config.apiVersion", "not one of auto, v1"),
        (job("lambda", functionName="f", mode="later"), "job.config.mode", "is not one of async, sync"),
        (job("lambda"), "job.config.functionName", "is missing"),
        (job("external", a=1), "job.config.a", "unknown key: jobs of type external take none"),
        (
            job("lambda", functionName="f", payload=[{"b": "${DAET}"}]),
            "job.config.payload[0].b",
            "${DAET} is not known",
        ),
        (job("lambda", functionName="f", payload="${DATE"), "job.config.payload", "a template is not closed"),
        (upstream_rule(check="gte", field="rows", value=1), "validation.rules[0].field", "it has status, date"),
        (rule(check="age_lt", value="0s"), "validation.rules[0].value", "0s can never be met"),
        (rule(check="age_lt", field="date", value="2d"), "validation.rules[0].field", '"date" can never be met'),
        (rule(check="age_lt", field="hour", value="2h"), "validation.rules[0].field", "is no time; name a field"),
        (
            pipeline(schedule={"trigger": {"key": "k", "check": "age_lt", "field": "date", "value": "2d"}}),
            "schedule.trigger.field",
            '"date" can never be met',
        ),
        (
            pipeline(validation={"rules": AGES}),
            "validation.rules[0].value",
            "can never be met: another rule wants it older than 2h",
        ),
        (pipeline(postRun={"rules": AGES}), "postRun.rules[0].value", "another rule wants it older than 2h"),
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
        rule(check="age_lt", field="date", value="2d", period="any"),
        rule(check="age_gt", field="date", value="2d"),
        job("command", command="python etl.py --day '${DATE}'", timeout="30m"),
        job("command", command=["python", "etl.py"], env={"A": "b"}),
        job("http", url="HTTPS://x", timeout="30s", method="put", expect=["${INTERLOCK_CODE}"]),
        job("http", url="http://a", jobIdPath="id", poll={"url": "http://a/${JOB_ID}", "path": "s", "done": "ok"}),
        job("lambda", functionName="f", mode="async", payload=["${CALLBACK_URL}"]),
        job("glue", jobName="${INTERLOCK_JOB}", numberOfWorkers="${INTERLOCK_WORKERS}", falseSuccessCheck=False),
        job("http", url="${INTERLOCK_JOBS}/run"),
        job("airflow", url="https://a", dagId="d"),
        job("databricks", host="https://a", submit={"tasks": []}, auth={"clientId": "a", "clientSecret": "b"}),
        job("step-function", stateMachineArn="${INTERLOCK_ARN}", input={"text": "$${DATE} ${RUN_ID} ${INTERLOCK_X}"}),
        job("command", command=["sh", "-c", "echo $INTERLOCK_DATE | tee f"]),
        pipeline(validation={"trigger": "ANY", "rules": AGES}),
        upstream_rule(check="age_lt", field="completedAt", value="2h"),
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
        (pipeline(sla={"deadline": "10:00", "readyBy": "09:00", "expectedDuration": "1h"}), []),
        (
            # The first 07:00 after a tick at 08:00 is tomorrow's.
            pipeline(sla={"deadline": "10:00", "readyBy": "07:00", "expectedDuration": "1h"}),
            ["sla.readyBy: 07:00 is not before the breach of the deadline 10:00, which says the same"],
        ),
        (
            pipeline(
                schedule={"trigger": TRIGGER, "granularity": "hour"},
                sla={"deadline": ":30", "readyBy": ":30", "expectedDuration": "5m"},
            ),
            ["sla.readyBy: :30 is not before the breach of the deadline :30, which says the same"],
        ),
        (
            pipeline(schedule={"trigger": TRIGGER, "granularity": "hour"}, sla={"readyBy": "09:00"}),
            ["sla.readyBy: 09:00 is one time a day, and the runs are hourly: write :00 for each hour's own time"],
        ),
        (
            schedule(cron="0 8 * * *", evaluation={"window": "0s"}),
            [
                "schedule.evaluation.window: 0s: the rules are evaluated once, when the run opens,"
                " and nothing is waited for"
            ],
        ),
        (
            schedule(cron="0 8 * * *", evaluation={"window": "10m", "interval": "15m"}),
            ["schedule.evaluation.interval: 15m is longer than the window (10m): it has no effect"],
        ),
        (
            pipeline(postRun={"evaluation": {"window": "10m", "interval": "15m"}}),
            ["postRun.evaluation.interval: 15m is longer than the window (10m): it has no effect"],
        ),
        (
            pipeline(schedule={"cron": "*/20 6-18 * * *"}),
            [
                "schedule.evaluation.window: 1h is longer than the 20m from one tick to the next:"
                " the runs of several periods then wait at once"
            ],
        ),
        (
            job("command", command="etl --day $DATE"),
            ["job.config.command: $DATE is passed as it is, since no shell reads it: write ${DATE}"],
        ),
        (
            pipeline(job={"type": "command", "config": {"command": ["etl"]}, "maxRetries": 2}),
            [
                "job.maxRetries: is for transient failures (exit code 75, a signal, the timeout); any other exit code"
                " is a permanent failure, retried maxCodeRetries times (default 1): set maxCodeRetries as well"
            ],
        ),
        (pipeline(job={"type": "command", "config": {"command": ["etl"]}, "maxRetries": 2, "maxCodeRetries": 1}), []),
        (pipeline(job={"type": "external", "maxRetries": 2}), []),
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
NOT_STARTED = "job.type: jobs of type glue cannot be started by this installation: it starts command, external"


@pytest.mark.parametrize(
    ("document", "warnings"),
    [
        (pipeline(), []),
        (pipeline(job=GLUE), [NOT_STARTED]),
        # Nothing is ever started in dry-run mode.
        (pipeline(job=GLUE, schedule={"trigger": TRIGGER}, dryRun=True), []),
    ],
)
def test_what_the_installation_can_not_do_yet_is_warned_of(document: dict[str, Any], warnings: list[str]) -> None:
    able = Abilities(job_types=frozenset({JobType.COMMAND, JobType.EXTERNAL}))
    assert found(document, able) == ([], warnings)


def test_what_it_can_do_is_not() -> None:
    everything = Abilities(job_types=frozenset(JobType))
    document = pipeline(job=GLUE, probes=[FILE, HTTP])
    assert found(document, everything) == found(document) == ([], [])


def test_a_calendar_needs_days_that_exist() -> None:
    assert check_calendar(Calendar(name="x", dates=["2026-01-01"])) == ()
    (error,) = check_calendar(Calendar(name="x", dates=["2026-01-01", "2025-02-29"]))
    assert (error.path, error.severity) == (("dates", 1), Severity.ERROR)
    (warning,) = check_calendar(Calendar(name="x"))
    assert warning.severity is Severity.WARNING


# ------------------------------------------------------------------------------------------------ shell syntax


@pytest.mark.parametrize(
    ("command", "syntax"),
    [
        ("echo a | tee f && rm *.tmp", "|"),
        ("a || b", "||"),
        ("a && b", "&&"),
        ("a &", "&"),
        ("a > f", ">"),
        ("a >> f", ">>"),
        ("a 2>&1", ">"),
        ("a < f", "<"),
        ("a; b", ";"),
        ("rm *.tmp", "*"),
        ("a $(date)", "$("),
        ("a `date`", "`"),
        ("a\nb", "a line break"),
        ("a 'b' | c", "|"),
    ],
)
def test_a_text_that_only_a_shell_understands_is_refused(command: str, syntax: str) -> None:
    errors, _ = found(job("command", command=command))
    (error,) = errors
    assert error.startswith(f"job.config.command: {syntax} is for a shell, and there is none")
    assert "Write a list if that is meant: [" in error
    assert "or ask for a shell: [sh, -c, '" in error


@pytest.mark.parametrize(
    "command",
    [
        "echo 'a | b; c && d > e < f * $(g) `h`'",
        'echo "a | b; c"',
        "echo a\\;b",
        "curl http://a/?x=1&y=2",
        "etl --day ${DATE}\n",
        ["echo", "a", "|", "tee", "*", ";", "$(x)"],
    ],
)
def test_what_is_quoted_or_listed_is_meant(command: object) -> None:
    assert found(job("command", command=command)) == ([], [])


def test_both_ways_out_can_be_pasted() -> None:
    (error,), _ = found(job("command", command="echo 'it is' \"a b\" | tee f"))
    assert "Write a list if that is meant: [echo, 'it is', 'a b', '|', tee, f];" in error
    assert "[sh, -c, 'echo ''it is'' \"a b\" | tee f']" in error


def test_more_sensors_than_a_run_can_remember_are_refused() -> None:
    rules = [{"key": f"sensor-{number:03}", "check": "exists"} for number in range(600)]
    (error,), _ = found(pipeline(validation={"rules": rules}))
    assert error.startswith("validation.rules: the rules read 600 sensors, more than a run can remember")
    assert found(pipeline(validation={"rules": rules[:500]}))[0] == []


def test_a_long_drift_field_counts_for_every_post_run_sensor() -> None:
    rules = [{"key": f"sensor-{number:03}", "check": "exists"} for number in range(200)]
    (error,), _ = found(pipeline(postRun={"rules": rules, "driftField": "f" * 500}))
    assert error.startswith("postRun.rules: the rules read 20")
