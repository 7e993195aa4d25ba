"""A config for people's eyes: what may be a secret is hidden, and how it is hidden cannot be applied.

Of `job.config` only the values of a published list of keys are shown (`SHOWN_KEYS`, `docs/guide/security.md`): what a
command, a request or a cluster is given may be anything. Elsewhere text under a name like `password` is hidden, and
everywhere the passwords and query values of URLs. A value that is a template (`${...}`) is no secret, and is shown.
"""

import re
from typing import Any, Final

from interlock.decide.masking import HIDDEN, hide_in_addresses

# Of `job.config`, whatever the type of the job.
SHOWN_KEYS: Final = frozenset(
    {
        "actionOnFailure",
        "apiVersion",
        "applicationId",
        "auth.type",
        "callback",
        "clusterId",
        "cwd",
        "dagId",
        "endpointUrl",
        "executionRoleArn",
        "expect",
        "falseSuccessCheck",
        "functionName",
        "host",
        "idempotent",
        "jar",
        "jobId",
        "jobIdPath",
        "jobName",
        "method",
        "mode",
        "numberOfWorkers",
        "poll.done",
        "poll.failed",
        "poll.interval",
        "poll.path",
        "poll.url",
        "profile",
        "qualifier",
        "region",
        "roleArn",
        "stateMachineArn",
        "stepName",
        "timeout",
        "timeoutMinutes",
        "url",
        "workerType",
    }
)
_SECRET_WORDS: Final = (
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "authorization",
    "credential",
    "cookie",
    "dsn",
)
_CONFIG: Final = ("job", "config")
_PROGRAM: Final = ("command", "[0]")
_TEMPLATES: Final = re.compile(r"(\$\{[^}]*\})+")
_STEPS: Final = re.compile(r"\[\d+\]|[^.\[]+")

Path = tuple[str, ...]


def without_secrets(value: Any, path: str = "") -> Any:
    """A document, or what stands at a path of one, as people may see it."""
    return _shown(value, tuple(_STEPS.findall(path)))


def _shown(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _shown(inner, (*path, str(key))) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shown(inner, (*path, f"[{index}]")) for index, inner in enumerate(value)]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if path[:2] == _CONFIG:
        return _of_config(value, path[2:])
    if _is_secret_name(_name(path)) and "${" not in str(value):
        return HIDDEN
    return hide_in_addresses(value) if isinstance(value, str) else value


def _of_config(value: str | float, path: Path) -> str | float:
    named = tuple(step for step in path if not step.startswith("["))
    text = str(value)
    if ".".join(named) in SHOWN_KEYS or path == _PROGRAM:
        return hide_in_addresses(value) if isinstance(value, str) else value
    if path == _PROGRAM[:1] and len(text.split()) > 1:
        # A command in one text: the program, as of a list.
        return f"{hide_in_addresses(text.split(maxsplit=1)[0])} {HIDDEN}"
    return value if not text or _TEMPLATES.fullmatch(text) or path == _PROGRAM[:1] else HIDDEN


def _name(path: Path) -> str:
    """The name that a value stands under; those of a list, that of the list."""
    return next((step for step in reversed(path) if not step.startswith("[")), "")


def _is_secret_name(name: str) -> bool:
    return any(word in name.lower().replace("-", "_") for word in _SECRET_WORDS)
