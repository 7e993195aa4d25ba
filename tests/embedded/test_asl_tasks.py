"""The interpreter's tasks: payloads, retries, catches, tokens, time-outs; and that it can be resumed anywhere."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.embedded.asl.execution import CallTask, Ended, ExecutionState, Status, Suspend, WaitKind
from interlock.embedded.asl.interpreter import MAX_DATA_BYTES, Machine
from interlock.embedded.asl.paths import StatesError
from tests.embedded.asl_play import NOW, TASK, TOKEN_RESOURCE, Json, begin, machine, play


def test_a_task_gets_its_payload_and_its_result_goes_where_it_belongs() -> None:
    subject = machine(
        T={
            "Type": "Task",
            "Resource": "work",
            "Parameters": {"n.$": "$.in.n"},
            "ResultPath": "$.out",
            "Next": "Done",
        }
    )
    effect = begin(subject, {"in": {"n": 4}})
    assert isinstance(effect, CallTask)
    assert (effect.resource, effect.payload, effect.token) == ("work", {"n": 4}, None)
    assert subject.complete(effect.execution, 8, NOW).execution.data == {"in": {"n": 4}, "out": 8}


def failing(*errors: str) -> Callable[[CallTask, datetime], Json]:
    """Fails with these errors in turn, then returns how often it was called."""
    queue = list(errors)
    calls: list[datetime] = []

    def answer(_: CallTask, now: datetime) -> Json:
        calls.append(now)
        if queue:
            raise StatesError(queue.pop(0), "why")
        return [round((at - NOW).total_seconds(), 3) for at in calls]

    return answer


@pytest.mark.parametrize(
    ("retry", "errors", "calls"),
    [
        ([{"ErrorEquals": ["E"]}], ["E"] * 3, [0, 1, 3, 7]),
        ([{"ErrorEquals": ["E"], "IntervalSeconds": 30, "MaxAttempts": 3}], ["E"] * 3, [0, 30, 90, 210]),
        ([{"ErrorEquals": ["E"], "BackoffRate": 1.5}], ["E"] * 3, [0, 1, 2.5, 4.75]),
        ([{"ErrorEquals": ["E"], "IntervalSeconds": 4, "MaxDelaySeconds": 5}], ["E"] * 3, [0, 4, 9, 14]),
        (
            [{"ErrorEquals": ["E"], "IntervalSeconds": 5}, {"ErrorEquals": ["States.ALL"]}],
            ["X", "E", "X"],
            [0, 1, 6, 8],
        ),
        ([{"ErrorEquals": ["E", "X"], "BackoffRate": 1}], ["X", "E"], [0, 1, 2]),
        ([{"ErrorEquals": ["States.Timeout"]}], ["States.Timeout"], [0, 1]),
    ],
)
def test_retries_back_off(retry: Json, errors: list[str], calls: list[float]) -> None:
    _, execution, _ = play(machine(T={**TASK, "Retry": retry}), {}, failing(*errors))
    assert (execution.status, execution.data) == (Status.SUCCEEDED, calls)


def test_a_long_back_off_has_an_end() -> None:
    retry = [{"ErrorEquals": ["E"], "MaxAttempts": 5000, "BackoffRate": 10.0}]
    subject = machine(T={**TASK, "Retry": retry})
    effect = begin(subject)
    many = msgspec.structs.replace(effect.execution, retries=(4000,))
    after = subject.fail(many, "E", "why", NOW)
    assert after.execution.due == NOW + timedelta(days=366)


@pytest.mark.parametrize(
    ("retry", "errors", "error"),
    [
        ([{"ErrorEquals": ["E"], "MaxAttempts": 1}], ["E", "E"], "E"),
        ([{"ErrorEquals": ["E"], "MaxAttempts": 0}], ["E"], "E"),
        ([{"ErrorEquals": ["E"], "MaxAttempts": 0}, {"ErrorEquals": ["States.ALL"]}], ["E"], "E"),
        ([{"ErrorEquals": ["E"]}], ["X"], "X"),
        ([{"ErrorEquals": ["States.ALL"]}], ["States.Runtime"], "States.Runtime"),
        ([{"ErrorEquals": ["States.Runtime"]}], ["States.Runtime"], "States.Runtime"),
        ([{"ErrorEquals": ["States.ALL"]}], ["States.DataLimitExceeded"], "States.DataLimitExceeded"),
    ],
)
def test_what_is_not_retried_fails(retry: Json, errors: list[str], error: str) -> None:
    _, execution, _ = play(machine(T={**TASK, "Retry": retry}), {}, failing(*errors))
    assert (execution.status, execution.error, execution.cause) == (Status.FAILED, error, "why")


@pytest.mark.parametrize(
    ("catch", "error", "entered", "output"),
    [
        ([{"ErrorEquals": ["E"], "Next": "C"}], "E", ["T", "C"], {"Error": "E", "Cause": "why"}),
        (
            [{"ErrorEquals": ["E"], "ResultPath": "$.error", "Next": "C"}],
            "E",
            ["T", "C"],
            {"a": 1, "error": {"Error": "E", "Cause": "why"}},
        ),
        (
            [{"ErrorEquals": ["States.ALL"], "Next": "C"}],
            "States.Timeout",
            ["T", "C"],
            {"Error": "States.Timeout", "Cause": "why"},
        ),
    ],
)
def test_a_caught_error_goes_on_elsewhere(catch: Json, error: str, entered: list[str], output: Json) -> None:
    subject = machine(T={**TASK, "Catch": catch}, C={"Type": "Succeed"})
    seen, execution, _ = play(subject, {"a": 1}, failing(error))
    assert (seen, execution.status, execution.data) == (entered, Status.SUCCEEDED, output)


@pytest.mark.parametrize(
    ("catch", "error", "ends_with"),
    [
        ([{"ErrorEquals": ["States.ALL"], "Next": "C"}], "States.Runtime", "States.Runtime"),
        ([{"ErrorEquals": ["States.ALL"], "Next": "C"}], "States.DataLimitExceeded", "States.DataLimitExceeded"),
        ([{"ErrorEquals": ["E"], "Next": "C"}], "X", "X"),
        ([{"ErrorEquals": ["E"], "ResultPath": "$.a.b", "Next": "C"}], "E", "States.ResultPathMatchFailure"),
    ],
)
def test_an_error_that_is_not_caught_fails(catch: Json, error: str, ends_with: str) -> None:
    subject = machine(T={**TASK, "Catch": catch}, C={"Type": "Succeed"})
    _, execution, _ = play(subject, {"a": 1}, failing(error))
    assert (execution.status, execution.error) == (Status.FAILED, ends_with)


def test_retries_are_used_up_before_an_error_is_caught_and_begin_anew_with_the_next_visit() -> None:
    subject = machine(
        T={
            **TASK,
            "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": 1}],
            "Catch": [{"ErrorEquals": ["E"], "Next": "T"}],
        }
    )
    entered, execution, _ = play(subject, {}, failing("E", "E", "E"))
    assert entered == ["T", "T", "Done"]
    assert execution.data == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({"Parameters": {"x.$": "$.absent"}}, "States.Runtime"),
        ({"TimeoutSecondsPath": "$.zero"}, "States.Runtime"),
        ({"TimeoutSecondsPath": "$.absent"}, "States.Runtime"),
        ({"Parameters": {"x.$": "States.MathAdd($.text, 1)"}}, None),
    ],
)
def test_a_task_that_can_not_be_called(state: Mapping[str, Json], error: str | None) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "C"}]
    subject = machine(T={**TASK, "Catch": catch, **state}, C={"Type": "Succeed"})
    execution = begin(subject, {"zero": 0, "text": "t"}).execution
    assert execution.error == error
    assert execution.status is (Status.FAILED if error else Status.SUCCEEDED)


def test_a_result_larger_than_a_state_may_hand_on_is_an_error_of_its_own() -> None:
    catch = [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "C"}]
    subject = machine(T={**TASK, "Catch": catch}, C={"Type": "Succeed"})
    fits = subject.complete(begin(subject).execution, "x" * (MAX_DATA_BYTES - 2), NOW)
    assert fits.entered == ("Done",)
    assert subject.complete(begin(subject).execution, "x" * (MAX_DATA_BYTES - 1), NOW).entered == ("C",)


def token_task(**state: Json) -> Machine:
    return machine(
        T={
            "Type": "Task",
            "Resource": TOKEN_RESOURCE,
            "Parameters": {"token.$": "$$.Task.Token"},
            "ResultPath": "$.answer",
            "Next": "Done",
            **state,
        },
        Late={"Type": "Succeed"},
    )


def test_a_task_with_a_token_waits_for_its_answer() -> None:
    subject = token_task()
    effect = begin(subject)
    assert isinstance(effect, CallTask)
    assert effect.token is not None
    assert effect.payload == {"token": effect.token}
    waiting = effect.execution.waiting
    assert waiting is not None
    assert (waiting.kind, waiting.token, effect.execution.due) == (WaitKind.TOKEN, effect.token, None)
    later = NOW + timedelta(days=1)
    assert isinstance(subject.wake(effect.execution, later), Suspend)
    assert subject.wake(effect.execution, later, answered=True).execution.data == {"answer": {}}
    assert subject.wake(effect.execution, later, answered=True, output={"x": 1}).execution.data == {"answer": {"x": 1}}


def test_a_token_that_is_not_answered_in_time_is_an_error() -> None:
    catch = [{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.answer", "Next": "Late"}]
    subject = token_task(Catch=catch, TimeoutSecondsPath="$.bound")
    effect = begin(subject, {"bound": 30})
    until = NOW + timedelta(seconds=30)
    assert effect.execution.due == until
    assert isinstance(subject.wake(effect.execution, until - timedelta(microseconds=1)), Suspend)
    late = subject.wake(effect.execution, until)
    assert late.entered == ("Late",)
    assert late.execution.data["answer"] == {"Error": "States.Timeout", "Cause": "no answer by 2026-03-02T08:00:30Z"}


def test_every_attempt_and_every_visit_has_a_token_of_its_own() -> None:
    subject = token_task(
        Retry=[{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1}],
        Catch=[{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.answer", "Next": "T"}],
        TimeoutSecondsPath="$.bound",
    )
    effect, now, tokens = begin(subject, {"bound": 10}), NOW, list[str]()
    for _ in range(12):
        if isinstance(effect, CallTask) and effect.token:
            tokens.append(effect.token)
        now = max(now, effect.execution.due or now)
        effect = subject.wake(effect.execution, now)
    assert len(tokens) > 5
    assert len(set(tokens)) == len(tokens)


# ----------------------------------------------------------------------------------------- the whole execution


@pytest.mark.parametrize(
    ("definition_bound", "own_bound", "seconds"), [(60, None, 60), (60, 90.0, 90), (None, 5.0, 5), (None, None, None)]
)
def test_an_execution_is_bounded_as_a_whole(
    definition_bound: int | None, own_bound: float | None, seconds: int | None
) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "T"}]
    document: dict[str, Json] = {
        "StartAt": "T",
        "States": {"T": {**TASK, "Resource": TOKEN_RESOURCE, "Catch": catch}, "Done": {"Type": "Succeed"}},
    }
    if definition_bound:
        document["TimeoutSeconds"] = definition_bound
    subject = Machine.load(document)
    effect = subject.wake(subject.begin("one", {}, NOW, own_bound), NOW)
    due = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert effect.execution.due == due
    if due is not None:
        over = subject.wake(effect.execution, due, answered=True)
        assert (over.execution.status, over.execution.error) == (Status.TIMED_OUT, "States.Timeout")
        assert over.execution.due is not None


def test_a_task_that_returns_after_the_bound_of_the_execution_leads_nowhere() -> None:
    subject = machine(T=TASK)
    effect = begin(subject, timeout_seconds=10)
    over = subject.complete(effect.execution, {}, NOW + timedelta(seconds=10))
    assert over.execution.status is Status.TIMED_OUT


def test_what_has_ended_stays_ended() -> None:
    subject = machine(S={"Type": "Succeed"})
    ended = begin(subject).execution
    assert subject.wake(ended, NOW + timedelta(days=1)) == Ended(execution=ended, entered=())


def test_a_state_that_the_definition_no_longer_has_fails_the_execution_and_says_so() -> None:
    subject = machine(T=TASK)
    gone = msgspec.structs.replace(begin(subject).execution, state="Gone")
    after = subject.wake(gone, NOW).execution
    assert (after.status, after.error) == (Status.FAILED, "States.Runtime")
    assert "'Gone'" in (after.cause or "")


# ----------------------------------------------------------------------------------- resumed at any instant

LOOP = Machine.load(
    {
        "StartAt": "Init",
        "TimeoutSeconds": 100_000,
        "States": {
            "Init": {"Type": "Pass", "Result": {"n": 0, "bound": 30}, "ResultPath": "$.loop", "Next": "Look"},
            "Look": {
                "Type": "Task",
                "Resource": "look",
                "ResultPath": "$.seen",
                "Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 2}],
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.seen", "Next": "Count"}],
                "Next": "Await",
            },
            "Await": {
                "Type": "Task",
                "Resource": TOKEN_RESOURCE,
                "Parameters": {"token.$": "$$.Task.Token"},
                "TimeoutSecondsPath": "$.loop.bound",
                "ResultPath": "$.answer",
                "Catch": [{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.answer", "Next": "Count"}],
                "Next": "Count",
            },
            "Count": {
                "Type": "Pass",
                "Parameters": {"n.$": "States.MathAdd($.loop.n, 1)", "bound": 30},
                "ResultPath": "$.loop",
                "Next": "Enough",
            },
            "Enough": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.loop.n", "NumericGreaterThanEquals": 4, "Next": "Done"}],
                "Default": "Look",
            },
            "Done": {"Type": "Succeed"},
        },
    }
)


def drive_loop(failures: list[bool], answers: list[bool], crashes: list[bool]) -> tuple[list[str], Json, datetime]:
    """Run LOOP; where `crashes` says so, forget everything since the last wait and resume from its JSON."""
    now, saved, tokens = NOW, LOOP.begin("loop", {}, NOW), list[str]()
    answered, step = False, 0
    while True:
        effect = LOOP.wake(saved, now, answered=answered)
        crash = step < len(crashes) and crashes[step]
        step += 1
        while isinstance(effect, CallTask) and effect.token is None:
            # The same answer for the same step, as an idempotent task gives it.
            key = effect.execution.steps + sum(effect.execution.retries)
            if failures[key % len(failures)]:
                effect = LOOP.fail(effect.execution, "Busy", "busy", now)
            else:
                effect = LOOP.complete(effect.execution, {"key": key}, now)
        if crash:
            continue
        encoded = msgspec.json.encode(effect.execution)
        saved = msgspec.json.decode(encoded, type=ExecutionState)
        if isinstance(effect, Ended):
            return tokens, saved, now
        answered = False
        if isinstance(effect, CallTask) and effect.token:
            tokens.append(effect.token)
            answered = answers[len(tokens) % len(answers)]
        if not answered:
            now = max(now, saved.due or now)


booleans = st.lists(st.booleans(), min_size=1, max_size=20)


@given(booleans, booleans, booleans)
def test_a_crash_between_any_two_waits_changes_nothing(
    failures: list[bool], answers: list[bool], crashes: list[bool]
) -> None:
    assert drive_loop(failures, answers, crashes) == drive_loop(failures, answers, [])
