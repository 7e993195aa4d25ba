"""SchedulerTimers: the conformance suite on moto, and what is SQS's and Scheduler's own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from interlock.aws.timers import SchedulerTimers
from interlock.model.errors import InvalidValueError
from interlock.ports.timers import Timer, TimerKind, Timers
from tests.aws.installation import GROUP, Installation, installation, queue_arn
from tests.conformance.manual_clock import START, ManualClock
from tests.conformance.timers_suite import TimersSuite, timer


class TestOnMoto(TimersSuite):
    @contextmanager
    def open_timers(self, clock: ManualClock) -> Iterator[Timers]:
        with installation(clock) as here:
            yield here.controller.timers


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def here(clock: ManualClock) -> Iterator[Installation]:
    with installation(clock) as found:
        yield found


@pytest.fixture
def timers(here: Installation) -> SchedulerTimers:
    return here.controller.timers


def schedules(here: Installation) -> dict[str, Any]:
    found = here.clients("scheduler").list_schedules(GroupName=GROUP)["Schedules"]
    return {one["Name"]: here.clients("scheduler").get_schedule(Name=one["Name"], GroupName=GROUP) for one in found}


def fire_all(timers: SchedulerTimers, bodies: list[dict[str, Any]]) -> list[Timer]:
    fired: list[Timer] = []
    for body in bodies:
        timers.receive(json.dumps(body), fired.append)
    return fired


def test_within_fifteen_minutes_it_is_a_delayed_message_of_its_kind(
    here: Installation, timers: SchedulerTimers
) -> None:
    timers.arm(timer(minutes=15))
    timers.arm(Timer("retry", START + timedelta(milliseconds=1), TimerKind.RETRY, {}))
    assert here.delays("sla-timers") == [900]
    assert here.delays("timers") == [1], "rounded up: never early"
    assert schedules(here) == {}


def test_beyond_that_it_is_an_entry_of_scheduler(here: Installation, timers: SchedulerTimers) -> None:
    armed = Timer("far", START + timedelta(hours=30, milliseconds=1), TimerKind.POST_RUN, {"n": 1})
    timers.arm(armed)
    entry = schedules(here)["far"]
    assert entry["ScheduleExpression"] == "at(2026-03-03T14:00:01)", "rounded up: never early"
    assert entry["ActionAfterCompletion"] == "DELETE"
    assert entry["Target"]["Arn"] == queue_arn("timers")
    assert entry["Target"]["DeadLetterConfig"] == {"Arn": queue_arn("scheduler-dlq")}
    assert here.messages("timers") == []


@pytest.mark.parametrize("hours", [0, 1000])
def test_one_already_past_is_sent_at_once(here: Installation, timers: SchedulerTimers, hours: int) -> None:
    timers.arm(Timer("past", START - timedelta(hours=hours), TimerKind.SLA, {}))
    assert here.delays("sla-timers") == [0]
    assert [one.name for one in fire_all(timers, here.messages("sla-timers"))] == ["past"]


def test_it_fires_once_however_often_its_message_comes(
    here: Installation, timers: SchedulerTimers, clock: ManualClock
) -> None:
    timers.arm(timer())
    (body,) = here.messages("sla-timers")
    clock.advance(minutes=5)
    assert fire_all(timers, [body, body]) == [timer()]
    assert timers.get("sla-gold") is None


def test_the_message_of_a_timer_that_was_moved_or_cancelled_does_nothing(
    here: Installation, timers: SchedulerTimers, clock: ManualClock
) -> None:
    timers.arm(timer(minutes=5))
    timers.arm(timer(minutes=9))
    timers.arm(timer("gone", minutes=5))
    timers.cancel("gone")
    bodies = here.messages("sla-timers")
    clock.advance(minutes=5)
    assert fire_all(timers, bodies) == []
    clock.advance(minutes=4)
    assert fire_all(timers, bodies) == [timer(minutes=9)]


def test_one_that_comes_too_early_is_sent_again(
    here: Installation, timers: SchedulerTimers, clock: ManualClock
) -> None:
    timers.arm(timer(minutes=5))
    (body,) = here.messages("sla-timers")
    clock.advance(minutes=4, seconds=59.5)
    assert fire_all(timers, [body]) == []
    assert here.delays("sla-timers") == [1]
    clock.advance(seconds=1)
    assert fire_all(timers, here.messages("sla-timers")) == [timer(minutes=5)]


def test_arming_the_same_again_sends_nothing_until_it_is_overdue(
    here: Installation, timers: SchedulerTimers, clock: ManualClock
) -> None:
    timers.arm(timer(minutes=5))
    timers.arm(timer(minutes=5))
    assert len(here.messages("sla-timers")) == 1
    clock.advance(minutes=21)
    timers.arm(timer(minutes=5))
    assert fire_all(timers, here.messages("sla-timers")) == [timer(minutes=5)]


def test_a_timer_whose_message_was_never_sent_is_sent_by_the_next_arming(
    here: Installation, timers: SchedulerTimers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("the function is gone")

    with monkeypatch.context() as patched:
        patched.setattr(timers, "_send", crash)
        with pytest.raises(RuntimeError):
            timers.arm(timer(minutes=5))
    assert here.messages("sla-timers") == []
    timers.arm(timer(minutes=5))
    assert len(here.messages("sla-timers")) == 1


def test_moving_between_scheduler_and_queue_leaves_one(here: Installation, timers: SchedulerTimers) -> None:
    timers.arm(timer(minutes=60))
    timers.arm(timer(minutes=90))
    assert schedules(here)["sla-gold"]["ScheduleExpression"] == "at(2026-03-02T09:30:00)"
    timers.arm(timer(minutes=5))
    assert schedules(here) == {}
    timers.arm(timer(minutes=60))
    timers.cancel("sla-gold")
    assert schedules(here) == {}


def test_a_receiver_may_arm_the_same_name_again(
    here: Installation, timers: SchedulerTimers, clock: ManualClock
) -> None:
    timers.arm(timer(minutes=0))
    (body,) = here.messages("sla-timers")
    timers.receive(json.dumps(body), lambda _: timers.arm(timer(minutes=7)))
    assert timers.get("sla-gold") == timer(minutes=7)


def test_a_receiver_that_fails_leaves_it_armed(here: Installation, timers: SchedulerTimers) -> None:
    def fail(_: Timer) -> None:
        raise RuntimeError("no")

    timers.arm(timer(minutes=0))
    (body,) = here.messages("sla-timers")
    with pytest.raises(RuntimeError):
        timers.receive(json.dumps(body), fail)
    assert fire_all(timers, [body]) == [timer(minutes=0)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "is no timer"),
        ("{}", "is no timer"),
        (
            '{"environment":"other","arming":"1","name":"t","at":"2026-03-02T08:00:00Z","kind":"sla","payload":{}}',
            "other",
        ),
        ('{"environment":"test","arming":"1","name":"t","at":"2026-03-02T08:00:00Z","kind":"odd","payload":{}}', "odd"),
    ],
)
def test_a_message_that_is_not_ours_names_itself(timers: SchedulerTimers, body: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        timers.receive(body, lambda _: None)
