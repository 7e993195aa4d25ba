"""Hazard coverage of a config, after STPA: which unsafe control actions it guards against, by what, and what is open.

The control action is "start the job". STPA asks of each action the same four questions: not given when needed, given
when unsafe, given too early, too late or out of order, stopped too soon or applied too long. For each question there
are a few ways in which pipelines go wrong; for each of these, a config has a constraint that covers it or it has not.
Pure: a config in, a coverage out.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final

import msgspec

from interlock.decide.probes import ttl_of
from interlock.model.config import Check, JobType, Mode, PipelineConfig, Probe, Rule
from interlock.model.durations import Duration, format_duration
from interlock.model.sensor import is_upstream


class Unsafe(StrEnum):
    """The four kinds of unsafe control action."""

    NOT_GIVEN = "not given"
    WHEN_UNSAFE = "given when unsafe"
    WRONG_TIME = "too early, too late or out of order"
    STOPPED = "stopped too soon or applied too long"


class Cover(StrEnum):
    """How well a hazard is covered. Weak: something holds, but less than the config could easily have."""

    COVERED = "covered"
    WEAK = "weak"
    UNCOVERED = "uncovered"


class Hazard(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One way to go wrong: the constraints that cover it, what is open, and YAML that would close it."""

    kind: Unsafe
    hazard: str
    cover: Cover
    constraints: tuple[str, ...] = ()
    gap: str = ""
    suggestion: str = ""


class Coverage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All hazards of a pipeline, in the order of the four kinds."""

    pipeline: str
    dry_run: bool
    hazards: tuple[Hazard, ...]

    def count(self, cover: Cover) -> int:
        """How many hazards are covered that well."""
        return sum(one.cover is cover for one in self.hazards)


_Finding = tuple[tuple[str, ...], Cover, str, str]
_Analysis = Callable[[PipelineConfig], _Finding]

_SLA_SNIPPET: Final = 'sla: {deadline: "10:00", expectedDuration: 30m}'
_POST_SNIPPET: Final = "postRun:\n  rules: [{key: output-row-count, check: gte, field: count, value: 1}]"


def analyse(config: PipelineConfig) -> Coverage:
    """The hazard coverage of a pipeline."""
    return Coverage(pipeline=config.id, dry_run=config.dry_run, hazards=tuple(_hazards(config)))


def _hazards(config: PipelineConfig) -> Iterator[Hazard]:
    for kind, hazard, analysis in _HAZARDS:
        constraints, cover, gap, suggestion = analysis(config)
        yield Hazard(kind=kind, hazard=hazard, cover=cover, constraints=constraints, gap=gap, suggestion=suggestion)


def _covered(*constraints: str) -> _Finding:
    return constraints, Cover.COVERED, "", ""


# ------------------------------------------------------------------------------------------------------- not given


def _never_opened(config: PipelineConfig) -> _Finding:
    """Is every schedule watched by something that does not depend on what opens it?"""
    found: list[str] = []
    open_: list[str] = []
    deadline = config.sla.deadline if config.sla is not None else None
    for schedule in config.all_schedules:
        watched = [f"sla.deadline {deadline} (alerts for due periods without a run)"] if deadline else []
        if schedule.cron is not None:
            watched.append(f"watchdog: missed ticks of cron {schedule.cron}")
        if schedule.include is not None:
            watched.append("watchdog: missed inclusion dates")
        if schedule.trigger is not None and schedule.trigger.deadline is not None:
            watched.append(f"schedule.trigger.deadline {schedule.trigger.deadline}")
        found += watched
        if not watched:
            open_.append(schedule.schedule_id)
    constraints = tuple(dict.fromkeys(found))
    if not open_:
        return constraints, Cover.COVERED, "", ""
    which = "" if len(config.all_schedules) == 1 else f" (schedule {', '.join(open_)})"
    gap = f"if nothing ever opens a run, nobody notices{which}"
    trigger = any(schedule.trigger is not None for schedule in config.all_schedules)
    more = '\n# or, by when the trigger must have come:\nschedule: {trigger: {deadline: "09:30"}}' if trigger else ""
    return constraints, Cover.UNCOVERED, gap, _SLA_SNIPPET + more


def _never_ready(config: PipelineConfig) -> _Finding:
    windows = dict.fromkeys(format_duration(one.evaluation.window) for one in config.all_schedules)
    window = f"evaluation.window {', '.join(windows)}: VALIDATION_EXHAUSTED names the failing rules"
    stops = any(one.evaluation.after_window == "stop" for one in config.all_schedules)
    if not stops:
        return _covered(window, "afterWindow reopen: data that comes later still starts it")
    gap = "data that comes after the window starts nothing: a person has to rerun it"
    return (window,), Cover.WEAK, gap, "schedule: {evaluation: {afterWindow: reopen}}"


def _job_lost(config: PipelineConfig) -> _Finding:
    job = config.required_job
    if job.max_retries > 0:
        return _covered(f"job.maxRetries {job.max_retries}", "RETRY_EXHAUSTED when they are used up")
    gap = "a passing failure (a lost machine, a throttled call) ends the run: somebody has to rerun it"
    return ("RETRY_EXHAUSTED tells of it",), Cover.WEAK, gap, "job: {maxRetries: 2, retryDelay: 1m}"


# ----------------------------------------------------------------------------------------------- given when unsafe


def _not_ready(config: PipelineConfig) -> _Finding:
    rules = config.validation.rules
    rules_read = tuple(_described(rule) for rule in rules)
    if config.validation.trigger is Mode.ANY and len(rules) > 1:
        gap = "validation.trigger ANY: one passing rule starts the job, whatever the others say"
        return rules_read, Cover.WEAK, gap, "validation: {trigger: ALL}"
    if all(rule.check is Check.EXISTS for rule in rules) and not any(is_upstream(rule.key) for rule in rules):
        gap = "the rules ask only whether sensors exist, not what they say"
        key = rules[0].key
        snippet = f"validation: {{rules: [{{key: {key}, check: equals, field: status, value: ready}}]}}"
        return rules_read, Cover.WEAK, gap, snippet
    return rules_read, Cover.COVERED, "", ""


def _described(rule: Rule) -> str:
    parts = [rule.key, rule.field or "", rule.check.value, "" if rule.value is None else str(rule.value)]
    return "rule " + " ".join(part for part in parts if part)


def _other_period(config: PipelineConfig) -> _Finding:
    fresh = {rule.key for rule in config.validation.rules if rule.check is Check.AGE_LT}
    loose = [one.key for one in config.validation.rules if one.period == "any" and one.key not in fresh]
    if not loose:
        return _covered("period binding: a sensor counts only for the run it is about")
    gap = f"period: any lets yesterday's {', '.join(loose)} start today's run"
    bound = f"- {{key: {loose[0]}, check: age_lt, field: updatedAt, value: 2h}}"
    others = len(loose) < len(config.validation.rules)
    constraints = ("period binding of the other rules",) if others else ()
    return constraints, Cover.UNCOVERED, gap, f"# leave out `period: any`, or bound its age with another rule:\n{bound}"


def _ttl(config: PipelineConfig, probe: Probe) -> str:
    return format_duration(Duration(seconds=ttl_of(config, probe).total_seconds()))


def _stale(config: PipelineConfig) -> _Finding:
    fresh = [_described(rule) for rule in config.validation.rules if rule.check is Check.AGE_LT]
    read = {rule.key for rule in config.validation.rules}
    fresh += [f"probe {one.key} (ttl {_ttl(config, one)})" for one in config.probes if one.key in read]
    if fresh:
        return _covered(*fresh)
    gap = "no rule bounds how old the data behind a sensor may be"
    snippet = "validation:\n  rules:\n    - {key: freshness, check: age_lt, field: updatedAt, value: 2h}"
    return ("period binding: received since the period began",), Cover.WEAK, gap, snippet


def _closed_day(config: PipelineConfig) -> _Finding:
    found: list[str] = []
    for schedule in config.all_schedules:
        if schedule.exclude is not None:
            exclude = schedule.exclude
            named = {
                "weekends": exclude.weekends,
                f"holidays {exclude.holidays}": exclude.holidays,
                "dates": exclude.dates,
                "days": exclude.days,
                f"calendar {exclude.calendar}": exclude.calendar,
            }
            found.append(f"schedule.exclude: {', '.join(name for name, value in named.items() if value)}")
        if schedule.include is not None:
            found.append("schedule.include: no other dates")
    return _covered(*(found or ["no calendar: every day is meant to be open"]))


def _twice(config: PipelineConfig) -> _Finding:
    del config
    return _covered("one active attempt per run, one job start per attempt (always)")


# ----------------------------------------------------------------------------------------------------- wrong time


def _too_early(config: PipelineConfig) -> _Finding:
    found = [f"cron {one.cron} ({one.timezone})" for one in config.all_schedules if one.cron is not None]
    found += [f"trigger {one.trigger.key}" for one in config.all_schedules if one.trigger is not None]
    found += ["inclusion dates" for one in config.all_schedules if one.include is not None]
    found += [f"after {one.pipeline} ({one.require})" for one in config.after]
    return _covered(*(found or ["opened by rerun requests only"]))


def _out_of_order(config: PipelineConfig) -> _Finding:
    found = [f"after {one.pipeline} ({one.require})" for one in config.after]
    found += [_described(rule) for rule in config.validation.rules if is_upstream(rule.key)]
    found += [f"trigger {one.trigger.key}" for one in config.all_schedules if one.trigger is not None]
    if found:
        return _covered(*found)
    keys_read = tuple(f"rule on {rule.key}" for rule in config.validation.rules)
    return _covered(*dict.fromkeys(keys_read))


def _too_late(config: PipelineConfig) -> _Finding:
    sla = config.sla
    if sla is None or (sla.deadline is None and sla.max_duration is None):
        return (
            (),
            Cover.UNCOVERED,
            "nothing says by when it must be done: being late is nobody's business",
            _SLA_SNIPPET,
        )
    found = [f"sla.deadline {sla.deadline}"] if sla.deadline is not None else []
    found += [f"sla.maxDuration {format_duration(sla.max_duration)}"] if sla.max_duration is not None else []
    if sla.deadline is not None and sla.expected_duration is None:
        gap = "no sla.expectedDuration: nobody hears of it before the breach"
        return tuple(found), Cover.WEAK, gap, f'sla: {{deadline: "{sla.deadline}", expectedDuration: 30m}}'
    if sla.expected_duration is not None:
        found.append(f"warning {format_duration(sla.expected_duration)} before")
    return _covered(*found)


def _late_data(config: PipelineConfig) -> _Finding:
    found = [f"late data of {one.trigger.key}" for one in config.all_schedules if one.trigger is not None]
    if config.post_run is not None and config.post_run.rules:
        found.append(f"postRun drift of {config.post_run.drift_field} ({config.post_run.on_drift})")
    found += [f"{one.pipeline} completing again" for one in config.after]
    if not found:
        gap = "data that changes after the run changes nothing: the output stays as it was"
        snippet = f"{_POST_SNIPPET}\n  driftField: count\n  driftThreshold: 2%"
        return (), Cover.WEAK, gap, snippet
    if config.required_job.max_drift_reruns == 0:
        gap = "job.maxDriftReruns is 0: it is noticed, but nothing is run again"
        return tuple(found), Cover.WEAK, gap, "job: {maxDriftReruns: 1}"
    return _covered(*found)


# --------------------------------------------------------------------------------------------------------- stopped


def _given_up(config: PipelineConfig) -> _Finding:
    job = config.required_job
    window = f"job.jobPollWindowSeconds {int(job.poll_window.total_seconds())}; never retried while it may run"
    expected = config.sla.expected_duration if config.sla is not None else None
    if expected is not None and expected > job.poll_window:
        gap = f"the job is expected to take {format_duration(expected)}, longer than it is followed"
        seconds = int(min(2 * expected, timedelta(days=1)).total_seconds())
        return (window,), Cover.UNCOVERED, gap, f"job: {{jobPollWindowSeconds: {seconds}}}"
    return _covered(window)


def _hangs(config: PipelineConfig) -> _Finding:
    job = config.required_job
    window = f"job.jobPollWindowSeconds {int(job.poll_window.total_seconds())} (JOB_POLL_EXHAUSTED)"
    found = [window]
    if "timeout" in job.config:
        found.append(f"job.config.timeout {job.config['timeout']}")
    elif job.type == JobType.COMMAND:
        gap = "a command that hangs runs on after the poll window has closed: nothing ends it"
        limit = format_duration(job.poll_window)
        return (window,), Cover.WEAK, gap, f"job: {{config: {{timeout: {limit}}}}}"
    return _covered(*found)


def _bad_output(config: PipelineConfig) -> _Finding:
    post = config.post_run
    if post is None or not post.rules:
        gap = "a job that succeeded with too little or wrong output counts as done: nothing looks at the output"
        return (), Cover.UNCOVERED, gap, _POST_SNIPPET
    judged = [f"postRun {_described(rule)}" for rule in post.rules]
    return _covered(*judged, f"postRun.sensorTimeout {format_duration(post.sensor_timeout)}")


_HAZARDS: Final[tuple[tuple[Unsafe, str, _Analysis], ...]] = (
    (Unsafe.NOT_GIVEN, "no run is ever opened", _never_opened),
    (Unsafe.NOT_GIVEN, "the inputs never become ready", _never_ready),
    (Unsafe.NOT_GIVEN, "the job is lost to a passing failure", _job_lost),
    (Unsafe.WHEN_UNSAFE, "the inputs are not ready", _not_ready),
    (Unsafe.WHEN_UNSAFE, "the inputs are of another period", _other_period),
    (Unsafe.WHEN_UNSAFE, "the inputs are stale", _stale),
    (Unsafe.WHEN_UNSAFE, "it is a day on which it must not run", _closed_day),
    (Unsafe.WHEN_UNSAFE, "it is already running", _twice),
    (Unsafe.WRONG_TIME, "it starts too early", _too_early),
    (Unsafe.WRONG_TIME, "it starts before what it depends on", _out_of_order),
    (Unsafe.WRONG_TIME, "it is done too late", _too_late),
    (Unsafe.WRONG_TIME, "data arrives after it has run", _late_data),
    (Unsafe.STOPPED, "the job is given up while it still runs", _given_up),
    (Unsafe.STOPPED, "the job hangs", _hangs),
    (Unsafe.STOPPED, "the job succeeds, but its output is wrong", _bad_output),
)
