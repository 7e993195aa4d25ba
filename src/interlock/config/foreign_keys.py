"""The line to write: instead of a key that other systems and older versions use, or where one is missing.

Only hints: none of these keys is read. A key that is merely misspelled is the business of `suggestions`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from interlock.config.problems import Path
from interlock.decide.cron import MACROS
from interlock.decide.values import show

_Hint = Callable[[object], str]


def write_instead(path: Path, key: str, value: object) -> str | None:
    """`write schedule: {cron: "0 8 * * *"}`: what a person meant by a key that a mapping does not have."""
    place = tuple("*" if isinstance(step, int) else step for step in path)
    hint = _HINTS.get((*place, key))
    return f"write {hint(value)}" if hint is not None else None


def example_of(path: Path, key: str) -> str | None:
    """`rules: [{key: orders, check: exists}]`: how a required key of a mapping looks."""
    return _EXAMPLES.get((*("*" if isinstance(step, int) else step for step in path), key))


def _line(form: str) -> _Hint:
    """The value put into a line; a mapping or list is left to the reader."""

    def hint(value: object) -> str:
        return form.replace("%s", "..." if isinstance(value, Mapping | list) or value is None else show(value))

    return hint


def _cron(value: object) -> str:
    expression = MACROS.get(value, value) if isinstance(value, str) else "0 8 * * *"
    return f"schedule: {{cron: {show(expression)}}}"


def _trigger(value: object) -> str:
    """`trigger: {type: cron, expression: ...}` of the earlier generation; or a trigger one level too high."""
    if isinstance(value, Mapping) and ("expression" in value or value.get("type") == "cron"):
        return _cron(value.get("expression"))
    if isinstance(value, Mapping) and "key" in value:
        return "it below schedule: schedule: {trigger: {key: ..., check: ...}}"
    return "schedule: {cron: ...} for a time, schedule: {trigger: {key: ..., check: ...}} for a sensor"


def _after(value: object) -> str:
    names = value if isinstance(value, list) else [value]
    listed = ", ".join(f"{{pipeline: {name}}}" for name in names if isinstance(name, str))
    return f"after: [{listed or '{pipeline: ...}'}]"


_HINTS: Final[Mapping[tuple[str, ...], _Hint]] = {
    ("trigger",): _trigger,
    ("schedule",): _cron,
    ("schedule", "trigger", "expression"): _cron,
    ("schedule", "trigger", "type"): _line(
        "schedule: {cron: ...} for a time; a trigger has a sensor's key and a check"
    ),
    ("cron",): _cron,
    ("schedule_interval",): _cron,
    ("timezone",): _line("schedule: {timezone: %s}"),
    ("exclude",): _line("schedule: {exclude: %s}, or exclusions: %s"),
    ("id",): _line("pipeline: {id: %s}"),
    ("name",): _line("pipeline: {id: %s}"),
    ("pipeline",): _line("pipeline: {id: %s}"),
    ("owner",): _line("pipeline: {owner: %s}"),
    ("description",): _line("pipeline: {description: %s}"),
    ("rules",): _line("validation: {rules: %s}"),
    ("traits",): _line("validation: {rules: [{key: ..., check: ...}]}"),
    ("command",): _line("job: {type: command, config: {command: %s}}"),
    ("retries",): _line("job: {maxRetries: %s}"),
    ("deadline",): _line("sla: {deadline: %s}"),
    ("depends_on",): _after,
    ("dependsOn",): _after,
    ("upstream",): _after,
    ("upstreams",): _after,
    ("pipeline", "name"): _line("id: %s"),
    ("schedule", "expression"): _line("cron: %s"),
    ("schedule", "tz"): _line("timezone: %s"),
    ("schedule", "window"): _line("evaluation: {window: %s}"),
    ("schedule", "interval"): _line("evaluation: {interval: %s}"),
    ("schedule", "deadline"): _line("sla: {deadline: %s} for the run, trigger: {deadline: %s} for its start"),
    ("schedules", "*", "expression"): _line("cron: %s"),
    ("schedules", "*", "name"): _line("id: %s"),
    ("validation", "rules", "*", "sensor"): _line("key: %s"),
    ("validation", "rules", "*", "name"): _line("key: %s"),
    ("validation", "rules", "*", "op"): _line("check: %s"),
    ("validation", "rules", "*", "operator"): _line("check: %s"),
    ("validation", "rules", "*", "type"): _line("check: %s"),
    ("validation", "rules", "*", "threshold"): _line("value: %s"),
    ("validation", "rules", "*", "expected"): _line("value: %s"),
    ("job", "retries"): _line("maxRetries: %s"),
    ("job", "command"): _line("config: {command: %s}"),
    ("job", "url"): _line("config: {url: %s}"),
    ("job", "jobName"): _line("config: {jobName: %s}"),
    ("job", "timeout"): _line("config: {timeout: %s} to stop it, jobPollWindowSeconds to give it up"),
    ("job", "name"): _line("pipeline: {id: %s}; a job has no name of its own"),
}
_EXAMPLES: Final[Mapping[tuple[str, ...], str]] = {
    ("pipeline",): "pipeline: {id: gold-revenue}",
    ("pipeline", "id"): "id: gold-revenue",
    ("validation",): (
        "what must hold before the job starts, validation: {rules: [{key: orders, check: exists}]};"
        " it may be left out only where `after` is given"
    ),
    ("validation", "rules"): "rules: [{key: orders, check: exists}]",
    ("validation", "rules", "*", "key"): "key: orders, the sensor it reads",
    ("validation", "rules", "*", "check"): "check: exists, or one of equals, ne, in, gt, gte, lt, lte, age_lt, age_gt",
    ("job", "type"): "type: command, or one of http, external, airflow, glue, ...",
    ("after", "*", "pipeline"): "pipeline: silver-orders, the upstream's id",
}
