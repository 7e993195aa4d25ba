"""What of a config does not run on AWS, by name: `plan` and `apply` refuse it before anything is written.

Embedded, an execution may take as long as its windows need, and a command runs on the controller's machine. On AWS
every execution has the same bound, there is no machine, and each poll is paid for.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from interlock.config.problems import Finding
from interlock.model.config import JobType, PipelineConfig, ProbeType
from interlock.model.durations import format_duration, parse_duration
from interlock.model.errors import InvalidValueError

SHORTEST_POLL: Final = timedelta(seconds=10)
MARGIN: Final = timedelta(minutes=10)
"""What an execution needs besides its two windows."""
_PROBES: Final = {
    ProbeType.COMMAND: "there is no machine to run it on",
    ProbeType.FILE: "there is no disk to look at",
    ProbeType.SQL: "the functions have no database drivers",
}


def refusals(config: PipelineConfig, execution_timeout: timedelta) -> Iterator[Finding]:
    """Why AWS does not run this config; nothing for one that runs."""
    yield from impossible(config)
    yield from _polling(config)
    yield from _windows(config, execution_timeout)


def impossible(config: PipelineConfig) -> Iterator[Finding]:
    """What the functions cannot do at all: one that reaches the store anyway is CONFIG_INVALID."""
    yield from _job(config)
    for index, probe in enumerate(config.probes):
        if probe.type in _PROBES:
            message = f"{probe.type} probes do not run on AWS: {_PROBES[probe.type]}; use an http or s3 probe, or write"
            yield Finding(("probes", index, "type"), f"{message} the sensor {probe.key!r} from a job of your own")
    yield from _unseen_triggers(config)


def _unseen_triggers(config: PipelineConfig) -> Iterator[Finding]:
    """Here a probe looks while a run waits, so one that is to open the run would never look."""
    probed = {probe.key: index for index, probe in enumerate(config.probes)}
    for schedule in config.all_schedules:
        key = schedule.trigger.key if schedule.trigger is not None else None
        if key in probed and schedule.cron is None:
            message = f"the probe {key!r} is to open the run, and on AWS a probe looks only while a run waits: open the"
            yield Finding(
                ("probes", probed[key], "key"), f"{message} run by cron, or write the sensor {key!r} yourself"
            )


def _job(config: PipelineConfig) -> Iterator[Finding]:
    job = config.job
    if job is None:
        return
    if job.type == JobType.COMMAND:
        message = "command jobs do not run on AWS, where there is no machine to run them: use lambda, glue or another"
        yield Finding(("job", "type"), message)
    elif job.type not in frozenset(JobType):
        message = f"{job.type!r} comes from an installed package, which the functions on AWS do not have"
        yield Finding(("job", "type"), message)
    if job.type == JobType.HTTP and job.config.get("callback") is True:
        message = (
            "callback: true does not work on AWS, where no server takes the call: poll for the end (`poll`), or let the"
            " job report it (`interlock job report`, or a record in the job log) with job.type external"
        )
        yield Finding(("job", "config", "callback"), message)


def _polling(config: PipelineConfig) -> Iterator[Finding]:
    if config.job is None:
        return
    if config.job.poll_interval < SHORTEST_POLL:
        yield _too_often(("job", "pollInterval"), config.job.poll_interval)
    poll = config.job.config.get("poll") if config.job.type == JobType.HTTP else None
    if isinstance(poll, Mapping) and isinstance(poll.get("interval"), str):
        try:
            interval = parse_duration(poll["interval"])
        except InvalidValueError:  # a template, or reported elsewhere
            return
        if interval < SHORTEST_POLL:
            yield _too_often(("job", "config", "poll", "interval"), interval)


def _too_often(path: tuple[str, ...], interval: timedelta) -> Finding:
    message = f"{format_duration(interval)} is too often on AWS, where each poll is paid for: at least"
    return Finding(path, f"{message} {format_duration(SHORTEST_POLL)}")


def _windows(config: PipelineConfig, execution_timeout: timedelta) -> Iterator[Finding]:
    if config.job is None:
        return
    room = execution_timeout - MARGIN
    for index, schedule in enumerate(config.all_schedules):
        window, poll = schedule.evaluation.window, config.job.poll_window
        if window + poll <= room:
            continue
        place: tuple[str | int, ...] = ("schedules", index) if config.schedules else ("schedule",)
        message = (
            f"the window of {format_duration(window)} and the job's poll window of {format_duration(poll)} exceed"
            f" {format_duration(room)}, which is sfn_timeout_seconds"
            f" ({int(execution_timeout.total_seconds())}) less 10 minutes: shorten them, or raise that variable"
        )
        yield Finding((*place, "evaluation", "window"), message)
