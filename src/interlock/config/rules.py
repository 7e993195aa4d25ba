"""Do the rules of a pipeline say something that can be evaluated?

A rule that can never pass, or that ignores what its author wrote, is the kind of mistake a safety controller is for.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, assert_never

from interlock.config.problems import Finding, Path
from interlock.config.suggestions import did_you_mean
from interlock.decide.cascade import UPSTREAM_FIELDS
from interlock.decide.values import number, show
from interlock.model.config import Check, Mode, PipelineConfig, Rule, Trigger
from interlock.model.durations import Duration, format_duration, parse_duration
from interlock.model.errors import InvalidValueError
from interlock.model.keys import UPSTREAM, check_sensor_key
from interlock.model.sensor import is_upstream

# A record of a run takes 390 KB. The largest, the baseline, has up to five entries for a sensor, of its key and at
# most 60 bytes each, besides what the sensors said.
_MAX_REMEMBERED: Final = 60_000
_PER_SENSOR: Final = 100
_PERIOD_FIELDS: Final = frozenset({"date", "hour"})


def check_rules(config: PipelineConfig) -> Iterator[Finding]:
    """The rules of validation and post-run."""
    yield from _check_amount(config)
    upstreams = {entry.pipeline for entry in config.after}
    for index, rule in enumerate(config.validation.rules):
        yield from _check_rule(rule, ("validation", "rules", index), upstreams)
    for index, rule in enumerate(config.post_run.rules if config.post_run else ()):
        yield from _check_rule(rule, ("postRun", "rules", index), upstreams)
    if config.validation.trigger is Mode.ALL:
        yield from _check_ages(config.validation.rules, ("validation", "rules"))
    yield from _check_ages(config.post_run.rules if config.post_run else (), ("postRun", "rules"))


def _check_amount(config: PipelineConfig) -> Iterator[Finding]:
    """A run remembers, in one item of the store, something of each sensor that it reads."""
    names = {rule.key for rule in config.validation.rules} | {UPSTREAM + entry.pipeline for entry in config.after}
    names |= {schedule.trigger.key for schedule in config.all_schedules if schedule.trigger is not None}
    watched = {rule.key for rule in config.post_run.rules} if config.post_run else set()
    drift = len(config.post_run.drift_field.encode()) * len(watched) if config.post_run else 0
    every = names | watched
    size = sum(len(name.encode()) + _PER_SENSOR for name in every) + drift
    if size > _MAX_REMEMBERED:
        message = (
            f"the rules read {len(every)} sensors, more than a run can remember"
            f" ({size} bytes of at most {_MAX_REMEMBERED}): split the pipeline, or shorten the keys"
        )
        yield Finding(("postRun", "rules") if len(watched) > len(names) else ("validation", "rules"), message)


def _check_ages(rules: Sequence[Rule], path: Path) -> Iterator[Finding]:
    """Of one time, `age_gt` must be the shorter: else no sensor meets both."""
    least: dict[tuple[str, str | None], Duration] = {}
    for rule in rules:
        if rule.check is Check.AGE_GT and (age := _age(rule)) is not None:
            where = (rule.key, rule.field)
            least[where] = max(age, least.get(where, age))
    for index, rule in enumerate(rules):
        longest, shortest = _age(rule), least.get((rule.key, rule.field))
        if rule.check is Check.AGE_LT and longest is not None and shortest is not None and longest <= shortest:
            message = (
                f"{show(rule.value)} can never be met: another rule wants it older than {format_duration(shortest)}"
            )
            yield Finding((*path, index, "value"), message, needs=(path,))


def _age(rule: Rule) -> Duration | None:
    try:
        return parse_duration(rule.value) if isinstance(rule.value, str) else None
    except InvalidValueError:
        return None


def check_trigger(trigger: Trigger, path: Path) -> Iterator[Finding]:
    """The condition of a sensor write: it reads a sensor, never a cascade marker."""
    yield from check_key(trigger.key, path)
    yield from _check_condition(trigger, path)


def check_key(key: str, path: Path) -> Iterator[Finding]:
    """May a person write a sensor of this key?"""
    try:
        check_sensor_key(key)
    except InvalidValueError as error:
        yield Finding((*path, "key"), str(error))


def _check_rule(rule: Rule, path: Path, upstreams: Collection[str]) -> Iterator[Finding]:
    if not is_upstream(rule.key):
        yield from check_key(rule.key, path)
    elif (name := rule.key.removeprefix(UPSTREAM)) not in upstreams:
        near = did_you_mean(name, upstreams)
        message = f"reads the pipeline {show(name)}, which is not listed in `after`{near}"
        yield Finding((*path, "key"), message, needs=(("after",),))
    else:
        yield from _check_upstream_field(rule, path)
    yield from _check_condition(rule, path)


def _check_upstream_field(rule: Rule, path: Path) -> Iterator[Finding]:
    """What `upstream:<pipeline>` holds is known: another field is never there."""
    if rule.field and rule.field not in UPSTREAM_FIELDS:
        message = f"{show(rule.field)} is not a field of {rule.key}: it has {', '.join(UPSTREAM_FIELDS)}"
        yield Finding((*path, "field"), message)


def _check_age_field(rule: Rule | Trigger, path: Path) -> Iterator[Finding]:
    """`date` and `hour` say which period a write is for: what they may hold is no time, or one of 1970.

    A write that holds a time there names no readable period and counts for no run. Only a rule with `period: any` reads
    it all the same.
    """
    of_any_period = isinstance(rule, Rule) and rule.period == "any"
    if rule.check is not Check.AGE_LT or rule.field not in _PERIOD_FIELDS or of_any_period:
        return
    message = (
        f"{show(rule.field)} can never be met: it says which period a write is for, and is no time;"
        " name a field that holds a time, such as updatedAt"
    )
    yield Finding((*path, "field"), message, needs=((*path, "check"),))


def _check_condition(rule: Rule | Trigger, path: Path) -> Iterator[Finding]:
    yield from _check_age_field(rule, path)
    if not rule.field and (rule.check is not Check.EXISTS or rule.field == ""):
        yield Finding((*path, "field"), f"is missing: {rule.check} compares a field of the sensor", needs=(path,))
    problem = _wrong_value(rule)
    if problem:
        needs = (path,) if rule.value is None else ((*path, "check"),)
        yield Finding((*path, "value"), problem, needs=needs)


def _wrong_value(rule: Rule | Trigger) -> str | None:
    value, check = rule.value, rule.check
    if check is Check.EXISTS:
        return None if value is None else "exists takes no value: remove it, or write `check: equals`"
    if value is None:
        return f"is missing: {check} needs a value to compare with"
    match check:
        case Check.EQUALS | Check.NE:
            return _wrong_single(value, check)
        case Check.IN:
            return None if isinstance(value, list) and value else "needs a list of values, such as [ready, done]"
        case Check.GT | Check.GTE | Check.LT | Check.LTE:
            return None if number(value) is not None else f"{show(value)} is not a number, which {check} needs"
        case Check.AGE_LT | Check.AGE_GT:
            return _wrong_age(value, check)
        case _:
            assert_never(check)


def _wrong_single(value: object, check: Check) -> str | None:
    if not isinstance(value, list):
        return None
    instead = ": write `check: in`" if check is Check.EQUALS else ""
    return f"{check} compares with one value, not with a list{instead}"


def _wrong_age(value: object, check: Check) -> str | None:
    if not isinstance(value, str):
        return f"{show(value)} is not a duration, which {check} needs: write 2h or 30m"
    try:
        length = parse_duration(value)
    except InvalidValueError as error:
        return str(error)
    if check is Check.AGE_LT and not length:
        return "0s can never be met: no observation is younger than nothing"
    return None
