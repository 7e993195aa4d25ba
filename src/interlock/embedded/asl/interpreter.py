"""The interpreter of the States Language: a pure function from (execution, what happened, now) to (execution, effect).

It does no I/O and reads no clock. A driver holds the loop: it asks the machine to go on, performs the effect
it gets (call a task, wait, be done), and tells the machine what came of it. Between two effects the machine
walks through Pass and Choice states by itself.

The invariant
-------------
An ExecutionState is all there is to an execution: whoever has it, and the definition, can go on, in this
process or in another. So the driver may persist it at any effect, and a crash at any instant resumes it at
what was persisted last. What was done since is done again, which is why tasks must be idempotent (they are at
least once) and why everything else here is a function of its arguments: the second walk takes the same path
as the first wherever the tasks answer the same. Tokens are no exception. A token is made of the execution's
name and its step, so that a repeated walk gives the same token and two different waits never share one.

What differs from Step Functions: Parallel, Map, JSONata, variables and paths that select several nodes are
refused when the definition is loaded.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, assert_never

import msgspec
from msgspec.structs import replace

from interlock.embedded.asl.choice import holds, read_timestamp
from interlock.embedded.asl.definition import (
    MAX_SECONDS,
    Choice,
    Definition,
    Fail,
    Pass,
    Retrier,
    Succeed,
    Task,
    Wait,
    load_definition,
)
from interlock.embedded.asl.execution import (
    CallTask,
    Effect,
    Ended,
    ExecutionState,
    Status,
    Suspend,
    Waiting,
    WaitKind,
    context_of,
    ended,
    enter,
    expired,
    stamp,
    succeeded,
)
from interlock.embedded.asl.intrinsics import Formula
from interlock.embedded.asl.paths import RUNTIME, TIMEOUT, Json, Path, Scope, StatesError

HEARTBEAT_TIMEOUT: Final = "States.HeartbeatTimeout"
NO_CHOICE_MATCHED: Final = "States.NoChoiceMatched"
DATA_LIMIT_EXCEEDED: Final = "States.DataLimitExceeded"
MAX_DATA_BYTES: Final = 262_144  # what Step Functions lets a state hand on
_MAX_WALK: Final = 10_000  # states in a row without a task or a wait: more is a loop without end
_MAX_BACKOFF_SECONDS: Final = 31_622_400  # the longest MaxDelaySeconds


class Machine:
    """Runs one definition. Immutable, safe to share between threads."""

    def __init__(self, definition: Definition) -> None:
        self._definition: Final = definition
        self._states: Final = definition.states

    @classmethod
    def load(cls, document: object) -> "Machine":
        """Read and check a definition (decoded JSON); DefinitionError says what is wrong, and where."""
        return cls(load_definition(document))

    @property
    def resources(self) -> frozenset[str]:
        """Every resource its tasks call."""
        return frozenset(state.resource for state in self._states.values() if isinstance(state, Task))

    def begin(self, name: str, input_: Json, now: datetime, timeout_seconds: float | None = None) -> ExecutionState:
        """A new execution, that has not entered any state yet; bounded by the definition's time-out or its own."""
        bound = self._definition.timeout_seconds if timeout_seconds is None else timeout_seconds
        return ExecutionState(
            name=name,
            input=input_,
            state=self._definition.start_at,
            data=input_,
            status=Status.RUNNING,
            started_at=now,
            entered_at=now,
            times_out_at=None if bound is None else now + timedelta(seconds=bound),
        )

    # ------------------------------------------------------------------------------------- what happened

    def wake(self, execution: ExecutionState, now: datetime, *, answered: bool = False, output: Json = None) -> Effect:
        """Go on: it has just begun, its wait is over, its token was answered, or its time is up.

        Woken early, it waits on. The bound of the whole execution is looked at first: whoever was away for longer than
        that must not act on what it knew before.
        """
        waiting = execution.waiting
        if execution.state not in self._states:
            cause = f"the definition has no state {execution.state!r} (any more)"
            return Ended(execution=ended(execution, Status.FAILED, RUNTIME, cause), entered=())
        if execution.status is not Status.RUNNING or expired(execution, now):
            return self._drive(execution, execution, now)
        if waiting is None:
            return self._drive(execution, self._begun(execution, now), now)
        if waiting.kind is WaitKind.TOKEN and answered:
            return self.complete(execution, {} if output is None else output, now)
        if waiting.until is None or now < waiting.until:
            return Suspend(execution=execution, entered=())
        match waiting.kind:
            case WaitKind.WAIT:
                return self._drive(execution, self._waited(execution, now), now)
            case WaitKind.RETRY:
                return self._drive(execution, replace(execution, waiting=None), now)
            case WaitKind.TOKEN:
                return self.fail(execution, waiting.error, f"no answer by {stamp(waiting.until)}", now)
            case _:
                assert_never(waiting.kind)

    def complete(self, execution: ExecutionState, output: Json, now: datetime) -> Effect:
        """The task it is at returned this."""
        try:
            after = self._completed(execution, output, now)
        except StatesError as error:
            after = self._failed(execution, error, now)
        return self._drive(execution, after, now)

    def fail(self, execution: ExecutionState, error: str, cause: str, now: datetime) -> Effect:
        """The task it is at failed: try again later, go where the error is caught, or end."""
        return self._drive(execution, self._failed(execution, StatesError(error, cause), now), now)

    # ----------------------------------------------------------------------------------------- walking

    def _drive(self, before: ExecutionState, after: ExecutionState, now: datetime) -> Effect:
        entered: list[str] = []
        steps = before.steps
        execution = after
        for _ in range(_MAX_WALK):
            if execution.steps > steps:
                steps = execution.steps
                entered.append(execution.state)
            if execution.status is not Status.RUNNING:
                return Ended(execution=execution, entered=tuple(entered))
            if expired(execution, now):
                execution = ended(execution, Status.TIMED_OUT, TIMEOUT, "the execution's time is up")
                continue
            if execution.waiting is not None:
                return Suspend(execution=execution, entered=tuple(entered))
            try:
                went = self._visit(execution, now)
            except StatesError as error:
                went = self._failed(execution, error, now)
            if isinstance(went, CallTask):
                return replace(went, entered=tuple(entered))
            execution = went
        cause = f"{_MAX_WALK} states without a task or a wait: the definition loops forever"
        return Ended(execution=ended(execution, Status.FAILED, RUNTIME, cause), entered=tuple(entered))

    def _visit(self, execution: ExecutionState, now: datetime) -> ExecutionState | CallTask:
        state = self._states[execution.state]
        match state:
            case Task():
                return _called(state, execution, now)
            case Pass():
                return self._passed(state, execution, now)
            case Wait():
                until = _wait_until(state, _scope(state, execution), now)
                return replace(execution, waiting=Waiting(WaitKind.WAIT, until))
            case Choice():
                scope = _scope(state, execution)
                return enter(execution, _chosen(state, scope), _filtered(state, scope), now)
            case Succeed():
                return succeeded(execution, _filtered(state, _scope(state, execution)))
            case Fail():
                scope = Scope(execution.data, partial(context_of, execution))
                error = _text(state.error, state.error_path, scope, "ErrorPath")
                cause = _text(state.cause, state.cause_path, scope, "CausePath")
                return ended(execution, Status.FAILED, error, cause)
            case _:
                assert_never(state)

    def _begun(self, execution: ExecutionState, now: datetime) -> ExecutionState:
        # A row that was persisted between two states does not exist: steps tell a start from everything else.
        if execution.steps:
            return execution
        return enter(execution, self._definition.start_at, execution.data, now)

    def _passed(self, state: Pass, execution: ExecutionState, now: datetime) -> ExecutionState:
        scope = _scope(state, execution)
        result = state.parameters.fill(scope, "Parameters") if state.parameters else scope.data
        result = result if state.result is msgspec.UNSET else state.result
        data = _combined(state.result_path, execution.data, result)
        return self._leave(state, execution, data, now)

    def _waited(self, execution: ExecutionState, now: datetime) -> ExecutionState:
        state = self._states[execution.state]
        assert isinstance(state, Wait)
        try:
            return self._leave(state, execution, _scope(state, execution).data, now)
        except StatesError as error:
            return self._failed(execution, error, now)

    def _completed(self, execution: ExecutionState, output: Json, now: datetime) -> ExecutionState:
        state = self._states[execution.state]
        assert isinstance(state, Task)
        result = output
        if state.result_selector is not None:
            result = state.result_selector.fill(Scope(output, partial(context_of, execution)), "ResultSelector")
        data = _combined(state.result_path, execution.data, result)
        if len(msgspec.json.encode(data)) > MAX_DATA_BYTES:
            raise StatesError(DATA_LIMIT_EXCEEDED, f"the output of {execution.state!r} is over {MAX_DATA_BYTES} bytes")
        return self._leave(state, execution, data, now)

    def _leave(self, state: Task | Pass | Wait, execution: ExecutionState, data: Json, now: datetime) -> ExecutionState:
        output = _filtered(state, Scope(data, partial(context_of, execution)))
        if state.next is None:
            return succeeded(execution, output)
        return enter(execution, state.next, output, now)

    # ------------------------------------------------------------------------------------------ errors

    def _failed(self, execution: ExecutionState, error: StatesError, now: datetime) -> ExecutionState:
        state = self._states[execution.state]
        # A runtime error is a fault of the flow itself; nothing in the flow may handle it.
        if isinstance(state, Task) and error.error != RUNTIME:
            retried = _retried(state, execution, error.error, now)
            if retried is not None:
                return retried
            for catcher in state.catch:
                if _matches(catcher.error_equals, error.error):
                    return self._caught(execution, catcher.result_path, catcher.next, error, now)
        return ended(execution, Status.FAILED, error.error, error.cause)

    def _caught(
        self, execution: ExecutionState, path: Path | None, next_: str, error: StatesError, now: datetime
    ) -> ExecutionState:
        try:
            data = _combined(path, execution.data, {"Error": error.error, "Cause": error.cause})
        except StatesError as misplaced:
            return ended(execution, Status.FAILED, misplaced.error, misplaced.cause)
        return enter(execution, next_, data, now)


# ------------------------------------------------------------------------------------------------------ tasks


def _called(state: Task, execution: ExecutionState, now: datetime) -> CallTask:
    token = f"{execution.name}:{execution.steps}.{sum(execution.retries)}" if state.waits_for_token else None
    scope = _scope(state, execution, token)
    payload = state.parameters.fill(scope, "Parameters") if state.parameters else scope.data
    timeout = _bound(state.timeout_seconds, state.timeout_seconds_path, scope, "TimeoutSecondsPath")
    heartbeat = _bound(state.heartbeat_seconds, state.heartbeat_seconds_path, scope, "HeartbeatSecondsPath")
    # Nobody sends heartbeats here, so the first one missed is an earlier time-out of another name.
    seconds = min((one for one in (timeout, heartbeat) if one is not None), default=None)
    until = None if seconds is None else now + timedelta(seconds=seconds)
    error = TIMEOUT if seconds == timeout else HEARTBEAT_TIMEOUT
    waiting = Waiting(WaitKind.TOKEN, until, token, error) if token else None
    return CallTask(
        execution=replace(execution, waiting=waiting),
        entered=(),
        resource=state.resource,
        payload=payload,
        token=token,
        timeout_at=until,
    )


def _bound(seconds: int | None, path: Path | None, scope: Scope, field: str) -> int | None:
    if path is None:
        return seconds
    value = scope.get(path, field)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise StatesError(RUNTIME, f"{field} {path.text!r} is {value!r}, not a positive number of seconds")
    return value


def _retried(state: Task, execution: ExecutionState, error: str, now: datetime) -> ExecutionState | None:
    for index, retrier in enumerate(state.retry):
        if not _matches(retrier.error_equals, error):
            continue
        counts = [*execution.retries, *[0] * (len(state.retry) - len(execution.retries))]
        if counts[index] >= retrier.max_attempts:
            return None
        waiting = Waiting(WaitKind.RETRY, now + _backoff(retrier, counts[index]))
        counts[index] += 1
        return replace(execution, retries=tuple(counts), waiting=waiting)
    return None


def _backoff(retrier: Retrier, retries: int) -> timedelta:
    longest = retrier.max_delay_seconds or _MAX_BACKOFF_SECONDS
    try:
        return timedelta(seconds=min(retrier.interval_seconds * retrier.backoff_rate**retries, longest))
    except OverflowError:
        return timedelta(seconds=longest)


def _matches(names: Sequence[str], error: str) -> bool:
    if error in names:
        return True
    if error == DATA_LIMIT_EXCEEDED:
        return False
    return "States.ALL" in names or ("States.TaskFailed" in names and error != TIMEOUT)


# ------------------------------------------------------------------------------------------------------- data


def _scope(state: Task | Pass | Wait | Choice | Succeed, execution: ExecutionState, token: str | None = None) -> Scope:
    context = partial(context_of, execution, token)
    if state.input_path is None:
        return Scope({}, context)
    return Scope(Scope(execution.data, context).get(state.input_path, "InputPath"), context)


def _filtered(state: Task | Pass | Wait | Choice | Succeed, scope: Scope) -> Json:
    return {} if state.output_path is None else scope.get(state.output_path, "OutputPath")


def _combined(path: Path | None, data: Json, result: Json) -> Json:
    return data if path is None else path.put(data, result)


def _chosen(state: Choice, scope: Scope) -> str:
    for rule in state.choices:
        if holds(rule.condition, scope):
            return rule.next
    if state.default is None:
        raise StatesError(NO_CHOICE_MATCHED, "no choice holds and there is no Default")
    return state.default


def _wait_until(state: Wait, scope: Scope, now: datetime) -> datetime:
    if state.timestamp is not None:
        return state.timestamp
    if state.timestamp_path is not None:
        value = scope.get(state.timestamp_path, "TimestampPath")
        at = read_timestamp(value)
        if at is None:
            raise StatesError(RUNTIME, f"TimestampPath {state.timestamp_path.text!r} is {value!r}, not a timestamp")
        return at
    seconds = state.seconds
    if state.seconds_path is not None:
        seconds = scope.get(state.seconds_path, "SecondsPath")
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds <= MAX_SECONDS:
            raise StatesError(
                RUNTIME, f"SecondsPath {state.seconds_path.text!r} is {seconds!r}, not a number of seconds"
            )
    return now + timedelta(seconds=seconds or 0)


def _text(literal: str | None, formula: Formula | None, scope: Scope, field: str) -> str | None:
    if formula is None:
        return literal
    value = formula.value(scope, field)
    if not isinstance(value, str):
        raise StatesError(RUNTIME, f"{field} {formula.text!r} is {value!r}, not a string")
    return value
