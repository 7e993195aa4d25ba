"""No sensor and no config that is accepted makes a commit that a store refuses (limits are counted as DynamoDB's)."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.decide.event_size import MAX_EVENT_BYTES, fitted
from interlock.model.errors import SensorRefusedError
from interlock.model.events import CATALOGUE, Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus
from interlock.model.sensor import MAX_SENSOR_BYTES, check_observation
from interlock.model.times import parse_instant
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

DAY = "2026-03-02"
KEY = RunKey("orders", "stream", DAY)
READY = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
LARGE = 60_000


def document(watched: list[str], **changes: Any) -> dict[str, Any]:
    rules = [{"key": name, "check": "exists"} for name in watched]
    return {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": READY, "evaluation": {"window": "1h", "interval": "5m"}},
        "validation": {"rules": [READY]},
        "job": {"type": "glue", "config": {"jobName": "etl"}},
        "postRun": {"rules": rules, "driftField": "rows", "driftThreshold": 5},
    } | changes


def played(pipeline: dict[str, Any], steps: list[tuple[str, str, dict[str, Any]]], rerun_at: str = "") -> World:
    asked = [{"at": f"{DAY}T{rerun_at}:00Z", "rerun": "orders", "date": DAY, "schedule": "stream"}] if rerun_at else []
    scenario = inline_scenario(
        start=f"{DAY}T08:00:00Z",
        until=f"{DAY}T12:00:00Z",
        pipelines=[pipeline],
        jobs={"orders": [{"after": "30m"}]},
        steps=[{"at": f"{DAY}T{at}:00Z", "sensor": f"orders/{key}", "data": {}} for at, key, _ in steps] + asked,
    )
    # Past the reader: together they are more than a file may have.
    given = [
        replace(timed, step=replace(timed.step, data=steps[index][2])) if index < len(steps) else timed
        for index, timed in enumerate(scenario.steps)
    ]
    world = World(replace(scenario, steps=tuple(given)))
    world.play()
    return world


def run_of(world: World) -> Run:
    run = world.run_of(KEY)
    assert run is not None
    return run


def types(world: World) -> list[EventType]:
    return [event.type for event in world.events]


def large(rows: int) -> dict[str, Any]:
    return {"rows": rows, "padding": "x" * LARGE, "date": DAY}


WATCHED = [f"watched{number}" for number in range(7)]
TRIGGER = {"status": "ready", "date": DAY}


def test_seven_large_post_run_sensors_before_the_job() -> None:
    before = [("08:01", name, large(100)) for name in WATCHED]
    world = played(document(WATCHED), [*before, ("08:10", "ready", TRIGGER), ("09:00", WATCHED[3], large(150))])
    assert EventType.INFRA_FAILURE not in types(world)
    assert world.dead_letters() == 0
    drift = next(event for event in world.events if event.type is EventType.POST_RUN_DRIFT)
    assert (drift.detail["key"], drift.detail["baseline"], drift.detail["current"]) == (WATCHED[3], 100, 150)
    captured = next(event for event in world.events if event.type is EventType.POST_RUN_BASELINE_CAPTURED)
    assert captured.detail["cut"] == ["baseline"]
    assert set(captured.detail["baseline"]) == set(WATCHED)


def test_seven_large_post_run_sensors_while_the_job_runs() -> None:
    meanwhile = [("08:20", name, large(100)) for name in WATCHED]
    world = played(document(WATCHED), [("08:10", "ready", TRIGGER), *meanwhile, ("09:00", WATCHED[0], large(94))])
    assert EventType.INFRA_FAILURE not in types(world)
    assert types(world).count(EventType.POST_RUN_DRIFT) == 1
    assert world.dead_letters() == 0


def test_large_sensors_that_first_come_after_the_completion_do_not_let_a_rerun_pass() -> None:
    """The circuit breaker compares digests of the whole, not of what the baseline keeps of it."""
    after = [("09:00", name, large(100)) for name in WATCHED]
    world = played(document(WATCHED), [("08:10", "ready", TRIGGER), *after], rerun_at="10:00")
    assert EventType.RERUN_REJECTED in types(world)
    assert world.dead_letters() == 0


def test_late_data_names_a_hundred_changes_and_no_more() -> None:
    name = "n" * 20_000
    first, second = ({**TRIGGER, name: {f"f{number}": value for number in range(4_000)}} for value in (1, 2))
    world = played(document(WATCHED), [("08:10", "ready", first), ("09:00", "ready", second)])
    late = next(event for event in world.events if event.type is EventType.LATE_DATA_ARRIVAL)
    assert len(late.detail["changed"]) == 101
    assert late.detail["changed"][-1] == "..."
    assert world.dead_letters() == 0


def test_numerals_without_end_are_compared_by_their_first_hundred_digits() -> None:
    long = "1." + "3" * 50_000
    before = [("08:01", name, {"rows": long, "date": DAY}) for name in WATCHED]
    again = {"rows": long + "4", "date": DAY}
    world = played(
        document(WATCHED, postRun=document(WATCHED)["postRun"] | {"driftThreshold": 0}),
        [*before, ("08:10", "ready", TRIGGER), ("09:00", WATCHED[0], again)],
    )
    assert EventType.INFRA_FAILURE not in types(world)
    assert EventType.POST_RUN_DRIFT not in types(world)
    assert run_of(world).status is RunStatus.COMPLETED


# ------------------------------------------------------------------------------------------------------ the event


def event(message: str = "m", **detail: Any) -> Event:
    type_ = EventType.VALIDATION_PASSED
    at = parse_instant(f"{DAY}T08:00:00Z")
    assert at is not None
    return Event(
        type=type_,
        severity=CATALOGUE[type_].severity,
        pipeline_id="orders",
        schedule_id="stream",
        date=DAY,
        message=message,
        timestamp=at,
        detail=detail,
    )


def test_an_event_that_fits_is_left_alone() -> None:
    one = event(results=[{"key": "a"}] * 1000, text="x" * 100_000)
    assert fitted(one) is one


def test_small_fields_stay_whole_beside_a_large_one() -> None:
    one = fitted(event(attempt=3, results=[{"key": f"{number:0100}"} for number in range(10_000)]))
    assert one.detail["attempt"] == 3
    assert one.detail["cut"] == ["results"]
    assert len(one.detail["results"]) > 1000
    assert all(set(result) == {"key"} for result in one.detail["results"])


def nested(levels: int) -> Any:
    return {"a": nested(levels - 1)} if levels else "bottom"


# ------------------------------------------------------------------------------------------------------ everything

TEXT = st.builds(
    lambda text, times: text * times, st.text(min_size=1, max_size=8), st.sampled_from([1, 1, 1, 100, 4_000, 30_000])
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**37), 10**37),
    st.floats(-1e20, 1e20),
    TEXT,
    st.integers(1, 60_000).map(lambda digits: "7." + "1" * digits),
)
LISTS = st.builds(lambda value, times: [value] * times, SCALARS, st.sampled_from([1, 10, 30_000]))
FIELDS = st.sampled_from(["rows", "stats", "status", "date"]) | TEXT
VALUES = st.one_of(SCALARS, LISTS, st.integers(1, 30).map(nested), st.dictionaries(FIELDS, SCALARS, max_size=4))


def accepted(data: dict[str, Any]) -> bool:
    try:
        check_observation("any", data)
    except SensorRefusedError:
        return False
    return True


def filled(data: dict[str, Any], filler: Any, name: str) -> dict[str, Any]:
    """The observation with as many fillers as it may have: almost 64 KiB."""
    free = MAX_SENSOR_BYTES - 100 - len(msgspec.json.encode(data)) - len(name)
    times = max(0, free // (len(msgspec.json.encode(filler)) + 1))
    return data | {name: filler * times if isinstance(filler, str) else [filler] * times}


SMALL = st.dictionaries(FIELDS, VALUES, max_size=5).map(lambda data: {**data, "date": DAY}).filter(accepted)
FILLER: st.SearchStrategy[Any] = st.sampled_from(["x", "\n", "7", "é", 1, None, True, [], {"": 0}])
DATA = SMALL | st.builds(filled, SMALL, FILLER, st.sampled_from(["rows", "padding", "status"])).filter(accepted)
NAMES = st.lists(
    st.builds(lambda letter, length: letter * length, st.sampled_from("abcdefgh"), st.sampled_from([1, 20, 400])),
    min_size=1,
    max_size=12,
    unique=True,
)
RULE: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"check": "exists"},
        {"check": "equals", "field": "rows", "value": "x"},
        {"check": "gte", "field": "stats", "value": 1},
        {"check": "ne", "field": "a", "value": "y" * 5_000},
    ]
)


Story = tuple[dict[str, Any], list[tuple[str, str, dict[str, Any]]]]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """A pipeline and what is written to it: before, while and after its job runs."""
    watched = draw(NAMES)
    rules = [{"key": name, **draw(RULE)} for name in watched]
    pipeline = document(watched, dryRun=draw(st.booleans()))
    pipeline["validation"] = {"trigger": draw(st.sampled_from(["ANY", "ALL"])), "rules": [READY, *rules]}
    pipeline["postRun"] |= {"driftField": draw(st.sampled_from(["rows", "stats.rows", "d" * 3_000]))}
    pool = draw(st.lists(DATA, min_size=1, max_size=3))
    # Drawn by number: Hypothesis may print a strategy, and warns of one that holds this much.
    places = st.integers(0, len(pool) - 1)
    steps = [("08:10", "ready", {**pool[draw(places)], **TRIGGER})]
    for at in ("08:01", "08:20", "09:00", "09:30"):
        some = st.lists(st.sampled_from(["ready", *watched]), max_size=6)
        steps += [(at, name, pool[draw(places)]) for name in draw(some | st.just(watched))]
    if not all(accepted(data) for _, _, data in steps):
        steps = [(at, name, TRIGGER if name == "ready" else data) for at, name, data in steps]
    return pipeline, sorted(steps, key=lambda step: step[0])


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(stories())
def test_no_legal_sensor_and_no_legal_config_makes_a_commit_too_large(story: Story) -> None:
    hold(story)


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(stories())
def test_no_legal_sensor_and_no_legal_config_of_many_makes_a_commit_too_large(story: Story) -> None:
    hold(story)


def hold(story: Story) -> None:
    pipeline, steps = story
    world = played(pipeline, steps)
    assert world.dead_letters() == 0
    assert EventType.INFRA_FAILURE not in types(world)
    assert all(len(msgspec.json.encode(one)) <= MAX_EVENT_BYTES for one in world.events)


@pytest.mark.parametrize("levels", [5, 20, 28, 30])
def test_deep_sensors_are_remembered_and_told_of(levels: int) -> None:
    deep = {"rows": 1, "date": DAY, "deep": nested(levels)}
    before = [("08:01", name, deep) for name in WATCHED]
    world = played(
        document(WATCHED), [*before, ("08:10", "ready", TRIGGER), ("09:00", WATCHED[0], {**deep, "rows": 9})]
    )
    assert run_of(world).attempt == 2
    assert EventType.INFRA_FAILURE not in types(world)
    assert world.dead_letters() == 0
