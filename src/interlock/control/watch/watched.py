"""One pipeline in a pass of the watchdog: what all its checks go by."""

from datetime import datetime, timedelta

import msgspec

from interlock.control import catalog
from interlock.decide import watchdog
from interlock.model.config import Calendar, PipelineConfig, Schedule


class Watched(msgspec.Struct, frozen=True):
    """One pipeline as the checks see it. No check alerts for an instant before `since`.

    `lookback`: as far as the last complete pass, three days at most. What came before was judged then; so the cost of a
    pass does not grow with the time that is looked back on.
    """

    config: PipelineConfig
    version: str
    calendars: dict[str, Calendar]
    since: datetime
    now: datetime
    lookback: timedelta
    calendars_changed: bool

    @property
    def first_schedule(self) -> Schedule:
        """The one that cascades open."""
        return self.config.all_schedules[0]

    def looking_back(self, schedule: Schedule) -> timedelta:
        """How far the missed checks look back. `schedule.time` may make a tick due up to a day after it.

        Another calendar may call for a day that it had withheld, so what was judged is judged again.
        """
        if self.calendars_changed and catalog.named_calendars(schedule):
            return watchdog.LOOKBACK
        return self.lookback + (timedelta(days=1) if schedule.time is not None else timedelta(0))
