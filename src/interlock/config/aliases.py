"""The other ways in which the documents write things, brought into the one form that the model has.

Works on a copy, and remembers where what it moved was written, so that errors show the path a person knows:

- `validation.mode` is `validation.trigger`; `ALL`, `ANY`, checks and weekdays in any case; weekdays abbreviated;
- `schedule.calendar: name` is `schedule.exclude.calendar`;
- a top-level `exclusions` is the `exclude` of the schedule, or of every schedule;
- `after` without `validation` has the rules that each entry has run.

A document that has the one form already comes out as it went in, so that normalising twice changes nothing. Values of a
wrong type are left alone: the decoder says what is wrong with them.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from interlock.config.problems import Finding, Path
from interlock.model.config import Check, Mode, Weekday
from interlock.model.keys import UPSTREAM

_CHECKS: Final = {check.value: check.value for check in Check}
_MODES: Final = {mode.value.lower(): mode.value for mode in Mode}
# mon, mond, ... monday: every beginning of at least three letters, which names one day only.
_WEEKDAYS: Final = {day.value[:length]: day.value for day in Weekday for length in range(3, len(day.value) + 1)}

_Mapping = dict[str, object]


class Normalised(msgspec.Struct, frozen=True):
    """A document in the model's form. `origins`: what stands at the first path was written at the second."""

    document: dict[str, object]
    origins: dict[Path, Path]
    findings: tuple[Finding, ...]

    def written(self, path: Path) -> Path:
        """The path at which a person wrote what stands at this one."""
        return written(path, self.origins)


def written(path: Path, origins: Mapping[Path, Path]) -> Path:
    """The path, with its longest moved beginning put back to where it came from."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]] + path[length:]
    return path


def normalise(document: Mapping[str, object], *, several: bool = False) -> Normalised:
    """The document in the model's form; `several` when its schedules are a list in the file it is merged with.

    Its exclusions are then left for `spread_exclusions`, once the merged document shows the schedules.
    """
    work = _Work(dict(document))
    work.inside("validation", _validation)
    work.inside("postRun", _post_run)
    if isinstance(work.document.get("schedules"), list):
        _place_in_each(work)
    elif not several:
        _place_in_one(work)
    work.inside("exclusions", _exclude)
    work.inside("schedule", _schedule)
    _each(work, "schedules", _schedule)
    return work.result()


def spread_exclusions(document: Mapping[str, object]) -> Normalised:
    """What one file excludes, in every schedule that the other lists. A schedule's own word wins."""
    work = _Work(dict(document))
    exclusions = work.document.pop("exclusions", None)
    if not isinstance(exclusions, dict):
        return Normalised(dict(document), {}, ())
    _each(work, "schedules", lambda work, entry, path: _spread(work, entry, path, exclusions))
    return work.result()


def with_default_rules(document: Mapping[str, object]) -> dict[str, object]:
    """A pipeline that says what it runs after, and nothing more: its rules are that those have run (SPEC 2).

    For a whole document: an archetype may have the rules.
    """
    after = document.get("after")
    if document.get("validation") is not None or not isinstance(after, list) or not after:
        return dict(document)
    names = [entry.get("pipeline") for entry in after if isinstance(entry, dict)]
    rules = [{"key": f"{UPSTREAM}{name}", "check": "exists"} for name in names if isinstance(name, str)]
    return {**document, "validation": {"rules": rules}} if rules else dict(document)


def normalise_calendar(document: Mapping[str, object]) -> dict[str, object]:
    """A calendar's weekdays in the model's form."""
    return _exclude(_Work({}), dict(document), ())


class _Work:
    """A document being rewritten."""

    def __init__(self, document: _Mapping) -> None:
        self.document = document
        self.origins: dict[Path, Path] = {}
        self.findings: list[Finding] = []

    def inside(self, key: str, rewrite: "_Rewrite") -> None:
        """Rewrite the mapping under a top-level key, if there is one."""
        value = self.document.get(key)
        if isinstance(value, dict):
            self.document[key] = rewrite(self, dict(value), (key,))

    def both(self, path: Path, alias: str, name: str) -> None:
        """Somebody wrote the same thing in both its forms."""
        self.findings.append(Finding(path, f"is another way to write {name}: give {alias} or {name}, not both"))

    def result(self) -> Normalised:
        return Normalised(self.document, self.origins, tuple(self.findings))


_Rewrite = Callable[[_Work, _Mapping, Path], object]


def _each(work: _Work, name: str, rewrite: _Rewrite) -> None:
    entries = work.document.get(name)
    if isinstance(entries, list):
        work.document[name] = [
            rewrite(work, dict(entry), (name, index)) if isinstance(entry, dict) else entry
            for index, entry in enumerate(entries)
        ]


def _validation(work: _Work, validation: _Mapping, path: Path) -> _Mapping:
    if "mode" in validation:
        mode = validation.pop("mode")
        if "trigger" in validation:
            work.both((*path, "mode"), "mode", "trigger")
        else:
            validation["trigger"] = mode
            work.origins[(*path, "trigger")] = (*path, "mode")
    _fold(validation, "trigger", _MODES)
    return _rules(validation)


def _post_run(_work: _Work, post_run: _Mapping, _path: Path) -> _Mapping:
    return _rules(post_run)


def _rules(holder: _Mapping) -> _Mapping:
    rules = holder.get("rules")
    if isinstance(rules, list):
        holder["rules"] = [_rule(rule) for rule in rules]
    return holder


def _rule(rule: object) -> object:
    check = rule.get("check") if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not isinstance(check, str) or check in _CHECKS:
        return rule
    return {**rule, "check": _CHECKS.get(check.lower(), check)}


def _schedule(work: _Work, schedule: _Mapping, path: Path) -> _Mapping:
    if "trigger" in schedule:
        schedule["trigger"] = _rule(schedule["trigger"])
    exclude = schedule.get("exclude")
    if isinstance(exclude, dict):
        schedule["exclude"] = _exclude(work, dict(exclude), path)
    if "calendar" in schedule:
        _move_calendar(work, schedule, path)
    return schedule


def _move_calendar(work: _Work, schedule: _Mapping, path: Path) -> None:
    calendar = schedule.pop("calendar")
    exclude = schedule.get("exclude")
    if exclude is None:
        exclude = {}
    if not isinstance(exclude, dict):
        return  # the decoder reports `exclude`, and then nothing can be said of what belongs into it
    if "calendar" in exclude:
        work.both((*path, "calendar"), "calendar", "exclude.calendar")
        return
    schedule["exclude"] = {**exclude, "calendar": calendar}
    work.origins[(*path, "exclude", "calendar")] = (*path, "calendar")


def _exclude(_work: _Work, exclude: _Mapping, _path: Path) -> _Mapping:
    days = exclude.get("days")
    if isinstance(days, list):
        exclude["days"] = [_WEEKDAYS.get(day.lower(), day) if isinstance(day, str) else day for day in days]
    return exclude


def _place_in_one(work: _Work) -> None:
    if "exclusions" in work.document:
        exclusions = work.document.pop("exclusions")
        schedule = work.document.get("schedule")
        work.document["schedule"] = _placed(work, {} if schedule is None else schedule, ("schedule",), exclusions)


def _place_in_each(work: _Work) -> None:
    if "exclusions" in work.document:
        exclusions = work.document.pop("exclusions")
        _each(work, "schedules", lambda work, entry, path: _placed(work, entry, path, exclusions))


def _placed(work: _Work, schedule: object, path: Path, exclusions: object) -> object:
    if not isinstance(schedule, dict):
        return schedule
    if schedule.get("exclude") is not None:
        work.both(("exclusions",), "exclusions", f"{path[0]}.exclude")
        return schedule
    work.origins[(*path, "exclude")] = ("exclusions",)
    return {**schedule, "exclude": exclusions}


def _spread(work: _Work, entry: _Mapping, path: Path, exclusions: _Mapping) -> _Mapping:
    exclude = entry.get("exclude")
    own = exclude if isinstance(exclude, dict) else {}
    if exclude is not None and exclude is not own:
        return entry
    for key in exclusions.keys() - own.keys():
        work.origins[(*path, "exclude", key)] = ("exclusions", key)
    return {**entry, "exclude": {**exclusions, **own}}


def _fold(holder: _Mapping, key: str, forms: Mapping[str, str]) -> None:
    text = holder.get(key)
    if isinstance(text, str):
        holder[key] = forms.get(text.lower(), text)
