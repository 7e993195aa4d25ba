"""Does a config make sense as a whole? Checks that span several fields; pure, given the names of the calendars.

Types, ranges and forms were checked by the decoder. What needs the other pipelines is in `cascades`.
"""

from collections.abc import Collection, Iterator
from typing import Final

from interlock.config.jobs import check_job
from interlock.config.probes import check_probes
from interlock.config.problems import Finding, Severity
from interlock.config.rules import check_rules
from interlock.config.schedules import (
    SCHEDULES,
    check_dates,
    check_evaluation,
    check_schedules,
    check_sla,
    declared_periods,
)
from interlock.decide.values import show
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.periods import Granularity

_NO_JOB: Final = Finding(
    ("job",),
    "is missing: say what is to be started, such as job: {type: command, config: {command: [...]}}",
    needs=(("archetype",),),
)


def find_errors(config: PipelineConfig, calendars: Collection[str]) -> tuple[Finding, ...]:
    """All errors of a config. `calendars` are the names there are."""
    return (
        *_check_dry_run(config),
        *check_schedules(config, calendars),
        *(check_sla(config.sla, config) if config.sla else ()),
        *check_rules(config),
        *(check_job(config.job) if config.job else (_NO_JOB,)),
        *_check_post_run(config),
        *_check_after(config),
        *check_probes(config),
    )


def check_calendar(calendar: Calendar) -> tuple[Finding, ...]:
    """A calendar's dates must be days; one without any day is a file somebody forgot to fill."""
    found = tuple(check_dates(calendar.dates, ("dates",)))
    if not calendar.dates and not calendar.days:
        return (Finding((), "names no day at all: give days, or dates", Severity.WARNING),)
    return found


def _check_dry_run(config: PipelineConfig) -> Iterator[Finding]:
    if config.dry_run and not any(schedule.trigger for schedule in config.all_schedules):
        message = "needs schedule.trigger: a dry run observes what a sensor write would have started"
        yield Finding(("dryRun",), message, needs=SCHEDULES)


def _check_post_run(config: PipelineConfig) -> Iterator[Finding]:
    if config.post_run is None:
        return
    if not config.post_run.drift_field:
        yield Finding(("postRun", "driftField"), "must not be empty")
    if config.post_run.evaluation:
        yield from check_evaluation(config.post_run.evaluation, ("postRun", "evaluation"))


def _check_after(config: PipelineConfig) -> Iterator[Finding]:
    if config.after and config.schedules:
        yield Finding(
            ("after",), "needs a single `schedule`: with `schedules` it is not clear which one is to be opened"
        )
    seen: set[str] = set()
    hourly = config.schedule is not None and declared_periods(config.schedule) in (Granularity.HOUR, Granularity.MINUTE)
    for index, entry in enumerate(config.after):
        if entry.pipeline in seen:
            yield Finding(("after", index, "pipeline"), f"{show(entry.pipeline)} is listed already")
        seen.add(entry.pipeline)
        if entry.require == "all-hours" and hourly:
            message = "all-hours is for daily runs, and those of this pipeline are not: write same-period"
            yield Finding(("after", index, "require"), message)
