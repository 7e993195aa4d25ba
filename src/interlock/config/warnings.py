"""What is allowed and yet probably not meant. Few, and each of them true (SPEC 2)."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Final

import msgspec

from interlock.config.literals import find_literal_secrets
from interlock.config.probes import find_probe_warnings
from interlock.config.problems import Finding, Path, Severity
from interlock.config.programs import command_words, missing_program
from interlock.config.schedules import cron_granularity, declared_periods, with_paths
from interlock.decide.cron import next_tick, shortest_gap
from interlock.decide.sla import scheduled_start, sla_times
from interlock.decide.templates import NAMES, secret_names
from interlock.model.config import (
    Evaluation,
    Include,
    JobType,
    PipelineConfig,
    PostRunEvaluation,
    ProbeType,
    Schedule,
    Sla,
    past_the_hour,
)
from interlock.model.durations import format_duration
from interlock.model.periods import Granularity, day_period, period_of

EXECUTION_TIMEOUT: Final = timedelta(hours=4)
LATE_BREACH: Final = timedelta(hours=12)
_PLAIN_VARIABLE: Final = re.compile(rf"(?<!\$)\$({'|'.join(NAMES)}|INTERLOCK_\w+)\b")
# A winter and a summer day: where the two zones of an SLA change their clocks apart, both must agree.
_SAMPLES: Final = (datetime(2026, 1, 14, tzinfo=UTC), datetime(2026, 7, 15, tzinfo=UTC))


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation can do of all that a config may ask for."""

    job_types: frozenset[str]
    missing: Mapping[str, str] = {}
    """What is not installed, and how to install it, per type of job and per kind of secret that needs it."""
    missing_probes: Mapping[ProbeType, str] = {}
    """What is not installed, and how to install it, per kind of probe that needs it."""
    pools: frozenset[str] | None = None
    """The pools that have a size; None: not known here."""
    folder: FilePath | None = None  # where commands run; None: on some other machine


def find_missing(config: PipelineConfig, abilities: Abilities | None = None) -> tuple[Finding, ...]:
    """Errors of the installation: what is not installed and the config cannot do without.

    A dry run starts no job; its probes look all the same.
    """
    if abilities is None:
        return ()
    found: list[Finding] = []
    if config.job is not None and not config.dry_run:
        needed = abilities.missing.get(config.job.type)
        found += [Finding(("job", "type"), needed)] if needed else []
        found += _missing_secrets(config.job.config, ("job", "config"), abilities)
    for index, probe in enumerate(config.probes):
        needed = abilities.missing_probes.get(probe.type)
        found += [Finding(("probes", index, "type"), needed)] if needed else []
        found += _missing_secrets(probe.config, ("probes", index, "config"), abilities)
    return tuple(found)


def _missing_secrets(config: Mapping[str, object], path: Path, abilities: Abilities) -> list[Finding]:
    schemes = dict.fromkeys(name.partition(":")[0] for name in secret_names(config))
    return [Finding(path, abilities.missing[one]) for one in schemes if one in abilities.missing]


def find_warnings(
    config: PipelineConfig, abilities: Abilities | None = None, document: Mapping[str, object] | None = None
) -> Iterator[Finding]:
    """Warnings for a config that has no errors. Without `abilities`, none about the installation that is to run it.

    `document` is what the config was read from: it tells what somebody wrote from what is a default.
    """
    if abilities is not None:
        yield from _beyond(abilities, config)
    yield from _evaluations(config)
    yield from find_probe_warnings(config)
    yield from _plain_variables(config)
    yield from find_literal_secrets(document or {})
    yield from _unused_retries(config, document or {})
    sla = config.sla
    if sla is not None and sla.deadline is not None and sla.expected_duration is None:
        yield _warning(("sla",), "no expectedDuration: there will be no warning before the breach")
    if sla is not None:
        yield from _late_breaches(sla, config)
        yield from _late_readiness(sla, config)
    yield from _hours_unsaid(config)
    yield from _clock_times_of_hours(config)
    if not config.dry_run:
        yield from _too_long(config)
        yield from _unnoticed(config)


def _warning(path: Path, message: str) -> Finding:
    return Finding(path, message, Severity.WARNING)


def _beyond(abilities: Abilities, config: PipelineConfig) -> Iterator[Finding]:
    job = config.job
    if job is not None and job.type not in abilities.job_types and not config.dry_run:
        able = ", ".join(sorted(abilities.job_types))
        message = f"jobs of type {job.type} cannot be started by this installation: it starts {able}"
        yield _warning(("job", "type"), message)
    if job is not None and job.pool is not None and abilities.pools is not None and job.pool not in abilities.pools:
        message = f"{job.pool} is not in [pools] of interlock.toml: nothing bounds how many of its jobs run at once"
        yield _warning(("job", "pool"), message)
    missing = missing_program(job, abilities.folder) if job is not None and abilities.folder is not None else None
    if missing is not None:
        yield _warning(("job", "config", "command"), missing)


def _evaluations(config: PipelineConfig) -> Iterator[Finding]:
    for path, schedule in with_paths(config):
        where, window = (*path, "evaluation"), schedule.evaluation.window
        if not window:
            message = "0s: the rules are evaluated once, when the run opens, and nothing is waited for"
            yield _warning((*where, "window"), message)
        else:
            yield from _rare(schedule.evaluation, where, Evaluation().interval)
        gap = shortest_gap(schedule.cron) if schedule.cron is not None else None
        if gap is not None and window > gap:
            message = (
                f"{format_duration(window)} is longer than the {format_duration(gap)} from one tick to the next:"
                " the runs of several periods then wait at once"
            )
            yield _warning((*where, "window"), message)
    if config.post_run is not None and config.post_run.evaluation is not None:
        yield from _rare(config.post_run.evaluation, ("postRun", "evaluation"), PostRunEvaluation().interval)


def _rare(evaluation: Evaluation | PostRunEvaluation, where: Path, default: timedelta) -> Iterator[Finding]:
    interval, window = evaluation.interval, evaluation.window
    # Sensor writes are looked at as they come, so that a default longer than a short window does no harm.
    if interval > window and interval != default:
        message = f"{format_duration(interval)} is longer than the window ({format_duration(window)}): it has no effect"
        yield _warning((*where, "interval"), message)


def _plain_variables(config: PipelineConfig) -> Iterator[Finding]:
    """`$DATE` instead of `${DATE}`: without a shell the command is given these five characters."""
    words = command_words(config.job) if config.job is not None else []
    if words[1:2] and words[1].startswith("-") and words[1].endswith("c"):
        return  # sh -c, bash -lc: a shell reads the rest
    for word in words:
        found = _PLAIN_VARIABLE.search(word)
        if found is not None:
            message = f"{found[0]} is passed as it is, since no shell reads it: write ${{{found[1]}}}"
            yield _warning(("job", "config", "command"), message)
            return


def _unused_retries(config: PipelineConfig, document: Mapping[str, object]) -> Iterator[Finding]:
    """`maxRetries` for a command that says `exit 1`, which is a permanent failure."""
    job, written = config.job, document.get("job")
    if job is None or job.type != JobType.COMMAND or job.max_retries <= job.max_code_retries:
        return
    if isinstance(written, Mapping) and "maxCodeRetries" in written:
        return  # who wrote both knows the difference
    message = (
        "is for transient failures (exit code 75, a signal, the timeout); any other exit code is a permanent failure,"
        f" retried maxCodeRetries times (default {job.max_code_retries}): set maxCodeRetries as well"
    )
    yield _warning(("job", "maxRetries"), message)


def _too_long(config: PipelineConfig) -> Iterator[Finding]:
    if config.job is None:
        return
    poll = config.job.poll_window
    for schedule in config.all_schedules:
        window = schedule.evaluation.window
        if window + poll > EXECUTION_TIMEOUT:
            longer = ("job", "jobPollWindowSeconds") if poll > window else _evaluation_path(config, schedule)
            yield _warning(
                longer,
                f"evaluation window ({format_duration(window)}) and job poll window ({format_duration(poll)}) together"
                f" pass the execution timeout of {format_duration(EXECUTION_TIMEOUT)} on AWS (sfn_timeout_seconds)",
            )
            return


def _evaluation_path(config: PipelineConfig, schedule: Schedule) -> Path:
    return next(((*path, "evaluation") for path, one in with_paths(config) if one is schedule), ("schedule",))


def _late_breaches(sla: Sla, config: PipelineConfig) -> Iterator[Finding]:
    if sla.max_duration is not None and sla.max_duration > LATE_BREACH:
        yield _warning(("sla", "maxDuration"), "the breach comes more than 12h after the start")
    if sla.deadline is None:
        return
    lateness = [_lateness(sla, schedule) for schedule in config.all_schedules]
    latest = max((one for one in lateness if one is not None), default=timedelta(0))
    if latest > LATE_BREACH:
        yield _warning(
            ("sla", "deadline"), f"the breach comes {format_duration(latest)} after the start: is that meant?"
        )


def _lateness(sla: Sla, schedule: Schedule) -> timedelta | None:
    """How long after its start a run breaches; None where the start is not known in advance."""
    daily = cron_granularity(schedule) is Granularity.DAY
    dated = schedule.cron is None and schedule.include is not None and schedule.trigger is None
    if not (daily or dated) or sla.deadline is None:
        return None
    return _measure(
        schedule.cron, schedule.time, schedule.timezone, sla.deadline, sla.timezone or schedule.timezone, sla.day_offset
    )


@lru_cache(maxsize=4096)  # a few crons and deadlines serve thousands of pipelines
def _measure(
    cron: str | None, time: str | None, timezone: str, deadline: str, sla_timezone: str, day_offset: int | None
) -> timedelta | None:
    include = Include(dates=["2026-01-14"]) if cron is None else None
    schedule = Schedule(cron=cron, time=time, timezone=timezone, include=include)
    sla = Sla(deadline=deadline, timezone=sla_timezone, day_offset=day_offset)
    return min((late for sample in _SAMPLES if (late := _late_at(schedule, sla, sample)) is not None), default=None)


def _late_at(schedule: Schedule, sla: Sla, sample: datetime) -> timedelta | None:
    if schedule.cron is None:
        period = day_period(sample.date())
        start = scheduled_start(schedule, period)
    else:
        tick = next_tick(schedule, sample)
        if tick is None:
            return None
        period, start = tick.period, tick.at
    breach = sla_times(sla, schedule, period, None, tick_at=start).breach_at
    return None if breach is None else breach - start


def _late_readiness(sla: Sla, config: PipelineConfig) -> Iterator[Finding]:
    """`readyBy` at or after the breach never alerts: the breach has."""
    if sla.ready_by is None or sla.deadline is None:
        return
    if any(_ready_in_time(sla, schedule, sample) for schedule in config.all_schedules for sample in _SAMPLES):
        return
    message = f"{sla.ready_by} is not before the breach of the deadline {sla.deadline}, which says the same"
    yield _warning(("sla", "readyBy"), message)


def _ready_in_time(sla: Sla, schedule: Schedule, sample: datetime) -> bool:
    hourly = declared_periods(schedule) is Granularity.HOUR or past_the_hour(sla.deadline)
    period, start = period_of(sample.replace(tzinfo=None), Granularity.HOUR if hourly else Granularity.DAY), None
    if schedule.cron is not None:
        tick = next_tick(schedule, sample)
        if tick is None:
            return True
        period, start = tick.period, tick.at
    times = sla_times(sla, schedule, period, None, tick_at=start)
    return times.ready_by_at is None or times.breach_at is None or times.ready_by_at < times.breach_at


def _clocks(sla: Sla | None) -> list[tuple[Path, str]]:
    """What an SLA says in clock times."""
    if sla is None:
        return []
    given: list[tuple[Path, str | None]] = [(("sla", "deadline"), sla.deadline), (("sla", "readyBy"), sla.ready_by)]
    return [(path, clock) for path, clock in given if clock is not None]


def _hours_unsaid(config: PipelineConfig) -> Iterator[Finding]:
    """`:MM` speaks of hours; a write that names none would still be for its day."""
    silent = [(path, one) for path, one in with_paths(config) if declared_periods(one) is None]
    if config.after or not silent:
        return  # the periods of a cascade are those of its upstream
    triggers = [((*path, "trigger", "deadline"), one.trigger.deadline) for path, one in silent if one.trigger]
    for path, clock in [*_clocks(config.sla), *triggers]:
        if past_the_hour(clock):
            name = ".".join(str(part) for part in (*silent[0][0], "granularity"))
            message = f"{clock} is for hourly runs, and nothing says that these are hourly: add {name}: hour"
            yield _warning(path, message)


def _clock_times_of_hours(config: PipelineConfig) -> Iterator[Finding]:
    """`HH:MM` is once a day: most of the runs of an hourly schedule are then late only on the next day."""
    hourly = any(declared_periods(one) in (Granularity.HOUR, Granularity.MINUTE) for one in config.all_schedules)
    for path, clock in _clocks(config.sla) if hourly else []:
        if not past_the_hour(clock):
            minute = clock.partition(":")[2]
            message = f"{clock} is one time a day, and the runs are hourly: write :{minute} for each hour's own time"
            yield _warning(path, message)


def _unnoticed(config: PipelineConfig) -> Iterator[Finding]:
    if config.sla is not None:
        return
    for path, schedule in with_paths(config) or [(("pipeline",), Schedule())]:
        deadline = schedule.trigger.deadline if schedule.trigger else None
        if schedule.cron is None and schedule.include is None and deadline is None:
            message = (
                "nothing notices if this never starts: it has no cron, no SLA, no trigger deadline, no inclusion dates"
            )
            yield _warning(path, message)
