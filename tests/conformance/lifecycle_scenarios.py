"""The ways through the lifecycle, for two engines to take."""

import json
import re
from importlib import resources
from typing import Final

import msgspec

from tests.conformance import step_functions_on_moto as moto
from tests.conformance.asl_scenarios import ACTIVE, Json, Raise, Scenario

ORCHESTRATOR: Final = f"{moto.LAMBDA}orchestrator"
SLA_MONITOR: Final = f"{moto.LAMBDA}sla-monitor"


def lifecycle() -> dict[str, Json]:
    """The definition, with its placeholders filled in."""
    text = resources.files("interlock.control").joinpath("lifecycle.asl.json").read_text("utf-8")
    values = {
        "orchestrator_arn": ORCHESTRATOR,
        "sla_monitor_arn": SLA_MONITOR,
        "control_table": moto.TABLE,
        "sfn_timeout_seconds": "14400",
        "trigger_max_attempts": "3",
    }
    filled = re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], text)
    document: dict[str, Json] = json.loads(filled)
    return document


WAITING: Final = {"status": "waiting", "wakeSeq": "3", "waitSeconds": 300, "rules": "{}"}
RUNNING: Final = {"event": "running", "wakeSeq": "3", "waitSeconds": 60}
PASSED: Final[list[Json]] = [{"status": "passed"}]
STARTED: Final[list[Json]] = [{"status": "started"}]
SUCCESS: Final[list[Json]] = [{"event": "success"}]
THROTTLED: Final = "ProvisionedThroughputExceededException"
LOST_CALL: Final = "Lambda.ClientExecutionTimeoutException"
COMPLETED: Final[list[Json]] = [{"outcome": "completed", "cancelSla": True}]


def run(
    name: str,
    ends: str = "SUCCEEDED",
    answers: list[float | None] | None = None,
    refusals: list[str] | None = None,
    **results: list[Json],
) -> Scenario:
    """A way through the lifecycle: it passes, starts, succeeds and completes, but for what is said here."""
    usual = {"evaluate": PASSED, "trigger": STARTED, "check-job": SUCCESS, "complete-trigger": COMPLETED}
    given = {mode.replace("_", "-"): outcome for mode, outcome in results.items()}
    return Scenario(
        name=f"lifecycle: {name}",
        definition=lifecycle(),
        input={
            "pipeline": "gold",
            "schedule": "cron",
            "date": "2026-03-02",
            "attempt": 1,
            "attemptText": "1",
            "pk": ACTIVE.pk,
            "activeSk": ACTIVE.sk,
            "sla": "no SLA" not in name,
        },
        results={**usual, **given},
        answers=answers or [],
        refusals=refusals or [],
        ends=ends,
    )


def hurried(scenario: Scenario) -> Scenario:
    """The scenario on a lifecycle that hands over after three loops instead of a thousand."""
    text = json.dumps(scenario.definition)
    assert text.count('"NumericGreaterThanEquals": 1000') == 2
    definition = json.loads(text.replace('"NumericGreaterThanEquals": 1000', '"NumericGreaterThanEquals": 3'))
    return msgspec.structs.replace(scenario, definition=definition)


LIFECYCLE: Final = [
    hurried(run("hands over while it waits", evaluate=[WAITING])),
    hurried(run("hands over while the job runs", evaluate=[WAITING, WAITING, *PASSED], check_job=[RUNNING])),
    hurried(
        run(
            "hands over when sensors change all the time",
            evaluate=[{**WAITING, "wakeSeq": "2"}],
            hand_over=[{"part": 2}],
        )
    ),
    hurried(run("cannot hand over", ends="FAILED", evaluate=[WAITING], hand_over=[Raise("KeyError")])),
    run("ready at once"),
    run("no SLA"),
    run("ready after an interval", evaluate=[WAITING, *PASSED]),
    run("ready when a sensor changes", evaluate=[WAITING, WAITING, *PASSED], answers=[17, 40]),
    run("changed while it was looked at", evaluate=[{**WAITING, "wakeSeq": "2"}, *PASSED]),
    run(
        "the window closes",
        evaluate=[WAITING, {"status": "closed", "wakeSeq": "3"}],
        validation_exhausted=[{"status": "exhausted"}],
    ),
    run(
        "something changed just when the window closed",
        evaluate=[{"status": "closed", "wakeSeq": "2"}, *PASSED],
        validation_exhausted=[{"status": "again"}],
    ),
    run("superseded before it was ready", evaluate=[{"status": "superseded"}]),
    run("the target answers on the third try", trigger=[Raise("TriggerInfrastructureError")] * 2 + STARTED),
    run("the target never answers", trigger=[Raise("TriggerInfrastructureError")]),
    run("the target refuses", trigger=[Raise("TriggerRefusedError")]),
    run("nothing to poll", trigger=[{"status": "undecidable"}]),
    run("the job runs for a while", check_job=[RUNNING, RUNNING, *SUCCESS]),
    run("the job reports by itself", check_job=[RUNNING, RUNNING, *SUCCESS], answers=[None, 12]),
    run("the job reports while it is polled", check_job=[{**RUNNING, "wakeSeq": "2"}, *SUCCESS]),
    run("the job fails and is retried", check_job=[{"event": "fail"}], complete_trigger=[{"cancelSla": False}]),
    run(
        "the job is polled until the window closes",
        check_job=[RUNNING, {"event": "closed", "wakeSeq": "3"}],
        job_poll_exhausted=[{"event": "timeout"}],
    ),
    run("superseded while the job runs", check_job=[RUNNING, {"event": "superseded"}]),
    run("the store is away for a moment", evaluate=[Raise("StoreError")] * 2 + PASSED),
    run("the store stays away", ends="FAILED", evaluate=[Raise("StoreError")]),
    run(
        "the control table is throttled for six minutes",
        evaluate=[WAITING, *PASSED],
        check_job=[RUNNING, *SUCCESS],
        refusals=[THROTTLED] * 10,
    ),
    run(
        "the control table is throttled while the job runs",
        check_job=[RUNNING, *SUCCESS],
        refusals=["RequestLimitExceeded", "TransactionConflictException", THROTTLED] * 3,
    ),
    run("the control table stays throttled", ends="FAILED", evaluate=[WAITING], refusals=[THROTTLED] * 11),
    run("DynamoDB fails for a moment", evaluate=[WAITING, *PASSED], refusals=["InternalServerError"] * 3),
    run("DynamoDB keeps failing", ends="FAILED", evaluate=[WAITING], refusals=["InternalServerError"] * 4),
    run("functions are throttled for six minutes", evaluate=[Raise("Lambda.TooManyRequestsException")] * 10 + PASSED),
    run("functions find the tables throttled", complete_trigger=[Raise("ThrottledError")] * 10 + COMPLETED),
    run(
        "calls of the trigger are lost",
        trigger=[Raise("Sandbox.Timedout"), Raise("Lambda.Unknown"), Raise(LOST_CALL), *STARTED],
    ),
    run("an error nobody foresaw", ends="FAILED", check_job=[Raise("KeyError")]),
    run("even the record of the failure fails", ends="FAILED", check_job=[Raise("E")], infra_failure=[Raise("E")]),
    run("it never becomes ready", ends="TIMED_OUT", evaluate=[WAITING]),
]
