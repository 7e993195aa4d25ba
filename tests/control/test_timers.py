"""Which timer calls whom, for both runtimes; a timer that is none of ours names itself."""

from typing import Any

import pytest

from interlock.control import timers
from interlock.control.context import Control
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.ports.timers import TimerKind
from tests.control.test_rare_events import Installation, Target

RUN: dict[str, Any] = {"pipeline": "orders", "schedule": "cron", "date": "2026-03-02"}
PAYLOADS: dict[TimerKind, dict[str, Any]] = {
    TimerKind.SLA: RUN | {"mode": "fire-alert", "kind": "warning"},
    TimerKind.RETRY: RUN | {"attempt": 1},
    TimerKind.POST_RUN: RUN | {"attempt": 1},
    TimerKind.WAKE: RUN,
    TimerKind.TICK: {"pipeline": "orders", "schedule": "cron", "at": "2026-03-02T08:00:00Z"},
}


@pytest.fixture
def control() -> Control:
    return Installation(Target()).engine.control


@pytest.mark.parametrize("kind", list(TimerKind))
def test_every_kind_has_a_receiver_that_bears_to_be_called_for_nothing(control: Control, kind: TimerKind) -> None:
    timers.timer_due(control, kind.value, PAYLOADS[kind])


def test_an_unknown_kind_names_itself(control: Control) -> None:
    with pytest.raises(InvalidValueError, match=r"no timer kind 'tock'.*post-run, retry, sla, tick, wake"):
        timers.timer_due(control, "tock", {})


@pytest.mark.parametrize("kind", [TimerKind.RETRY, TimerKind.POST_RUN, TimerKind.TICK, TimerKind.WAKE])
def test_a_payload_without_a_field_names_it(control: Control, kind: TimerKind) -> None:
    payload = {name: value for name, value in PAYLOADS[kind].items() if name != "schedule"}
    with pytest.raises(InvalidValueError, match=f"kind '{kind}' has no 'schedule'"):
        timers.timer_due(control, kind, payload)


def test_a_kind_of_a_newer_version_is_a_dead_letter_and_stops_no_other_timer() -> None:
    installation = Installation(Target(), None)
    installation.apply(schedule={"cron": "0 8 * * *"}, sla={"deadline": "09:00"})
    installation.go_to("08:30:00")
    installation.database.write(
        lambda connection: (
            connection.execute(
                "INSERT INTO timers (name, at_us, kind, payload, due_us) VALUES ('new', 1, 'moon', '{}', 1)"
            ).rowcount
        )
    )
    installation.go_to("09:01:00")

    letters = DeadLetters(installation.database).list()
    assert ["no timer kind 'moon'" in letter.error for letter in letters] == [True]
    assert [event.type for event in installation.events(EventType.SLA_BREACH)] == [EventType.SLA_BREACH]
