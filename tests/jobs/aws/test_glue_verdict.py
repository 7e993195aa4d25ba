"""A success that is none: what in the logs of a Glue job tells of a failure, and what does not."""

import pytest

from interlock.jobs.aws.glue_verdict import JobLogs, Verdict, analysed_reason, driver_failure, judge_logs
from interlock.jobs.aws.logs import Match
from tests.jobs.aws.moto_services import Aws, refuse

T0 = 1_772_000_000_000
RUN = "jr_1"
LOGS = JobLogs.of(RUN, "", {})


def lines(*messages: str, apart: int = 1) -> list[Match]:
    return [Match(T0 + apart * number, message) for number, message in enumerate(messages)]


@pytest.mark.parametrize(
    "messages",
    [
        ["26/03/02 08:00:01 ERROR ProcessLauncher: org.apache.spark.SparkException: Job aborted"],
        ["2026-03-02 08:00:01,123 ERROR [main] glue.ProcessLauncher (Logging.scala:77): Error: ValueError: bad row"],
        ["2026-03-02T08:00:01.123Z FATAL [driver] App: java.lang.OutOfMemoryError: Java heap space"],
        ["[2026-03-02 08:00:01,123] ERROR App - py4j.protocol.Py4JJavaError: An error occurred"],
        ["26/03/02 08:00:01 ERROR App: Traceback (most recent call last):\n  File 'etl.py'\nValueError: x"],
        ["26/03/02 08:00:01 ERROR App: it failed\njava.lang.IllegalStateException: closed\n\tat etl.Main(M:1)"],
        ["26/03/02 08:00:01 ERROR App: it failed", "java.lang.IllegalStateException: closed"],
        ["26/03/02 08:00:01 INFO App: fine", "26/03/02 08:00:02 ERROR App: ParseException: bad"],
    ],
)
def test_what_is_a_failure(messages: list[str]) -> None:
    assert driver_failure(lines(*messages))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        ["ERROR"],
        ["-XX:OnOutOfMemoryError=kill -9 %p"],
        ["26/03/02 08:00:01 ERROR ShutdownHookManager: Exception while deleting Spark temp dir"],
        ["26/03/02 08:00:01 WARN TaskSetManager: Lost task 1.0: java.io.IOException: Connection reset"],
        ["26/03/02 08:00:01 INFO Client: retried after java.net.SocketTimeoutException"],
        ["26/03/02 08:00:01 INFO App: 0 ERROR rows, no NullPointerException"],
        ["26/03/02 08:00:01 ERROR App: 3 rows rejected"],
        ["java.lang.IllegalStateException: printed by the script"],
        ["26/03/02 08:00:01 ERROR App: 3 rows rejected", "26/03/02 08:00:01 WARN App: java.io.IOException: retried"],
    ],
)
def test_what_is_none(messages: list[str]) -> None:
    assert driver_failure(lines(*messages)) == ""


def test_an_exception_belongs_to_the_error_just_before_it() -> None:
    messages = ("26/03/02 08:00:01 ERROR App: 3 rows rejected", "ValueError: printed by the script")
    assert driver_failure(lines(*messages, apart=1000))
    assert driver_failure(lines(*messages, apart=1001)) == ""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('{"Event": "GlueExceptionAnalysisJobFailed", "Failure Reason": "No space left on device"}', "No space left"),
        ('26/03/02 ERROR GlueExceptionAnalysisListener: [Glue Exception Analysis] {"Failure Reason": "bad"}', "bad"),
        ("GlueExceptionAnalysisJobFailed {not json", "GlueExceptionAnalysisJobFailed {not json"),
        ('{"Event": "GlueExceptionAnalysisJobFailed"}', "GlueExceptionAnalysisJobFailed"),
        ("GlueExceptionAnalysisJobFailed", "GlueExceptionAnalysisJobFailed"),
    ],
)
def test_the_reason_of_an_analysis(message: str, reason: str) -> None:
    assert reason in analysed_reason(message)


def test_a_long_reason_is_cut() -> None:
    assert len(analysed_reason("x" * 5000)) == 503


@pytest.mark.parametrize(
    ("group", "arguments", "analysed", "output"),
    [
        ("", {}, "/aws-glue/jobs/logs-v2", "/aws-glue/jobs/output"),
        ("/aws-glue/jobs", {}, "/aws-glue/jobs/logs-v2", "/aws-glue/jobs/output"),
        ("/aws-glue/jobs-role-conf/", {}, "/aws-glue/jobs-role-conf/logs-v2", "/aws-glue/jobs-role-conf/output"),
        ("", {"--continuous-log-logGroup": "/etl"}, "/etl", "/aws-glue/jobs/output"),
        ("", {"--custom-logGroup-prefix": "/etl"}, "/etl/logs-v2", "/etl/output"),
    ],
)
def test_where_a_job_logs(group: str, arguments: dict[str, str], analysed: str, output: str) -> None:
    where = JobLogs.of(RUN, group, arguments)
    assert where.analysed[0] == (analysed, "jr_1-job-insights-rca-driver")
    assert where.output[0] == (output, "jr_1")


@pytest.mark.parametrize("place", LOGS.analysed)
def test_the_analysis_is_found_in_either_group(aws: Aws, place: tuple[str, str]) -> None:
    aws.log(*place, T0, '{"Event": "GlueExceptionAnalysisTaskFailed"}')
    aws.log(*place, T0, '{"Event": "GlueExceptionAnalysisJobFailed", "Failure Reason": "lost executor"}')
    assert judge_logs(aws.client("logs"), LOGS) == Verdict(failure="lost executor", source="exception analysis")


@pytest.mark.parametrize("place", LOGS.output)
def test_the_driver_is_believed_wherever_it_writes(aws: Aws, place: tuple[str, str]) -> None:
    aws.log(*place, T0, "26/03/02 08:00:00 INFO App: fine", "26/03/02 08:00:01 ERROR App: x.ParseException: bad")
    verdict = judge_logs(aws.client("logs"), LOGS)
    assert (verdict.failure, verdict.source) == ("26/03/02 08:00:01 ERROR App: x.ParseException: bad", "driver log")


@pytest.mark.parametrize("place", LOGS.errors)
def test_standard_error_is_not_looked_at(aws: Aws, place: tuple[str, str]) -> None:
    aws.log(*place, T0, "26/03/02 08:00:01 ERROR App: x.ParseException: bad")
    aws.log(*LOGS.output[0], T0, "done")
    assert judge_logs(aws.client("logs"), LOGS) == Verdict()


def test_other_runs_are_not_looked_at(aws: Aws) -> None:
    aws.log("/aws-glue/jobs/output", "jr_2", T0, "26/03/02 08:00:01 ERROR App: x.ParseException: bad")
    aws.log("/aws-glue/jobs/output", RUN, T0, "done")
    assert judge_logs(aws.client("logs"), LOGS) == Verdict()


def test_without_logs_glue_is_believed_with_a_warning(aws: Aws) -> None:
    verdict = judge_logs(aws.client("logs"), LOGS)
    assert verdict.failure == ""
    assert "no logs in /aws-glue/jobs/output or /aws-glue/jobs/logs-v2" in verdict.warning


def test_without_permission_glue_is_believed_with_a_warning(aws: Aws) -> None:
    logs = aws.client("logs")
    refuse(logs, "FilterLogEvents", "AccessDeniedException", "not authorized to perform: logs:FilterLogEvents")
    verdict = judge_logs(logs, LOGS)
    assert verdict.failure == ""
    assert "not authorized to perform: logs:FilterLogEvents" in verdict.warning


def test_a_search_that_breaks_decides_nothing(aws: Aws) -> None:
    logs = aws.client("logs")
    refuse(logs, "FilterLogEvents", "ServiceUnavailableException", status=500)
    with pytest.raises(logs.exceptions.ServiceUnavailableException):
        judge_logs(logs, LOGS)
