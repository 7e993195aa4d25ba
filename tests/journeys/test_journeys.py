"""The scenario files of this folder: each comes out as it says, always the same, and whatever crashes on the way.

They are written from the specification and are meant to be read as documentation of the behaviour.
"""

import random
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from interlock.control import records
from interlock.embedded import engine as engine_module
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.embedded.asl.lifecycle import lifecycle_document
from interlock.embedded.sqlite.database import AFTER_COMMIT, BEFORE_COMMIT
from interlock.model import keys
from interlock.model.events import CATALOGUE, Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import FinalReason, Run, RunStatus, Source
from interlock.simulation.play import play, play_file
from interlock.simulation.scenario import Scenario, load_scenario
from interlock.simulation.world import Line, SimulatedCrash, World
from tests.safety.invariants import violations

HERE: Final = Path(__file__).parent
MEDALLION: Final = HERE.parent.parent / "examples" / "medallion" / "scenario.yaml"
FILES: Final = [*sorted(HERE.glob("*.yaml")), MEDALLION]
TOPICS: Final = (
    "calendar", "cancel", "cascade", "config", "crash", "cron", "dry-run", "job", "late-data", "opening", "pool",
    "postrun", "probe", "rerun", "retry", "sensor", "sla", "trigger", "waiting", "watchdog",
)  # fmt: skip

# How often a commit is a crash, just before it or just after: every k-th, or one in k by a die that always falls the
# same. The dice meet every pair of neighbouring commits; a strict rhythm shorter than these could strike the restarted
# controller at the same place forever.
RHYTHMS: Final = ["before every 7th", "after every 13th", "before 1 in 3", "after 1 in 3"]
# Each journey meets a crash before its commits and one after them; `make test-all` plays all four.
USUAL: Final = (RHYTHMS[1:3], [RHYTHMS[0], RHYTHMS[3]])
# A day of hours or a month of days repeats itself: two rhythms are enough, and a crash at each third commit is slow.
LONG: Final = frozenset({"cascade-all-hours", "cascade-held-by-a-missing-hour", "cron-a-month-of-days", "medallion"})
# A refused start that a crash made again counts as one of its tries, so the run is further on at the instant at which
# this journey stops to look; how it ends is the same, as the other journeys with refusals show.
SEEN_IN_MID_FLIGHT: Final = frozenset({"job-where-everything-stands"})

Stand = tuple[RunKey, RunStatus, int, Source, FinalReason | None]
Told = tuple[EventType, str, str, str, int | None]
Outcome = tuple[list[Stand], Counter[Told]]


def named(path: Path) -> str:
    return "medallion" if path == MEDALLION else path.stem


@lru_cache(maxsize=len(FILES))
def scenario_of(path: Path) -> Scenario:
    return load_scenario(path)


class Journey(NamedTuple):
    """What is left of a journey that nothing disturbed."""

    failures: list[str]
    lines: list[Line]
    outcome: Outcome
    runs: list[Run]
    visited: frozenset[str]
    violations: list[str]

    @property
    def events(self) -> list[Event]:
        return [line for line in self.lines if isinstance(line, Event)]


@lru_cache(maxsize=len(FILES))
def journey(path: Path) -> Journey:
    """Played once for all tests that ask what it leads to; its world is not kept."""
    visited: set[str] = set()
    watched = partial(SqliteExecutions, on_enter=lambda _name, state, _at: visited.add(state))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "SqliteExecutions", watched)
        played = play(scenario_of(path))
    return Journey(
        failures=[failure.message for failure in played.failures],
        lines=list(played.lines),
        outcome=outcome(played.world),
        runs=list(runs_of(played.world)),
        visited=frozenset(visited),
        violations=violations(played.world),
    )


def undisturbed(path: Path) -> Outcome:
    return journey(path).outcome


def runs_of(world: World) -> Iterator[Run]:
    store = world.engine.store
    for pipeline in store.pipelines():
        for found in store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.RUN):
            yield records.convert(found.item, Run, found.key)


def outcome(world: World) -> Outcome:
    """How the runs stand in the end, and which events were committed, how often; not when, nor under which ids."""
    runs: list[Stand] = [(run.key, run.status, run.attempt, run.source, run.final_reason) for run in runs_of(world)]
    reported: Counter[Told] = Counter(
        (event.type, event.pipeline_id, event.schedule_id, event.date, event.detail.get("attempt"))
        for event in world.events
    )
    return runs, reported


class Crashes:
    """The fault of a rhythm: makes commits crash."""

    def __init__(self, rhythm: str) -> None:
        when, how, *rest = rhythm.split()
        self._point = BEFORE_COMMIT if when == "before" else AFTER_COMMIT
        self._k = int(rest[-1].removesuffix("th"))
        self._die = random.Random(rhythm) if how == "1" else None
        self._commits = 0

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._commits += 1
            if self._strikes():
                raise SimulatedCrash

    def _strikes(self) -> bool:
        return self._commits % self._k == 0 if self._die is None else self._die.randrange(self._k) == 0


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_journey_comes_out_as_it_says_and_the_same_when_played_again(path: Path) -> None:
    first = journey(path)
    again = play_file(path)

    assert first.failures == []
    assert again.lines == first.lines
    # A pattern may name the fields of the catalogue, and no others: so they must all be there.
    unlisted = {(one.type, field) for one in first.events for field in one.detail} - {
        (type_, field) for type_, entry in CATALOGUE.items() for field in entry.fields
    }
    assert unlisted == set()


def crashing() -> Iterator[object]:
    """Each journey with each rhythm that it is to survive."""
    for number, path in enumerate(path for path in FILES if named(path) not in SEEN_IN_MID_FLIGHT):
        long = named(path) in LONG
        for rhythm in RHYTHMS[: 2 if long else None]:
            marks = () if long or rhythm in USUAL[number % 2] else pytest.mark.long
            yield pytest.param(path, rhythm, id=f"{named(path)}-{rhythm}", marks=marks)


@pytest.mark.parametrize(("path", "rhythm"), list(crashing()))
def test_crashes_at_commits_change_neither_the_runs_nor_the_events(path: Path, rhythm: str) -> None:
    played = play(scenario_of(path), fault=Crashes(rhythm))

    assert played.world.crashes > 0
    assert played.world.dead_letters() == 0
    runs, reported = outcome(played.world)
    expected_runs, expected_told = undisturbed(path)
    assert runs == expected_runs
    assert reported == expected_told
    assert [start for start, count in Counter(played.world.targets.starts).items() if count > 1] == []


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_journey_explains_itself_and_expects_something(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert document["name"]
    assert document["description"].count(". ") + 1 >= 2, "two or three sentences that a data engineer understands"
    expect = document["expect"]
    assert any("at" in event for event in expect["events"])
    assert sum(len(expect.get(part, [])) for part in ("never", "counts", "runs")) >= 1
    assert path == MEDALLION or path.stem.startswith(TOPICS)


# ----------------------------------------------------------------------------------------------------- coverage

# What no scenario can bring about, because a scenario's targets and store are sound and the controller is never away
# for a time. `tests/control/test_rare_events.py` provokes each of them on the real engine.
NOT_IN_SCENARIOS: Final = frozenset(
    {
        EventType.BASELINE_CAPTURE_FAILED,  # needs a store that cannot be read
        EventType.CONFIG_FOLDER_LOST,  # a scenario has no folder
        EventType.CONFIG_INVALID,  # an invalid config is refused when the scenario is read
        EventType.CONFIG_RESTORED,  # so none is mended, either
        EventType.INFRA_ALARM,  # comes from the infrastructure below
        EventType.INFRA_FAILURE,  # needs a store that cannot be read
        EventType.SFN_TIMEOUT,  # the embedded execution is bounded so that its windows fit
        EventType.TRIGGER_UNCERTAIN,  # needs a target that cannot be searched
        EventType.WATCHDOG_DEGRADED,  # needs a record that cannot be read
    }
)
# RecordInfraFailure, and the Fail state behind it, are the way out for what goes wrong below us.
STATES_NOT_IN_SCENARIOS: Final = frozenset({"RecordInfraFailure", "InfraFailure"})
# Nothing cancels a run yet.
REASONS_NOT_IN_SCENARIOS: Final = frozenset({FinalReason.INFRA, FinalReason.STALE, FinalReason.UNCERTAIN})
# Passed through within one commit: no reader ever finds a run there.
STATUSES_NEVER_AT_REST: Final = frozenset({RunStatus.JOB_POLL_EXHAUSTED})


def states_of_the_lifecycle() -> set[str]:
    placeholders = ("orchestrator_arn", "sla_monitor_arn", "control_table")
    numbers = {"sfn_timeout_seconds": "1", "trigger_max_attempts": "1"}
    return set(lifecycle_document(dict.fromkeys(placeholders, "x") | numbers)["States"])


def test_together_the_journeys_see_everything_that_can_happen() -> None:
    journeys = [journey(path) for path in FILES]
    events = [event for one in journeys for event in one.events]
    runs = [run for one in journeys for run in one.runs]
    visited = {state for one in journeys for state in one.visited}

    assert set(EventType) - {event.type for event in events} == NOT_IN_SCENARIOS
    assert states_of_the_lifecycle() - visited == STATES_NOT_IN_SCENARIOS
    opened_by = {event.detail["source"] for event in events if event.type is EventType.TRIGGER_STARTED}
    assert set(Source) - opened_by == set()
    assert set(RunStatus) - {run.status for run in runs} == STATUSES_NEVER_AT_REST
    assert set(FinalReason) - {run.final_reason for run in runs} == REASONS_NOT_IN_SCENARIOS
