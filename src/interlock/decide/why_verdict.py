"""The first and the last line of an explanation: what is the matter, and what to do about it."""

from collections import Counter
from typing import Final, assert_never

from interlock.decide import why_words as words
from interlock.decide.reruns import budget_key
from interlock.decide.retries import no_retry_left
from interlock.decide.transitions import job_may_have_started
from interlock.decide.undated import reopens_until
from interlock.decide.values import show
from interlock.decide.why_facts import Facts, RuleFact
from interlock.model.config import Check
from interlock.model.run import FinalReason, Run, RunStatus, Source
from interlock.model.sensor import is_upstream

_REFUSED: Final = "while it still runs, a rerun is refused"


def state(facts: Facts) -> str:
    """One of the five words people are shown, or what there is instead of a run."""
    if facts.config.dry_run:
        return "dry run"
    if facts.run is not None:
        return facts.run.word.value
    if facts.withheld is not None:
        return "excluded"
    return "missed" if _missed(facts) else "not opened"


def _missed(facts: Facts) -> bool:
    """The clock should have opened it while somebody was watching, and did not."""
    since = facts.watched_since
    return facts.tick_at is not None and facts.tick_at <= facts.now and (since is None or facts.tick_at >= since)


def verdict(facts: Facts) -> str:
    """What is the matter, in one line."""
    name = f"{facts.key.pipeline} for {facts.key.date}"
    if facts.config.dry_run:
        return f"{name} {_dry(facts)}"
    return f"{name} {_of_run(facts, facts.run) if facts.run is not None else _without_run(facts)}"


def _dry(facts: Facts) -> str:
    if facts.dry is None:
        return "is a dry run that nothing has begun yet: nothing is ever started"
    if facts.dry.would_trigger_at is not None:
        return f"is a dry run: its job would have been started {facts.when(facts.dry.would_trigger_at)}"
    return f"is a dry run: it would be waiting; {_rules_summary(facts)}"


def _without_run(facts: Facts) -> str:
    if facts.unreal is not None:
        return f"has not run, and never will: {facts.unreal}"
    if facts.withheld is not None:
        return f"has not run, and will not: {facts.withheld}"
    if facts.tick_at is not None and facts.tick_at > facts.now:
        return f"has not run yet: it opens {facts.when(facts.tick_at)}"
    if _missed(facts) and facts.tick_at is not None:
        return f"has not run: it should have opened {facts.when(facts.tick_at)}, and nothing opened it"
    if facts.awaited_upstreams:
        return f"has not run: it waits for {', '.join(facts.awaited_upstreams)}"
    if facts.schedule.trigger is not None:
        return f"has not run: no write of {facts.schedule.trigger.key} for {facts.key.date} has opened it"
    if facts.schedule.cron is not None and facts.tick_at is None:
        return f"has not run: the cron {facts.schedule.cron} has no tick for {facts.key.date}"
    return "has not run: nothing has opened it"


def _of_run(facts: Facts, run: Run) -> str:
    match run.status:
        case RunStatus.PENDING if facts.place is not None:
            return f"is waiting: it is ready and waits for {facts.place}"
        case RunStatus.PENDING if run.passed_at is None:
            return f"is waiting: {_rules_summary(facts)}"
        case RunStatus.PENDING:
            return "is about to start its job: the rules have passed"
        case RunStatus.TRIGGERING:
            refused = f"; {words.times(run.trigger_failures)} refused: {run.message}" if run.trigger_failures else ""
            return f"is starting its job{refused}"
        case RunStatus.RUNNING:
            since = f" since {facts.when(run.triggered_at)}" if run.triggered_at is not None else ""
            return f"is running: its job has been under way{since}"
        case RunStatus.FAILED:
            error = _last_error(facts) or run.message
            return f"failed and is tried again{f': {error}' if error else ''}"
        case RunStatus.COMPLETED:
            ended = f" {facts.when(run.ended_at)}" if run.ended_at is not None else ""
            again = "" if run.attempt == 1 else f", at attempt {run.attempt}"
            return f"ran: it completed{ended}{again}"
        case RunStatus.FAILED_FINAL | RunStatus.JOB_POLL_EXHAUSTED:
            return _ended_badly(facts, run)
        case _:
            assert_never(run.status)


def _ended_badly(facts: Facts, run: Run) -> str:
    reason = run.final_reason
    ended = f" {facts.when(run.ended_at)}" if run.ended_at is not None else ""
    match reason:
        case FinalReason.VALIDATION_EXHAUSTED:
            return f"was held: its window closed{ended}; {_rules_summary(facts)}"
        case FinalReason.DEADLINE_EXPIRED:
            return f"was held: {run.message or 'its trigger did not come by the deadline'}"
        case FinalReason.TRIGGER_EXHAUSTED:
            error = _last_error(facts) or run.message
            return f"failed: its job could not be started{f': {error}' if error else ''}"
        case FinalReason.UNCERTAIN:
            return f"failed: {run.message or 'nobody can tell whether its job was started'}"
        case FinalReason.RETRIES_USED_UP:
            tries = "" if run.attempt == 1 else f" after {run.attempt} attempts"
            error = _last_error(facts) or run.message or "its job failed"
            return f"failed{tries}{ended}: {error}; no retry is left: {_used_up(facts)}"
        case FinalReason.POLL_EXHAUSTED:
            return f"failed: its job had not ended when the poll window closed{ended}; it may still be running"
        case FinalReason.WITHDRAWN | FinalReason.CANCELLED:
            return f"was {reason}{ended}: {run.message or 'no job is started for it any more'}"
        case FinalReason.INFRA | FinalReason.STALE | None:
            return f"failed{ended}: {run.message or reason or 'for a reason nobody wrote down'}"
        case _:
            assert_never(reason)


def _used_up(facts: Facts) -> str:
    """Which budget the last failure was paid from."""
    last = next((one.category for one in reversed(facts.attempts) if one.category is not None), None)
    return no_retry_left(facts.config.required_job, last, _had(facts))


def _had(facts: Facts) -> Counter[Source]:
    """How many attempts each source has opened, the first not counted: it repeated nothing."""
    return Counter(Source(one.source) for one in facts.attempts if one.number > 1 and one.source in frozenset(Source))


def _rules_summary(facts: Facts) -> str:
    count, failing = len(facts.rules), facts.failing
    passing = f"{count - len(failing)} of {count} rules pass"
    if facts.rules_pass:
        return passing
    first = failing[0].result
    about = first.reason if first.key in first.reason else f"{first.key}: {first.reason}"
    more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
    return f"{passing}; {about}{more}"


def _last_error(facts: Facts) -> str:
    return next((one.error for one in reversed(facts.attempts) if one.error), "")


# --------------------------------------------------------------------------------------------------------- advice


def advice(facts: Facts) -> str:
    """What to do, in one line."""
    if facts.config.dry_run:
        return "Nothing: set `dryRun: false` when what it observes is what you want."
    if facts.run is None:
        return _advice_without_run(facts)
    return _advice_of_run(facts, facts.run)


def _advice_without_run(facts: Facts) -> str:
    if facts.unreal is not None:
        asked = (f"`interlock why {facts.key.pipeline} --date {one}{_schedule(facts)}`" for one in facts.unreal.nearest)
        return f"There is no such run. Ask for one that there is: {' or '.join(asked)}."
    if facts.withheld is not None:
        return "Nothing, if that is meant. Otherwise change the calendar or `schedule.exclude`, then rerun it."
    if facts.tick_at is not None and facts.tick_at > facts.now:
        return f"Nothing until {facts.at(facts.tick_at)}."
    if _missed(facts):
        return f"Was the controller running then? See `interlock doctor`; then {_rerun(facts)}."
    if facts.awaited_upstreams:
        upstream = facts.awaited_upstreams[0].split()[0].removesuffix(":")
        return f"Look at the upstream: `interlock why {upstream} --date {facts.key.date}`."
    if facts.schedule.trigger is not None:
        trigger = facts.schedule.trigger
        return f"Ask whoever writes {trigger.key}: {_wanted(trigger.key, trigger.check, trigger.field, trigger.value)}."
    return f"If it should have run: {_rerun(facts)}."


def _advice_of_run(facts: Facts, run: Run) -> str:
    match run.status:
        case RunStatus.PENDING if run.passed_at is None:
            return _advice_for_rules(facts)
        case RunStatus.PENDING | RunStatus.TRIGGERING:
            return f"Nothing yet. If this lasts, look at the target: {run.message or 'is it reachable?'}"
        case RunStatus.RUNNING:
            return _advice_for_running(facts, run)
        case RunStatus.FAILED:
            return f"Nothing yet: it is tried again. Read the job's own log meanwhile ({_job(run)})."
        case RunStatus.COMPLETED:
            return "Nothing: it is done."
        case RunStatus.FAILED_FINAL | RunStatus.JOB_POLL_EXHAUSTED:
            return _advice_for_ended(facts, run)
        case _:
            assert_never(run.status)


def _advice_for_rules(facts: Facts) -> str:
    if facts.rules_pass:
        return "Nothing: the rules pass now, it goes on by itself. If it does not, see `interlock doctor`."
    return f"{_fix(facts, facts.failing[0])}. It then goes on by itself."


def _fix(facts: Facts, failing: RuleFact) -> str:
    result = failing.result
    if is_upstream(result.key):
        upstream = result.key.partition(":")[2]
        return f"Look at the upstream: `interlock why {upstream} --date {facts.key.date}`"
    # The reason speaks of the sensor itself when none counts: absent, expired, or about another period.
    absent = result.actual is None and failing.received_at is None
    who = f"Nobody has written {result.key} for {facts.key.date}" if absent else f"Ask whoever writes {result.key}"
    return f"{who}: {_wanted(result.key, result.check, result.field, result.expected)}"


def _wanted(key: str, check: Check, field: str | None, value: object) -> str:
    """What the sensor has to say, as a person would ask for it."""
    name = field or key
    signs = {Check.GT: ">", Check.GTE: ">=", Check.LT: "<", Check.LTE: "<=", Check.EQUALS: "=", Check.NE: "other than"}
    match check:
        case Check.EXISTS:
            return f"{name} has to be there"
        case Check.IN:
            return f"{name} has to be one of {show(value)}"
        case Check.AGE_LT:
            return f"{name} has to be younger than {value}"
        case Check.AGE_GT:
            return f"{name} has to be older than {value}"
        case _:
            return f"it needs {name} {signs[check]} {show(value)}"


def _advice_for_running(facts: Facts, run: Run) -> str:
    expected = facts.config.sla.expected_duration if facts.config.sla is not None else None
    if expected is not None and run.triggered_at is not None and facts.now - run.triggered_at > expected:
        return f"It takes longer than the expected {words.span(expected)}: look at the job ({_job(run)})."
    return f"Nothing: the job is under way ({_job(run)})."


def _advice_for_ended(facts: Facts, run: Run) -> str:
    rerun = _rerun(facts)
    match run.final_reason:
        case FinalReason.VALIDATION_EXHAUSTED:
            return _advice_for_held(facts, run)
        case FinalReason.DEADLINE_EXPIRED:
            key = facts.schedule.trigger.key if facts.schedule.trigger is not None else "its trigger"
            return f"Ask whoever writes {key}; when the data is there, {rerun}."
        case FinalReason.TRIGGER_EXHAUSTED:
            return f"Put right what the target says, then {rerun}."
        case FinalReason.UNCERTAIN:
            look = f"Look in the target for {run.run_id or 'the job'}"
            return f"{look}. If it is not there or has ended, {rerun}; {_REFUSED}."
        case FinalReason.POLL_EXHAUSTED:
            report = f"`interlock job report {facts.key.pipeline} --date {facts.key.date}{_schedule(facts)} success`"
            return f"Look at the job ({_job(run)}). If it succeeded: {report}. If it failed: {rerun}; {_REFUSED}."
        case FinalReason.RETRIES_USED_UP:
            attempt = f"--date {facts.key.date}{_schedule(facts)} --attempt {run.attempt}"
            read = f"`interlock logs {facts.key.pipeline} {attempt}`"
            return f"Read what the job wrote ({_job(run)}) with {read}, put it right, then {rerun}."
        case FinalReason.WITHDRAWN:
            return f"Nothing, if that is meant. Otherwise apply it with `dryRun: false`, then {rerun}."
        case FinalReason.CANCELLED:
            return f"Nothing, if that is meant. Otherwise {rerun}."
        case FinalReason.INFRA | FinalReason.STALE | None:
            refused = f"; {_REFUSED}" if job_may_have_started(run) else ""
            return f"Look at the controller with `interlock doctor`, then {rerun}{refused}."
        case _:
            assert_never(run.final_reason)


def _advice_for_held(facts: Facts, run: Run) -> str:
    reopens = facts.schedule.evaluation.after_window == "reopen"
    if reopens and run.ended_at is not None and facts.now < run.ended_at + facts.reopen_for:
        if not facts.rules_pass:
            return f"{_fix(facts, facts.failing[0])}. Such a write re-opens it by itself{_with_period(facts, run)}."
        return f"The rules pass now, but nothing was written since: {_rerun(facts)}."
    return f"When the data is there, {_rerun(facts)}."


def _with_period(facts: Facts, run: Run) -> str:
    """What else such a write needs, once one without a period of its own comes too late."""
    until = reopens_until(facts.schedule, facts.key.period, run.first_opened_at, run.tick_at)
    return f", if it says that it is for {facts.key.date}" if facts.now >= until else ""


def _job(run: Run) -> str:
    claimed = f", claimed by {run.claimed_by}" if run.claimed_by else ""
    return (run.job_id or run.run_id or "no job id yet") + claimed


def _schedule(facts: Facts) -> str:
    return f" --schedule {facts.key.schedule}" if len(facts.config.all_schedules) > 1 else ""


def _rerun(facts: Facts) -> str:
    command = f"`interlock rerun {facts.key.pipeline} --date {facts.key.date}{_schedule(facts)}`"
    if facts.undated:
        command += f" (it reads {', '.join(facts.undated)} as of now, whatever day that is about)"
    had, job = _had(facts)[Source.MANUAL], facts.config.required_job
    if had < job.max_manual_reruns:
        return command
    return f"raise {budget_key(Source.MANUAL)} ({had} of {job.max_manual_reruns} used) and {command}"
