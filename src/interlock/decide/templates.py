"""Templates in a job's config: `${DATE}`, `${RUN_ID}`, `${INTERLOCK_...}` (SPEC 15).

A name that is not known is an error, never an empty string: a job started with half a path is an accident. `$${` is
a literal `${`. What is filled in is not looked at again, so that a value cannot smuggle in a template.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey

ENVIRONMENT_PREFIX: Final = "INTERLOCK_"
NAMES: Final = ("DATE", "HOUR", "PERIOD", "PIPELINE", "SCHEDULE", "RUN_ID", "ATTEMPT")
_TEMPLATE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")


def fill(
    config: Mapping[str, Any],
    key: RunKey,
    *,
    run_id: str,
    attempt: int,
    environment: Mapping[str, str],
    where: str = "job.config",
) -> dict[str, Any]:
    """A new config with the templates of all its strings filled in for an attempt; `where` is its path, for errors."""
    variables = run_variables(key, run_id=run_id, attempt=attempt, environment=environment)
    return _fill_object(config, variables, where)


def run_variables(key: RunKey, *, run_id: str, attempt: int, environment: Mapping[str, str]) -> dict[str, str]:
    """What may be filled in for an attempt of a run; of the environment, `INTERLOCK_*` alone.

    `DATE` is always a day and `HOUR` two digits, empty for a daily run; `PERIOD` is the run's whole date.
    """
    period = key.period
    hour = "" if period.hour is None else f"{period.hour:02d}"
    own = (str(period.day), hour, str(period), key.pipeline, key.schedule, run_id, str(attempt))
    allowed = {name: value for name, value in environment.items() if name.startswith(ENVIRONMENT_PREFIX)}
    return {**allowed, **dict(zip(NAMES, own, strict=True))}


def _fill_object(config: Mapping[str, Any], variables: Mapping[str, str], where: str) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for name, value in config.items():
        path = f"{where}.{name}"
        target = _fill_text(name, variables, path)
        if target in filled:
            raise InvalidValueError(f"{path}: two keys become {target!r} when filled in: rename one")
        filled[target] = _fill_value(value, variables, path)
    return filled


def _fill_value(value: Any, variables: Mapping[str, str], path: str) -> Any:
    if isinstance(value, str):
        return _fill_text(value, variables, path)
    if isinstance(value, Mapping):
        return _fill_object(value, variables, path)
    if isinstance(value, list | tuple):
        return [_fill_value(one, variables, f"{path}[{index}]") for index, one in enumerate(value)]
    return value


def _fill_text(text: str, variables: Mapping[str, str], path: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            raise InvalidValueError(f"{path}: a template is not closed: write ${{NAME}}, or $${{ for a plain ${{")
        value = variables.get(match[1])
        if value is None:
            raise InvalidValueError(f"{path}: {_unknown(match[1])}")
        return value

    return _TEMPLATE.sub(replacement, text)


def _unknown(name: str) -> str:
    template = f"${{{name}}}"
    if name.startswith(ENVIRONMENT_PREFIX):
        return f"{template}: no such environment variable is set where the controller runs"
    known = ", ".join(NAMES)
    return (
        f"{template} is not known: there are {known} and {ENVIRONMENT_PREFIX}* environment variables;"
        f" write ${template} to keep it as it is"
    )
