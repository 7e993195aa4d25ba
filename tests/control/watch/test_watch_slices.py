"""A pass in slices that several workers may take, and pipelines that a pass may leave out."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, records
from interlock.control.watch import watchdog
from interlock.control.watch.quiet import LONGEST, Quiet
from interlock.control.watch.watch_slices import WHOLE, Slice, last_complete, slice_of, slices_for
from interlock.control.watch.watched import Watched
from interlock.embedded.engine import Engine
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import RunStatus
from interlock.ports.store import Put
from interlock.simulation.play import play
from tests.control.test_rare_events import DOCUMENT, START, Installation, Target
from tests.journeys.test_journeys import FILES, named, outcome, scenario_of, undisturbed

NAMES: Final = [f"p{n:02d}" for n in range(24)]
HOURLY: Final = {"cron": "0 * * * *", "evaluation": {"window": "20m", "interval": "5m"}}


@pytest.fixture
def installation() -> Installation:
    made = Installation(Target())
    for name in NAMES:
        document = DOCUMENT | {"pipeline": {"id": name}, "schedule": HOURLY}
        config = read_stored(document, {})
        assert isinstance(config, PipelineConfig)
        catalog.apply_config(made.engine.control, config, document)
    made.settle()
    return made


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pipelines that are looked at."""
    names: list[str] = []
    look = watchdog._Pass.look_at

    def noting(self: watchdog._Pass, pipeline: str) -> dict[str, str]:
        names.append(pipeline)
        return look(self, pipeline)

    monkeypatch.setattr(watchdog._Pass, "look_at", noting)
    return names


# ------------------------------------------------------------------------------------------------------- slices


def test_every_pipeline_is_in_one_slice(installation: Installation, looked_at: list[str]) -> None:
    for number in range(4):
        before = len(looked_at)
        assert watchdog.run(installation.engine.control, part=Slice(number, 4)) == []
        assert len(looked_at) > before
    assert sorted(looked_at) == NAMES


def test_each_slice_has_its_own_last_complete_pass(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    control, store = installation.engine.control, installation.engine.store
    assert last_complete(store) is None
    first, second = Slice(0, 2), Slice(1, 2)
    watchdog.run(control, part=first)
    assert last_complete(store) is None, "the other slice was never looked at"
    watchdog.run(control, part=second)
    assert last_complete(store) == START

    installation.clock.move_to(START + timedelta(minutes=30))
    monkeypatch.setattr(watchdog, "CHECKS", [("broken", _broken_for(second)), *watchdog.CHECKS])
    assert watchdog.run(control, part=first) == []
    assert watchdog.run(control, part=second) == ["broken"]
    assert last_complete(store) == START, "the slice that lags counts"
    assert store.get(first.key) != store.get(second.key)


def _broken_for(part: Slice) -> Any:
    def check(control: Any, watched: Watched) -> None:
        if part.holds(watched.config.id):
            raise StoreError("unreadable")

    return check


def test_a_slice_that_was_left_out_looks_back_to_its_own_last_pass(installation: Installation) -> None:
    """Ticks that nobody delivered, and a worker that was away for hours."""
    control = installation.engine.control
    both = [Slice(0, 2), Slice(1, 2)]
    for part in both:
        watchdog.run(control, part=part)
    for hours in (1, 2, 3):
        installation.clock.move_to(START + timedelta(hours=hours, minutes=35))
        watchdog.run(control, part=both[0])
    watchdog.run(control, part=both[1])
    installation.settle()
    for name in NAMES:
        missed = installation.events(EventType.SCHEDULE_MISSED, name)
        assert [event.date[-3:] for event in missed] == ["T08", "T09", "T10", "T11"]


def test_a_stopped_pass_is_not_complete(installation: Installation, looked_at: list[str]) -> None:
    watchdog.run(installation.engine.control, pause=lambda: len(looked_at) == 5)
    assert len(looked_at) == 5
    assert last_complete(installation.engine.store) is None


def test_the_record_of_an_earlier_version_is_that_of_the_whole() -> None:
    assert WHOLE.key.sk == "WATCHDOG"
    assert slice_of({}) == WHOLE
    assert slice_of(Slice(3, 8).payload) == Slice(3, 8)


@pytest.mark.parametrize("payload", [{"slice": 4, "of": 4}, {"slice": -1}, {"slice": "a", "of": 2}, {"of": True}])
def test_a_slice_that_cannot_be_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="no slice"):
        slice_of(payload)


@pytest.mark.parametrize(("pipelines", "of"), [(0, 1), (500, 1), (501, 2), (10_000, 32), (10_000_000, 512)])
def test_how_many_slices_there_are(pipelines: int, of: int) -> None:
    assert slices_for(pipelines) == [Slice(number, of) for number in range(of)]


# -------------------------------------------------------------------------------------------------------- quiet


def test_a_pipeline_is_quiet_until_something_is_due_or_written() -> None:
    quiet, now = Quiet(), START
    assert not quiet.may_skip("a", now)
    quiet.looked_at("a", quiet.mark("a"), now, now + timedelta(minutes=30))
    assert quiet.may_skip("a", now + timedelta(minutes=29))
    assert not quiet.may_skip("a", now + timedelta(minutes=30))
    quiet.changed("a")
    assert not quiet.may_skip("a", now)
    quiet.looked_at("a", quiet.mark("a"), now, None)
    assert quiet.may_skip("a", now)
    assert not quiet.may_skip("a", now + LONGEST), "whatever nobody foresaw is found within the hour"


@pytest.mark.parametrize("every", [True, False])
def test_what_changes_during_a_look_is_looked_at_again(every: bool) -> None:
    quiet = Quiet()
    mark = quiet.mark("a")
    if every:
        quiet.all_changed()
    else:
        quiet.changed("a")
    quiet.looked_at("a", mark, START, None)
    assert not quiet.may_skip("a", START)


def watch(installation: Installation, looked_at: list[str], at: datetime) -> list[str]:
    looked_at.clear()
    installation.clock.move_to(at)
    assert installation.engine.watch(skip_quiet=True) == []
    installation.settle()
    return sorted(looked_at)


def test_a_pass_looks_only_at_those_that_changed_or_have_something_due(
    installation: Installation, looked_at: list[str]
) -> None:
    assert watch(installation, looked_at, START) == NAMES
    assert watch(installation, looked_at, START + timedelta(minutes=1)) == []
    installation.engine.store.commit([Put(records.control_key("PIPELINE#p07", "SENSOR#export"), {"n": 1})])
    installation.settle()
    assert watch(installation, looked_at, START + timedelta(minutes=2)) == ["p07"]
    assert installation.engine.watch() == []
    assert sorted(looked_at) == sorted(["p07", *NAMES]), "asked for by a person, a pass looks at all"


def test_a_tick_that_was_not_delivered_is_found_by_a_pass_that_skips(
    installation: Installation, looked_at: list[str]
) -> None:
    watch(installation, looked_at, START)
    assert watch(installation, looked_at, START + timedelta(minutes=10)) == NAMES, "08:00 is past"
    run = records.get_run(installation.engine.store, RunKey("p00", "cron", "2026-03-02T08"))
    assert run is not None
    assert run.status is RunStatus.PENDING


def test_what_is_under_way_is_always_looked_at(installation: Installation, looked_at: list[str]) -> None:
    installation.go_to("08:01:00")
    watch(installation, looked_at, START + timedelta(minutes=7))
    assert watch(installation, looked_at, START + timedelta(minutes=8)) == NAMES
    assert installation.engine.store.query(Table.CONTROL, "PIPELINE#p00", keys.ACTIVE)


@pytest.mark.parametrize("path", FILES[::3], ids=named)
def test_a_journey_comes_out_the_same_when_quiet_pipelines_are_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = undisturbed(path)
    full = Engine.watch

    def skipping(self: Engine, *, quiet_to: datetime | None = None) -> list[str]:
        return full(self, quiet_to=quiet_to, skip_quiet=True)

    monkeypatch.setattr(Engine, "watch", skipping)
    played = play(scenario_of(path))
    assert played.failures == []
    assert outcome(played.world) == wanted
