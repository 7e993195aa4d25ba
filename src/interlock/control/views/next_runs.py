"""The next run of each schedule, kept for as long as it is the next: finding it is the dearest part of a list."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from interlock.control import catalog
from interlock.control.catalog import Stored
from interlock.decide import plan
from interlock.decide.plan import NextRun
from interlock.model.config import Calendar, PipelineConfig
from interlock.ports.store import Store

_AGAIN: Final = timedelta(minutes=1)
_MOST_KEPT: Final = 20_000


class NextView(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """The next run. Without `start_at` the clock does not open it: `opens` says what does."""

    schedule: str
    date: str | None
    start_at: datetime | None
    opens: str
    warning_at: datetime | None
    breach_at: datetime | None


class NextRuns:
    """The next runs of pipelines at one instant; the calendars are read once."""

    def __init__(self, store: Store, now: datetime) -> None:
        self.calendars: Mapping[str, Calendar] = catalog.calendars(store)
        self.encoded = msgspec.json.encode(self.calendars, order="sorted")
        self._now = now

    def of(self, found: Stored) -> tuple[NextView, ...]:
        """The next run of each schedule, in the order of the config; none of a config that is not valid."""
        return () if found.config is None else self._of(found, found.config).views

    def until(self, found: Stored) -> datetime | None:
        """Until when these are the next; None of a config that is not valid."""
        return None if found.config is None else self._of(found, found.config).until

    def _of(self, found: Stored, config: PipelineConfig) -> "_Kept":
        kept = _kept.get((found.pipeline, found.version))
        if kept is None or not kept.holds(self.encoded, self._now):
            runs = plan.next_runs(config, self.calendars, self._now)
            kept = _Kept(runs, self.encoded, self._now)
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[found.pipeline, found.version] = kept
        return kept

    def first(self, found: Stored) -> NextView | None:
        """The run that comes first; of those that no clock opens any."""
        views = self.of(found)
        return min(views, key=lambda one: (one.start_at is None, one.start_at or self._now), default=None)


class _Kept:
    """The next runs of a config, for as long as none of them has begun."""

    def __init__(self, runs: Sequence[NextRun], calendars: bytes, at: datetime) -> None:
        starts = [one.start_at for one in runs if one.start_at is not None]
        self._calendars = calendars
        self._at = at
        # Without a start the date is that of the day or hour: looked at again soon.
        self.until = min([*starts, *([] if len(starts) == len(runs) else [at + _AGAIN])], default=at + _AGAIN)
        self.views = tuple(_view(one) for one in runs)

    def holds(self, calendars: bytes, now: datetime) -> bool:
        """Is this still what comes next?"""
        return self._at <= now < self.until and self._calendars == calendars


def _view(run: NextRun) -> NextView:
    return NextView(
        schedule=run.schedule,
        date=run.date,
        start_at=run.start_at,
        opens=run.opens,
        warning_at=run.warning_at,
        breach_at=run.breach_at,
    )


_kept: Final[dict[tuple[str, str], _Kept]] = {}
