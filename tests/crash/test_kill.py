"""`kill -9` of a real controller in the middle of its runs loses nothing and starts no job twice."""

import random
import threading
from pathlib import Path

import pytest

from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from tests.crash import pipelines
from tests.crash.stage import Stage, once_each

ONCE = (
    EventType.TRIGGER_STARTED,
    EventType.VALIDATION_PASSED,
    EventType.JOB_TRIGGERED,
    EventType.JOB_COMPLETED,
)


@pytest.mark.parametrize(
    ("count", "days", "kills", "seed"),
    [(20, 4, 3, 1), pytest.param(100, 10, 6, 2, marks=pytest.mark.slow)],
    ids=["80 runs", "1000 runs"],
)
def test_no_kill_loses_a_run_or_starts_a_job_twice(
    tmp_path: Path, count: int, days: int, kills: int, seed: int
) -> None:
    chance = random.Random(seed)
    slots = pipelines.slots(count, days)
    with Stage(tmp_path) as stage:
        for number in range(count):
            pipelines.apply(stage.engine.control, pipelines.name_of(number))
        writer = _write_all(stage, slots)
        # Progress, not time, says when: somewhere within each of `kills` equal parts of the work.
        part = len(slots) // (kills + 1)
        for number in range(kills):
            stage.start()
            enough = number * part + chance.randrange(part)
            stage.until(lambda enough=enough: stage.starts().total() >= enough)  # type: ignore[misc]
            stage.kill()
        stage.start()
        writer.join()
        stage.until(lambda: stage.events(EventType.JOB_COMPLETED).total() >= len(slots))
        assert stage.stop() == 0
        _check(stage, slots)


def _write_all(stage: Stage, slots: list[RunKey]) -> threading.Thread:
    """Write all sensors, from this process, while the controllers come and go."""

    def write() -> None:
        for number, key in enumerate(slots):
            stage.say_ready(key, direct=number % 2 == 0)

    writer = threading.Thread(target=write)
    writer.start()
    return writer


def _check(stage: Stage, slots: list[RunKey]) -> None:
    assert [key for key in slots if not stage.has_sensor(key)] == []
    runs = {key: stage.run(key) for key in slots}
    unfinished = {key: run for key, run in runs.items() if run is None or run.status is not RunStatus.COMPLETED}
    assert unfinished == {}
    assert {run.attempt for run in runs.values() if run is not None} == {1}
    assert stage.starts() == {(key.pipeline, key.date, 1): 1 for key in slots}
    for type_ in ONCE:
        assert stage.events(type_) == once_each(slots), type_
    assert stage.dead_letters() == 0
