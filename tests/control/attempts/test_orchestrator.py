"""The lifecycle's tasks: each acts for the attempt it is called for, and says the same when it is repeated."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.attempts import completion, orchestrator
from interlock.decide import transitions
from interlock.decide.verdicts import read_verdicts
from interlock.model import keys
from interlock.model.config import JobType
from interlock.model.errors import InterlockError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Cancel, FailureCategory, FinalReason, JobEvent, RunStatus
from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus
from interlock.ports.store import Delete
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.mute_target import MuteTarget
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import interrupted, touches
from tests.safety.stage import KEY, control_of, count_events, has, pipeline, run_of, staged, write

NOW: Final = datetime(2026, 3, 5, tzinfo=UTC)


def waiting() -> FaultyWorld:
    return staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="2026-03-05T00:15:00Z")


def call(world: FaultyWorld, mode: str, attempt: int = 1, **more: Any) -> dict[str, Any]:
    task = {"mode": mode, "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": attempt}
    return orchestrator.handle(control_of(world), task | more)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        (timedelta(seconds=90), 90),
        (timedelta(milliseconds=1001), 2),
        (timedelta(milliseconds=1), 1),
        (timedelta(0), 1),
        (timedelta(seconds=-30), 1),
    ],
)
def test_a_wait_is_whole_seconds_rounded_up_and_never_none(left: timedelta, seconds: int) -> None:
    assert orchestrator.seconds_until(NOW, NOW + left, NOW + timedelta(days=1)) == seconds


def test_a_mode_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    with pytest.raises(InterlockError, match="the orchestrator has no mode 'dance': it has evaluate"):
        call(waiting(), "dance")


def test_the_rules_are_passed_once_and_the_answer_is_the_same_when_it_is_asked_for_again() -> None:
    world = waiting()
    write(world, "rows", n=1)
    assert call(world, "evaluate")["status"] == "passed"
    passed = run_of(world)
    assert passed.passed_at == world.clock.now()
    assert call(world, "evaluate") == {"status": "passed"}
    assert run_of(world) == passed
    assert count_events(world, EventType.VALIDATION_PASSED) == 1


def test_rules_that_do_not_pass_are_looked_at_again() -> None:
    world = waiting()
    answer = call(world, "evaluate")
    assert answer["status"] not in ("passed", "superseded")
    assert run_of(world).passed_at is None


@pytest.mark.parametrize("attempt", [0, 2])
def test_another_attempt_is_superseded_and_changes_nothing(attempt: int) -> None:
    world = waiting()
    write(world, "rows", n=1)
    before = run_of(world)
    assert call(world, "evaluate", attempt)["status"] == "superseded"
    assert run_of(world) == before


def test_a_run_that_has_vanished_is_superseded() -> None:
    world = waiting()
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    assert call(world, "evaluate")["status"] == "superseded"
    assert world.run_of(KEY) is None


def test_a_run_that_is_over_is_not_evaluated() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    assert run_of(world).status is RunStatus.COMPLETED
    assert call(world, "evaluate")["status"] == "superseded"


@pytest.mark.parametrize(("setting", "state"), [("leave", JobState.RUNNING), ("stop", JobState.FAILED)])
def test_a_job_whose_poll_window_has_closed_is_left_or_stopped(setting: str, state: JobState) -> None:
    """`job.onPollExhausted`: the run is over either way; only `stop` asks the target to end the job."""
    job = {"type": "glue", "config": {"jobName": "etl"}, "jobPollWindowSeconds": 600, "onPollExhausted": setting}
    world = World(
        inline_scenario(
            start="2026-03-02T07:55:00Z",
            until="2026-03-02T09:00:00Z",
            pipelines=[
                {
                    "pipeline": {"id": "gold"},
                    "schedule": {"cron": "0 8 * * *"},
                    "validation": {"rules": [{"key": "up", "check": "exists"}]},
                    "job": job,
                }
            ],
            jobs={"gold": [{"result": "hang"}]},
            steps=[{"at": "+6m", "sensor": "gold/up", "data": {}}],
        )
    )
    world.play()
    run = world.run_of(RunKey("gold", "cron", "2026-03-02"))
    assert run is not None
    assert run.final_reason is FinalReason.POLL_EXHAUSTED
    assert world.targets.check(run.run_id).state is state


# --------------------------------------------------------------------------------------------------- how long to wait


def move(world: FaultyWorld, hour: int, minute: int, second: int = 0) -> None:
    world.clock.move_to(world.clock.now().replace(hour=hour, minute=minute, second=second))


def amend(world: FaultyWorld, **changes: Any) -> None:
    """Somebody else writes the run."""
    run = run_of(world)
    control_of(world).store.commit([records.put_run(transitions.amend(run, now=world.clock.now(), **changes), run)])


def seen(world: FaultyWorld) -> str:
    """The wake-ups that there have been of the attempt."""
    active = records.get_active(control_of(world).store, KEY)
    return str(active.wake_seq if active is not None else 0)


@pytest.mark.parametrize(
    ("minute", "second", "seconds"), [(15, 0, 300), (65, 0, 300), (66, 30, 210), (69, 59, 1)], ids=str
)
def test_an_attempt_waits_for_its_interval_but_not_beyond_its_window(minute: int, second: int, seconds: int) -> None:
    world = waiting()
    move(world, minute // 60, minute % 60, second)
    answer = call(world, "evaluate")
    rules = answer.pop("rules")
    assert answer == {"status": "waiting", "wakeSeq": seen(world), "waitSeconds": seconds}
    assert read_verdicts(rules).summary == "0 of 1 rule passes; no sensor rows"


def test_a_window_that_has_closed_is_closed_from_that_instant_on() -> None:
    world = waiting()
    move(world, 1, 10)
    assert call(world, "evaluate") == {"status": "closed", "wakeSeq": seen(world)}


def test_rules_that_pass_in_the_last_instant_pass() -> None:
    world = waiting()
    write(world, "rows", n=1)
    move(world, 1, 10)
    assert call(world, "evaluate") == {"status": "passed"}


@pytest.mark.parametrize(
    ("probes", "looks"), [([{"key": "rows", "type": "file", "config": {"path": "x"}}], 1), ([], 0)]
)
def test_an_evaluation_has_its_probes_look_first_and_once(probes: list[dict[str, Any]], looks: int) -> None:
    looked: list[RunKey] = []
    config = pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}, probes=probes)
    world = staged(config, until="2026-03-05T00:15:00Z")
    write(world, "rows", n=1)
    rival = interrupted(control_of(world), lambda: amend(world, early_ends=1), touches(keys.RUN))
    control = replace(rival, look_first=lambda _, run: looked.append(run.key))
    task = {"mode": "evaluate", "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1}
    assert orchestrator.handle(control, task)["status"] == "passed", "the second time it is decided"
    assert looked == [KEY] * looks


# ----------------------------------------------------------------------------------------------- the window has closed


def test_a_window_that_closes_ends_the_attempt_once_unless_a_write_came_meanwhile() -> None:
    world = waiting()
    move(world, 1, 10)
    before = run_of(world)
    assert call(world, "validation-exhausted", wakeSeq="7") == {"status": "again"}
    assert call(world, "validation-exhausted", 2, wakeSeq=seen(world)) == {"status": "superseded"}
    assert run_of(world) == before
    assert call(world, "validation-exhausted", wakeSeq=seen(world)) == {"status": "exhausted"}
    run, now = run_of(world), world.clock.now()
    assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.VALIDATION_EXHAUSTED)
    assert (run.ended_at, run.lease_until) == (now, None)
    assert run.message == "the evaluation window of orders for 2026-03-05 closed: 0 of 1 rule passes; no sensor rows"
    assert call(world, "validation-exhausted", wakeSeq="7") == {"status": "exhausted"}, "the same, asked again"
    assert run_of(world) == run
    until = int((now + control_of(world).settings.reopen_for).timestamp())
    left = control_of(world).store.get(records.run_record(KEY, keys.EXHAUSTED))
    assert left == {"attempt": 1, "ttl": until}
    (line,) = records.job_log(control_of(world).store, KEY)
    assert (line.event, line.attempt, line.error) == (
        JobEvent.VALIDATION_EXHAUSTED, 1, "0 of 1 rule passes; no sensor rows",
    )  # fmt: skip


def test_a_window_that_closes_for_good_leaves_nothing_to_open_again() -> None:
    stops = {"window": "1h", "afterWindow": "stop"}
    schedule = {"trigger": {"key": "ready", "check": "exists"}, "evaluation": stops}
    config = pipeline(schedule=schedule, validation={"rules": [{"key": "rows", "check": "exists"}]})
    world = staged(config, until="2026-03-05T00:15:00Z")
    assert call(world, "validation-exhausted", wakeSeq=seen(world)) == {"status": "exhausted"}
    assert not has(world, keys.EXHAUSTED)


def test_rules_that_have_passed_are_not_exhausted() -> None:
    world = waiting()
    write(world, "rows", n=1)
    call(world, "evaluate")
    assert call(world, "validation-exhausted", wakeSeq=seen(world)) == {"status": "again"}
    assert run_of(world).status is RunStatus.PENDING


def test_the_window_of_a_run_that_is_over_does_not_close() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    assert call(world, "validation-exhausted", wakeSeq="0") == {"status": "superseded"}
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    assert call(world, "validation-exhausted", wakeSeq="0") == {"status": "superseded"}


# ----------------------------------------------------------------------------------------------- asking the target


class Target(MuteTarget):
    """A target whose answer to `check` is scripted; `meanwhile` happens while it is asked."""

    def __init__(self, answer: JobStatus | Exception, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.meanwhile = meanwhile
        self.asked = 0

    def start(self, request: JobRequest) -> JobStarted:
        raise AssertionError(f"{request.key} is started already")

    def recover(self, request: JobRequest) -> JobStarted:
        raise AssertionError(f"{request.key} is started already")

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        del request, job_id
        self.asked += 1
        self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


RUNS: Final = JobStatus(state=JobState.RUNNING)


def running(**job: Any) -> FaultyWorld:
    """A job that was started at 00:10 and polled every two minutes; at 00:10:30."""
    parts = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "2m", "jobPollWindowSeconds": 3600} | job
    return staged(pipeline(job=parts), until="2026-03-05T00:10:30Z", jobs=[{"result": "hang"}])


def check(world: FaultyWorld, target: Target, mode: str = "check-job", attempt: int = 1) -> dict[str, Any]:
    control = replace(control_of(world), jobs={JobType.GLUE: target})
    task = {"mode": mode, "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": attempt}
    return orchestrator.handle(control, task)


@pytest.mark.parametrize(
    ("status", "at", "seconds"),
    [
        (RUNS, (0, 20), 120),
        (RUNS, (1, 9), 60),
        (JobStatus(state=JobState.RUNNING, ask_again=timedelta(seconds=7)), (0, 20), 7),
        (JobStatus(state=JobState.RUNNING, ask_again=timedelta(minutes=9)), (0, 20), 120),
        (ConnectionError("lost"), (0, 20), 120),
    ],
    ids=["interval", "window", "sooner", "not later", "not reached"],
)
def test_a_job_that_runs_is_asked_again_in_time(
    status: JobStatus | Exception, at: tuple[int, int], seconds: int
) -> None:
    world = running()
    move(world, *at)
    expected = {"event": "running", "wakeSeq": seen(world), "waitSeconds": seconds}
    assert check(world, Target(status)) == expected


def test_a_poll_window_has_closed_from_that_instant_on() -> None:
    world = running()
    move(world, 1, 10)
    assert check(world, Target(RUNS)) == {"event": "closed"}


@pytest.mark.parametrize(("problem", "seconds"), [("", 10), ("it cannot be stopped", 120)])
def test_a_job_that_is_being_stopped_is_asked_soon(problem: str, seconds: int) -> None:
    world = running()
    amend(world, cancel=Cancel(at=world.clock.now(), by="anna", reason="", problem=problem))
    assert check(world, Target(RUNS))["waitSeconds"] == seconds
    soon = JobStatus(state=JobState.RUNNING, ask_again=timedelta(seconds=3))
    assert check(world, Target(soon))["waitSeconds"] == 3


def test_a_job_is_reported_as_running_once_and_only_by_its_target() -> None:
    world = running()
    amend(world, job_started_at=None)
    before = count_events(world, EventType.JOB_STARTED)
    check(world, Target(ConnectionError("lost")))
    assert run_of(world).job_started_at is None
    for _ in range(2):
        check(world, Target(RUNS))
    assert run_of(world).job_started_at == world.clock.now()
    assert count_events(world, EventType.JOB_STARTED) == before + 1


def give_up(world: FaultyWorld) -> None:
    completion.fail_final(control_of(world), KEY, 1, FinalReason.INFRA, "the disk is full")


def test_a_job_is_not_reported_as_running_once_its_attempt_is_over() -> None:
    world = running()
    amend(world, job_started_at=None)
    before = count_events(world, EventType.JOB_STARTED)
    check(world, Target(RUNS, meanwhile=lambda: give_up(world)))
    assert count_events(world, EventType.JOB_STARTED) == before
    assert run_of(world).status is RunStatus.FAILED_FINAL


def test_the_end_of_a_job_is_logged_for_the_attempt_that_asked_while_it_is_under_way() -> None:
    world = running()
    assert check(world, Target(JobStatus(state=JobState.FAILED, error="no"))) == {"event": "fail"}
    (line,) = records.job_log(control_of(world).store, KEY)
    assert (line.event, line.error, line.attempt) == (JobEvent.FAIL, "no", 1)
    asked = Target(RUNS)
    assert check(world, asked) == {"event": "fail"}, "the log knows: nobody is asked again"
    assert asked.asked == 0
    world = running()
    late = Target(JobStatus(state=JobState.SUCCEEDED), meanwhile=lambda: give_up(world))
    assert check(world, late) == {"event": "superseded"}, "its attempt was given up meanwhile"
    assert records.job_log(control_of(world).store, KEY) == []


def test_the_job_of_an_attempt_that_is_over_or_another_s_is_not_asked_for() -> None:
    world = running()
    target = Target(RUNS)
    assert check(world, target, attempt=2) == {"event": "superseded"}
    give_up(world)
    assert check(world, target) == {"event": "superseded"}
    assert target.asked == 0


# ------------------------------------------------------------------------------------------- the poll window has closed


def test_a_poll_window_that_closes_ends_the_run_once() -> None:
    world = running()
    assert call(world, "job-poll-exhausted", 2) == {"event": "superseded"}
    assert call(world, "job-poll-exhausted") == {"event": "timeout"}
    run = run_of(world)
    assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.POLL_EXHAUSTED)
    assert (run.sla_closed, run.lease_until, run.ended_at) == (True, None, world.clock.now())
    assert run.message == "the job of orders for 2026-03-05 had not ended when its poll window (1:00:00) closed"
    (line,) = records.job_log(control_of(world).store, KEY)
    assert (line.event, line.category, line.reported_by) == (JobEvent.TIMEOUT, FailureCategory.TIMEOUT, "interlock")
    assert not has(world, keys.ACTIVE)
    assert call(world, "job-poll-exhausted") == {"event": "timeout"}
    assert run_of(world) == run
    assert count_events(world, EventType.JOB_POLL_EXHAUSTED) == 1


def test_a_job_that_was_reported_in_time_does_not_exhaust_its_poll_window() -> None:
    world = running()
    check(world, Target(JobStatus(state=JobState.SUCCEEDED)))
    assert call(world, "job-poll-exhausted") == {"event": "success"}
    assert run_of(world).status is RunStatus.RUNNING
    give_up(world)
    stops = running(onPollExhausted="stop")
    give_up(stops)
    assert call(stops, "job-poll-exhausted") == {"event": "timeout"}
    assert stops.targets.check(run_of(stops).run_id).state is JobState.RUNNING, "given up for another reason"


# ----------------------------------------------------------------------------------------------------- other endings


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"Error": "States.Timeout", "Cause": "it took too long"}, "States.Timeout: it took too long"),
        ({"Error": "E", "Cause": '{"errorMessage": "no such table"}'}, "E: no such table"),
        ({"Error": "E", "Cause": '{"other": 1}'}, 'E: {"other": 1}'),
        ({"Error": "E", "Cause": "[1]"}, "E: [1]"),
        ({"Cause": "x" * 600}, "error: " + "x" * 500),
        ("lost", "lost: "),
    ],
)
def test_a_lifecycle_that_cannot_go_on_ends_the_run_with_what_it_met(error: Any, message: str) -> None:
    world = waiting()
    assert call(world, "infra-failure", error=error) == {"result": "failed"}
    run = run_of(world)
    assert (run.final_reason, run.message) == (FinalReason.INFRA, message)
    assert call(world, "infra-failure", error=error) == {"result": "superseded"}


@pytest.mark.parametrize(("error", "cause"), [('{"errorMessage": "busy"}', "busy"), (None, "")])
def test_starts_that_are_used_up_end_with_what_the_last_met(error: str | None, cause: str) -> None:
    world = waiting()
    run = run_of(world)
    tried = transitions.step(run, RunStatus.TRIGGERING, now=world.clock.now(), run_id="r", refused=True)
    control_of(world).store.commit([records.put_run(tried, run)])
    assert call(world, "trigger-exhausted", error=error) == {"status": "exhausted"}
    assert run_of(world).message == f"the job of orders for 2026-03-05 could not be started: {cause}"


def test_an_execution_that_has_looped_often_hands_over_to_the_next_part() -> None:
    world = waiting()
    execution = keys.execution_name(KEY, 1)
    assert call(world, "hand-over", execution=execution) == {"part": 2}
    assert call(world, "hand-over", execution=execution) == {"part": 2}, "asked again, the same"
    assert control_of(world).executions.is_open(keys.execution_name(KEY, 1, 2))
    assert call(world, "hand-over", 2, execution=execution) == {"result": "superseded"}
