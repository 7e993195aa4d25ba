"""Definitions in a line, and a driver on virtual time for them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from interlock.embedded.asl.execution import CallTask, Effect, Ended, ExecutionState, Suspend
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.asl.paths import StatesError

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
TOKEN_RESOURCE = "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken"
TASK = {"Type": "Task", "Resource": "work", "Next": "Done"}
Json = Any


def machine(**states: Mapping[str, Json]) -> Machine:
    """These states and Done, in which they may end."""
    return Machine.load({"StartAt": next(iter(states)), "States": {**states, "Done": {"Type": "Succeed"}}})


def begin(subject: Machine, data: Json = None, **options: float) -> Effect:
    return subject.wake(subject.begin("one", {} if data is None else data, NOW, **options), NOW)


def play(
    subject: Machine, data: Json, answers: Callable[[CallTask, datetime], Json], *, limit: int = 200
) -> tuple[list[str], ExecutionState, datetime]:
    """Run to the end on virtual time; answers return a result or raise StatesError."""
    now = NOW
    effect = begin(subject, data)
    entered = list(effect.entered)
    for _ in range(limit):
        execution = effect.execution
        match effect:
            case Ended():
                return entered, execution, now
            case Suspend():
                now = max(now, execution.due or now)
                effect = subject.wake(execution, now)
            case CallTask():
                try:
                    effect = subject.complete(execution, answers(effect, now), now)
                except StatesError as error:
                    effect = subject.fail(execution, error.error, error.cause, now)
        entered += effect.entered
    raise AssertionError(f"not over after {limit} effects: {entered}")
