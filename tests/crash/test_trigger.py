"""A controller that dies around the call of a job's target: the job is started once, or somebody is told."""

import signal
from pathlib import Path

import pytest

from interlock.model.events import EventType
from interlock.model.run import FinalReason, Run, RunStatus
from tests.crash import pipelines
from tests.crash.ledger import CrashPoint
from tests.crash.stage import Stage, once_each

SLOT = pipelines.slots(1, 1)[0]


def _die_and_go_on(stage: Stage, point: CrashPoint, *, searchable: bool) -> Run:
    """One run whose controller dies there; how it stands after the next controller has come to its end."""
    pipelines.apply(stage.engine.control, SLOT.pipeline)
    answers = {"SEARCHABLE": "yes" if searchable else "no"}
    stage.start({"CRASH_AT": point.value, **answers})
    stage.say_ready(SLOT, direct=False)
    assert stage.wait_for_death() == -signal.SIGKILL
    left = stage.run(SLOT)
    assert left is not None
    assert left.status is (RunStatus.RUNNING if point is CrashPoint.AT_CHECK else RunStatus.TRIGGERING)
    stage.start(answers)
    stage.until(lambda: (run := stage.run(SLOT)) is not None and run.status.terminal)
    assert stage.stop() == 0
    run = stage.run(SLOT)
    assert run is not None
    assert stage.dead_letters() == 0
    return run


@pytest.mark.parametrize("point", [CrashPoint.BEFORE_CALL, CrashPoint.AFTER_CALL, CrashPoint.AT_CHECK])
def test_where_the_target_can_be_searched_the_job_is_started_once(tmp_path: Path, point: CrashPoint) -> None:
    with Stage(tmp_path) as stage:
        run = _die_and_go_on(stage, point, searchable=True)
        assert run.status is RunStatus.COMPLETED
        assert stage.starts() == {(SLOT.pipeline, SLOT.date, 1): 1}
        for type_ in (EventType.VALIDATION_PASSED, EventType.JOB_TRIGGERED, EventType.JOB_COMPLETED):
            assert stage.events(type_) == once_each([SLOT]), type_


@pytest.mark.parametrize(("point", "starts"), [(CrashPoint.BEFORE_CALL, 0), (CrashPoint.AFTER_CALL, 1)])
def test_where_nobody_can_tell_nothing_is_started_again_and_somebody_is_told(
    tmp_path: Path, point: CrashPoint, starts: int
) -> None:
    with Stage(tmp_path) as stage:
        run = _die_and_go_on(stage, point, searchable=False)
        assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.UNCERTAIN)
        assert stage.starts().total() == starts
        assert stage.events(EventType.TRIGGER_UNCERTAIN) == once_each([SLOT])
        assert stage.events(EventType.JOB_TRIGGERED).total() == 0
