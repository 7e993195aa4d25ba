"""The SLA of a run: when its alerts are due, which to give now, and how it ended (SPEC 6).

All instants are computed from the run (its schedule, its period, its first arrival), never from "now", so that every
part of the controller that arms, repairs or explains a timer finds the same ones.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from interlock.decide.cron import tick_of_period
from interlock.model.config import Schedule, Sla, clock_time, parse_clock
from interlock.model.durations import format_duration
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.periods import Granularity, Period, period_of
from interlock.model.run import SlaKind, SlaOutcome, SlaState
from interlock.model.times import local_time_on, to_local, to_utc, zone

KEPT: Final = timedelta(days=400)
CLOSED_KEPT: Final = timedelta(days=3)
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)
# Each warning with its breach. The two pairs do not know of each other.
_PAIRS: Final = (
    (SlaKind.WARNING, SlaKind.BREACH),
    (SlaKind.RELATIVE_WARNING, SlaKind.RELATIVE_BREACH),
)
# What says nothing new once the other was given: the breach tells what is awaited, too.
_OVERTAKEN: Final = {**dict(_PAIRS), SlaKind.READINESS: SlaKind.BREACH}


class SlaTimes(msgspec.Struct, frozen=True):
    """The instants of a run's SLA; `deadline` is what a person wrote, for the alerts."""

    deadline: str
    warning_at: datetime | None = None
    breach_at: datetime | None = None
    relative_warning_at: datetime | None = None
    relative_breach_at: datetime | None = None
    ready_by_at: datetime | None = None


class SlaVerdict(msgspec.Struct, frozen=True):
    """How the SLA of a completed run ended; the margin is negative when it was late."""

    outcome: SlaOutcome
    margin_seconds: int
    deadline: str
    breach_at: datetime


class Projection(msgspec.Struct, frozen=True):
    """How the SLA of a dry run would end."""

    status: Literal["met", "breach", "n/a"]
    estimated_completion: datetime
    deadline: str
    breach_at: datetime | None
    margin_seconds: int | None


def scheduled_start(schedule: Schedule, period: Period) -> datetime:
    """When the run of this period is expected to start, whatever opened it."""
    tz = zone(schedule.timezone)
    if schedule.cron is not None:
        tick = tick_of_period(schedule, period)
        if tick is not None:
            return tick.at
        # A rerun of a date the cron does not have: as soon as the period could be run.
        return period.start(tz) if schedule.period == "current" else period.end(tz)
    if schedule.include is not None and schedule.trigger is None and period.granularity is Granularity.DAY:
        return local_time_on(period.day, clock_time(schedule.time or "00:00"), tz)
    return period.start(tz)


def sla_times(
    sla: Sla,
    schedule: Schedule,
    period: Period,
    first_arrival: datetime | None,
    *,
    tick_at: datetime | None = None,
) -> SlaTimes:
    """The instants of this run's SLA. `tick_at` is the tick that opened it, where one did."""
    try:
        ready = _clock_instant(sla.ready_by, sla, schedule, period, tick_at)
        breach = _clock_instant(sla.deadline, sla, schedule, period, tick_at)
        warning = None if breach is None or sla.expected_duration is None else breach - sla.expected_duration
        relative_warning, relative_breach = _relative(sla, first_arrival)
    except OverflowError as error:
        raise InvalidValueError(f"the SLA of {period} lies beyond the calendar: ask for a nearer date") from error
    return SlaTimes(_deadline_text(sla), warning, breach, relative_warning, relative_breach, ready)


def state_of(
    sla: Sla,
    schedule: Schedule,
    key: RunKey,
    config_version: str,
    first_arrival: datetime | None = None,
    *,
    tick_at: datetime | None = None,
) -> SlaState:
    """The SLA of a run as a config defines it, before anything has come of it."""
    times = sla_times(sla, schedule, key.period, first_arrival, tick_at=tick_at)
    return SlaState(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        version=1,
        config_version=config_version,
        deadline=times.deadline,
        ready_by=sla.ready_by or "",
        ready_by_at=times.ready_by_at,
        warning_at=times.warning_at,
        breach_at=times.breach_at,
        relative_warning_at=times.relative_warning_at,
        relative_breach_at=times.relative_breach_at,
        first_arrival=first_arrival,
        critical=sla.critical,
    )


def carried_over(fresh: SlaState, before: SlaState | None) -> SlaState:
    """A state computed anew, with what came of it so far; the same record where nothing has changed."""
    if before is None:
        return fresh
    state = replace(
        fresh,
        version=before.version + 1,
        fired=before.fired,
        outcome=before.outcome,
        closed_at=before.closed_at,
        ready_at=before.ready_at,
        back_fill=before.back_fill,
    )
    unchanged = replace(state, version=before.version, config_version=before.config_version) == before
    return before if unchanged else state


def with_arrival(state: SlaState, sla: Sla, first_arrival: datetime) -> SlaState:
    """The state once the trigger sensor has come for the first time: that starts the clock of maxDuration."""
    warning, breach = _relative(sla, first_arrival)
    return replace(
        state,
        version=state.version + 1,
        first_arrival=first_arrival,
        relative_warning_at=warning,
        relative_breach_at=breach,
    )


def without_clock(state: SlaState) -> SlaState:
    """The state without the instants of its clock times, where no run of that period is expected."""
    return replace(state, ready_by_at=None, warning_at=None, breach_at=None)


def watched_from(state: SlaState, since: datetime) -> SlaState:
    """The state without the clock times before `since`: nobody was watching then."""
    if state.breach_at is not None and state.breach_at < since:
        return without_clock(state)

    def watched(at: datetime | None) -> datetime | None:
        return None if at is not None and at < since else at

    return replace(state, ready_by_at=watched(state.ready_by_at), warning_at=watched(state.warning_at))


def is_over(state: SlaState, now: datetime) -> bool:
    """Is everything that was to be promised in the past already?"""
    end = _earliest(state.breach_at, state.relative_breach_at) or state.ready_by_at
    return end is not None and end <= now


def due(state: SlaState, now: datetime) -> tuple[SlaKind, ...]:
    """The alerts to give now. Of a warning and a breach that are both past, the breach only."""
    reached = [kind for kind, at in next_instants(state).items() if at <= now]
    return tuple(kind for kind in reached if _OVERTAKEN.get(kind) not in reached)


def next_instants(state: SlaState) -> dict[SlaKind, datetime]:
    """The alerts that may still be given, with their instants: a warning means nothing once its breach was given."""
    if state.outcome is not None or state.back_fill:
        return {}
    pending: dict[SlaKind, datetime] = {}
    for kind in SlaKind:
        at = state.instant(kind)
        over = kind in state.fired or _OVERTAKEN.get(kind) in state.fired
        if at is not None and not over and not (kind is SlaKind.READINESS and state.ready_at is not None):
            pending[kind] = at
    return pending


def completion(state: SlaState, completed_at: datetime) -> SlaVerdict | None:
    """How the SLA ends with the first completion of its run; None when there is none, or it has ended already."""
    breach_at = _earliest(state.breach_at, state.relative_breach_at)
    if state.outcome is not None or breach_at is None:
        return None
    limits = [state.instant(warning) or state.instant(breach) for warning, breach in _PAIRS]
    in_time = all(limit is None or completed_at < limit for limit in limits)
    # An alert that was given is answered by RECOVERED, even if a clock that is behind puts the completion before it.
    # READINESS_LATE is not one of them: a run may be ready late and done in time.
    met = in_time and not state.fired.keys() - {SlaKind.READINESS}
    return SlaVerdict(
        outcome=SlaOutcome.MET if met else SlaOutcome.RECOVERED,
        margin_seconds=_margin(breach_at, completed_at),
        deadline=state.deadline,
        breach_at=breach_at,
    )


# How the record of an SLA ends. One that was closed goes after a few days: its run remembers that it is over. One that
# nobody closes (its run failed, or never was) has, once its alerts were given, only two uses left: a late completion
# is answered by RECOVERED, and no alert is given twice. It goes KEPT after its period, and KEPT after the last alert.
#
# Invariant: whoever finds no record may arm one without giving an alert twice. For a record goes no earlier than KEPT
# after its period; from then on (`is_past`) one is armed only for a run that cannot have been alerted before.


def forgotten_at(state: SlaState) -> int | None:
    """When its record may go, in epoch seconds; None as long as the clock may still tell something of it."""
    if state.outcome is not None:
        return None if state.closed_at is None else _seconds(state.closed_at, CLOSED_KEPT)
    if next_instants(state):
        return None
    return max(_seconds(at, KEPT) for at in (ended(state.key.period), *state.fired.values()))


def is_past(period: Period, now: datetime) -> bool:
    """Is a period so old that its record may be gone? Then none does not mean that its alerts were never given."""
    return _seconds(ended(period), KEPT) <= int(now.timestamp())


def ended(period: Period) -> datetime:
    """Its end on the clock of UTC: what matters here is that it is always the same, not which hour it is."""
    return period.ends.replace(tzinfo=UTC)


def _seconds(at: datetime, later: timedelta) -> int:
    # As numbers: the sum may lie beyond the calendar.
    return int(at.timestamp()) + int(later.total_seconds())


def alert_event_type(kind: SlaKind) -> EventType:
    """The event type of this alert."""
    match kind:
        case SlaKind.READINESS:
            return EventType.READINESS_LATE
        case SlaKind.WARNING:
            return EventType.SLA_WARNING
        case SlaKind.BREACH:
            return EventType.SLA_BREACH
        case SlaKind.RELATIVE_WARNING:
            return EventType.RELATIVE_SLA_WARNING
        case SlaKind.RELATIVE_BREACH:
            return EventType.RELATIVE_SLA_BREACH


def project(sla: Sla | None, times: SlaTimes | None, estimated_completion: datetime) -> Projection:
    """How the SLA would turn out if the job ended then; not applicable where nothing could be breached."""
    breach_at = None if sla is None or times is None else _earliest(times.breach_at, times.relative_breach_at)
    deadline = "" if times is None else times.deadline
    if breach_at is None:
        return Projection("n/a", estimated_completion, deadline, None, None)
    return Projection(
        status="met" if estimated_completion <= breach_at else "breach",
        estimated_completion=estimated_completion,
        deadline=deadline,
        breach_at=breach_at,
        margin_seconds=_margin(breach_at, estimated_completion),
    )


def _deadline_text(sla: Sla) -> str:
    if sla.deadline is not None:
        return sla.deadline
    return "" if sla.max_duration is None else f"maxDuration {format_duration(sla.max_duration)}"


def _clock_instant(
    clock: str | None, sla: Sla, schedule: Schedule, period: Period, tick_at: datetime | None
) -> datetime | None:
    """When `deadline` or `readyBy` is, for a run of this period."""
    if clock is None:
        return None
    ticked = tick_at if schedule.cron is not None else None
    start = ticked or scheduled_start(schedule, period)
    hour, minute = parse_clock(clock)
    if hour is None:
        return _past_hour(sla, schedule, period, minute, start)
    return _at_clock(sla, schedule, period, timedelta(hours=hour, minutes=minute), start)


def _past_hour(sla: Sla, schedule: Schedule, period: Period, minute: int, start: datetime) -> datetime:
    """`:MM`, in the hour after the run's hour (for a day: after it ended).

    The hour is one of the schedule's zone, so that is the zone of its minutes: `sla.timezone` has no part in it.
    """
    tz = zone(schedule.timezone)
    past = timedelta(minutes=minute)
    ended = period.ends if period.granularity is Granularity.DAY else period_of(period.at, Granularity.HOUR).ends
    at = to_utc(ended + past + (sla.day_offset or 0) * _DAY, tz)
    return at if at >= start else to_utc(_first_local(start, tz, past, Granularity.HOUR), tz)


def _at_clock(sla: Sla, schedule: Schedule, period: Period, clock: timedelta, start: datetime) -> datetime:
    """`HH:MM`, on the day that the kind of schedule and `dayOffset` say; never before the start."""
    tz = zone(sla.timezone or schedule.timezone)
    first = _first_local(start, tz, clock, Granularity.DAY)
    midnight = period_of(period.at, Granularity.DAY).at
    if schedule.cron is not None:
        local = first + (sla.day_offset or 0) * _DAY
    elif schedule.include is not None:
        local = midnight + clock + (sla.day_offset or 0) * _DAY
    else:
        # The data of a day is complete on the day after.
        local = midnight + clock + (1 if sla.day_offset is None else sla.day_offset) * _DAY
    at = to_utc(local, tz)
    return at if at >= start else to_utc(first, tz)


def _first_local(start: datetime, tz: tzinfo, into: timedelta, unit: Granularity) -> datetime:
    """The first local time at or after an instant that lies that far into its day or hour."""
    local = period_of(to_local(start, tz), unit).at + into
    while to_utc(local, tz) < start:
        local += unit.length
    return local


def _relative(sla: Sla, first_arrival: datetime | None) -> tuple[datetime | None, datetime | None]:
    if sla.max_duration is None or first_arrival is None:
        return None, None
    breach = first_arrival + sla.max_duration
    notice = sla.max_duration / 4 if sla.expected_duration is None else sla.expected_duration
    return max(first_arrival, breach - notice), breach


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((one for one in instants if one is not None), default=None)


def _margin(breach_at: datetime, completed_at: datetime) -> int:
    return (breach_at - completed_at) // _SECOND
