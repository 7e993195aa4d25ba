"""Warnings of secrets that are written into files as they are: which key, and how to name the secret instead."""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from interlock.config.problems import Finding, Path, Problem, Severity, format_path
from interlock.decide.literal_secrets import find_literals

_INSTEAD: Final = "write ${INTERLOCK_SECRET_NAME} or ${file:NAME} instead (on AWS ${secretsmanager:ARN}, ${ssm:NAME})"
_IN_TOML: Final = "name an environment variable instead: url_env, headers_env, secret_env"


def find_literal_secrets(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Of a pipeline: what its job and its probes are given."""
    job = document.get("job")
    places: list[tuple[Path, Any]] = [(("job", "config"), job.get("config") if isinstance(job, Mapping) else None)]
    probes = document.get("probes")
    places += [(("probes", number), one) for number, one in enumerate(probes if isinstance(probes, list) else [])]
    for place, value in places:
        for path, what in find_literals(value, place):
            yield Finding(path, f"looks like {what}, for all who can read the file: {_INSTEAD}", Severity.WARNING)


def find_literals_of_settings(file: FilePath, text: str, settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Of `interlock.toml`. TOML tells no lines: the first one that has the key and the value is named."""
    for path, what in find_literals(settings):
        message = f"looks like {what}, for all who can read the file: {_IN_TOML}"
        yield Problem(str(file), line_of(text, settings, path), format_path(path), message, Severity.WARNING)


def line_of(text: str, settings: Mapping[str, Any], path: Path) -> int | None:
    """The first line of a TOML file that has the key and the value of a path."""
    value: Any = settings
    for step in path:
        value = value[step]
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    for number, line in enumerate(text.splitlines(), start=1):
        if name in line and str(value).partition("\n")[0] in line:
            return number
    return None
