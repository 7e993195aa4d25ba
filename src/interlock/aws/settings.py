"""Settings of the functions, from environment variables: read once, at cold start, and checked all at once.

A variable that is missing or wrong fails the invocation with its name. `REQUIRED` is what each function cannot do
without; the rest have defaults. Values that may be secret (`SLACK_BOT_TOKEN`) are not read here, nor repeated.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from interlock.aws.logs import LEVELS
from interlock.aws.names import Function
from interlock.model.errors import InvalidValueError
from interlock.model.keys import Table


class SettingsError(InvalidValueError):
    """Environment variables of a function that are missing or wrong, each by its name."""


_ENVIRONMENT: Final = "INTERLOCK_ENVIRONMENT"
_TABLES: Final = {table: f"{table.name}_TABLE" for table in Table}
_TIMERS: Final = (
    "TIMER_QUEUE_URL",
    "TIMER_QUEUE_ARN",
    "SLA_TIMER_QUEUE_URL",
    "SLA_TIMER_QUEUE_ARN",
    "SCHEDULER_GROUP",
    "SCHEDULER_ROLE_ARN",
    "SCHEDULER_DLQ_ARN",
)
_ALL_TABLES: Final = (_ENVIRONMENT, *_TABLES.values())
_EVENTS_ALONE: Final = (_ENVIRONMENT, "EVENTS_TABLE", "ALERT_QUEUE_URL")

REQUIRED: Final[Mapping[Function, tuple[str, ...]]] = {
    Function.STREAM_ROUTER: (*_ALL_TABLES, "STATE_MACHINE_ARN", *_TIMERS, "CONTROL_DLQ_URL", "JOBLOG_DLQ_URL"),
    Function.ORCHESTRATOR: (*_ALL_TABLES, "STATE_MACHINE_ARN"),
    Function.SLA_MONITOR: (*_ALL_TABLES, *_TIMERS),
    Function.WATCHDOG: (*_ALL_TABLES, "STATE_MACHINE_ARN", *_TIMERS),
    Function.EVENT_SINK: (*_EVENTS_ALONE, "EVENT_BUS_NAME", "EVENTS_DLQ_URL"),
    Function.ALERT_DISPATCHER: _EVENTS_ALONE,
}
"""What each function is given besides the optional ones; Terraform sets the same."""

OPTIONAL: Final = (
    "SFN_TIMEOUT_SECONDS",
    "TRIGGER_MAX_ATTEMPTS",
    "EVENTS_TTL_DAYS",
    "POOLS",
    "ALERTS",
    "ALERT_DLQ_URL",
    "ALLOW_PRIVATE_ADDRESSES",
    "LOG_LEVEL",
)


class AwsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one function, or a command, is started with. What it does not need is empty."""

    environment: str
    tables: Mapping[Table, str]
    state_machine_arn: str = ""
    event_bus_name: str = ""
    timer_queue_url: str = ""
    timer_queue_arn: str = ""
    sla_timer_queue_url: str = ""
    sla_timer_queue_arn: str = ""
    scheduler_group: str = ""
    scheduler_role_arn: str = ""
    scheduler_dlq_arn: str = ""
    alert_queue_url: str = ""
    alert_dlq_url: str = ""
    dlq_urls: Mapping[Table, str] = {}
    execution_timeout: timedelta = timedelta(hours=4)
    trigger_max_attempts: int = 3
    event_ttl: timedelta | None = None
    """How long events are kept; None: as long as the controller says."""
    pools: Mapping[str, int] = {}
    alerts: tuple[Mapping[str, Any], ...] = ()
    allow_private: bool | tuple[str, ...] = False
    log_level: str = "INFO"
    variables: Mapping[str, str] = {}
    """Every variable: for templates of jobs, and for secrets that are looked up call by call."""

    def __repr__(self) -> str:
        return f"AwsSettings(environment={self.environment!r})"  # variables hold secrets


def read_settings(variables: Mapping[str, str], function: Function | None = None) -> AwsSettings:
    """The settings that these variables make; SettingsError names every one that is missing or wrong."""
    required = REQUIRED[function] if function is not None else ()
    problems = [f"{name} is missing" for name in required if not variables.get(name, "").strip()]
    checked: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        text = variables.get(name, "").strip()
        try:
            checked[name] = check(text) if text else None
        except ValueError as error:
            problems.append(f"{name} {error}")
    if problems:
        where = f"the function {function}" if function is not None else "this installation"
        raise SettingsError(f"{where} is not set up: environment variable " + "; ".join(problems))
    return _settings(checked, variables)


def _settings(checked: Mapping[str, Any], variables: Mapping[str, str]) -> AwsSettings:
    given = {name.lower(): checked[name] for name in _PLAIN if checked[name] is not None}
    alert_queue = checked["ALERT_QUEUE_URL"] or ""
    return AwsSettings(
        environment=checked[_ENVIRONMENT] or "",
        tables={table: checked[name] for table, name in _TABLES.items() if checked[name]},
        dlq_urls={table: url for table in Table if (url := checked.get(f"{table.name}_DLQ_URL"))},
        alert_dlq_url=checked["ALERT_DLQ_URL"] or re.sub(r"\.fifo$", "-dlq.fifo", alert_queue),
        execution_timeout=timedelta(seconds=checked["SFN_TIMEOUT_SECONDS"] or 14_400),
        event_ttl=timedelta(days=days) if (days := checked["EVENTS_TTL_DAYS"]) else None,
        allow_private=checked["ALLOW_PRIVATE_ADDRESSES"] or False,
        variables=dict(variables),
        **given,
    )


# ------------------------------------------------------------------------------------------------- single values


def _environment_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", text):
        raise ValueError(f"is {text!r}: an environment has 1 to 32 lower-case letters, digits and '-'")
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.:/-]{1,256}", text):
        raise ValueError(f"is {text!r}, which is no name of a resource")
    return text


def _arn(text: str) -> str:
    if not re.fullmatch(r"arn:[a-z0-9-]+:[a-z0-9-]+:[a-z0-9-]*:\d*:.+", text):
        raise ValueError(f"is {text!r}, which is no ARN")
    return text


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://\S+", text):
        raise ValueError(f"is {text!r}, which is no address of a queue")
    return text


def _number(lowest: int, highest: int) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or not lowest <= int(text) <= highest:
            raise ValueError(f"is {text!r}: a whole number from {lowest} to {highest}")
        return int(text)

    return check


def _level(text: str) -> str:
    if text.upper() not in LEVELS:
        raise ValueError(f"is {text!r}: one of {', '.join(LEVELS)}")
    return text.upper()


def _json(text: str, type_: Any, wanted: str) -> Any:
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.MsgspecError as error:
        # Without the text itself: an address of a webhook may be a secret.
        raise ValueError(f"is not {wanted}: {error}") from error


def _pools(text: str) -> dict[str, int]:
    found: dict[str, int] = _json(text, dict[str, int], 'a JSON object such as {"warehouse": 4}')
    for name, size in found.items():
        if not 1 <= size <= 10_000:
            raise ValueError(f"gives the pool {name!r} the size {size}: 1 to 10000")
    return found


def _alerts(text: str) -> tuple[dict[str, Any], ...]:
    found: list[dict[str, Any]] = _json(text, list[dict[str, Any]], "a JSON list of [[alerts]] tables")
    return tuple(found)


def _private(text: str) -> bool | tuple[str, ...]:
    found: bool | list[str] = _json(text, bool | list[str], "true, false, or a JSON list of addresses")
    return found if isinstance(found, bool) else tuple(found)


_PLAIN: Final = (
    "STATE_MACHINE_ARN",
    "EVENT_BUS_NAME",
    *_TIMERS,
    "ALERT_QUEUE_URL",
    "TRIGGER_MAX_ATTEMPTS",
    "POOLS",
    "ALERTS",
    "LOG_LEVEL",
)
_CHECKS: Final[Mapping[str, Callable[[str], Any]]] = {
    _ENVIRONMENT: _environment_name,
    **dict.fromkeys(_TABLES.values(), _name),
    "STATE_MACHINE_ARN": _arn,
    "EVENT_BUS_NAME": _name,
    "TIMER_QUEUE_URL": _url,
    "TIMER_QUEUE_ARN": _arn,
    "SLA_TIMER_QUEUE_URL": _url,
    "SLA_TIMER_QUEUE_ARN": _arn,
    "SCHEDULER_GROUP": _name,
    "SCHEDULER_ROLE_ARN": _arn,
    "SCHEDULER_DLQ_ARN": _arn,
    "ALERT_QUEUE_URL": _url,
    "ALERT_DLQ_URL": _url,
    "CONTROL_DLQ_URL": _url,
    "JOBLOG_DLQ_URL": _url,
    "EVENTS_DLQ_URL": _url,
    "SFN_TIMEOUT_SECONDS": _number(60, 31_536_000),
    "TRIGGER_MAX_ATTEMPTS": _number(1, 10),
    "EVENTS_TTL_DAYS": _number(1, 3650),
    "POOLS": _pools,
    "ALERTS": _alerts,
    "ALLOW_PRIVATE_ADDRESSES": _private,
    "LOG_LEVEL": _level,
}
