"""What people are told, word for word: `why` for every state of a run, and the hazards of very different configs.

The texts are kept in `wording/*.txt`, so that a changed word is a line of a review. After a change that is meant:
`python -m tests.decide.wording_cases` writes them again.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.decide.checks import RuleResult
from interlock.decide.pools import Place
from interlock.decide.real_periods import NoSuchPeriod
from interlock.decide.stpa import Coverage
from interlock.decide.why import Explanation, explain, explain_invalid
from interlock.decide.why_facts import AttemptFact, NotableEvent, RuleFact
from interlock.model.config import Check
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import (
    Cancel,
    DryRun,
    FailureCategory,
    FinalReason,
    RunStatus,
    SlaKind,
    SlaOutcome,
    SlaState,
    Source,
)
from tests.decide.test_stpa import SAFE, TRIGGER_ONLY, coverage
from tests.decide.test_why import ABSENT, ENDED, FAILING, KEY, NOW, OPENED, PASSING, SLA, config, facts, run

FOLDER: Final = Path(__file__).parent / "wording"
MINUTE: Final = timedelta(minutes=1)
UPSTREAM: Final = RuleFact(
    RuleResult("upstream:silver", Check.EXISTS, False, None, None, "no sensor upstream:silver", None)
)
THERE: Final = RuleFact(RuleResult("up", Check.EXISTS, True, "ready", None, "up is there", None), OPENED)
ATTEMPTS: Final = (
    AttemptFact(
        number=1,
        source="first",
        opened_at=OPENED,
        opened_by="cron 0 8 * * *",
        passed_at=OPENED + MINUTE,
        triggered_at=OPENED + 2 * MINUTE,
        ended_at=ENDED,
        job_id="j-1",
        outcome="failed",
        error="lost executor (TRANSIENT)",
        category=FailureCategory.TRANSIENT,
        refused=2,
    ),
    AttemptFact(number=2, source="manual", opened_by="manual rerun", requested_by="ada", opened_at=NOW, warning="slow"),
    AttemptFact(number=3, error="nobody can tell"),
    AttemptFact(number=4, source="upstream", outcome="completed", triggered_at=NOW),
)
RELATIVE: Final = msgspec.structs.replace(
    SLA, relative_warning_at=NOW + MINUTE, relative_breach_at=NOW - MINUTE, ready_by="09:00", ready_by_at=NOW + MINUTE
)
FIRED: Final = msgspec.structs.replace(
    SLA,
    breach_at=NOW + 5 * MINUTE,
    fired={kind: NOW - MINUTE * number for number, kind in enumerate(SlaKind, start=1)},
    outcome=SlaOutcome.RECOVERED,
)
TRIGGER: Final = {"key": "up", "check": "equals", "field": "s", "value": 1, "deadline": "10:00"}
BY_SENSOR: Final = config(schedule={"trigger": TRIGGER, "timezone": "America/New_York"})
POST: Final[dict[str, Any]] = {"rules": [{"key": "out", "check": "exists"}], "sensorTimeout": "2h"}


def _runs() -> Iterator[tuple[str, Explanation]]:
    waiting, held = run(RunStatus.PENDING), FinalReason.VALIDATION_EXHAUSTED
    running = run(RunStatus.RUNNING, triggered_at=NOW - 5 * MINUTE, job_id="j-1")
    yield "waiting", explain(facts(waiting))
    yield "waiting for a sensor that nobody wrote", explain(facts(waiting, rules=(ABSENT, FAILING)))
    yield "waiting for an upstream", explain(facts(waiting, rules=(THERE, UPSTREAM)))
    yield "all rules pass", explain(facts(waiting, rules=(PASSING, THERE)))
    any_ = config(validation={**msgspec.to_builtins(config().validation, enc_hook=str), "trigger": "ANY"})
    yield "one rule is enough", explain(facts(waiting, config=any_))
    none = tuple(RuleFact(msgspec.structs.replace(one.result, passed=False)) for one in (PASSING, FAILING))
    yield "one rule would be enough", explain(facts(waiting, config=any_, rules=none))
    yield "waiting for its pool", explain(facts(waiting, place=Place("warehouse", 3, 7)))
    yield "about to start", explain(facts(run(RunStatus.PENDING, passed_at=NOW)))
    yield "starting", explain(facts(run(RunStatus.TRIGGERING)))
    refused = run(RunStatus.TRIGGERING, trigger_failures=2, message="throttled", updated_at=NOW)
    yield "its start is refused", explain(facts(refused))
    yield "running", explain(facts(running))
    yield "running, since nobody knows when", explain(facts(run(RunStatus.RUNNING)))
    yield "running, for as long as it likes", explain(facts(running, config=config(sla=None)))
    yield (
        "running for longer than expected",
        explain(facts(run(RunStatus.RUNNING, triggered_at=NOW - 31 * MINUTE, run_id="r-1", claimed_by="cron@host"))),
    )
    yield (
        "running for exactly as long as expected",
        explain(facts(run(RunStatus.RUNNING, triggered_at=NOW - 30 * MINUTE))),
    )
    for problem in ("", "access denied"):
        cancel = Cancel(at=NOW - MINUTE, by="ada" if problem else "", reason="x", problem=problem)
        yield (
            f"cancelled while it runs: {problem or 'fine'}",
            explain(facts(msgspec.structs.replace(running, cancel=cancel))),
        )
    yield "its lease is over", explain(facts(msgspec.structs.replace(running, lease_until=NOW)))
    yield (
        "failed, to be tried again",
        explain(
            facts(run(RunStatus.FAILED, message="lost executor", retry_at=NOW + 5 * MINUTE), attempts=ATTEMPTS[:1])
        ),
    )
    yield "failed without a reason", explain(facts(run(RunStatus.FAILED)))
    second = run(RunStatus.FAILED, attempt=2, message="lost executor", retry_at=NOW + 5 * MINUTE, job_id="j-2")
    yield "failed a second time", explain(facts(second, attempts=ATTEMPTS[:1]))
    yield "done", explain(facts(run(RunStatus.COMPLETED, ended_at=ENDED), attempts=ATTEMPTS, rules_at=ENDED))
    done = run(RunStatus.COMPLETED, attempt=2, ended_at=ENDED)
    yield "done, its output is watched", explain(facts(done, config=config(postRun=POST), config_changed=True))
    yield (
        "done long ago",
        explain(facts(run(RunStatus.COMPLETED, ended_at=NOW - 120 * MINUTE), config=config(postRun=POST))),
    )
    over = run(RunStatus.COMPLETED, ended_at=ENDED, lease_until=ENDED)
    yield "done, with a lease that is over", explain(facts(over))
    yield "done, nobody knows when", explain(facts(run(RunStatus.COMPLETED), config=config(postRun=POST)))
    outputs = {"rules": [*POST["rules"], {"key": "rows-out", "check": "exists"}, *POST["rules"]]}
    yield "done, several outputs are watched", explain(facts(done, config=config(postRun=outputs)))
    yield "done, no output is watched", explain(facts(done, config=config(postRun={"rules": []})))
    again = msgspec.structs.replace(done, opened_by="manual rerun")
    yield "done by a rerun", explain(facts(again, attempts=ATTEMPTS[:2]))
    yield "done by a rerun, the first attempt is not known", explain(facts(again, attempts=ATTEMPTS[1:2]))
    cancelled = run(RunStatus.FAILED_FINAL, final_reason=FinalReason.CANCELLED, ended_at=ENDED)
    yield "cancelled, its output is not watched", explain(facts(cancelled, config=config(postRun=POST)))
    expired = run(RunStatus.FAILED_FINAL, final_reason=FinalReason.DEADLINE_EXPIRED, ended_at=ENDED)
    yield "its trigger has not come", explain(facts(expired, config=BY_SENSOR))
    for reason in (*FinalReason, None):
        for told in (True, False):
            ended = run(
                RunStatus.FAILED_FINAL,
                final_reason=reason,
                ended_at=ENDED if told else None,
                message="it says why" if told else "",
                run_id="r-1" if told else "",
                attempt=3 if told else 1,
                triggered_at=OPENED if told else None,
            )
            attempts = ATTEMPTS if told else ()
            yield f"ended: {reason}, {'with' if told else 'without'} a word", explain(facts(ended, attempts=attempts))
    late = run(RunStatus.FAILED_FINAL, final_reason=held, ended_at=NOW - timedelta(hours=13))
    early = msgspec.structs.replace(late, first_opened_at=NOW - timedelta(days=2), tick_at=NOW - timedelta(days=2))
    yield "held, an undated write is too late", explain(facts(early))
    yield "held, and its rules pass now", explain(facts(late, rules=(PASSING, THERE)))
    yield "held, and what its rules came to is not known", explain(facts(late, config=any_, rules=()))
    yield (
        "held for longer than it can be re-opened",
        explain(facts(msgspec.structs.replace(late, ended_at=NOW - timedelta(hours=24)))),
    )
    held_before = AttemptFact(
        number=1, source="first", opened_at=OPENED, ended_at=ENDED, outcome="held", error="1 of 2 rules pass"
    )
    reopened = AttemptFact(number=2, source="reopen", opened_by="a write of rows", opened_at=NOW - MINUTE)
    open_again = run(
        RunStatus.PENDING, attempt=2, source=Source.REOPEN, opened_at=NOW - MINUTE, opened_by="a write of rows"
    )
    yield "held, and re-opened", explain(facts(open_again, attempts=(held_before, reopened)))
    yield (
        "held, re-opened, and its rules pass",
        explain(facts(open_again, attempts=(held_before, reopened), rules=(PASSING, THERE))),
    )
    held_again = msgspec.structs.replace(
        open_again, status=RunStatus.FAILED_FINAL, final_reason=held, ended_at=NOW - MINUTE
    )
    yield "held, re-opened, and held again", explain(facts(held_again, attempts=(held_before, reopened)))
    # The day of a tick at 08:00 ends at midnight, which is 05:00 in UTC.
    midnight = datetime(2026, 3, 3, 5, tzinfo=UTC)
    for seconds in (-1, 0):
        now = midnight + timedelta(seconds=seconds)
        yield f"held, {seconds} s from midnight", explain(facts(msgspec.structs.replace(late, ended_at=ENDED), now=now))
    until = msgspec.structs.replace(late, ended_at=midnight - timedelta(hours=24))
    yield "held, can be re-opened until midnight", explain(facts(until))
    stops = config(schedule={"cron": "0 8 * * *", "evaluation": {"afterWindow": "stop"}})
    yield "held for good", explain(facts(late, config=stops))
    yield "its window closes for good", explain(facts(waiting, config=stops))
    yield (
        "no manual rerun is left",
        explain(
            facts(
                run(RunStatus.FAILED_FINAL, final_reason=FinalReason.CANCELLED),
                attempts=ATTEMPTS[:2],
                undated=("rows", "up"),
                config=config(job={"type": "external", "maxManualReruns": 1}),
            )
        ),
    )


def _without_a_run() -> Iterator[tuple[str, Explanation]]:
    yield "not due yet", explain(facts(tick_at=NOW + timedelta(hours=2)))
    yield "missed", explain(facts(tick_at=OPENED, watched_since=OPENED))
    yield "due this very minute", explain(facts(tick_at=NOW))
    yield "before anybody watched", explain(facts(tick_at=OPENED, watched_since=NOW))
    yield "excluded", explain(facts(withheld="2026-03-02 is a holiday", tick_at=OPENED, sla=FIRED))
    yield "excluded, its time is to come", explain(facts(withheld="it is a Sunday", tick_at=NOW + timedelta(hours=2)))
    yield (
        "no such period",
        explain(facts(unreal=NoSuchPeriod("no tick", (parse_period("2026-03-01"), parse_period("2026-03-03"))))),
    )
    yield "waits for upstreams", explain(facts(awaited_upstreams=("silver 2026-03-02", "bronze 2026-03-02")))
    whole_day = ("silver: all-hours belongs to a run of a day",)
    yield "waits for hours", explain(facts(awaited_upstreams=whole_day))
    yield "waits for its trigger", explain(facts(config=BY_SENSOR))
    for hours, name in ((1.5, "is due"), (3, "has passed")):
        yield f"its trigger's deadline {name}", explain(facts(config=BY_SENSOR, now=NOW + timedelta(hours=hours)))
    yield "its trigger is expected by nobody", explain(facts(config=BY_SENSOR, expected=False))
    yield "no tick", explain(facts(next_start=(NOW + timedelta(days=1), "2026-03-03")))
    yield "opened by nothing", explain(facts(config=config(schedule={})))
    dated = config(schedule={"include": {"dates": ["2026-03-02"]}})
    yield "an inclusion date", explain(facts(config=dated, tick_at=NOW + MINUTE, next_start=(NOW, KEY.date)))
    weekdays = config(schedule={"cron": "0 23 * * *", "exclude": {"weekends": True}})
    yield "not excluded", explain(facts(config=weekdays, tick_at=NOW + timedelta(days=1)))
    both = config(schedules=[{"id": "cron", "cron": "0 8 * * *"}, {"id": "late", "cron": "0 20 * * *"}], schedule=None)
    yield "one of two schedules", explain(facts(config=both, key=RunKey("gold", "late", "2026-03-02")))
    yield "invalid", explain_invalid("gold", ("job.type: is missing",), NOW)


def _dry_runs() -> Iterator[tuple[str, Explanation]]:
    dry = config(dryRun=True, schedule={"trigger": {"key": "up", "check": "exists"}})
    seen = DryRun(
        pipeline="gold", schedule="cron", date=KEY.date, version=1, opened_at=OPENED, config_version="v", ttl=1
    )
    yield "a dry run that has not begun", explain(facts(config=dry))
    yield "a dry run with a tick to come", explain(facts(config=dry, tick_at=NOW + timedelta(hours=2)))
    yield "a dry run that would wait", explain(facts(config=dry, dry=seen))
    yield (
        "a dry run that would have started",
        explain(facts(config=dry, dry=msgspec.structs.replace(seen, would_trigger_at=ENDED))),
    )


def _slas() -> Iterator[tuple[str, Explanation]]:
    states: dict[str, SlaState] = {
        "given": FIRED,
        "relative": RELATIVE,
        "met": msgspec.structs.replace(SLA, outcome=SlaOutcome.MET, ready_by="09:00", ready_at=OPENED),
        "back-fill": msgspec.structs.replace(SLA, back_fill=True),
        "back-fill of readiness": msgspec.structs.replace(SLA, deadline="", ready_by="09:00", back_fill=True),
    }
    for name, state in states.items():
        yield f"SLA: {name}", explain(facts(run(RunStatus.PENDING, source=Source.MANUAL, opened_by=""), sla=state))
    event = NotableEvent(ENDED, "SENSOR_INVALID", "rows is no number")
    yield "events", explain(facts(run(RunStatus.PENDING), events=(event,)))


def _explanation(found: Explanation) -> Iterator[str]:
    yield f"{found.state} ({found.schedule or '-'}, {found.timezone}): {found.verdict}"
    for section in found.sections:
        yield f"  {section.title}"
        yield from (f"    [{line.mark.value or ' '}] {line.text}" for line in section.lines)
    yield f"  -> {found.advice}"


def why() -> Iterator[str]:
    """Every explanation, as text."""
    for cases in (_runs, _without_a_run, _dry_runs, _slas):
        for name, found in cases():
            yield f"# {name}"
            yield from _explanation(found)


CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "careful": {},
    "by a sensor alone": {"schedule": TRIGGER_ONLY, "sla": None},
    "by a sensor with a deadline": {"schedule": {"trigger": {**TRIGGER_ONLY["trigger"], "deadline": "09:30"}}},
    "after another": {"schedule": None, "sla": None, "after": [{"pipeline": "b"}], "postRun": None},
    "of several": {"schedule": None, "after": [{"pipeline": "b"}, {"pipeline": "c", "require": "all-hours"}]},
    "by rerun requests": {"schedule": {}, "postRun": None},
    "stops": {"schedule": {**TRIGGER_ONLY, "evaluation": {"afterWindow": "stop", "window": "2h"}}},
    "no retries": {"job": {"type": "external"}},
    "a single retry": {"job": {"type": "external", "maxRetries": 1}},
    "any": {"validation": {**SAFE["validation"], "trigger": "ANY"}},
    "any of a single rule": {"validation": {"rules": SAFE["validation"]["rules"][:1], "trigger": "ANY"}},
    "exists": {"validation": {"rules": [{"key": "a", "check": "exists"}]}},
    "an upstream exists": {
        "validation": {"rules": [{"key": "upstream:b", "check": "exists"}]},
        "after": [{"pipeline": "b"}],
        "schedule": {"cron": "0 8 * * *"},
    },
    "any period": {"validation": {"rules": [{"key": "a", "check": "exists", "period": "any"}]}},
    "any period of one": {
        "validation": {
            "rules": [
                {"key": "a", "check": "exists", "period": "any"},
                {"key": "b", "check": "gt", "field": "n", "value": 0},
            ]
        }
    },
    "probed": {
        "validation": {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 1}]},
        "probes": [{"key": "rows", "type": "file", "config": {"path": "x"}, "interval": "10m"}],
    },
    "calendars": {
        "schedule": {
            "include": {"dates": ["2026-03-02"]},
            "exclude": {"weekends": True, "holidays": "US", "dates": ["2026-12-24"], "days": ["friday"]},
        }
    },
    "deadline alone": {"sla": {"deadline": "10:00"}},
    "duration alone": {"sla": {"maxDuration": "3h"}},
    "readiness alone": {"sla": {"readyBy": "09:00"}},
    "no drift reruns": {"job": {**SAFE["job"], "maxDriftReruns": 0}},
    "exactly as long as it is followed": {
        "sla": {"deadline": "20:00", "expectedDuration": "1h"},
        "job": {**SAFE["job"], "jobPollWindowSeconds": 3600},
    },
    "longer than it is followed": {"sla": {"deadline": "20:00", "expectedDuration": "3h"}},
    "longer than a day": {"sla": {"deadline": "20:00", "expectedDuration": "20h"}},
    "a command": {"job": {"type": "command", "config": {"command": ["x"]}}},
    "a command with a timeout": {"job": {"type": "command", "config": {"command": ["x"], "timeout": "10m"}}},
    "outputs of no rule": {"postRun": {"rules": []}},
    "no output": {"postRun": None, "schedule": {"cron": "0 8 * * *"}},
    "a dry run": {"dryRun": True},
    "two schedules": {
        "schedule": None,
        "schedules": [{"id": "early", "cron": "0 8 * * *"}, {"id": "stream", **TRIGGER_ONLY}],
        "sla": None,
    },
}


def _coverage(found: Coverage) -> Iterator[str]:
    yield f"{found.pipeline}{', a dry run' if found.dry_run else ''}"
    for one in found.hazards:
        yield f"  {one.kind}: {one.hazard}: {one.cover}"
        yield from (f"    by {constraint}" for constraint in one.constraints)
        yield from (f"    gap: {gap}" for gap in [one.gap] if gap)
        yield from (f"    | {line}" for line in one.suggestion.splitlines())


def stpa() -> Iterator[str]:
    """The hazards of every config, as text."""
    for name, changes in CONFIGS.items():
        yield f"# {name}"
        yield from _coverage(coverage(**changes))


TEXTS: Final[dict[str, Callable[[], Iterator[str]]]] = {"why.txt": why, "stpa.txt": stpa}


def text_of(name: str) -> str:
    """The text as the code has it now."""
    return "\n".join(TEXTS[name]()) + "\n"


def write() -> None:
    """Keep the texts as they are now."""
    FOLDER.mkdir(exist_ok=True)
    for name in TEXTS:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    write()
