"""Why a run did or did not happen: facts in, an explanation for the person who was woken up out (SPEC 16, `why`).

Pure, and made of plain values, so that the command line, the API and the page tell the same story. An explanation
answers in this order: what is the matter, what opened it, may it run on that day, what do the rules say, what was
tried, what comes next and when; and it ends with what to do.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from interlock.decide import why_words as words
from interlock.decide.plan import opened_by
from interlock.decide.retries import trigger_retry_delay
from interlock.decide.sla import next_instants
from interlock.decide.undated import reopens_until
from interlock.decide.watchdog import trigger_deadline
from interlock.decide.why_facts import Facts
from interlock.decide.why_verdict import advice, state, verdict
from interlock.model.config import Mode
from interlock.model.durations import format_duration
from interlock.model.run import FinalReason, Run, RunStatus, SlaKind, SlaOutcome
from interlock.model.times import to_local, zone


class Mark(StrEnum):
    """What a line says at a glance."""

    PASS = "pass"
    FAIL = "fail"
    NONE = "none"


class Line(msgspec.Struct, frozen=True):
    """One statement."""

    text: str
    mark: Mark = Mark.NONE


class Section(msgspec.Struct, frozen=True):
    """Statements about one question."""

    title: str
    lines: tuple[Line, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer. `state` is one of the five words people are shown, or what there is instead of a run."""

    pipeline: str
    schedule: str
    date: str
    at: datetime
    timezone: str
    state: str
    verdict: str
    sections: tuple[Section, ...]
    advice: str


def explain(facts: Facts) -> Explanation:
    """The whole answer."""
    sections = (
        Section("Opened", tuple(_opened(facts))),
        Section("Calendar", tuple(_calendar(facts))),
        Section(_rules_title(facts), tuple(_rules(facts))),
        Section("Attempts", tuple(_attempts(facts))),
        Section("Also", tuple(Line(f"{facts.at(one.at)} {one.type}: {one.message}") for one in facts.events)),
        Section("SLA", tuple(_sla(facts))),
        Section("Next", tuple(_next(facts))),
    )
    return Explanation(
        pipeline=facts.key.pipeline,
        schedule=facts.key.schedule,
        date=facts.key.date,
        at=facts.now,
        timezone=facts.schedule.timezone,
        state=state(facts),
        verdict=verdict(facts),
        sections=tuple(one for one in sections if one.lines),
        advice=advice(facts),
    )


def explain_invalid(pipeline: str, errors: tuple[str, ...], now: datetime) -> Explanation:
    """The answer for a pipeline whose stored config is invalid: it is not run, whatever the date."""
    return Explanation(
        pipeline=pipeline,
        schedule="",
        date="",
        at=now,
        timezone="UTC",
        state="invalid",
        verdict=f"{pipeline} is not run: its stored config is invalid",
        sections=(Section("Errors", tuple(Line(error, Mark.FAIL) for error in errors)),),
        advice="Correct the config, check it with `interlock validate`, and apply it again.",
    )


# -------------------------------------------------------------------------------------------------- what opened it


def _opened(facts: Facts) -> Iterator[Line]:
    run = facts.run
    if facts.dry is not None:
        yield Line(f"{facts.when(facts.dry.opened_at)} by a write of its trigger sensor, for observation only")
        return
    if run is None:
        yield Line(f"nothing has opened it; what opens it: {opened_by(facts.config, facts.schedule)}")
        if facts.tick_at is not None and facts.withheld is None:
            past = facts.tick_at <= facts.now
            yield Line(f"its time {'was' if past else 'is'} {facts.when(facts.tick_at)}")
        yield from (Line(f"waits for {one}", Mark.FAIL) for one in facts.awaited_upstreams)
        return
    by = _first_opened_by(facts, run)
    yield Line(facts.when(run.first_opened_at) + (f" by {by}" if by else ""))
    if facts.config_changed:
        yield Line("the config has changed since: this attempt keeps the one it was opened with")


def _first_opened_by(facts: Facts, run: Run) -> str:
    """What opened the first attempt. A later attempt of a run whose events are gone does not know it."""
    if run.attempt == 1:
        return run.opened_by or run.source.value
    return next((one.opened_by for one in facts.attempts if one.number == 1), "")


def _calendar(facts: Facts) -> Iterator[Line]:
    if facts.withheld is not None:
        yield Line(facts.withheld, Mark.FAIL)
        return
    schedule, day = facts.schedule, facts.key.period.day
    if schedule.include is not None:
        yield Line(f"{day} is an inclusion date", Mark.PASS)
    elif schedule.exclude is not None:
        # A tick is asked for by its own day, which need not be that of its run.
        day = day if facts.tick_at is None else to_local(facts.tick_at, zone(schedule.timezone)).date()
        yield Line(f"{day} is not excluded", Mark.PASS)


# ----------------------------------------------------------------------------------------------------------- rules


def _rules_title(facts: Facts) -> str:
    mode = ", one is enough" if facts.config.validation.trigger is Mode.ANY else ""
    when = f"as they were at {facts.at(facts.rules_at)}" if facts.rules_at is not None else "as they are now"
    return f"Rules ({when}{mode})"


def _rules(facts: Facts) -> Iterator[Line]:
    for one in facts.rules:
        result = one.result
        asked = "" if result.expected is None else f" {result.expected}"
        field = f" {result.field}" if result.field else ""
        # The time at which a sensor was received already says that it exists.
        received = one.received_at if result.field is not None else None
        age = f"; received {facts.when(received)}" if received is not None else ""
        text = f"{result.key}{field} {result.check}{asked}: {result.reason}{age}"
        yield Line(text, Mark.PASS if result.passed else Mark.FAIL)


# -------------------------------------------------------------------------------------------------------- attempts


def _attempts(facts: Facts) -> Iterator[Line]:
    for one in facts.attempts:
        because = f": {one.opened_by}" if one.number > 1 and one.opened_by else ""
        parts = [f"{one.number} ({one.source or 'source unknown'}{because})"]
        if one.opened_at is not None:
            parts[0] += f" opened {facts.at(one.opened_at)}"
        if one.requested_by:
            parts.append(f"asked for by {one.requested_by}")
        if one.passed_at is not None:
            parts.append(f"rules passed {facts.at(one.passed_at)}")
        if one.refused:
            parts.append(f"start refused {words.times(one.refused)}")
        if one.triggered_at is not None:
            parts.append(f"job started {facts.at(one.triggered_at)}" + (f" as {one.job_id}" if one.job_id else ""))
        mark = Mark.NONE
        if one.outcome:
            ended = f" {facts.at(one.ended_at)}" if one.ended_at is not None else ""
            parts.append(f"{one.outcome}{ended}" + (f": {one.error}" if one.error else ""))
            mark = Mark.PASS if one.outcome == "completed" else Mark.FAIL
        elif one.error:
            parts.append(one.error)
        if one.warning:
            parts.append(f"warning: {one.warning}")
        yield Line("; ".join(parts), mark)


# ------------------------------------------------------------------------------------------------ what comes next


class _Coming(msgspec.Struct, frozen=True):
    """Something that comes next; without an instant, at once or at any time."""

    line: Line
    at: datetime | None = None


def _next(facts: Facts) -> Iterator[Line]:
    """What comes next, in the order in which it comes."""
    coming = [*_next_steps(facts), *_next_sla(facts)]
    if facts.next_start is not None and facts.next_start[1] != facts.key.date:
        at, date = facts.next_start
        coming.append(_coming(facts, at, f"the run of {date} opens"))
    yield from (one.line for one in coming if one.at is None)
    timed = [(one.at, one.line) for one in coming if one.at is not None]
    yield from (line for _, line in sorted(timed, key=lambda one: one[0]))


def _coming(facts: Facts, at: datetime, text: str) -> _Coming:
    return _Coming(Line(f"{facts.when(at)}: {text}"), at)


def _next_steps(facts: Facts) -> Iterator[_Coming]:
    if facts.run is not None:
        yield from _next_of_run(facts, facts.run)
    elif not facts.config.dry_run and facts.withheld is None:
        yield from _next_without_run(facts)


def _next_without_run(facts: Facts) -> Iterator[_Coming]:
    if facts.tick_at is not None and facts.tick_at > facts.now:
        yield _coming(facts, facts.tick_at, "the clock opens it")
    trigger = facts.schedule.trigger
    due = trigger_deadline(trigger, facts.schedule, facts.key.period) if trigger is not None else None
    if due is not None and due > facts.now and facts.expected:
        yield _coming(facts, due, "the trigger's deadline; without a run by then, it is held")


def _next_of_run(facts: Facts, run: Run) -> Iterator[_Coming]:
    match run.status:
        case RunStatus.PENDING if run.passed_at is None:
            yield from _next_evaluations(facts, run)
        case RunStatus.PENDING:
            yield _Coming(Line("now: the job is started"))
        case RunStatus.TRIGGERING:
            delay = trigger_retry_delay(run.trigger_failures, 99) if run.trigger_failures else None
            if delay:
                yield _coming(facts, run.updated_at + delay, "the start is tried again")
            else:
                yield _Coming(Line("now: it is started"))
        case RunStatus.RUNNING:
            yield from _next_polls(facts, run)
        case RunStatus.FAILED:
            text = f"attempt {run.attempt + 1} opens (the pause before a retry)"
            yield _Coming(Line(text)) if run.retry_at is None else _coming(facts, run.retry_at, text)
        case RunStatus.COMPLETED | RunStatus.FAILED_FINAL | RunStatus.JOB_POLL_EXHAUSTED:
            yield from _next_after_end(facts, run)
    if run.active and run.lease_until is not None and run.lease_until <= facts.now:
        yield _Coming(Line(f"its lease ended {facts.when(run.lease_until)}: the watchdog gives it up", Mark.FAIL))


def _next_evaluations(facts: Facts, run: Run) -> Iterator[_Coming]:
    evaluation = facts.schedule.evaluation
    if facts.place is not None:
        text = f"ready, it waits for {facts.place}; when it is its turn, the rules are evaluated again"
        yield _Coming(Line(text))
        return
    closes = run.opened_at + evaluation.window
    look = min(closes, facts.now + evaluation.interval)
    keys = ", ".join(dict.fromkeys(rule.key for rule in facts.config.validation.rules))
    every = format_duration(evaluation.interval)
    looks = f"the rules are evaluated at once when {keys} changes, and every {every}: by {facts.at(look)} again"
    yield _Coming(Line(looks))
    reopens = evaluation.after_window == "reopen"
    then = f"held; for {format_duration(facts.reopen_for)} a write that makes the rules pass re-opens it"
    yield _coming(facts, closes, f"the window closes; then it is {then if reopens else 'held for good'}")


def _next_polls(facts: Facts, run: Run) -> Iterator[_Coming]:
    job = facts.config.required_job
    if run.triggered_at is None:
        return
    closes = run.triggered_at + job.poll_window
    if run.cancel is not None:
        who = f" by {run.cancel.by}" if run.cancel.by else ""
        asked = f"asked to stop{who} {facts.when(run.cancel.at)}"
        problem = run.cancel.problem
        yield _Coming(Line(f"{asked}: {problem}", Mark.FAIL) if problem else Line(f"{asked}: its target is ending it"))
    look = min(closes, facts.now + job.poll_interval)
    every = format_duration(job.poll_interval)
    yield _Coming(Line(f"the job is asked for every {every}: by {facts.at(look)} again"))
    yield _coming(facts, closes, "the poll window closes; then it counts as failed, running or not")


def _next_after_end(facts: Facts, run: Run) -> Iterator[_Coming]:
    post = facts.config.post_run
    if run.status is RunStatus.COMPLETED and post is not None and run.ended_at is not None and post.rules:
        names = ", ".join(dict.fromkeys(rule.key for rule in post.rules))
        due = run.ended_at + post.sensor_timeout
        if due > facts.now:
            yield _coming(facts, due, f"{names} must have been written again by then")
    if run.final_reason is not FinalReason.VALIDATION_EXHAUSTED or run.ended_at is None:
        return
    until = run.ended_at + facts.reopen_for
    if facts.schedule.evaluation.after_window == "reopen" and until > facts.now:
        alone = reopens_until(facts.schedule, facts.key.period, run.first_opened_at, run.tick_at)
        only = f" (without a period of its own only until {facts.at(alone)})" if alone < until else ""
        line = Line(f"until {facts.when(until)}: a sensor write that makes the rules pass re-opens it{only}")
        yield _Coming(line, until)


_ALERTS: Final = {
    SlaKind.READINESS: "readiness alert",
    SlaKind.WARNING: "SLA warning",
    SlaKind.BREACH: "SLA breach",
    SlaKind.RELATIVE_WARNING: "relative SLA warning",
    SlaKind.RELATIVE_BREACH: "relative SLA breach",
}


def _sla(facts: Facts) -> Iterator[Line]:
    state = facts.sla
    if state is None or facts.withheld is not None:
        return
    for kind, at in sorted(state.fired.items(), key=lambda item: item[1]):
        yield Line(f"{facts.when(at)}: {_ALERTS[kind]} was given", Mark.FAIL)
    if state.ready_at is not None:
        yield Line(f"ready by {state.ready_by}: the rules passed {facts.when(state.ready_at)}", Mark.PASS)
    if state.back_fill:
        limit = state.deadline or state.ready_by
        yield Line(f"a back-fill: asked for after its deadline {limit}, so nobody is alerted")
    elif state.outcome is SlaOutcome.MET:
        yield Line(f"met: done before its deadline {state.deadline}", Mark.PASS)
    elif state.outcome is SlaOutcome.RECOVERED:
        yield Line(f"not kept (deadline {state.deadline}), but the run has completed", Mark.FAIL)


def _next_sla(facts: Facts) -> Iterator[_Coming]:
    if facts.sla is None or facts.withheld is not None:
        return
    for kind, at in next_instants(facts.sla).items():
        kept = "the rules have passed" if kind is SlaKind.READINESS else "it is done"
        unless = "about to be given" if at <= facts.now else f"unless {kept} by then"
        yield _coming(facts, at, f"{_ALERTS[kind]}, {unless}")
