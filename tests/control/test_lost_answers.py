"""A commit whose answer is lost raises (ports.store): whoever made it comes again, reads, and finds it done.

Every so many commits succeed and say that the store did not answer. Who made them cannot tell that from a failure.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from interlock.control import router
from interlock.control.attempts import orchestrator
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import UnavailableError
from interlock.ports.store import Conflict, Write
from interlock.simulation.play import play
from tests.journeys.test_journeys import FILES, named, outcome, scenario_of, undisturbed

T = TypeVar("T")

TOPICS: Final = ("cancel", "late", "opening", "postrun", "rerun", "retry")
EVERY: Final = 5


class Losing:
    """Loses the answers of commits that the stream-router and the orchestrator make: both are called again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost = 0
        self._commits = 0
        self._within = False
        commit, route, handle = SqliteStore.commit, router.handle, orchestrator.handle

        def committing(store: SqliteStore, writes: Sequence[Write]) -> Conflict | None:
            result = commit(store, writes)
            self._commits += self._within
            if self._within and result is None and self._commits % EVERY == 0:
                self._commits += 1
                self.lost += 1
                raise UnavailableError("the store did not answer")
            return result

        monkeypatch.setattr(SqliteStore, "commit", committing)
        monkeypatch.setattr(router, "handle", self._watched(route))
        monkeypatch.setattr(orchestrator, "handle", self._watched(handle))

    def _watched(self, function: Callable[[Any, Any], T]) -> Callable[[Any, Any], T]:
        def watched(control: Any, given: Any) -> T:
            self._within = True
            try:
                return function(control, given)
            finally:
                self._within = False

        return watched


@pytest.mark.parametrize("path", [path for path in FILES if named(path).split("-")[0] in TOPICS], ids=named)
def test_a_journey_comes_out_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = undisturbed(path)
    losing = Losing(monkeypatch)
    world = play(scenario_of(path)).world
    assert losing.lost
    assert world.dead_letters() == 0
    assert outcome(world) == wanted
