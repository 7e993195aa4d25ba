"""`kill -9` of a real `interlock serve` whose jobs are real processes: each runs once, and its end counts."""

import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory, FinalReason, RunStatus
from tests.crash import pipelines
from tests.crash.command_stage import END, START, CommandStage
from tests.crash.serve_process import Accident
from tests.crash.stage import once_each

DAY = str(pipelines.FIRST_DAY)
ONCE = (
    EventType.TRIGGER_STARTED,
    EventType.VALIDATION_PASSED,
    EventType.JOB_TRIGGERED,
    EventType.JOB_COMPLETED,
)


def _slot(pipeline: str) -> RunKey:
    return RunKey(pipeline, "stream", DAY)


def _ready(stage: CommandStage, slots: Sequence[RunKey]) -> None:
    for key in slots:
        stage.say_ready(key, direct=False)


# ------------------------------------------------------------------------------------------------------------ in bulk

# What there is to be seen, and how much of it, says when to kill.
Progress = Callable[[CommandStage, Sequence[RunKey]], int]


def _intended(stage: CommandStage, slots: Sequence[RunKey]) -> int:
    """Runs for which a target is, was, or is about to be called."""
    return sum(run is not None and run.run_id != "" for run in map(stage.run, slots))


def _begun(stage: CommandStage, _slots: Sequence[RunKey]) -> int:
    return sum(line.mark == START for line in stage.ledger())


def _ended(stage: CommandStage, _slots: Sequence[RunKey]) -> int:
    return sum(line.mark == END for line in stage.ledger())


def _completed(stage: CommandStage, _slots: Sequence[RunKey]) -> int:
    return stage.events(EventType.JOB_COMPLETED).total()


def test_no_kill_loses_a_command_or_runs_one_twice(tmp_path: Path) -> None:
    """Killed while jobs are being started, run, have just ended; a quarter of them run on until they are let go."""
    chance = random.Random(3)
    slots = pipelines.slots(20, 5)
    moments: list[Progress] = [_intended, _begun, _ended, _completed]
    with CommandStage(tmp_path) as stage:
        for number in range(20):
            stage.pipeline(pipelines.name_of(number))
        held = slots[::4]
        for key in held:
            stage.hold(key)
        unseen: list[RunKey] = []
        for number, progress in enumerate(moments):
            batch = slots[20 * number : 20 * number + 20]
            stage.start()
            enough = progress(stage, batch) + chance.randint(1, 10)
            _ready(stage, batch)
            stage.until(lambda: progress(stage, batch) >= enough)  # noqa: B023
            stage.kill()
            unseen += _end_unseen(stage, [key for key in held if key not in unseen])
        _ready(stage, slots[80:])
        stage.start()
        for key in held:
            if key not in unseen:
                stage.release(key)
        stage.until(lambda: stage.events(EventType.JOB_COMPLETED).total() >= len(slots))
        assert stage.stop() == 0
        assert 0 < len(unseen) < len(held)
        _check_once(stage, slots)


def _end_unseen(stage: CommandStage, held: Sequence[RunKey]) -> list[RunKey]:
    """While no controller lives: let every other of the jobs that run go; those."""
    going = [key for key in held if stage.marks(key) == [(START, 1)]][::2]
    for key in going:
        stage.release(key)
        stage.await_end(key)
    return going


def _check_once(stage: CommandStage, slots: Sequence[RunKey]) -> None:
    runs = {key: stage.latest(key) for key in slots}
    assert {(run.status, run.attempt) for run in runs.values()} == {(RunStatus.COMPLETED, 1)}
    lines = stage.ledger()
    by_mark = {mark: [(line.run_id, line.pid) for line in lines if line.mark == mark] for mark in (START, END)}
    assert Counter(run_id for run_id, _ in by_mark[START]) == Counter(run.run_id for run in runs.values())
    assert sorted(by_mark[START]) == sorted(by_mark[END])
    for type_ in ONCE:
        assert stage.events(type_) == once_each(slots), type_
    assert stage.dead_letters() == 0


# ---------------------------------------------------------------------------------------------------------- exit codes


def test_the_exit_code_decides_also_of_a_job_that_ended_while_nobody_ran(tmp_path: Path) -> None:
    budgets: dict[str, dict[str, int]] = {
        "done": {},
        "passing": {"maxRetries": 1},
        "broken": {"maxCodeRetries": 1},
        "spent": {"maxRetries": 0},
        "hopeless": {"maxCodeRetries": 1},
        "lasting": {},
    }
    codes = {"done": 0, "passing": 75, "broken": 3, "spent": 75, "hopeless": 4}
    slots = {name: _slot(name) for name in budgets}
    hopeless, lasting = slots["hopeless"], slots["lasting"]
    with CommandStage(tmp_path) as stage:
        for name, budget in budgets.items():
            stage.pipeline(name, **budget)
            stage.hold(slots[name])
        stage.hold(hopeless, 2)
        stage.start()
        _ready(stage, list(slots.values()))
        stage.await_held(list(slots.values()))
        stage.kill()
        for name, code in codes.items():
            stage.release(slots[name], code=code)
            stage.await_end(slots[name])
        stage.start()
        stage.await_status(RunStatus.COMPLETED, slots["done"], slots["passing"], slots["broken"])
        stage.await_held([hopeless], 2)
        stage.kill()
        stage.release(hopeless, 2, code=codes["hopeless"])
        stage.await_end(hopeless)
        stage.start()
        stage.await_status(RunStatus.FAILED_FINAL, hopeless, slots["spent"])
        assert stage.latest(lasting).status is RunStatus.RUNNING
        stage.release(lasting)
        stage.await_status(RunStatus.COMPLETED, lasting)
        assert stage.stop() == 0

        once, twice = [(START, 1), (END, 1)], [(START, 1), (END, 1), (START, 2), (END, 2)]
        marks = {name: stage.marks(key) for name, key in slots.items()}
        retried = ("passing", "broken", "hopeless")
        assert marks == {name: twice if name in retried else once for name in slots}
        assert [stage.latest(slots[name]).final_reason for name in ("hopeless", "spent")] == [
            FinalReason.RETRIES_USED_UP,
            FinalReason.RETRIES_USED_UP,
        ]
        completed = [slots[name] for name in ("done", "passing", "broken", "lasting")]
        assert stage.events(EventType.JOB_COMPLETED) == once_each(completed)
        failed = [slots[name] for name in ("passing", "broken", "spent", "hopeless", "hopeless")]
        assert stage.events(EventType.JOB_FAILED) == once_each(failed)
        assert stage.events(EventType.RETRY_EXHAUSTED) == once_each([hopeless, slots["spent"]])
        assert stage.dead_letters() == 0


# ------------------------------------------------------------------------------------------------------------ wrappers


def test_a_job_whose_wrapper_was_killed_is_lost_once_it_is_over_and_never_runs_beside_its_retry(tmp_path: Path) -> None:
    stillborn = _slot("stillborn")  # killed before it did anything
    seen, spent = _slot("seen"), _slot("spent")  # under a living controller
    orphan, unseen, swept = _slot("orphan"), _slot("unseen"), _slot("swept")  # under none
    held = [seen, spent, orphan, unseen, swept]
    with CommandStage(tmp_path) as stage:
        stage.pipeline(stillborn.pipeline, maxRetries=1, pollInterval="1s")
        for key in held:
            stage.pipeline(key.pipeline, maxRetries=0 if key is spent else 1)
            stage.hold(key)
        stage.start_for(Accident.STILLBORN, stillborn)
        _ready(stage, [stillborn, *held])
        stage.await_held(held)
        for key in (seen, spent):
            stage.kill_wrapper(key)
            stage.release(key)
        stage.await_status(RunStatus.COMPLETED, stillborn, seen)
        stage.await_status(RunStatus.FAILED_FINAL, spent)
        stage.kill()
        stage.kill_wrapper(orphan)
        stage.kill_wrapper(unseen)
        stage.release(unseen)
        stage.kill_wrapper(swept, and_command=True)
        stage.start()
        stage.await_status(RunStatus.COMPLETED, unseen, swept)
        assert (stage.latest(orphan).status, stage.marks(orphan)) == (RunStatus.RUNNING, [(START, 1)])
        stage.release(orphan)
        stage.await_status(RunStatus.COMPLETED, orphan)
        assert stage.stop() == 0

        twice = [(START, 1), (END, 1), (START, 2), (END, 2)]
        assert [stage.marks(key) for key in (seen, orphan, unseen)] == [twice] * 3
        assert stage.marks(swept) == [(START, 1), (START, 2), (END, 2)]
        assert stage.marks(stillborn) == [(START, 2), (END, 2)]
        assert stage.marks(spent) == [(START, 1), (END, 1)]
        assert stage.latest(spent).final_reason is FinalReason.RETRIES_USED_UP
        for key in (stillborn, *held):
            lost = stage.job_log(key)[0]
            assert (lost.attempt, lost.category) == (1, FailureCategory.TRANSIENT)
            assert ("its wrapper ended" if key is stillborn else "vanished") in lost.error
        assert stage.events(EventType.JOB_FAILED) == once_each([stillborn, *held])
        assert stage.events(EventType.JOB_COMPLETED) == once_each([stillborn, seen, orphan, unseen, swept])
        assert stage.events(EventType.RETRY_EXHAUSTED) == once_each([spent])
        assert stage.dead_letters() == 0


# -------------------------------------------------------------------------------------------------------- step by step

STARTING = (Accident.BEFORE_CLAIM, Accident.AFTER_CLAIM, Accident.AFTER_SPAWN, Accident.BEFORE_RUNNING)
ENDING = (Accident.BEFORE_OUTCOME, Accident.AFTER_OUTCOME)


def test_a_kill_at_any_step_of_a_command_has_it_run_once(tmp_path: Path) -> None:
    """One controller after the other dies of its own job, and mends what the one before has left."""
    slots = {accident: _slot(accident.value) for accident in (*STARTING, *ENDING)}
    with CommandStage(tmp_path) as stage:
        for key in slots.values():
            stage.pipeline(key.pipeline)
            stage.hold(key)
        for accident, key in slots.items():
            stage.start_for(accident, key)
            _ready(stage, [key])
            if accident in ENDING:
                stage.await_held([key])
                stage.release(key)
            assert stage.wait_for_death() == -signal.SIGKILL
            if accident is not Accident.AFTER_OUTCOME:  # which the dying may just have acted upon
                assert stage.latest(key).status is (RunStatus.TRIGGERING if accident in STARTING else RunStatus.RUNNING)
            assert bool(stage.job_log(key)) == (accident is Accident.AFTER_OUTCOME)
        stage.start()
        for accident in STARTING:
            stage.release(slots[accident])
        stage.await_status(RunStatus.COMPLETED, *slots.values())
        assert stage.stop() == 0
        _check_once(stage, list(slots.values()))
