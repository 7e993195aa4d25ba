"""An act is claimed only if the events show it: in order, not too early, and nothing that must not be."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from interlock.control.views.event_views import EventView
from interlock.demo.acts import Act, missing
from interlock.demo.timeline import Entry, Sight, Stopped, Timeline
from interlock.embedded.stream.listeners import FeedEvent
from interlock.model.events import EventType, Severity

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = "2026-03-02T10"


def event(type_: EventType, minute: int, *, pipeline: str = "silver", attempt: int = 1, date: str = HOUR) -> EventView:
    return EventView(
        id=f"{minute}",
        type=type_,
        severity=Severity.INFO,
        pipeline_id=pipeline,
        schedule_id="stream",
        date=date,
        message="",
        timestamp=NOON + timedelta(minutes=minute),
        detail={"attempt": attempt},
    )


def sight(type_: EventType, *, attempt: int | None = None, not_before: int | None = None) -> Sight:
    earliest = None if not_before is None else NOON + timedelta(minutes=not_before)
    return Sight(type=type_, pipeline="silver", date=HOUR, attempt=attempt, not_before=earliest)


OPENED, STARTED, DONE = EventType.TRIGGER_STARTED, EventType.JOB_TRIGGERED, EventType.JOB_COMPLETED
ALL = [event(OPENED, 0), event(STARTED, 4), event(DONE, 5)]
ACT = Act("gated", ((sight(OPENED), sight(STARTED, not_before=3), sight(DONE)),))


def test_an_act_that_happened_lacks_nothing() -> None:
    assert missing(ACT, ALL) == []


@pytest.mark.parametrize("left_out", range(len(ALL)))
def test_an_event_that_is_not_there_is_missed(left_out: int) -> None:
    (problem,) = missing(ACT, [one for at, one in enumerate(ALL) if at != left_out])
    assert ALL[left_out].type in problem


@pytest.mark.parametrize(
    "other",
    [event(DONE, 5, pipeline="gold"), event(DONE, 5, date="2026-03-02T11"), event(EventType.JOB_FAILED, 5)],
)
def test_another_event_does_not_count(other: EventView) -> None:
    assert missing(ACT, [*ALL[:2], other]) == [
        "JOB_COMPLETED of silver for 2026-03-02T10 did not happen, or not in this order"
    ]


def test_the_order_counts() -> None:
    assert missing(ACT, [ALL[2], *ALL[:2]]) != []


def test_a_job_that_started_before_its_feed_was_complete_is_no_gating() -> None:
    assert missing(ACT, [ALL[0], event(STARTED, 2), ALL[2]]) == [
        "JOB_TRIGGERED of silver for 2026-03-02T10 happened too early"
    ]


def test_the_attempt_counts() -> None:
    again = Act("retried", ((sight(DONE, attempt=2),),))
    assert missing(again, ALL) != []
    assert missing(again, [*ALL, event(DONE, 9, attempt=2)]) == []


def test_chains_may_interleave() -> None:
    two = Act("two", ((sight(DONE), sight(OPENED, attempt=2)), (sight(OPENED), sight(STARTED))))
    assert missing(two, [*ALL, event(OPENED, 6, attempt=2)]) == []


def test_what_must_not_happen_is_found() -> None:
    nothing = Act("closed", (), (sight(STARTED),))
    assert missing(nothing, ALL) == ["JOB_TRIGGERED of silver for 2026-03-02T10 happened"]
    assert missing(nothing, ALL[:1]) == []


# ---------------------------------------------------------------------------------------------------- the timeline


def fails(error: BaseException) -> Callable[[Entry], None]:
    def printer(_: Entry) -> None:
        raise error

    return printer


def test_an_event_that_is_there_is_not_waited_for_and_one_that_is_not_is_given_up() -> None:
    printed: list[Entry] = []
    timeline = Timeline(printed.append)
    timeline.committed(FeedEvent(1, ALL[0]))
    assert timeline.wait_for(sight(OPENED), 0) == ALL[0]
    assert timeline.wait_for(sight(DONE), 0) is None
    assert printed == ALL[:1]


def test_when_it_is_over_nobody_waits_and_nothing_is_printed() -> None:
    printed: list[Entry] = []
    timeline = Timeline(printed.append)
    timeline.close()
    with pytest.raises(Stopped):
        timeline.wait_for(sight(DONE), 3600)
    with pytest.raises(Stopped):
        timeline.rest(3600)
    timeline.committed(FeedEvent(1, ALL[0]))
    assert printed == []


@pytest.mark.parametrize("error", [BrokenPipeError(), SystemExit(1)])
def test_when_nobody_reads_on_it_is_over(error: BaseException) -> None:
    timeline = Timeline(fails(error))
    timeline.committed(FeedEvent(1, ALL[0]))
    with pytest.raises(Stopped):
        timeline.rest(3600)
