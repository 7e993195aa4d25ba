"""The interpreter of the States Language: a pure function from (execution, what happened, now) to (execution, effect).

It does no I/O and reads no clock. A driver holds the loop: it asks the machine to go on, performs the effect
it gets (call a task, wait, be done), and tells the machine what came of it. Between two effects the machine
walks through Pass and Choice states by itself.

The invariant
-------------
An ExecutionState is all there is to an execution: with it and the definition, this process or another can go on. So
the driver may persist it at any effect, and a crash at any instant resumes it at what was persisted last. What was done
since is done again, which is why tasks must be idempotent (they are at least once) and why everything else here is a
function of its arguments: the second walk takes the same path as the first wherever the tasks answer the same. Tokens
are no exception. A token is made of the execution's name and its step, so that a repeated walk gives the same token and
two different waits never share one.

It knows what `control/lifecycle.asl.json` uses, and refuses the rest of the language when a definition is loaded.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, assert_never

import msgspec
from msgspec.structs import replace

from interlock.embedded.asl.choice import holds
from interlock.embedded.asl.definition import (
    Choice,
    Definition,
    Fail,
    Pass,
    Retrier,
    Succeed,
    Task,
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
    succeeded,
)
from interlock.embedded.asl.paths import ALL, RUNTIME, TIMEOUT, Json, Path, Scope, StatesError
from interlock.model.times import format_instant

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

        Woken early, it waits on. The bound of the whole execution comes first: an execution that is past it must
        not act on what it knew before.
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
            case WaitKind.RETRY:
                return self._drive(execution, replace(execution, waiting=None), now)
            case WaitKind.TOKEN:
                return self.fail(execution, TIMEOUT, f"no answer by {format_instant(waiting.until)}", now)
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
                return _passed(state, execution, now)
            case Choice():
                return enter(execution, _chosen(state, _scope(execution)), execution.data, now)
            case Succeed():
                return succeeded(execution, execution.data)
            case Fail():
                return ended(execution, Status.FAILED, state.error, state.cause)
            case _:
                assert_never(state)

    def _begun(self, execution: ExecutionState, now: datetime) -> ExecutionState:
        # A row that was persisted between two states does not exist: steps tell a start from everything else.
        if execution.steps:
            return execution
        return enter(execution, self._definition.start_at, execution.data, now)

    def _completed(self, execution: ExecutionState, output: Json, now: datetime) -> ExecutionState:
        state = self._states[execution.state]
        assert isinstance(state, Task)
        data = state.result_path.put(execution.data, output)
        if len(msgspec.json.encode(data)) > MAX_DATA_BYTES:
            raise StatesError(DATA_LIMIT_EXCEEDED, f"the output of {execution.state!r} is over {MAX_DATA_BYTES} bytes")
        return enter(execution, state.next, data, now)

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
        self, execution: ExecutionState, path: Path, next_: str, error: StatesError, now: datetime
    ) -> ExecutionState:
        try:
            data = path.put(execution.data, {"Error": error.error, "Cause": error.cause})
        except StatesError as misplaced:
            return ended(execution, Status.FAILED, misplaced.error, misplaced.cause)
        return enter(execution, next_, data, now)


# ------------------------------------------------------------------------------------------------------ tasks


def _called(state: Task, execution: ExecutionState, now: datetime) -> CallTask:
    token = f"{execution.name}:{execution.steps}.{sum(execution.retries)}" if state.waits_for_token else None
    scope = _scope(execution, token)
    payload = state.parameters.fill(scope, "Parameters") if state.parameters else scope.data
    until = None if state.timeout_seconds_path is None else now + _bound(state.timeout_seconds_path, scope)
    return CallTask(
        execution=replace(execution, waiting=Waiting(WaitKind.TOKEN, until, token) if token else None),
        entered=(),
        resource=state.resource,
        payload=payload,
        token=token,
        timeout_at=until,
    )


def _bound(path: Path, scope: Scope) -> timedelta:
    value = scope.get(path, "TimeoutSecondsPath")
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise StatesError(RUNTIME, f"TimeoutSecondsPath {path.text!r} is {value!r}, not a positive number of seconds")
    return timedelta(seconds=value)


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
    return error in names or (error != DATA_LIMIT_EXCEEDED and ALL in names)


# ------------------------------------------------------------------------------------------------------- data


def _scope(execution: ExecutionState, token: str | None = None) -> Scope:
    return Scope(execution.data, partial(context_of, execution, token))


def _passed(state: Pass, execution: ExecutionState, now: datetime) -> ExecutionState:
    context = partial(context_of, execution)
    scope = Scope(Scope(execution.data, context).get(state.input_path, "InputPath"), context)
    result = state.parameters.fill(scope, "Parameters") if state.parameters else scope.data
    result = result if state.result is msgspec.UNSET else state.result
    return enter(execution, state.next, state.result_path.put(execution.data, result), now)


def _chosen(state: Choice, scope: Scope) -> str:
    return next((rule.next for rule in state.choices if holds(rule.condition, scope)), state.default)
