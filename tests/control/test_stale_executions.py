"""`Executions.is_open` may be seconds old (ports.executions): nothing irreversible follows from it.

Here it is wrong whenever it can be: an execution that was just started is not found, one that has just ended still
counts as open.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from interlock.embedded.asl.executions import SqliteExecutions
from interlock.ports.executions import StartResult
from interlock.simulation.play import play
from tests.journeys.test_journeys import FILES, named, outcome, scenario_of, undisturbed

STALE_FOR: Final = timedelta(seconds=5)
TOPICS: Final = ("cancel", "crash", "job", "rerun", "retry", "watchdog", "medallion")


class Lies:
    """What `is_open` says is what was true a few seconds ago."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._started: dict[str, datetime] = {}
        self._closed: dict[str, datetime] = {}
        start, is_open = SqliteExecutions.start, SqliteExecutions.is_open

        def starting(executions: SqliteExecutions, name: str, input_: Mapping[str, Any]) -> StartResult:
            result = start(executions, name, input_)
            if result is StartResult.STARTED:
                self._started[name] = executions._clock.now()
            return result

        monkeypatch.setattr(SqliteExecutions, "start", starting)
        monkeypatch.setattr(
            SqliteExecutions,
            "is_open",
            lambda executions, name: self._seen(executions, name, is_open(executions, name)),
        )

    def _seen(self, executions: SqliteExecutions, name: str, truth: bool) -> bool:
        now = executions._clock.now()
        if truth:
            return now >= self._started.get(name, now - STALE_FOR) + STALE_FOR
        return name in self._started and now < self._closed.setdefault(name, now) + STALE_FOR


@pytest.mark.parametrize("path", [path for path in FILES if named(path).split("-")[0] in TOPICS], ids=named)
def test_a_journey_comes_out_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = undisturbed(path)
    Lies(monkeypatch)
    played = play(scenario_of(path))
    assert played.failures == []
    assert outcome(played.world) == wanted
