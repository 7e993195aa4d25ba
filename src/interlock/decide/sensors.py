"""Which observation is about what: the period of a write, and the sensor that counts for a run (SPEC 3).

Yesterday's "ready" must not start today. So an observation counts for a run of period D only if it is about D: its own
period overlaps D or, having none of its own, it was received since D began (for a schedule with `period: previous`:
since D ended). A malformed period is never repaired here: a safety controller does not guess the day.

`select` is the only place where this choice is made. Rules, circuit breaker, baseline, drift, late data, missing
post-run data and `why` all read through it; a reader that looked up a key by itself would sooner or later judge a run
by a sensor that its rules never saw.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, Final

import msgspec

from interlock.decide.checks import RuleResult, check_observation_of, unmet
from interlock.decide.expected import declared_granularity
from interlock.decide.values import plain_number, real_number, show
from interlock.model.config import Rule, Schedule, Trigger
from interlock.model.errors import InvalidValueError
from interlock.model.keys import split_sensor_key
from interlock.model.periods import Granularity, Period, hour_period, parse_period, period_of
from interlock.model.sensor import Sensor, is_upstream
from interlock.model.times import format_instant, parse_instant, to_local, zone

_DAY: Final = Granularity.DAY
_HOUR_TEXT: Final = re.compile(r"[0-9]{1,2}")


class WritePeriod(msgspec.Struct, frozen=True):
    """The period a write names for itself, if any; `problem` says why one that it tried to name cannot be read."""

    period: Period | None
    problem: str = ""


class Selected(msgspec.Struct, frozen=True):
    """The sensor that counts for a run, or why none does."""

    sensor: Sensor | None
    reason: str


class Reading(msgspec.Struct, frozen=True):
    """What a run reads: a key, and whether its sensor counts whatever period it is about (`period: any`)."""

    key: str
    any_period: bool = False


class RunScope(msgspec.Struct, frozen=True):
    """What a run's period means for reading sensors, worked out once for all of its rules.

    `since`: from when on an observation without a period of its own is about the run. `previous`: that is the period's
    end, not its beginning. `until`: where a run is to be opened again, before when such an observation was received.
    """

    period: Period
    tz: tzinfo
    since: datetime
    suffixes: tuple[str, str]
    previous: bool = False
    until: datetime | None = None


_NO_PERIOD: Final = WritePeriod(None)


def period_of_write(key: str, data: Mapping[str, Any]) -> WritePeriod:
    """The period of a write: its `date` and `hour` fields, else the `#period` suffix of its key, else none.

    Fields that agree with the suffix are fine: the more exact of the two is meant. An `hour` alone needs a suffix.
    """
    day, hour = data.get("date"), data.get("hour")
    suffix = split_sensor_key(key)[1] if "#" in key else None
    if day is None and hour is None:
        return WritePeriod(suffix) if suffix is not None else _NO_PERIOD
    named = _period_of_fields(key, day, hour, suffix)
    if named.period is not None and suffix is not None and named.period.contains(suffix):
        return WritePeriod(suffix)
    return named


def _period_of_fields(key: str, day: object, hour: object, suffix: Period | None) -> WritePeriod:
    if day is None and suffix is None:
        return WritePeriod(None, f"hour is {show(hour)} but there is no date: write both")
    period = _date_field(day) if day is not None else suffix
    # The controller's own `upstream:` sensors carry the upstream's period, whatever its length.
    if period is None or (day is not None and period.granularity is not _DAY and not is_upstream(key)):
        return WritePeriod(None, f"date is {show(day)}, which is not a day: write 2026-03-03 or 20260303")
    if hour is None:
        return WritePeriod(period)
    number = _hour_field(hour)
    if number is None:
        return WritePeriod(None, f"hour is {show(hour)}, which is not an hour: write 0 to 23")
    named = hour_period(period.day, number)
    if day is None and not named.overlaps(period):
        return WritePeriod(None, f"hour is {show(hour)}, but the key says {period}: write one of them")
    return WritePeriod(named)


def _date_field(day: object) -> Period | None:
    text = _compact_date(day) if not isinstance(day, str) else day
    try:
        return parse_period(text) if text is not None else None
    except InvalidValueError:
        return None


def _compact_date(day: object) -> str | None:
    """20260302 as a number, as `date=20260302` on the command line makes it."""
    number = real_number(day)
    return None if number is None else str(plain_number(number))


def _hour_field(hour: object) -> int | None:
    text = isinstance(hour, str) and _HOUR_TEXT.fullmatch(hour)
    number = int(text[0]) if text else real_number(hour)
    if number is None or not 0 <= number <= 23 or number % 1:
        return None
    return int(number)


def run_period(schedule: Schedule, sensor: Sensor) -> Period | str:
    """The period a trigger write is for, or why it has none.

    A cron or `granularity` fixes how long periods are; where nothing does, the write says it. A write without a period
    of its own is for the day, or for the hour, it was received in.
    """
    written = period_of_write(sensor.key, sensor.data)
    if written.problem:
        return written.problem
    own = written.period
    wanted = declared_granularity(schedule) or (own.granularity if own else _DAY)
    received = period_of(to_local(sensor.received_at, zone(schedule.timezone)), wanted)
    if own is None:
        return received
    if own.granularity is wanted:
        return own
    if own.granularity.length > wanted.length:
        return _hour_within(schedule, own, received)
    if schedule.granularity == "day":
        return f"{own} is one {own.granularity}, but schedule.granularity is day: write the day without an hour"
    return period_of(own.at, wanted)


def _hour_within(schedule: Schedule, own: Period, received: Period) -> Period | str:
    """A write that names a day where the runs are hours: it is for the hour it came in, if that is of its day."""
    if schedule.granularity == "hour":
        if own.contains(received):
            return received
        return f"{own} is one day, not that of {received} when it was received, and names no hour: write its hour, too"
    return f"{own} is one {own.granularity}, but each run of this schedule is for one {received.granularity}"


def key_matches(name: str, sensor_key: str) -> bool:
    """Is it the sensor of that name, or one of its per-period sensors? (`orders` is not `orders-count`.)"""
    return name in (sensor_key, split_sensor_key(sensor_key)[0])


def candidate_keys(keys: Iterable[str], period: Period) -> list[str]:
    """The stored keys that rules of these keys may read for a run of that period: what a caller must fetch."""
    dashed, compact = _suffixes(period)
    return list(dict.fromkeys(one for key in keys for one in (key + dashed, key + compact, key)))


@lru_cache(maxsize=4096)
def _suffixes(period: Period) -> tuple[str, str]:
    return f"#{period}", f"#{period.compact}"


@lru_cache(maxsize=4096)
def run_scope(period: Period, tz: tzinfo, *, previous: bool = False) -> RunScope:
    """The scope of a run of that period in that zone; `previous`: its schedule opens it once the period has ended."""
    since = period.end(tz) if previous else period.start(tz)
    return RunScope(period, tz, since, _suffixes(period), previous)


def scope_of(schedule: Schedule, period: Period) -> RunScope:
    """The scope of a run of that schedule and period."""
    previous = schedule.cron is not None and schedule.period == "previous"
    return run_scope(period, zone(schedule.timezone), previous=previous)


def reading_of(rule: Rule) -> Reading:
    """What a rule reads."""
    return Reading(rule.key, any_period=rule.period == "any")


def merged(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """Each key once. Where one rule takes any period and another does not, the sensor of the first is also the
    second's, if that has one: so the wider reading stands for both.
    """
    found: dict[str, bool] = {}
    for one in readings:
        found[one.key] = found.get(one.key, False) or one.any_period
    return tuple(Reading(key, any_period) for key, any_period in found.items())


def select(reading: Reading, sensors: Mapping[str, Sensor], scope: RunScope, now: datetime) -> Selected:
    """The sensor that counts for a run, of those stored under the keys of `candidate_keys`."""
    sensor = _own_sensor(scope, reading.key, sensors, now) or sensors.get(reading.key)
    if sensor is None:
        return Selected(None, _reason_absent(scope, reading.key, sensors))
    if sensor.expired(now):
        return Selected(None, _reason_expired(sensor))
    problem = "" if reading.any_period else _why_not_about(scope, sensor)
    return Selected(None, problem) if problem else Selected(sensor, "")


def choose(
    readings: Iterable[Reading], sensors: Mapping[str, Sensor], scope: RunScope, now: datetime
) -> dict[str, Sensor]:
    """The sensors that count for a run, by the key that is read; a key for which none counts is not in it."""
    chosen = {one.key: select(one, sensors, scope, now).sensor for one in merged(readings)}
    return {key: sensor for key, sensor in chosen.items() if sensor is not None}


class Concerned(msgspec.Struct, frozen=True):
    """Which runs a write may be about, for one that reads it: the latest, or those that overlap a period.

    `exactly`: only the run of that very period, since no other reads a key with that suffix.
    """

    period: Period | None = None
    exactly: bool = False

    @property
    def latest(self) -> bool:
        """The pipeline's latest run, and no other."""
        return self.period is None


def concerned(reading: Reading, sensor: Sensor) -> Concerned | None:
    """Which runs a write to a sensor that `reading` reads may be about; None when nobody can tell."""
    if sensor.key != reading.key:
        return Concerned(split_sensor_key(sensor.key)[1], exactly=True)
    if reading.any_period:
        return Concerned()
    own = period_of_write(sensor.key, sensor.data)
    return None if own.problem else Concerned(own.period)


def _own_sensor(scope: RunScope, key: str, sensors: Mapping[str, Sensor], now: datetime) -> Sensor | None:
    """`key#D`, in the form written last where both forms exist; an expired one is absent."""
    dashed_suffix, compact_suffix = scope.suffixes
    dashed, compact = sensors.get(key + dashed_suffix), sensors.get(key + compact_suffix)
    if dashed is not None and dashed.expired(now):
        dashed = None
    if compact is None or compact.expired(now):
        return dashed
    if dashed is None or compact.received_at > dashed.received_at:
        return compact
    return dashed


def _why_not_about(scope: RunScope, sensor: Sensor) -> str:
    """Empty when the sensor is about the run's period."""
    own = period_of_write(sensor.key, sensor.data)
    if own.problem:
        return f"{sensor.key} names no readable period: {own.problem}"
    if own.period is not None:
        if own.period.overlaps(scope.period):
            return ""
        return f"{sensor.key} is about {own.period}, not {scope.period}"
    if scope.until is not None and sensor.received_at >= scope.until:
        received, until = format_instant(sensor.received_at), format_instant(scope.until)
        return f"{sensor.key} was received {received}: without a period it re-opens {scope.period} only until {until}"
    if sensor.received_at >= scope.since:
        return ""
    where = "" if str(scope.tz) == "UTC" else f" in {scope.tz}"
    received = format_instant(sensor.received_at)
    return (
        f"{sensor.key} was received {received}, before {scope.period} {'ended' if scope.previous else 'began'}{where}"
    )


def _reason_absent(scope: RunScope, key: str, sensors: Mapping[str, Sensor]) -> str:
    # Only an expired `key#D` can be there, or it would have been taken.
    for suffix in scope.suffixes:
        expired = sensors.get(key + suffix)
        if expired is not None:
            return _reason_expired(expired)
    return f"no sensor {key}"


def _reason_expired(sensor: Sensor) -> str:
    at = parse_instant(sensor.ttl)
    return f"{sensor.key} expired" + (f" at {format_instant(at)}" if at else f" (ttl {sensor.ttl})")


def trigger_match(trigger: Trigger, sensor: Sensor, now: datetime) -> RuleResult:
    """Does this write meet the trigger's condition? Its period does not matter here: it opens the run of its own."""
    rule = trigger.as_rule()
    if not key_matches(trigger.key, sensor.key):
        return unmet(rule, f"{sensor.key} is not the trigger's sensor {trigger.key}")
    if sensor.expired(now):
        return unmet(rule, _reason_expired(sensor))
    return check_observation_of(rule, sensor, now)
