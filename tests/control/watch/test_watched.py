"""How far the missed checks look back for a pipeline."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control.watch.watched import Watched
from interlock.decide.watchdog import LOOKBACK
from interlock.model.config import Calendar, PipelineConfig
from tests.control.test_rare_events import DOCUMENT

NOW: Final = datetime(2026, 3, 2, 8, tzinfo=UTC)
A_PASS: Final = timedelta(minutes=10)
DAYS_OFF: Final = {"cron": "0 8 * * *", "exclude": {"calendar": "closed"}}


def watched(schedule: dict[str, Any], *, calendars_changed: bool) -> Watched:
    calendars = {"closed": Calendar(name="closed")}
    config = read_stored(DOCUMENT | {"schedule": schedule}, calendars)
    assert isinstance(config, PipelineConfig), config
    return Watched(config, "v", calendars, NOW, NOW, A_PASS, calendars_changed)


@pytest.mark.parametrize(
    ("schedule", "changed", "back"),
    [
        ({"cron": "0 8 * * *"}, False, A_PASS),
        ({"cron": "0 8 * * *", "time": "09:00"}, False, A_PASS + timedelta(days=1)),
        ({"cron": "0 8 * * *"}, True, A_PASS),
        (DAYS_OFF, False, A_PASS),
        (DAYS_OFF, True, LOOKBACK),
    ],
)
def test_as_far_as_the_last_pass_unless_another_calendar_asks_for_more(
    schedule: dict[str, Any], changed: bool, back: timedelta
) -> None:
    found = watched(schedule, calendars_changed=changed)
    assert found.looking_back(found.first_schedule) == back
