"""The story of the demo: which act follows which, and what happens beside the acts."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from interlock.demo import acts
from interlock.demo.acts import Act
from interlock.demo.example import DemoError
from interlock.demo.stage import Stage
from interlock.model.periods import Period

_HOUR = timedelta(hours=1)
_LANDING = timedelta(minutes=2)


def story(stage: Stage, first: datetime) -> Iterator[Act]:
    """Every act, once, over four hours that begin at `first`; each act is given when it has been played."""
    stage.forward_to(first + _HOUR)
    hour = acts.hour_of(first)
    yield acts.gating(stage, hour)
    yield acts.cascade(stage, hour)
    stage.forward_to(first + _HOUR + timedelta(minutes=10))
    acts.recount(stage, hour)

    stage.forward_to(first + 2 * _HOUR)
    hour = acts.hour_of(first + _HOUR)
    yield acts.late_upstream(stage, hour)
    acts.recount(stage, hour)

    stage.forward_to(first + 3 * _HOUR)
    hour = acts.hour_of(first + 2 * _HOUR)
    yield acts.retry(stage, hour)

    stage.forward_to(first + 4 * _HOUR)
    yield acts.drift(stage, hour)
    acts.recount(stage, hour)
    yield acts.closed_day(stage)


def hour_after_hour(stage: Stage, first: datetime) -> None:
    """Go on feeding until it is stopped: a plain hour, a late one, one whose job fails, a corrected one, and again."""
    begin = first
    while True:
        for play in (plain, acts.late_upstream, acts.retry, corrected):
            stage.forward_to(begin + _HOUR)
            try:
                play(stage, acts.hour_of(begin))
                acts.recount(stage, acts.hour_of(begin))
            except DemoError as error:
                # Somebody may be playing with it: changing a pipeline, reporting an outcome. The next hour is another.
                stage.tell("act", str(error))
            begin += _HOUR


def plain(stage: Stage, hour: Period) -> None:
    """An hour as it should be."""
    stage.tell("act", "an hour as it should be")
    for pipeline in (acts.QUAKES, acts.CRYPTO):
        acts.begin(stage, pipeline, hour)
    stage.forward_to(stage.now() + _LANDING)
    for pipeline in (acts.QUAKES, acts.CRYPTO):
        acts.complete(stage, pipeline, hour)
    acts.cascade(stage, hour)


def corrected(stage: Stage, hour: Period) -> None:
    """An hour whose earthquakes are corrected afterwards."""
    plain(stage, hour)
    stage.forward_to(stage.now() + timedelta(minutes=20))
    acts.drift(stage, hour)
