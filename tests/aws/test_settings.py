"""Settings of the functions: what is missing or wrong fails the invocation, and says its name."""

import pytest

from interlock.aws.controller import Controller
from interlock.aws.names import Function
from interlock.aws.settings import OPTIONAL, REQUIRED, SettingsError, read_settings
from interlock.model.keys import Table
from tests.aws.dynamo import TABLES
from tests.aws.installation import VARIABLES, queue_url


@pytest.mark.parametrize("function", list(Function))
def test_each_function_reads_what_it_needs(function: Function) -> None:
    given = {name: VARIABLES[name] for name in REQUIRED[function]}
    settings = read_settings(given, function)
    assert settings.environment == "test"
    assert settings.tables[Table.EVENTS] == TABLES[Table.EVENTS]


@pytest.mark.parametrize(("function", "name"), [(one, name) for one in Function for name in REQUIRED[one]])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_variable_names_itself(function: Function, name: str, value: str | None) -> None:
    given = {**VARIABLES}
    del given[name]
    if value is not None:
        given[name] = value
    with pytest.raises(SettingsError, match=rf"{function} is not set up: environment variable {name} is missing"):
        read_settings(given, function)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("INTERLOCK_ENVIRONMENT", "Prod!", "lower-case"),
        ("STATE_MACHINE_ARN", "pipeline", "no ARN"),
        ("TIMER_QUEUE_URL", "timers", "no address"),
        ("CONTROL_TABLE", "a b", "no name"),
        ("SFN_TIMEOUT_SECONDS", "4h", "60 to"),
        ("SFN_TIMEOUT_SECONDS", "0", "60 to"),
        ("TRIGGER_MAX_ATTEMPTS", "-1", "1 to 10"),
        ("EVENTS_TTL_DAYS", "x", "1 to 3650"),
        ("POOLS", "[1]", "JSON object"),
        ("POOLS", '{"warehouse": 0}', "warehouse"),
        ("POOLS", "{", "JSON object"),
        ("ALERTS", "{}", "JSON list"),
        ("ALLOW_PRIVATE_ADDRESSES", "7", "JSON list"),
        ("LOG_LEVEL", "loud", "DEBUG"),
    ],
)
def test_a_wrong_variable_names_itself(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name} .*{said}"):
        read_settings({**VARIABLES, name: value}, Function.STREAM_ROUTER)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings({"LOG_LEVEL": "loud"}, Function.WATCHDOG)
    assert all(name in str(raised.value) for name in (*REQUIRED[Function.WATCHDOG], "LOG_LEVEL"))


def test_a_wrong_value_that_may_be_secret_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings({**VARIABLES, "ALERTS": '{"url": "https://hooks.example/SECRET"}'})
    assert "SECRET" not in str(raised.value)
    assert "SECRET" not in repr(read_settings({**VARIABLES, "SLACK_BOT_TOKEN": "xoxb-SECRET"}))


def test_the_optional_ones() -> None:
    assert set(OPTIONAL).isdisjoint(name for names in REQUIRED.values() for name in names)
    settings = read_settings(
        {
            **VARIABLES,
            "SFN_TIMEOUT_SECONDS": "7200",
            "POOLS": '{"warehouse": 4}',
            "ALLOW_PRIVATE_ADDRESSES": '["10.0.0.0/8"]',
            "LOG_LEVEL": "debug",
        }
    )
    assert settings.execution_timeout.total_seconds() == 7200
    assert settings.pools == {"warehouse": 4}
    assert settings.allow_private == ("10.0.0.0/8",)
    assert settings.log_level == "DEBUG"
    without = {name: value for name, value in VARIABLES.items() if name != "ALERT_DLQ_URL"}
    assert read_settings(without).alert_dlq_url == queue_url("alerts-dlq.fifo")


@pytest.mark.parametrize(
    "function", [Function.STREAM_ROUTER, Function.ORCHESTRATOR, Function.SLA_MONITOR, Function.WATCHDOG]
)
def test_only_a_function_that_can_arm_timers_joins_wake_ups(function: Function) -> None:
    """A joined wake-up is a timer: where none can be armed, it would fail the task, and with it the run."""
    settings = read_settings({name: VARIABLES[name] for name in REQUIRED[function]}, function)
    joins = bool(Controller(settings).control_settings.wake_every)
    assert joins is ("TIMER_QUEUE_URL" in REQUIRED[function])
