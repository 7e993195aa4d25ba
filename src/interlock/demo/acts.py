"""The acts of the demo. Each plays its part, waits for what follows from it, and says which events must be seen.

The proof is made afterwards, from the events themselves (`missing`): an act that did not happen is not claimed.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from interlock.control.views.event_views import EventView
from interlock.demo.stage import Stage
from interlock.demo.timeline import Sight
from interlock.model.events import EventType
from interlock.model.periods import Period, hour_period, parse_period
from interlock.model.times import zone

QUAKES: Final = "earthquake-silver"
CRYPTO: Final = "crypto-silver"
QUAKES_GOLD: Final = "earthquake-gold"
CRYPTO_GOLD: Final = "crypto-gold"
CLOSED: Final = parse_period("2026-03-01T23")
_FEEDS: Final = {QUAKES: "earthquake", CRYPTO: "crypto"}
_GOLD: Final = {QUAKES: QUAKES_GOLD, CRYPTO: CRYPTO_GOLD}
# As the pipelines say: `sla: {deadline: ":30", expectedDuration: 15m}`.
_DEADLINE_MINUTES: Final = 30
_EXPECTED_MINUTES: Final = 15


class Act(msgspec.Struct, frozen=True):
    """What was played, and the events that prove it: each chain in its order, `absent` not at all."""

    title: str
    chains: tuple[tuple[Sight, ...], ...]
    absent: tuple[Sight, ...] = ()


def missing(act: Act, events: Sequence[EventView]) -> list[str]:
    """What an act promised and the events do not show; nothing when it happened as promised."""
    problems = [problem for chain in act.chains for problem in _broken(chain, events)]
    return problems + [f"{sight} happened" for sight in act.absent if any(map(sight.matches, events))]


def _broken(chain: Sequence[Sight], events: Sequence[EventView]) -> Iterator[str]:
    position = 0
    for sight in chain:
        found = next((at for at in range(position, len(events)) if sight.matches(events[at])), None)
        if found is None:
            yield f"{sight} did not happen, or not in this order"
        elif sight.not_before is not None and events[found].timestamp < sight.not_before:
            yield f"{sight} happened too early"
        else:
            position = found


def hour_of(at: datetime) -> Period:
    """The hour of an instant."""
    return hour_period(at.date(), at.hour)


def _sight(type_: EventType, pipeline: str, hour: Period, attempt: int | None = None) -> Sight:
    return Sight(type=type_, pipeline=pipeline, date=str(hour), attempt=attempt)


def _completed(pipeline: str, hour: Period, attempt: int = 1) -> Sight:
    return _sight(EventType.JOB_COMPLETED, pipeline, hour, attempt)


# ------------------------------------------------------------------------------------------------------- the feeds


def begin(stage: Stage, pipeline: str, hour: Period) -> None:
    """The first part of an hour lands: enough to open a run, too little to start its job."""
    rows = stage.land(_FEEDS[pipeline], hour, "first")
    stage.tell("feed", f"{rows} rows landed, the rest is to come", pipeline, hour)
    _report(stage, pipeline, hour, rows)
    stage.wait_for(_sight(EventType.TRIGGER_STARTED, pipeline, hour))


def complete(stage: Stage, pipeline: str, hour: Period) -> datetime:
    """The rest of an hour lands; when that was."""
    rows = stage.land(_FEEDS[pipeline], hour, "rest")
    stage.tell("feed", f"the rest landed, {rows} rows: the hour is complete", pipeline, hour)
    return _report(stage, pipeline, hour, rows)


def recount(stage: Stage, hour: Period) -> None:
    """A while after an hour was cleaned, both feeds are counted again, and are as they were."""
    for pipeline, feed in _FEEDS.items():
        rows = stage.land(feed, hour, "count")
        stage.tell("feed", f"counted again: {rows} rows, as before", pipeline, hour)
        _report(stage, pipeline, hour, rows)
        stage.wait_for(_sight(EventType.POST_RUN_PASSED, pipeline, hour))


def _report(stage: Stage, pipeline: str, hour: Period, rows: int) -> datetime:
    return stage.observe(pipeline, "hourly-status", hour, status="landed", rows=rows)


# --------------------------------------------------------------------------------------------------------- the acts


def gating(stage: Stage, hour: Period) -> Act:
    """Silver opens with the first rows of its hour, and does not start before there are enough."""
    stage.tell("act", "the feeds begin to land; silver opens, and waits until its hour is complete")
    for pipeline in _FEEDS:
        begin(stage, pipeline, hour)
        stage.tell_why(pipeline, hour)
    stage.forward_to(stage.now() + timedelta(minutes=4))
    done = {pipeline: complete(stage, pipeline, hour) for pipeline in _FEEDS}
    for pipeline in done:
        stage.wait_for(_completed(pipeline, hour))
    return Act(
        "gating: silver waited for its feed, and started the moment it was complete",
        tuple(_gated(pipeline, hour, complete_at) for pipeline, complete_at in done.items()),
    )


def _gated(pipeline: str, hour: Period, complete_at: datetime) -> tuple[Sight, ...]:
    return (
        _sight(EventType.TRIGGER_STARTED, pipeline, hour, 1),
        Sight(type=EventType.VALIDATION_PASSED, pipeline=pipeline, date=str(hour), not_before=complete_at),
        Sight(type=EventType.JOB_TRIGGERED, pipeline=pipeline, date=str(hour), not_before=complete_at),
        _completed(pipeline, hour),
    )


def cascade(stage: Stage, hour: Period) -> Act:
    """Gold opens when silver has completed its hour. Nobody has to do anything for it."""
    for pipeline in _GOLD.values():
        stage.wait_for(_completed(pipeline, hour))
    return Act(
        "cascade: gold opened by itself when silver had completed the hour",
        tuple(
            (
                _completed(silver, hour),
                _sight(EventType.TRIGGER_STARTED, gold, hour, 1),
                _completed(gold, hour),
            )
            for silver, gold in _GOLD.items()
        ),
    )


def late_upstream(stage: Stage, hour: Period) -> Act:
    """The crypto feed stops half-way: somebody hears of it before the deadline, and gold waits."""
    stage.tell("act", "the crypto feed of this hour is late: somebody is told before the deadline, and gold waits")
    for pipeline in _FEEDS:
        begin(stage, pipeline, hour)
    complete(stage, QUAKES, hour)
    stage.wait_for(_completed(QUAKES_GOLD, hour))
    deadline = hour.end(zone("UTC")) + timedelta(minutes=_DEADLINE_MINUTES)
    stage.forward_to(deadline - timedelta(minutes=_EXPECTED_MINUTES + 1))
    stage.tell_why(CRYPTO, hour)
    stage.watch_for(_sight(EventType.SLA_WARNING, CRYPTO, hour))
    arrived = complete(stage, CRYPTO, hour)
    stage.wait_for(_completed(CRYPTO_GOLD, hour))
    return Act(
        "late upstream: an SLA warning before the deadline; gold waited for the late hour",
        (
            (
                _completed(QUAKES_GOLD, hour),
                _sight(EventType.SLA_WARNING, CRYPTO, hour),
                _completed(CRYPTO, hour),
                _sight(EventType.SLA_RECOVERED, CRYPTO, hour),
                Sight(type=EventType.JOB_TRIGGERED, pipeline=CRYPTO_GOLD, date=str(hour), not_before=arrived),
                _completed(CRYPTO_GOLD, hour),
            ),
        ),
    )


def retry(stage: Stage, hour: Period) -> Act:
    """The crypto job is turned away by its source, and tried again."""
    stage.tell("act", "the crypto job fails, with a failure that may pass: it is retried")
    for pipeline in _FEEDS:
        begin(stage, pipeline, hour)
    stage.land("crypto", hour, "busy")
    for pipeline in _FEEDS:
        complete(stage, pipeline, hour)
    stage.wait_for(_sight(EventType.JOB_FAILED, CRYPTO, hour, 1))
    stage.watch_for(_sight(EventType.TRIGGER_STARTED, CRYPTO, hour, 2))
    for pipeline in _GOLD.values():
        stage.wait_for(_completed(pipeline, hour))
    return Act(
        "retry: a job that failed for a passing reason was tried again, and completed",
        ((_sight(EventType.JOB_FAILED, CRYPTO, hour, 1), _completed(CRYPTO, hour, 2), _completed(CRYPTO_GOLD, hour)),),
    )


def drift(stage: Stage, hour: Period) -> Act:
    """The earthquakes of an hour are corrected when everything was done: silver and gold are done again."""
    stage.tell("act", "the earthquakes of a finished hour are corrected: what was made of them is made again")
    rows = stage.land("earthquake", hour, "correct")
    stage.tell("feed", f"corrected: {rows} rows", QUAKES, hour)
    _report(stage, QUAKES, hour, rows)
    stage.wait_for(_completed(QUAKES_GOLD, hour, 2))
    return Act(
        "drift: a correction after the fact was noticed; silver and gold ran again",
        (
            (
                _sight(EventType.POST_RUN_DRIFT, QUAKES, hour),
                _sight(EventType.RERUN_ACCEPTED, QUAKES, hour, 2),
                _completed(QUAKES, hour, 2),
                _completed(QUAKES_GOLD, hour, 2),
            ),
        ),
    )


def closed_day(stage: Stage) -> Act:
    """An hour of a day on which the exchange was under repair: nothing is opened, and it is said."""
    stage.tell("act", "an hour lands for a day on which the exchange was under repair: nothing is opened")
    stage.tell("feed", "5000 rows landed, for a day of maintenance", CRYPTO, CLOSED)
    _report(stage, CRYPTO, CLOSED, 5000)
    excluded = _sight(EventType.PIPELINE_EXCLUDED, CRYPTO, CLOSED)
    stage.wait_for(excluded)
    never = tuple(_sight(type_, CRYPTO, CLOSED) for type_ in (EventType.TRIGGER_STARTED, EventType.JOB_TRIGGERED))
    return Act("closed day: an hour of an excluded day opened nothing", ((excluded,),), never)
