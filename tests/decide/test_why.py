"""Explanations from facts alone: what is said first, and what is advised last, for every state a run can be in."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from interlock.config.stored import read_stored
from interlock.decide.checks import RuleResult
from interlock.decide.why import Explanation, Mark, explain, explain_invalid
from interlock.decide.why_facts import AttemptFact, Facts, RuleFact
from interlock.model.config import Check, PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, Run, RunStatus, SlaKind, SlaOutcome, SlaState, Source

OPENED = datetime(2026, 3, 2, 13, tzinfo=UTC)  # 08:00 in New York
NOW = OPENED + timedelta(minutes=30)
KEY = RunKey("gold", "cron", "2026-03-02")
FAILING = RuleFact(
    RuleResult("row-count", Check.GTE, False, 50, 1000, "count is 50, needs >= 1000", "count"),
    OPENED + timedelta(minutes=15),
)
PASSING = RuleFact(RuleResult("up", Check.EQUALS, True, "ready", "ready", 'status is "ready"', "status"), OPENED)
ABSENT = RuleFact(RuleResult("row-count", Check.GTE, False, None, 1000, "no sensor row-count", "count"))


def config(**changes: Any) -> PipelineConfig:
    document: dict[str, Any] = {
        "pipeline": {"id": "gold"},
        "schedule": {"cron": "0 8 * * *", "timezone": "America/New_York"},
        "sla": {"deadline": "10:00", "expectedDuration": "30m"},
        "validation": {
            "rules": [
                {"key": "up", "check": "equals", "field": "status", "value": "ready"},
                {"key": "row-count", "check": "gte", "field": "count", "value": 1000},
            ]
        },
        "job": {"type": "glue", "config": {"jobName": "x"}},
    }
    found = read_stored({**document, **changes}, {})
    assert isinstance(found, PipelineConfig), found
    return found


def run(status: RunStatus, **changes: Any) -> Run:
    base = Run(
        pipeline="gold",
        schedule="cron",
        date="2026-03-02",
        status=status,
        version=1,
        attempt=1,
        source=Source.FIRST,
        config_version="v",
        opened_at=OPENED,
        first_opened_at=OPENED,
        updated_at=OPENED,
        opened_by="cron 0 8 * * *",
        lease_until=OPENED + timedelta(hours=5),
    )
    return msgspec.structs.replace(base, **changes)


def facts(run_: Run | None = None, **changes: Any) -> Facts:
    one = changes.pop("config", None) or config()
    fields: dict[str, Any] = {
        "config": one,
        "schedule": one.all_schedules[0],
        "key": KEY,
        "now": NOW,
        "run": run_,
        "rules": (PASSING, FAILING),
    }
    return Facts(**{**fields, **changes})


def lines(found: Explanation, title: str) -> list[str]:
    return [line.text for section in found.sections if section.title.startswith(title) for line in section.lines]


def test_a_waiting_run() -> None:
    found = explain(facts(run(RunStatus.PENDING)))
    assert found.state == "waiting"
    assert found.verdict == "gold for 2026-03-02 is waiting: 1 of 2 rules pass; row-count: count is 50, needs >= 1000"
    assert found.advice == "Ask whoever writes row-count: it needs count >= 1000. It then goes on by itself."
    assert lines(found, "Opened") == ["08:00 EST (30m ago) by cron 0 8 * * *"]
    rules = next(section for section in found.sections if section.title == "Rules (as they are now)")
    assert [line.mark for line in rules.lines] == [Mark.PASS, Mark.FAIL]
    assert rules.lines[1].text == ("row-count count gte 1000: count is 50, needs >= 1000; received 08:15 EST (15m ago)")
    assert lines(found, "Next")[:2] == [
        "the rules are evaluated at once when up, row-count changes, and every 5m: by 08:35 EST again",
        "09:00 EST (in 30m): the window closes; then it is held; for 1d a write that makes the rules pass re-opens it",
    ]


def test_who_opened_a_run_first_is_only_said_where_it_is_known() -> None:
    """The events of the first attempt may be gone; what opened the latest one has not opened the first."""
    again = run(RunStatus.PENDING, attempt=2, source=Source.REOPEN, opened_by="a write of rows")
    reopened = AttemptFact(number=2, source="reopen", opened_by="a write of rows")
    first = AttemptFact(number=1, source="first", opened_by="cron 0 8 * * *")
    assert lines(explain(facts(again, attempts=(first, reopened))), "Opened") == [
        "08:00 EST (30m ago) by cron 0 8 * * *"
    ]
    assert lines(explain(facts(again, attempts=(reopened,))), "Opened") == ["08:00 EST (30m ago)"]
    unsaid = run(RunStatus.PENDING, opened_by="")
    assert lines(explain(facts(unsaid)), "Opened") == ["08:00 EST (30m ago) by first"]


def test_an_excluded_day_promises_no_alert() -> None:
    promised = msgspec.structs.replace(SLA, breach_at=NOW + timedelta(hours=1))
    assert any("SLA breach" in line for line in lines(explain(facts(sla=promised)), "Next"))
    excluded = explain(facts(sla=promised, withheld="2026-03-02 is a holiday"))
    assert not lines(excluded, "Next")


def test_an_alert_that_is_due_is_about_to_be_given() -> None:
    for seconds, said in ((0, "about to be given"), (1, "unless it is done by then")):
        due = msgspec.structs.replace(SLA, breach_at=NOW + timedelta(seconds=seconds))
        (line,) = [one for one in lines(explain(facts(sla=due)), "Next") if "SLA breach" in one]
        assert line.endswith(f"SLA breach, {said}")


def test_a_run_without_a_lease_is_given_up_by_nobody() -> None:
    leased, free = (
        explain(facts(run(RunStatus.RUNNING, triggered_at=OPENED, lease_until=until))) for until in (NOW, None)
    )
    assert any("the watchdog gives it up" in line for line in lines(leased, "Next"))
    assert not any("the watchdog gives it up" in line for line in lines(free, "Next"))


def test_a_day_of_a_sensor_is_asked_about_by_its_own_date() -> None:
    by_sensor = config(schedule={"trigger": {"key": "up", "check": "exists"}, "exclude": {"weekends": True}})
    assert lines(explain(facts(config=by_sensor)), "Calendar") == ["2026-03-02 is not excluded"]


def test_a_sensor_nobody_wrote() -> None:
    found = explain(facts(run(RunStatus.PENDING), rules=(PASSING, ABSENT)))
    assert found.advice.startswith("Nobody has written row-count for 2026-03-02: it needs count >= 1000.")


def test_an_upstream_is_to_be_looked_at() -> None:
    waiting = RuleFact(
        RuleResult("upstream:silver", Check.EXISTS, False, None, None, "no sensor upstream:silver", None)
    )
    found = explain(facts(run(RunStatus.PENDING), rules=(waiting,)))
    assert found.advice.startswith("Look at the upstream: `interlock why silver --date 2026-03-02`")


ENDED = OPENED + timedelta(minutes=20)


@pytest.mark.parametrize(
    ("run_", "state", "verdict", "advice"),
    [
        (run(RunStatus.PENDING, passed_at=NOW), "waiting", "is about to start its job", "Nothing yet"),
        (run(RunStatus.TRIGGERING), "running", "is starting its job", "look at the target"),
        (
            run(RunStatus.TRIGGERING, trigger_failures=2, message="throttled", updated_at=NOW),
            "running",
            "2 times refused: throttled",
            "look at the target: throttled",
        ),
        (
            run(RunStatus.RUNNING, triggered_at=NOW - timedelta(minutes=5), job_id="j-1"),
            "running",
            "under way since 08:25 EST (5m ago)",
            "Nothing: the job is under way (j-1).",
        ),
        (
            run(RunStatus.RUNNING, triggered_at=NOW - timedelta(minutes=45), job_id="j-1"),
            "running",
            "under way since",
            "It takes longer than the expected 30m: look at the job (j-1).",
        ),
        (
            run(RunStatus.FAILED, message="lost executor", retry_at=NOW + timedelta(minutes=5)),
            "waiting",
            "failed and is tried again: lost executor",
            "Nothing yet",
        ),
        (
            run(RunStatus.COMPLETED, ended_at=ENDED),
            "done",
            "ran: it completed 08:20 EST (10m ago)",
            "Nothing: it is done.",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.VALIDATION_EXHAUSTED, ended_at=ENDED),
            "held",
            "was held: its window closed 08:20 EST (10m ago); 1 of 2 rules pass",
            "Such a write re-opens it by itself.",
        ),
        (
            run(
                RunStatus.FAILED_FINAL,
                final_reason=FinalReason.VALIDATION_EXHAUSTED,
                ended_at=NOW - timedelta(hours=25),
            ),
            "held",
            "was held",
            "When the data is there, `interlock rerun gold --date 2026-03-02`.",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.DEADLINE_EXPIRED, message="up did not come"),
            "held",
            "was held: up did not come",
            "when the data is there, `interlock rerun gold --date 2026-03-02`",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.TRIGGER_EXHAUSTED, message="access denied"),
            "failed",
            "could not be started: access denied",
            "Put right what the target says, then `interlock rerun",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.UNCERTAIN, run_id="gold-1", message="nobody can tell"),
            "failed",
            "nobody can tell",
            "Look in the target for gold-1.",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.RETRIES_USED_UP, attempt=3, job_id="j-3"),
            "failed",
            "failed after 3 attempts",
            "Read what the job wrote (j-3) with `interlock logs",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.POLL_EXHAUSTED, job_id="j-1", ended_at=ENDED),
            "failed",
            "it may still be running",
            "If it succeeded: `interlock job report gold --date 2026-03-02 success`.",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.STALE, message="past its lease"),
            "failed",
            "past its lease",
            "`interlock doctor`",
        ),
        (
            run(RunStatus.FAILED_FINAL, final_reason=FinalReason.INFRA, message="disk full"),
            "failed",
            "disk full",
            "`interlock doctor`",
        ),
    ],
)
def test_every_state_of_a_run(run_: Run, state: str, verdict: str, advice: str) -> None:
    found = explain(facts(run_))
    assert found.state == state
    assert verdict in found.verdict
    assert advice in found.advice


@pytest.mark.parametrize(
    ("changes", "state", "verdict", "advice"),
    [
        (
            {"tick_at": NOW + timedelta(hours=2)},
            "not opened",
            "has not run yet: it opens 10:30 EST (in 2h)",
            "Nothing until 10:30 EST.",
        ),
        (
            {"tick_at": OPENED, "watched_since": OPENED},
            "missed",
            "should have opened 08:00 EST (30m ago), and nothing opened it",
            "Was the controller running then?",
        ),
        (
            {"tick_at": OPENED, "watched_since": NOW},
            "not opened",
            "has not run: nothing has opened it",
            "If it should have run: `interlock rerun gold --date 2026-03-02`.",
        ),
        (
            {"withheld": "2026-03-02 is excluded: it is a holiday"},
            "excluded",
            "has not run, and will not: 2026-03-02 is excluded: it is a holiday",
            "Nothing, if that is meant.",
        ),
        (
            {"awaited_upstreams": ("silver 2026-03-02",), "tick_at": None, "config": config(schedule={})},
            "not opened",
            "it waits for silver 2026-03-02",
            "Look at the upstream: `interlock why silver --date 2026-03-02`.",
        ),
        (
            {"config": config(schedule={"trigger": {"key": "up", "check": "equals", "field": "s", "value": 1}})},
            "not opened",
            "no write of up for 2026-03-02 has opened it",
            "Ask whoever writes up: it needs s = 1.",
        ),
        ({}, "not opened", "the cron 0 8 * * * has no tick for 2026-03-02", "If it should have run"),
    ],
)
def test_a_run_that_does_not_exist(changes: dict[str, Any], state: str, verdict: str, advice: str) -> None:
    found = explain(facts(**changes))
    assert found.state == state
    assert verdict in found.verdict
    assert advice in found.advice


def test_rules_that_pass_now_in_a_held_run_need_a_rerun() -> None:
    held = run(RunStatus.FAILED_FINAL, final_reason=FinalReason.VALIDATION_EXHAUSTED, ended_at=ENDED)
    found = explain(facts(held, rules=(PASSING,)))
    assert found.advice == (
        "The rules pass now, but nothing was written since: `interlock rerun gold --date 2026-03-02`."
    )


def test_one_rule_is_enough() -> None:
    any_ = config(validation={"trigger": "ANY", "rules": [{"key": "up", "check": "exists"}]})
    found = explain(facts(run(RunStatus.PENDING), config=any_))
    assert any(section.title == "Rules (as they are now, one is enough)" for section in found.sections)
    assert found.verdict.endswith("is waiting: 1 of 2 rules pass")
    assert found.advice.startswith("Nothing: the rules pass now")


def test_the_schedule_is_named_when_there_are_several() -> None:
    two = config(schedule=None, schedules=[{"id": "cron", "cron": "0 8 * * *"}, {"id": "pm", "cron": "0 20 * * *"}])
    lost = run(RunStatus.FAILED_FINAL, final_reason=FinalReason.INFRA)
    assert "--date 2026-03-02 --schedule cron`" in explain(facts(lost, config=two)).advice


def test_attempts_tell_their_story() -> None:
    failed = AttemptFact(
        number=1,
        source="first",
        opened_at=OPENED,
        opened_by="cron 0 8 * * *",
        passed_at=OPENED,
        triggered_at=OPENED,
        ended_at=ENDED,
        job_id="j-1",
        outcome="failed",
        error="lost executor (TRANSIENT)",
        refused=1,
    )
    again = AttemptFact(number=2, source="manual", opened_by="manual rerun: x", requested_by="ada", opened_at=NOW)
    found = explain(facts(run(RunStatus.PENDING, attempt=2), attempts=(failed, again)))
    assert lines(found, "Attempts") == [
        "1 (first) opened 08:00 EST; rules passed 08:00 EST; start refused once; job started 08:00 EST as j-1;"
        " failed 08:20 EST: lost executor (TRANSIENT)",
        "2 (manual: manual rerun: x) opened 08:30 EST; asked for by ada",
    ]


def test_sla_past_and_to_come() -> None:
    state = SlaState(
        pipeline="gold",
        schedule="cron",
        date="2026-03-02",
        version=1,
        config_version="v",
        deadline="10:00",
        warning_at=NOW - timedelta(minutes=10),
        breach_at=NOW + timedelta(minutes=20),
        fired={SlaKind.WARNING: NOW - timedelta(minutes=10)},
    )
    found = explain(facts(run(RunStatus.PENDING), sla=state))
    assert lines(found, "SLA") == ["08:20 EST (10m ago): SLA warning was given"]
    assert "08:50 EST (in 20m): SLA breach, unless it is done by then" in lines(found, "Next")
    met = msgspec.structs.replace(state, outcome=SlaOutcome.MET, fired={})
    assert lines(explain(facts(run(RunStatus.COMPLETED), sla=met)), "SLA") == ["met: done before its deadline 10:00"]


SLA = SlaState(pipeline="gold", schedule="cron", date="2026-03-02", version=1, config_version="v", deadline="10:00")


def test_what_comes_next_is_in_the_order_in_which_it_comes() -> None:
    state = msgspec.structs.replace(
        SLA,
        ready_by="08:45",
        ready_by_at=NOW + timedelta(minutes=15),
        warning_at=NOW + timedelta(minutes=20),
        breach_at=NOW + timedelta(days=2),
    )
    upcoming = (NOW + timedelta(days=1), "2026-03-03")
    found = explain(facts(run(RunStatus.PENDING), sla=state, next_start=upcoming))
    assert [line.partition(")")[0] for line in lines(found, "Next")[1:]] == [
        "08:45 EST (in 15m",
        "08:50 EST (in 20m",
        "09:00 EST (in 30m",
        "2026-03-03 08:30 EST (in 1d",
        "2026-03-04 08:30 EST (in 2d",
    ]
    assert lines(found, "Next")[1] == "08:45 EST (in 15m): readiness alert, unless the rules have passed by then"


def test_readiness_and_back_fills_are_told() -> None:
    ready = msgspec.structs.replace(SLA, ready_by="09:00", ready_by_at=NOW, ready_at=OPENED, breach_at=NOW)
    found = explain(facts(run(RunStatus.RUNNING, triggered_at=OPENED), sla=ready))
    assert lines(found, "SLA") == ["ready by 09:00: the rules passed 08:00 EST (30m ago)"]
    back_fill = msgspec.structs.replace(SLA, breach_at=OPENED, back_fill=True)
    found = explain(facts(run(RunStatus.PENDING), sla=back_fill))
    assert lines(found, "SLA") == ["a back-fill: asked for after its deadline 10:00, so nobody is alerted"]
    assert not [line for line in lines(found, "Next") if "SLA" in line]


def test_the_deadline_of_a_trigger_is_no_threat_to_a_period_that_nobody_expects() -> None:
    trigger = {"key": "landed", "check": "exists", "deadline": "10:00"}
    waiting = config(schedule={"trigger": trigger, "timezone": "America/New_York"})
    held = "10:00 EST (in 1h30m): the trigger's deadline; without a run by then, it is held"
    assert held in lines(explain(facts(config=waiting)), "Next")
    assert held not in lines(explain(facts(config=waiting, expected=False)), "Next")


@pytest.mark.parametrize("reason", [FinalReason.POLL_EXHAUSTED, FinalReason.UNCERTAIN, FinalReason.STALE])
def test_no_rerun_is_advised_without_saying_that_a_living_job_refuses_it(reason: FinalReason) -> None:
    ended = run(RunStatus.FAILED_FINAL, final_reason=reason, ended_at=NOW, run_id="r-1", job_id="j-1")
    assert "while it still runs, a rerun is refused" in explain(facts(ended)).advice


def test_an_expired_lease_is_told() -> None:
    stuck = run(RunStatus.RUNNING, triggered_at=OPENED, lease_until=NOW - timedelta(minutes=1))
    assert any("its lease ended" in line for line in lines(explain(facts(stuck)), "Next"))


def test_an_invalid_config_explains_itself() -> None:
    found = explain_invalid("gold", ("job.type: is missing", "validation: is missing"), NOW)
    assert found.verdict == "gold is not run: its stored config is invalid"
    assert lines(found, "Errors") == ["job.type: is missing", "validation: is missing"]


def test_an_explanation_is_json_and_back() -> None:
    found = explain(facts(run(RunStatus.PENDING)))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Explanation) == found


@pytest.mark.parametrize(
    ("check", "field", "value", "asked"),
    [
        (Check.EXISTS, None, None, "up has to be there"),
        (Check.IN, "s", ["a", "b"], 's has to be one of ["a","b"]'),
        (Check.AGE_LT, "at", "2h", "at has to be younger than 2h"),
        (Check.AGE_GT, "at", "2h", "at has to be older than 2h"),
        (Check.NE, "s", "bad", 'it needs s other than "bad"'),
        (Check.LT, "n", 5, "it needs n < 5"),
    ],
)
def test_what_is_asked_of_whoever_writes_the_sensor(check: Check, field: str | None, value: object, asked: str) -> None:
    failing = RuleFact(RuleResult("up", check, False, 1, value, "no", field), OPENED)
    found = explain(facts(run(RunStatus.PENDING), rules=(failing,)))
    assert found.advice == f"Ask whoever writes up: {asked}. It then goes on by itself."


def test_a_completed_run_says_what_is_watched_afterwards() -> None:
    watched = config(postRun={"rules": [{"key": "out", "check": "exists"}], "sensorTimeout": "2h"})
    found = explain(facts(run(RunStatus.COMPLETED, ended_at=ENDED), config=watched, rules_at=ENDED))
    assert "10:20 EST (in 1h50m): out must have been written again by then" in lines(found, "Next")
    assert any(section.title == "Rules (as they were at 08:20 EST)" for section in found.sections)


def test_a_config_that_has_changed_and_an_inclusion_date_are_told() -> None:
    dated = config(schedule={"include": {"dates": ["2026-03-02"]}})
    found = explain(facts(run(RunStatus.PENDING), config=dated, config_changed=True))
    assert lines(found, "Opened")[1].startswith("the config has changed since")
    assert lines(found, "Calendar") == ["2026-03-02 is an inclusion date"]


def test_a_window_that_does_not_reopen() -> None:
    stops = config(schedule={"cron": "0 8 * * *", "evaluation": {"afterWindow": "stop"}})
    waiting = explain(facts(run(RunStatus.PENDING), config=stops))
    assert lines(waiting, "Next")[1] == "14:00Z (in 30m): the window closes; then it is held for good"
    held = run(RunStatus.FAILED_FINAL, final_reason=FinalReason.VALIDATION_EXHAUSTED, ended_at=ENDED)
    assert explain(facts(held, config=stops)).advice == (
        "When the data is there, `interlock rerun gold --date 2026-03-02`."
    )


@pytest.mark.parametrize("reason", [None, FinalReason.RETRIES_USED_UP, FinalReason.CANCELLED])
def test_only_a_run_whose_window_closed_is_re_opened_by_a_write(reason: FinalReason | None) -> None:
    status = RunStatus.COMPLETED if reason is None else RunStatus.FAILED_FINAL
    found = explain(facts(run(status, final_reason=reason, ended_at=ENDED)))
    assert not [line for line in lines(found, "Next") if "re-opens it" in line]
    held = run(RunStatus.FAILED_FINAL, final_reason=FinalReason.VALIDATION_EXHAUSTED, ended_at=ENDED)
    assert [line for line in lines(explain(facts(held)), "Next") if "re-opens it" in line]


def test_a_dry_run_that_nothing_has_begun() -> None:
    trigger = {"trigger": {"key": "up", "check": "exists"}}
    found = explain(facts(config=config(dryRun=True, schedule=trigger)))
    assert found.state == "dry run"
    assert "nothing has begun yet" in found.verdict
