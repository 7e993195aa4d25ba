"""Templates in a job's config: `${DATE}`, `${RUN_ID}`, `${INTERLOCK_...}`, and the names of secrets (SPEC 15).

A name that is not known is an error, never an empty string: a job started with half a path is an accident. `$${` is
a literal `${`. What is filled in is not looked at again, so that a value cannot smuggle in a template.

Filling in takes two steps. The first one leaves each text that names a secret as a `SecretText`, so that nothing which
decides, stores or logs ever holds the secret itself. The second one resolves them, where the target is called.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey

ENVIRONMENT_PREFIX: Final = "INTERLOCK_"
SECRET_PREFIX: Final = "INTERLOCK_SECRET_"
SECRET_SCHEMES: Final = ("file", "secretsmanager", "ssm")
# What the controller and its clients are set up with; a token of theirs is no business of a job's.
CONTROLLER_SETTINGS: Final = frozenset(
    {
        "INTERLOCK_TOKEN",
        "INTERLOCK_STORE",
        "INTERLOCK_URL",
        "INTERLOCK_CONFIG",
        "INTERLOCK_CA_FILE",
        "INTERLOCK_CLIENT_CERT",
        "INTERLOCK_CLIENT_KEY",
    }
)
NAMES: Final = ("DATE", "HOUR", "PERIOD", "PIPELINE", "SCHEDULE", "RUN_ID", "ATTEMPT")
# Known only to the target, which fills them in itself.
JOB_ID: Final = "${JOB_ID}"
CALLBACK_URL: Final = "${CALLBACK_URL}"
_LEFT_TO_THE_TARGET: Final = (JOB_ID, CALLBACK_URL)
_TEMPLATE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")


class Secret(msgspec.Struct, frozen=True):
    """A secret by its name: `INTERLOCK_SECRET_X`, `file:x`, `ssm:/x`."""

    name: str


class SecretText(msgspec.Struct, frozen=True):
    """A text with secrets in it, which are not known here."""

    parts: tuple[str | Secret, ...]


def fill(
    config: Mapping[str, Any],
    key: RunKey,
    *,
    run_id: str,
    attempt: int,
    environment: Mapping[str, str],
    where: str = "job.config",
) -> dict[str, Any]:
    """A new config with all templates filled in for an attempt, except secrets; `where` is its path, for errors."""
    variables = run_variables(key, run_id=run_id, attempt=attempt, environment=environment)
    return fill_in(config, variables, where)


def fill_in(config: Mapping[str, Any], variables: Mapping[str, str], where: str) -> dict[str, Any]:
    """A new config with these variables filled in, except secrets; `where` is its path, for errors."""
    return _fill_object(config, variables, where)


def run_variables(key: RunKey, *, run_id: str, attempt: int, environment: Mapping[str, str]) -> dict[str, str]:
    """What may be filled in for an attempt of a run; of the environment, what is for jobs alone.

    `DATE` is always a day and `HOUR` two digits, empty for a daily run; `PERIOD` is the run's whole date.
    """
    period = key.period
    hour = "" if period.hour is None else f"{period.hour:02d}"
    own = (str(period.day), hour, str(period), key.pipeline, key.schedule, run_id, str(attempt))
    return {**for_jobs(environment), **dict(zip(NAMES, own, strict=True))}


def for_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that templates may use and that are no secret."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in CONTROLLER_SETTINGS and not is_secret(name)
    }


def is_secret(name: str) -> bool:
    """Is it the name of a secret, well-formed or not?"""
    return name.startswith(SECRET_PREFIX) or name.partition(":")[0] in SECRET_SCHEMES


def secret_names(config: object) -> Iterator[str]:
    """The secrets that the texts of a config name, as they are written."""
    yield from (name for name in template_names(config) if is_secret(name))


def template_names(config: object) -> Iterator[str]:
    """The names in all templates of a config, as they are written."""
    if isinstance(config, str):
        yield from (match[1] for match in _TEMPLATE.finditer(config) if match[1] is not None)
    elif isinstance(config, Mapping):
        for name, value in config.items():
            yield from template_names(name)
            yield from template_names(value)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from template_names(value)


def resolve(config: Mapping[str, Any], secret: Callable[[str], str]) -> dict[str, Any]:
    """A filled-in config with its secrets: the second step. `secret` knows the value of each name."""
    return {name: _resolved(value, secret) for name, value in config.items()}


def _resolved(value: Any, secret: Callable[[str], str]) -> Any:
    if isinstance(value, SecretText):
        return "".join(part if isinstance(part, str) else secret(part.name) for part in value.parts)
    if isinstance(value, Mapping):
        return resolve(value, secret)
    if isinstance(value, list):
        return [_resolved(one, secret) for one in value]
    return value


# ----------------------------------------------------------------------------------------------------- the first step


def _fill_object(config: Mapping[str, Any], variables: Mapping[str, str], where: str) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for name, value in config.items():
        path = f"{where}.{name}"
        target = _fill_text(name, variables, path)
        if isinstance(target, SecretText):
            raise InvalidValueError(f"{path}: a key cannot hold a secret: put it into the value")
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


def _fill_text(text: str, variables: Mapping[str, str], path: str) -> str | SecretText:
    if "${" not in text:
        return text
    parts = list(_parts(text, variables, path))
    if any(isinstance(part, Secret) for part in parts):
        return SecretText(tuple(parts))
    return "".join(str(part) for part in parts)


def _parts(text: str, variables: Mapping[str, str], path: str) -> Iterator[str | Secret]:
    end = 0
    for match in _TEMPLATE.finditer(text):
        yield text[end : match.start()]
        yield _part(match, variables, path)
        end = match.end()
    yield text[end:]


def _part(match: re.Match[str], variables: Mapping[str, str], path: str) -> str | Secret:
    written, name = match[0], match[1]
    if written == "$${":
        return "${"
    if name is None:
        raise InvalidValueError(f"{path}: a template is not closed: write ${{NAME}}, or $${{ for a plain ${{")
    if written in _LEFT_TO_THE_TARGET:
        return written
    problem = _wrong_secret(name) if is_secret(name) else None if name in variables else _unknown(name, variables)
    if problem:
        raise InvalidValueError(f"{path}: {written}{problem}")
    return Secret(name) if is_secret(name) else variables[name]


def _wrong_secret(name: str) -> str | None:
    scheme, _, rest = name.partition(":")
    if scheme in SECRET_SCHEMES and not rest:
        return f": name the secret, such as ${{{scheme}:NAME}}"
    if scheme == "file" and (rest.startswith("/") or ".." in rest.split("/") or "\0" in rest):
        return ": is not a file below the folder of secrets: write its path relative to that folder"
    return None


def _unknown(name: str, variables: Mapping[str, str]) -> str:
    if name in CONTROLLER_SETTINGS:
        return " is a setting of the controller itself, which no job is given: use a variable of another name"
    if name.startswith(ENVIRONMENT_PREFIX):
        return ": no such environment variable is set where the controller runs"
    schemes = ", ".join(f"${{{scheme}:...}}" for scheme in SECRET_SCHEMES)
    known = [one for one in variables if not one.startswith(ENVIRONMENT_PREFIX)]
    return (
        f" is not known: there are {', '.join(known)}, {ENVIRONMENT_PREFIX}* environment variables,"
        f" and the secrets {schemes}; write $${{{name}}} to keep it as it is"
    )
