"""Executions in SQLite: the port's obligations, durability at every commit, odd rows and odd tasks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.embedded.asl import executions
from interlock.embedded.asl.execution import Status, WaitKind
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.embedded.asl.paths import DefinitionError
from interlock.embedded.asl.update_item import UPDATE_ITEM
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.ports.executions import StartResult
from interlock.ports.store import Put
from tests.conformance.executions_suite import ACTIVE, INPUT, WAIT_SECONDS, ExecutionsSuite, ExecutionsWorld
from tests.conformance.manual_clock import START
from tests.embedded.execution_engine import Json, engine, one


class Crash(BaseException):
    """The process dies here."""


class TestSqliteExecutions(ExecutionsSuite):
    @contextmanager
    def open_world(self) -> Iterator[ExecutionsWorld]:
        with engine() as opened:
            yield opened


# --------------------------------------------------------------------------------------------------- crashes


@given(st.integers(0, 12), st.booleans(), st.booleans())
def test_a_crash_at_any_commit_loses_nothing(at: int, after: bool, answered: bool) -> None:
    point = "after-commit" if after else "before-commit"
    with engine() as world:
        world.store.commit([Put(ACTIVE, {"wakeSeq": 3, "token": None})])
        left = at

        def fault(where: str) -> None:
            nonlocal left
            if where == point:
                left -= 1
                if left < 0:
                    raise Crash

        def survive(act: Callable[[], object]) -> None:
            try:
                act()
            except Crash:
                world.restart()
                act()

        world.database.fault = fault
        survive(lambda: world.executions.start("one", INPUT))
        survive(world.settle)
        # The invariant: whatever token can be seen, the row waits for it.
        item = world.store.get(ACTIVE)
        assert item is not None
        (open_,) = world.executions.list_open()
        assert open_.waiting is WaitKind.TOKEN
        if answered:
            survive(lambda: world.executions.answer(item["token"]))
            survive(world.settle)
        survive(lambda: world.advance(WAIT_SECONDS))
        assert world.status() == (Status.SUCCEEDED, None)
        assert set(world.said) == {"answered" if answered else "late"}


def test_the_token_is_never_visible_before_the_row_that_waits_for_it() -> None:
    with engine() as world:
        world.store.commit([Put(ACTIVE, {"wakeSeq": 3, "token": None})])
        world.executions.start("one", INPUT)

        def fault(where: str) -> None:
            if where == "before-commit":
                raise Crash

        world.database.fault = fault
        with pytest.raises(Crash):
            world.settle()
        world.database.fault = None
        assert world.store.get(ACTIVE) == {"wakeSeq": 3, "token": None}
        (info,) = world.executions.list_open()
        assert info.waiting is None


def test_a_task_is_called_again_after_a_crash_and_the_execution_goes_on() -> None:
    calls: list[int] = []

    def work(_: dict[str, Any]) -> int:
        calls.append(1)
        if len(calls) == 1:
            raise Crash
        return len(calls)

    with engine(one(), work) as world:
        world.executions.start("one", {})
        with pytest.raises(Crash):
            world.settle()
        assert world.executions.is_open("one")
        world.restart()
        world.settle()
        assert [execution.data for execution in world.ended] == [2]


def test_an_answer_that_comes_while_the_time_out_is_handled_is_not_lost() -> None:
    with engine() as world:
        world.store.commit([Put(ACTIVE, {"wakeSeq": 3, "token": None})])
        world.executions.start("one", INPUT)
        world.settle()
        item = world.store.get(ACTIVE)
        assert item is not None
        said = world.said

        def answer_meanwhile(payload: dict[str, Any]) -> None:
            said.append(payload["said"])
            if payload["said"] == "late":
                assert world.executions.answer(item["token"])

        world.work = answer_meanwhile
        world.advance(WAIT_SECONDS)
        assert said == ["late", "answered"]
        assert world.status() == (Status.SUCCEEDED, None)


# ----------------------------------------------------------------------------------------------------- tasks


class ThrottledError(Exception):
    pass


class NamedError(InterlockError):
    error_name = "Service.Busy"


@pytest.mark.parametrize(
    ("raised", "error", "cause"),
    [
        (ThrottledError("slow down"), "ThrottledError", "slow down"),
        (NamedError("later"), "Service.Busy", "later"),
        (KeyError("x"), "KeyError", "'x'"),
    ],
)
def test_what_a_task_raises_is_an_error_of_that_name(raised: Exception, error: str, cause: str) -> None:
    def work(_: dict[str, Any]) -> None:
        raise raised

    with engine(one(Catch=[{"ErrorEquals": [error], "Next": "Caught"}]), work) as world:
        world.executions.start("one", {})
        world.settle()
        assert [execution.data for execution in world.ended] == [{"Error": error, "Cause": cause}]


def test_retries_are_durable_waits() -> None:
    at: list[datetime] = []

    def work(_: dict[str, Any]) -> str:
        at.append(world.clock.now())
        if len(at) < 3:
            raise ThrottledError
        return "done"

    retry = [{"ErrorEquals": ["ThrottledError"], "IntervalSeconds": 30}]
    with engine(one(Retry=retry), work) as world:
        world.executions.start("one", {})
        world.settle()
        (info,) = world.executions.list_open()
        assert (info.waiting, info.waiting_until) == (WaitKind.RETRY, START + timedelta(seconds=30))
        world.restart()
        world.advance(300)
        assert [(when - START).total_seconds() for when in at] == [0, 30, 90]
        assert world.status() == (Status.SUCCEEDED, None)


def test_a_task_that_returns_too_late_has_timed_out() -> None:
    def work(_: dict[str, Any]) -> None:
        world.clock.advance(seconds=11)

    with engine(one(TimeoutSecondsPath="$.bound"), work) as world:
        world.executions.start("one", {"bound": 10})
        world.settle()
        assert world.status() == (Status.FAILED, "States.Timeout")


def test_a_task_can_neither_change_the_data_nor_return_what_is_not_json() -> None:
    def work(payload: dict[str, Any]) -> object:
        payload["keep"].append("changed")
        return {1, 2} if payload["set"] else object()

    with engine(one(ResultPath="$.r"), work) as world:
        world.executions.start("one", {"keep": [], "set": True})
        world.executions.start("two", {"keep": [], "set": False})
        world.settle()
        assert world.ended[0].data == {"keep": [], "set": True, "r": [1, 2]}
        assert world.status("two") == (Status.FAILED, "TypeError")


def test_a_bug_of_the_interpreter_fails_the_execution_instead_of_leaving_it_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with engine(one(), lambda _: None) as world:
        monkeypatch.setattr(world.machine, "complete", lambda *_: 1 / 0)
        world.executions.start("one", {})
        world.settle()
        info = world.executions.describe("one")
        assert info is not None
        assert (info.status, info.error, info.cause) == (
            Status.FAILED,
            "States.Runtime",
            "ZeroDivisionError: division by zero",
        )


@pytest.mark.parametrize("column", ["extra", "data"])
def test_a_row_that_can_not_be_read_is_closed(column: str) -> None:
    with engine(one(), lambda _: None) as world:
        world.executions.start("one", {})
        world.database.write(lambda connection: connection.execute(f"UPDATE executions SET {column} = '{{'"))
        world.settle()
        assert world.status() == (Status.FAILED, "States.Runtime")


def test_a_resource_without_a_handler_is_found_before_anything_runs() -> None:
    with engine(one()) as world, pytest.raises(DefinitionError, match="no handler for the task resource work"):
        SqliteExecutions(world.database, world.machine, tasks={}, store=world.store, clock=world.clock)


# ------------------------------------------------------------------------------------------------ bookkeeping

WAITING = {
    "StartAt": "W",
    "States": {
        "W": {
            "Type": "Task",
            "Resource": UPDATE_ITEM,
            "Parameters": {
                "TableName": "control",
                "Key": {"PK": {"S": ACTIVE.pk}, "SK": {"S": ACTIVE.sk}},
                "UpdateExpression": "SET #token = :token",
                "ExpressionAttributeNames": {"#token": "token"},
                "ExpressionAttributeValues": {":token": {"S.$": "$$.Task.Token"}},
            },
            "TimeoutSecondsPath": "$.s",
            "Catch": [{"ErrorEquals": ["States.Timeout"], "Next": "D"}],
            "Next": "D",
        },
        "D": {"Type": "Succeed"},
    },
}


def test_what_is_due_is_run_in_the_order_of_due_and_name() -> None:
    with engine(WAITING) as world:
        for name, seconds in (("c", 1), ("a", 2), ("b", 1), ("later", 60)):
            world.executions.start(name, {"s": seconds})
        assert world.executions.run_due(START) == 4
        assert world.executions.run_due(START) == 0
        assert world.executions.next_due() == START + timedelta(seconds=1)
        world.entered.clear()
        assert world.executions.run_due(START + timedelta(seconds=2)) == 3
        assert world.entered == [("b", "D"), ("c", "D"), ("a", "D")]
        assert world.executions.next_due() == START + timedelta(seconds=60)


def test_more_than_a_page_is_due_at_once() -> None:
    with engine(WAITING) as world:
        for number in range(600):
            world.executions.start(f"{number}", {"s": 1})
        assert world.executions.run_due(START) == 600
        assert world.executions.run_due(START + timedelta(seconds=1)) == 600
        assert world.executions.next_due() is None


def test_a_wait_is_never_cut_short() -> None:
    with engine(WAITING) as world:
        world.clock.advance(microseconds=500)
        world.executions.start("one", {"s": 1})
        world.settle()
        due = world.executions.next_due()
        assert due is not None
        assert due >= world.clock.now() + timedelta(seconds=1)
        assert not world.executions.run("one", due - timedelta(milliseconds=1))
        assert world.executions.run("one", due)
        assert world.status() == (Status.SUCCEEDED, None)


def test_an_execution_may_have_a_bound_of_its_own() -> None:
    with engine({**WAITING, "TimeoutSeconds": 50}) as world:
        world.executions.start("own", {"s": 1000, "timeoutSeconds": 100})
        world.executions.start("definition's", {"s": 1000})
        world.advance(50)
        assert world.status("definition's") == (Status.TIMED_OUT, "States.Timeout")
        assert world.executions.is_open("own")
        world.advance(50)
        assert world.status("own") == (Status.TIMED_OUT, "States.Timeout")


@pytest.mark.parametrize("bound", [0, -1, "60", True, 1e300])
def test_a_bound_that_is_none_is_refused(bound: Json) -> None:
    with engine(WAITING) as world, pytest.raises(InvalidValueError, match="timeoutSeconds"):
        world.executions.start("one", {"timeoutSeconds": bound})


@pytest.mark.parametrize("name", ["", "x" * 81])
def test_a_name_that_step_functions_would_refuse_is_refused(name: str) -> None:
    with engine(WAITING) as world, pytest.raises(InvalidValueError, match="1 to 80 characters"):
        world.executions.start(name, {})


def test_an_execution_is_described_while_it_waits_and_when_it_is_over() -> None:
    with engine({**WAITING, "TimeoutSeconds": 50}) as world:
        assert world.executions.describe("one") is None
        world.executions.start("one", {"s": 20})
        world.settle()
        info = world.executions.describe("one")
        assert info is not None
        assert [info] == world.executions.list_open()
        assert (info.state, info.waiting, info.waiting_until) == ("W", WaitKind.TOKEN, START + timedelta(seconds=20))
        assert (info.times_out_at, info.ended_at) == (START + timedelta(seconds=50), None)
        world.advance(20)
        over = world.executions.describe("one")
        assert over is not None
        assert (over.status, over.state, over.waiting) == (Status.SUCCEEDED, "D", None)
        assert over.ended_at == START + timedelta(seconds=20)
        assert world.executions.list_open() == []


def test_what_is_over_keeps_its_name_but_not_its_data_until_it_is_pruned() -> None:
    with engine(WAITING) as world:
        world.executions.start("one", {"s": 1, "large": "x" * 10_000})
        world.executions.start("open", {"s": 500})
        world.advance(10)
        ((size,),) = world.database.read("SELECT length(data) + length(extra) FROM executions WHERE name = 'one'")
        assert size < 500
        assert world.executions.prune(START) == 0
        assert world.executions.start("one", {"s": 0}) is StartResult.ALREADY_CLOSED
        assert world.executions.prune(START + timedelta(seconds=2)) == 1
        assert world.executions.start("one", {"s": 0}) is StartResult.STARTED
        assert world.executions.is_open("open")


def test_finding_what_has_ended_long_ago_uses_the_index() -> None:
    with engine(WAITING) as world:
        plan = str(world.database.read(f"EXPLAIN QUERY PLAN {executions._ENDED}", (0, 10)))
        assert "executions_ended" in plan
        assert "TEMP B-TREE" not in plan


def test_finding_what_is_due_uses_the_index() -> None:
    with engine(WAITING) as world:
        sql = "SELECT due_ms, name FROM executions WHERE due_ms <= 1 AND (due_ms, name) > (0, '') ORDER BY due_ms, name"
        plan = " ".join(row[3] for row in world.database.read(f"EXPLAIN QUERY PLAN {sql} LIMIT 5"))
        assert "executions_due" in plan
        assert "TEMP B-TREE" not in plan
