"""Which events people hear of, in which thread, and when a delivery that failed goes again or is given up."""

from datetime import timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.alerts import alert_dispatcher
from interlock.control.alerts.alert_dispatcher import (
    GIVE_UP_AFTER,
    LONGEST_PAUSE,
    LONGEST_REST,
    MAX_REFUSALS,
    Delivery,
    Failing,
    Route,
    Routing,
    Verdict,
    judge,
    pause_after,
    remember_thread,
    thread_key,
    thread_of,
)
from interlock.model.events import EVENT_TTL_DAYS, EventType, Severity
from interlock.model.keys import Table
from interlock.ports.channel import DeliveryError
from interlock.ports.store import Change
from tests.alerts.alerts import event
from tests.conformance.manual_clock import START
from tests.safety.stage import control_of, pipeline, staged


@pytest.mark.parametrize(
    ("type_", "pipeline", "expected"),
    [
        (EventType.SLA_BREACH, "gold", ["all", "gold", "breaches"]),
        (EventType.SLA_BREACH, "silver", ["all", "breaches"]),
        (EventType.SLA_WARNING, "gold", ["all"]),
        (EventType.JOB_COMPLETED, "gold", []),
    ],
)
def test_routes_select_by_severity_and_pattern(type_: EventType, pipeline: str, expected: list[str]) -> None:
    routing = Routing(
        [
            Route("1", "all"),
            Route("2", "gold", {"detail": {"pipelineId": ["gold"]}}, Severity.ERROR),
            Route("3", "breaches", {"detail-type": ["SLA_BREACH"]}),
            Route("4", "all", {"detail": {"severity": ["error"]}}),
        ],
        ["all", "gold", "breaches", "unused"],
    )
    assert routing.channels_for(event(type_, pipeline)) == expected


def test_without_routes_every_channel_hears_of_warnings() -> None:
    routing = Routing([], ["a", "b"])
    assert routing.channels_for(event(EventType.SLA_WARNING)) == ["a", "b"]
    assert routing.channels_for(event(EventType.SLA_MET)) == []


# ----------------------------------------------------------------------------------------------- from the stream


def change(type_: EventType, pipeline_id: str = "gold") -> Change:
    put = records.put_event(event(type_, pipeline_id))
    return Change(seq=1, table=Table.EVENTS, pk=put.key.pk, sk=put.key.sk, at=0, item=dict(put.item))


def test_an_event_becomes_a_delivery_per_channel_with_the_id_of_its_key() -> None:
    queued: list[Delivery] = []
    changes = [change(EventType.SLA_BREACH), change(EventType.JOB_COMPLETED), change(EventType.SLA_WARNING, "silver")]
    alert_dispatcher.handle(Routing([], ["a", "b"]), queued.extend, changes)
    assert [(one.channel, one.pipeline, one.alert.event.type) for one in queued] == [
        ("a", "gold", EventType.SLA_BREACH),
        ("b", "gold", EventType.SLA_BREACH),
        ("a", "silver", EventType.SLA_WARNING),
        ("b", "silver", EventType.SLA_WARNING),
    ]
    assert queued[0].alert.id == f"gold/{changes[0].sk}"


def test_what_is_no_event_or_gone_or_of_no_interest_queues_nothing() -> None:
    calls: list[Any] = []
    breach = change(EventType.SLA_BREACH)
    removed = Change(seq=1, table=Table.EVENTS, pk=breach.pk, sk=breach.sk, at=0, item=None)
    thread = Change(seq=1, table=Table.EVENTS, pk=breach.pk, sk="THREAD#cron#2026-03-02", at=0, item={"ttl": 1})
    for one in (removed, thread, change(EventType.JOB_COMPLETED)):
        alert_dispatcher.handle(Routing([], ["a"]), calls.append, [one])
    assert calls == []


# ------------------------------------------------------------------------------------------------------- threads


def test_a_run_has_a_thread_per_channel_and_an_event_without_a_run_has_none() -> None:
    store = control_of(staged(pipeline(), until="+1m")).store
    about = event()
    assert thread_of(store, "ttl", about) is None
    store.commit(remember_thread("ttl", about, "17.1", START))
    store.commit(remember_thread("slack", about, "17.2", START))
    assert (thread_of(store, "ttl", about), thread_of(store, "slack", about)) == ("17.1", "17.2")
    assert thread_of(store, "slack", event(date="2026-03-03")) is None
    key = thread_key(about)
    assert key is not None
    assert (store.get(key) or {})["ttl"] == int((START + timedelta(days=EVENT_TTL_DAYS)).timestamp())
    aside = event(date="", schedule="")
    assert (thread_key(aside), remember_thread("slack", aside, "17.3", START)) == (None, [])
    assert remember_thread("slack", about, None, START) == []


@pytest.mark.parametrize("kept", ["", 5, None])
def test_a_thread_that_cannot_be_one_is_none(kept: object) -> None:
    store = control_of(staged(pipeline(), until="+1m")).store
    (update,) = remember_thread("slack", event(), "17.1", START)
    store.commit([type(update)(update.key, set={"thread:slack": kept})])
    assert thread_of(store, "slack", event()) is None


# ------------------------------------------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("refusals", "after", "verdict"),
    [
        (0, timedelta(0), Verdict.RETRY),
        (MAX_REFUSALS - 1, timedelta(0), Verdict.RETRY),
        (MAX_REFUSALS, timedelta(0), Verdict.GIVE_UP),
        (0, GIVE_UP_AFTER - timedelta(seconds=1), Verdict.RETRY),
        (0, GIVE_UP_AFTER, Verdict.GIVE_UP),
    ],
)
def test_an_alert_is_tried_for_a_day_and_a_receiver_that_refuses_is_believed(
    refusals: int, after: timedelta, verdict: Verdict
) -> None:
    assert judge(Failing(tries=9, refusals=refusals, since=START), START + after) is verdict


SECOND: Final = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("tries", "jitter", "pause"),
    [
        (1, 0.0, SECOND),
        (1, 1.0, 2 * SECOND),
        (3, 1.0, 8 * SECOND),
        (3, 0.5, 6 * SECOND),
        (20, 1.0, LONGEST_PAUSE),
        (5000, 0.0, LONGEST_PAUSE / 2),
    ],
)
def test_pauses_double_up_to_a_bound_and_are_spread(tries: int, jitter: float, pause: timedelta) -> None:
    assert pause_after(DeliveryError("down"), tries, jitter) == pause


@pytest.mark.parametrize(
    ("asked", "given"),
    [(timedelta(0), SECOND), (7 * SECOND, 7 * SECOND), (timedelta(days=9), LONGEST_REST)],
)
def test_a_receiver_that_names_a_time_gets_it_within_reason(asked: timedelta, given: timedelta) -> None:
    assert pause_after(DeliveryError("busy", retry_after=asked), 1, 0.5) == given
