"""Our interpreter and moto's Step Functions play the same definitions; the histories must be the same.

Compared are the states entered, every call of a task with its payload and its virtual time, whether a token was stored,
how the execution ended and with what. Left out: the text of a cause, which Lambda wraps in JSON.
"""

import json
import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest
from statelint.linter import Linter

from interlock.embedded.asl.execution import ExecutionState, WaitKind
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import CommitRefusedError
from interlock.ports.store import Conflict, Put, Update, Write
from tests.conformance import step_functions_on_moto as moto
from tests.conformance.asl_scenarios import ACTIVE, LITTLE, WORK, Json, Raise, Scenario, Slow
from tests.conformance.lifecycle_scenarios import LIFECYCLE, ORCHESTRATOR, SLA_MONITOR, lifecycle
from tests.conformance.manual_clock import START, ManualClock

_KEY: Final = {"PK": {"S": ACTIVE.pk}, "SK": {"S": ACTIVE.sk}}


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to compare."""

    entered: list[str]
    calls: list[tuple[float, str, Json]]
    status: str
    output: Json
    error: str | None
    token_stored: bool
    took: float


class World:
    """The scripted tasks and answers of one playing of a scenario."""

    def __init__(self, scenario: Scenario, clock: ManualClock) -> None:
        self._results = {mode: list(results) for mode, results in scenario.results.items()}
        self._answers = list(scenario.answers)
        self._refusals = list(scenario.refusals)
        self._clock = clock
        self.calls: list[tuple[float, str, Json]] = []

    def handlers(self) -> dict[str, moto.Handler]:
        return {arn: self._handler(arn) for arn in (WORK, ORCHESTRATOR, SLA_MONITOR)}

    def _handler(self, arn: str) -> moto.Handler:
        def handle(payload: Json) -> Json:
            self.calls.append((self.elapsed(), arn, _comparable(payload)))
            mode = payload.get("mode", "work") if isinstance(payload, dict) else "work"
            queue = self._results.get(mode, [None])
            result = queue.pop(0) if len(queue) > 1 else queue[0]
            match result:
                case Raise(error=error):
                    raise type(error, (Exception,), {})("as scripted")
                case Slow(seconds=seconds, result=late):
                    self._clock.advance(seconds=seconds)
                    return late
                case _:
                    return result

        return handle

    def answer(self) -> float | None:
        return self._answers.pop(0) if self._answers else None

    def refusal(self) -> str | None:
        return self._refusals.pop(0) if self._refusals else None

    def elapsed(self) -> float:
        return (self._clock.now() - START).total_seconds()


def play_on_moto(scenario: Scenario) -> History:
    clock = moto.MotoClock()
    world = World(scenario, clock)
    with moto.step_functions(world.handlers(), world.answer, clock, world.refusal) as client:
        table = _create_table() if "dynamodb" in json.dumps(scenario.definition) else None
        machine = client.create_state_machine(
            name="machine", definition=json.dumps(scenario.definition), roleArn=moto.ROLE
        )
        started = client.start_execution(
            stateMachineArn=machine["stateMachineArn"], name="one", input=json.dumps(scenario.input)
        )
        reported = client.describe_execution(executionArn=started["executionArn"])
        pages = client.get_paginator("get_execution_history").paginate(executionArn=started["executionArn"])
        events = [event for page in pages for event in page["events"]]
        token_stored = table is not None and "token" in table.get_item(TableName=moto.TABLE, Key=_KEY)["Item"]
    return History(
        entered=[event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event],
        calls=world.calls,
        status=reported["status"],
        output=_comparable(json.loads(reported["output"])) if "output" in reported else None,
        error=reported.get("error"),
        token_stored=token_stored,
        took=world.elapsed(),
    )


def _create_table() -> Any:
    client = moto.client("dynamodb")
    client.create_table(
        TableName=moto.TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName=moto.TABLE, Item={**_KEY, "wakeSeq": {"N": "3"}, "attempt": {"N": "1"}})
    return client


class RefusingStore(SqliteStore):
    """Refuses what the machine writes by itself, as the scenario says, under the name that Step Functions gives it."""

    def __init__(self, database: Database, clock: ManualClock, world: World) -> None:
        super().__init__(database, clock)
        self._world = world

    def apply(self, connection: sqlite3.Connection, writes: Sequence[Write], now_ms: int) -> Conflict | None:
        name = self._world.refusal() if any(isinstance(one, Update) for one in writes) else None
        if name is not None:
            error = CommitRefusedError("as scripted")
            error.error_name = f"DynamoDb.{name.removesuffix('Exception')}Exception"  # type: ignore[attr-defined]
            raise error
        return super().apply(connection, writes, now_ms)


def play_embedded(scenario: Scenario) -> History:
    clock = ManualClock()
    world = World(scenario, clock)
    entered: list[str] = []
    ended: list[ExecutionState] = []
    with Database.open(None, clock=clock, inline=True) as database:
        store = RefusingStore(database, clock, world)
        store.commit([Put(ACTIVE, {"wakeSeq": 3, "attempt": 1})])
        executions = SqliteExecutions(
            database,
            Machine.load(scenario.definition),
            tasks=world.handlers(),
            store=store,
            clock=clock,
            on_enter=lambda name, state, at: entered.append(state),
            on_end=ended.append,
        )
        executions.start("one", scenario.input)
        while not ended:
            if not executions.run_due(clock.now()):
                _let_time_pass(executions, store, world, clock)
        token_stored = "token" in (store.get(ACTIVE) or {})
    (execution,) = ended
    return History(
        entered=entered,
        calls=world.calls,
        status=execution.status,
        output=_comparable(execution.data) if execution.status == "SUCCEEDED" else None,
        error=execution.error if execution.status == "FAILED" else None,
        token_stored=token_stored,
        took=world.elapsed(),
    )


def _let_time_pass(executions: SqliteExecutions, store: SqliteStore, world: World, clock: ManualClock) -> None:
    (info,) = executions.list_open()
    due = executions.next_due()
    after = world.answer() if info.waiting is WaitKind.TOKEN else None
    if after is not None and (due is None or clock.now() + timedelta(seconds=after) < due):
        clock.advance(seconds=after)
        item = store.get(ACTIVE)
        assert item is not None
        assert executions.answer(item["token"])
    else:
        assert due is not None
        clock.advance(seconds=(due - clock.now()).total_seconds())


def _comparable(value: Json) -> Json:
    match value:
        case dict():
            return {name: "..." if name == "Cause" else _comparable(inner) for name, inner in value.items()}
        case list():
            return [_comparable(inner) for inner in value]
        case str() if value.startswith('{"errorType"'):
            return json.loads(value)["errorMessage"]
        case _:
            return value


# ---------------------------------------------------------------------------------------------------- the tests


@pytest.mark.parametrize("owner_and_name", moto.PATCHED, ids=lambda pair: pair[1])
def test_the_patched_points_exist(owner_and_name: tuple[Any, str]) -> None:
    owner, name = owner_and_name
    assert hasattr(owner, name)


@pytest.mark.parametrize("scenario", [*LITTLE, *LIFECYCLE], ids=lambda scenario: scenario.name)
def test_both_engines_tell_the_same_history(scenario: Scenario) -> None:
    ours, theirs = play_embedded(scenario), play_on_moto(scenario)
    assert ours.status == scenario.ends
    assert ours == theirs


def test_the_scenarios_visit_every_state_of_the_lifecycle() -> None:
    visited = {state for scenario in LIFECYCLE for state in play_embedded(scenario).entered}
    assert visited == set(lifecycle()["States"])


def test_the_lifecycle_lints() -> None:
    assert Linter.validate(lifecycle()) == []


def test_the_linter_would_find_a_fault() -> None:
    document = lifecycle()
    document["States"]["Evaluate"]["Next"] = "Nowhere"
    assert any("Nowhere" in problem for problem in Linter.validate(document))
