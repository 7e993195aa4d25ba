"""What `why` promises comes: which period is meant, and which alerts are announced for it."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from interlock.control.views import explain as explain_module
from interlock.control.views.explain import explain
from interlock.control.views.run_views import Attempt
from interlock.decide.why import Explanation
from interlock.model.run import FailureCategory, JobEvent, JobRecord
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

NOON: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
LANDED = {"key": "landed", "check": "equals", "field": "status", "value": "done"}
ORDERS: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"trigger": LANDED | {"deadline": "20:00"}},
    "sla": {"deadline": "10:00", "expectedDuration": "1h"},
    "validation": {"rules": [{"key": "landed", "check": "exists"}]},
    "job": {"type": "glue", "config": {"jobName": "etl"}},
}
DAILY: dict[str, Any] = ORDERS | {"schedule": {"cron": "0 8 * * *"}, "sla": {"deadline": "10:00", "readyBy": "09:00"}}
HOURS = [
    {
        "at": f"2026-03-02T{hour:02}:05:00Z",
        "sensor": f"orders/landed#2026-03-02T{hour - 1:02}",
        "data": {"status": "done"},
    }
    for hour in range(8, 12)
]


def asked(config: dict[str, Any], until: str, *steps: dict[str, Any], **which: str) -> Explanation:
    """What is said at that instant; the controller started, and the pipeline was applied, on Monday at 07:00."""
    scenario = inline_scenario(start="2026-03-02T07:00:00Z", until=until, pipelines=[config], steps=list(steps))
    world = World(scenario)
    world.play()
    found = explain(world.engine.store, "orders", world.clock.now(), **which)
    world.database.close()
    return found


def next_of(found: Explanation) -> list[str]:
    return [line.text for section in found.sections if section.title == "Next" for line in section.lines]


@pytest.mark.parametrize("config", [ORDERS, DAILY])
@pytest.mark.parametrize("date", ["2026-02-20", "2026-02-28", "2023-01-01"])
def test_no_alert_is_announced_for_a_date_before_the_pipeline_existed(config: dict[str, Any], date: str) -> None:
    found = asked(config, "2026-03-02T07:30:00Z", date=date)
    assert not [line for line in next_of(found) if "SLA" in line or "alert" in line or "deadline" in line]


def test_the_alerts_of_a_date_to_come_are_announced() -> None:
    found = asked(DAILY, "2026-03-02T07:30:00Z", date="2026-03-04")
    assert [line.partition("): ")[2] for line in next_of(found)] == [
        "the run of 2026-03-02 opens",
        "the clock opens it",
        "readiness alert, unless the rules have passed by then",
        "SLA breach, unless it is done by then",
    ]


def test_a_changed_deadline_is_announced_not_the_stored_one() -> None:
    changed = {"at": "2026-03-02T09:00:00Z", "apply": ORDERS | {"sla": {"deadline": "12:00"}}}
    found = asked(ORDERS, "2026-03-02T09:00:00Z", changed, date="2026-03-02")
    assert next_of(found)[-1] == "2026-03-03 12:00Z (in 1d3h): SLA breach, unless it is done by then"


def test_nothing_is_announced_for_an_hour_of_a_daily_pipeline() -> None:
    found = asked(
        ORDERS | {"schedule": ORDERS["schedule"] | {"granularity": "day"}}, "2026-03-02T07:30:00Z", date="2026-03-02T09"
    )
    assert next_of(found) == []


def test_without_a_date_the_latest_hour_that_is_due_is_meant() -> None:
    config = ORDERS | {"sla": {"deadline": ":30"}}
    found = asked(config, "2026-03-02T14:40:00Z", *HOURS)
    assert found.date == "2026-03-02T13"  # due at 14:30; the latest that ran is hour 10
    assert asked(config, "2026-03-02T07:10:00Z").date == "2026-03-02T07"


def test_hours_that_only_the_latest_runs_speak_of_are_meant_too() -> None:
    found = asked(ORDERS, "2026-03-03T10:05:00Z", *HOURS)
    assert found.date == "2026-03-02T23"
    assert "has not run" in found.verdict


@pytest.mark.parametrize(
    ("date", "nearest"),
    [("2026-03-02T10", "2026-03-02"), ("2026-03-02T0930", "2026-03-02")],
)
def test_no_command_is_recommended_that_would_be_refused_for_want_of_such_a_period(date: str, nearest: str) -> None:
    found = asked(DAILY, "2026-03-02T12:00:00Z", date=date)
    assert f"each run of orders is for one day; the nearest: {nearest}" in found.verdict
    assert found.advice == (
        f"There is no such run. Ask for one that there is: `interlock why orders --date {nearest}`."
    )
    assert "interlock rerun" not in str(found)


# ----------------------------------------------------------------------------------- failed attempts and re-opened runs


RETRIED = ORDERS | {
    "sla": None,
    "job": {"type": "glue", "config": {"jobName": "etl"}, "maxRetries": 2, "retryDelay": "1h", "pollInterval": "1m"},
}
LANDED_AT_EIGHT = {"at": "2026-03-02T08:00:00Z", "sensor": "orders/landed", "data": {"status": "done"}}


def lines_of(found: Explanation, title: str) -> list[str]:
    return [line.text for section in found.sections if section.title.startswith(title) for line in section.lines]


def after_failure(until: str, *jobs: dict[str, Any]) -> Explanation:
    config = {name: part for name, part in RETRIED.items() if part is not None}
    scenario = inline_scenario(
        start="2026-03-02T07:00:00Z",
        until=until,
        pipelines=[config],
        steps=[LANDED_AT_EIGHT],
        jobs={"orders": list(jobs)},
    )
    world = World(scenario)
    world.play()
    return explain(world.engine.store, "orders", world.clock.now())


FAILS = {"after": "5m", "result": "fail", "category": "TRANSIENT"}


def test_a_failed_attempt_that_waits_for_its_retry_says_why_it_failed_and_when_it_is_tried_again() -> None:
    found = after_failure("2026-03-02T08:30:00Z", FAILS | {"error": "out of memory"})
    assert found.state == "waiting"
    assert found.verdict == "orders for 2026-03-02 failed and is tried again: out of memory (TRANSIENT)"
    assert next_of(found) == ["09:05Z (in 35m): attempt 2 opens (the pause before a retry)"]
    (attempt,) = lines_of(found, "Attempts")
    assert "; failed 08:05Z" in attempt
    assert "out of memory" in attempt
    assert found.advice.startswith("Nothing yet: it is tried again.")


def test_a_failed_attempt_whose_target_gives_no_reason_ends_its_sentence() -> None:
    found = after_failure("2026-03-02T08:30:00Z", FAILS)
    assert found.verdict == "orders for 2026-03-02 failed and is tried again"


def test_a_second_attempt_tells_of_the_first() -> None:
    found = after_failure(
        "2026-03-02T09:07:00Z", FAILS | {"error": "out of memory"}, {"after": "1h", "result": "success"}
    )
    assert found.state == "running"
    first, second = lines_of(found, "Attempts")
    assert "out of memory" in first
    assert second.startswith("2 (job-fail-transient: transient retry 1 of 2) opened 09:05Z")
    assert "out of memory" not in second


def test_a_reopened_run_tells_of_the_attempt_that_gave_up_and_of_what_opened_it_again() -> None:
    waits = DAILY | {
        "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "1h"}},
        "sla": {"deadline": "23:00"},
        "job": {"type": "external"},
    }
    late = {"at": "2026-03-02T10:00:00Z", "sensor": "orders/landed#2026-03-02", "data": {"status": "done"}}
    held = asked(waits, "2026-03-02T09:30:00Z")
    assert held.state == "held"
    assert "no sensor landed" in held.verdict
    found = asked(waits, "2026-03-02T10:10:00Z", late)
    assert found.state == "done"
    gave_up, reopened = lines_of(found, "Attempts")
    assert gave_up.startswith("1 (first) opened 08:00Z; evaluation window closed 09:00Z")
    assert reopened.startswith("2 (reopen: re-opened: sensor landed#2026-03-02 made the rules pass) opened 10:00Z")
    assert lines_of(found, "Opened")[0].startswith("08:00Z (2h10m ago) by ")


def test_an_inclusion_date_is_meant_from_its_time_on_or_from_midnight_without_one() -> None:
    def meant(until: str, **schedule: str) -> str:
        dated = {"include": {"dates": ["2026-03-03", "2026-03-05"]}, "trigger": LANDED, **schedule}
        return asked(ORDERS | {"schedule": dated}, until).date

    assert meant("2026-03-05T00:00:00Z") == "2026-03-05"
    assert meant("2026-03-05T05:59:00Z", time="06:00") == "2026-03-03"
    assert meant("2026-03-05T06:00:00Z", time="06:00") == "2026-03-05"


# ------------------------------------------------------------------------------------------------ which rules are shown


COUNTED = DAILY | {
    "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "1h"}},
    "validation": {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 100}]},
    "sla": {"deadline": "23:00"},
    "job": {"type": "external"},
}


def rows(at: str, count: int) -> dict[str, Any]:
    return {"at": f"2026-03-02T{at}Z", "sensor": "orders/rows", "data": {"count": count}}


def rules_of(found: Explanation) -> str:
    return "\n".join(lines_of(found, "Rules"))


def test_a_run_that_has_passed_shows_its_rules_as_they_were_decided() -> None:
    found = asked(COUNTED, "2026-03-02T08:30:00Z", rows("08:05:00", 150), rows("08:20:00", 1))
    assert found.state == "done"
    assert "150" in rules_of(found)


def test_a_run_that_waits_shows_its_rules_as_they_stand_now() -> None:
    found = asked(COUNTED, "2026-03-02T08:30:00Z", rows("08:05:00", 20), rows("08:20:00", 70))
    assert found.state == "waiting"
    assert "70" in rules_of(found)
    assert "08:20Z" in rules_of(found)


def test_a_run_that_gave_up_shows_what_would_open_it_again() -> None:
    found = asked(COUNTED, "2026-03-02T10:30:00Z", rows("08:05:00", 20), rows("10:20:00", 70))
    assert found.state == "held"
    assert "70" in rules_of(found)


# -------------------------------------------------------------------------------------------------------- what opens it


@pytest.mark.parametrize("trigger", [None, LANDED], ids=["by the clock", "by its sensor"])
def test_an_inclusion_date_is_opened_by_the_clock_unless_it_has_a_trigger(trigger: dict[str, Any] | None) -> None:
    dated: dict[str, Any] = {"include": {"dates": ["2026-03-05"]}, "time": "06:00"}
    schedule = dated if trigger is None else dated | {"trigger": trigger}
    found = asked(ORDERS | {"schedule": schedule}, "2026-03-02T07:30:00Z", date="2026-03-05")
    said = [line for line in next_of(found) if line.endswith("the clock opens it")]
    assert [line[:17] for line in said] == ([] if trigger else ["2026-03-05 06:00Z"])


def test_of_several_schedules_that_which_ran_is_meant_or_that_of_the_latest_period() -> None:
    config = {name: part for name, part in DAILY.items() if name != "schedule"} | {
        "schedules": [{"id": "x", "cron": "0 8 * * *"}, {"id": "y", "cron": "0 20 * * *"}]
    }
    evening = asked(config, "2026-03-02T20:30:00Z")
    assert (evening.schedule, evening.date) == ("y", "2026-03-02")
    morning = asked(config, "2026-03-02T08:30:00Z", date="2026-03-02")
    assert morning.schedule == "x"
    named = asked(config, "2026-03-02T08:30:00Z", date="2026-03-02", schedule="y")
    assert named.schedule == "y"


def test_an_excluded_day_is_meant_only_while_it_is_today() -> None:
    config = DAILY | {"schedule": {"cron": "0 8 * * *", "exclude": {"dates": ["2026-03-03", "2026-03-04"]}}}
    assert asked(config, "2026-03-03T09:00:00Z").date == "2026-03-03"
    later = asked(config, "2026-03-04T07:00:00Z")
    assert later.date == "2026-03-02", "the latest day that had a run"


def test_what_an_attempt_s_job_said_is_that_of_its_last_failure_with_its_category() -> None:
    said = Attempt(attempt=1, outcome="failed")

    def line(error: str, event: JobEvent = JobEvent.FAIL, by: str = "", **more: Any) -> JobRecord:
        return JobRecord(
            pipeline="orders", schedule="cron", date="2026-03-02", event=event, attempt=1, at=NOON, error=error,
            reported_by=by, **more,
        )  # fmt: skip

    lines = [
        line("busy", JobEvent.INFRA_TRIGGER_FAILURE, category=FailureCategory.TRANSIENT),
        line("no such column", category=FailureCategory.PERMANENT),
        line(""),
        line("not now", JobEvent.RERUN_REJECTED),
        line("its poll window closed", by="interlock"),
    ]
    assert explain_module._error(said, lines) == "no such column (PERMANENT)"
    assert explain_module._error(said, lines[3:]) == ""
    assert explain_module._error(said, [line("odd")]) == "odd"
    assert explain_module._error(Attempt(attempt=1, outcome="completed"), lines) == ""
