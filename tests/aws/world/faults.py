"""An AWS in which things go wrong on purpose: what the services warn of, and functions that die at a commit.

A plan is plain data, counted in calls and instants, so that a failing example can be written down and played again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from botocore.exceptions import ReadTimeoutError

from interlock.simulation.scenario import Scenario, TimedStep
from tests.aws.world.calls import Call
from tests.aws.world.functions import FunctionKilled
from tests.aws.world.play import AwsWorld
from tests.aws.world.sources import Record
from tests.safety.faults import Loss

_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
_LAG: Final = timedelta(seconds=5)
# Longer than a message that was being handled by a killed function stays invisible, three times over.
_AFTERMATH: Final = timedelta(minutes=20)


class AwsFaults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What goes wrong, each by its number among its kind, counted from the first instant on.

    `kills`: a function dies at a write of its (2n: before the n-th, 2n + 1: after). `throttled`, `conflicts`, `lost`:
    DynamoDB refuses a call, a transaction collides, the answer to a write gets lost. `stale`: Step Functions answers
    with what was five seconds ago, and the index of events has not heard of the last five seconds either. `twice`: the
    stream records of an instant come twice. `held`: the streams stand still during an instant. `reordered`: stream
    records keep the order of each item only. `aborted`: somebody stops an execution. `unscheduled`: an entry of
    Scheduler is gone. `dropped`: a message of the queue of timers is gone.
    """

    kills: tuple[int, ...] = ()
    throttled: tuple[int, ...] = ()
    conflicts: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    stale: bool = False
    twice: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    reordered: bool = False
    aborted: tuple[Loss, ...] = ()
    unscheduled: tuple[Loss, ...] = ()
    dropped: tuple[Loss, ...] = ()

    @property
    def lost_timers(self) -> tuple[Loss, ...]:
        """As the properties ask for them."""
        return self.unscheduled + self.dropped


class FaultyAwsWorld(AwsWorld):
    """A world that follows a plan of faults."""

    def __init__(self, scenario: Scenario, plan: AwsFaults | None = None) -> None:
        super().__init__(scenario)
        self.plan = plan or AwsFaults()
        self.struck = 0
        """How many faults there were."""
        self._instants = -1
        self._counts: dict[str, int] = {}
        self._functions = {one.name for one in self.cloud.plan.functions}
        self.cloud.calls.before.append(self._before)
        self.cloud.calls.after.append(self._after)
        for stream in self.cloud.streams:
            stream.arrange = self._arranged
        if self.plan.stale:
            self.cloud.machine.behind = _LAG
            self.cloud.tables.index_behind = _LAG

    # -------------------------------------------------------------------------------------------------- calls

    def _strikes(self, kind: str, numbers: tuple[int, ...]) -> bool:
        # Counted from the first instant on: the scenario begins with a controller that has its configs.
        if self._instants < 0:
            return False
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        if number in numbers:
            self.struck += 1
            return True
        return False

    def _before(self, call: Call) -> None:
        if call.service != "dynamodb" or call.principal not in self._functions | {self.cloud.machine.planned.name}:
            return
        if self._strikes("throttled", self.plan.throttled):
            raise call.error("ThrottlingException", "Rate exceeded")
        if call.operation == "TransactWriteItems" and self._strikes("conflicts", self.plan.conflicts):
            reasons = [{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}]
            message = (
                "Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]"
            )
            raise call.error("TransactionCanceledException", message, CancellationReasons=reasons)
        if call.operation == "UpdateItem" and self._strikes("conflicts", self.plan.conflicts):
            raise call.error("TransactionConflictException", "Transaction is ongoing for the item")
        if call.principal in self._functions and call.operation in _WRITES:
            self._kill(0)

    def _after(self, call: Call, answer: Any) -> None:
        del answer
        if call.service != "dynamodb" or call.principal not in self._functions or call.operation not in _WRITES:
            return
        if self._strikes("lost", self.plan.lost):
            raise ReadTimeoutError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com")
        self._kill(1)

    def _kill(self, after: int) -> None:
        if self._instants < 0:
            return
        number = self._counts.get("kills", 0)
        self._counts["kills"] = number + after
        if 2 * number + after in self.plan.kills:
            self.struck += 1
            self._counts["kills"] = number + 1
            raise FunctionKilled

    # ------------------------------------------------------------------------------------------------ instants

    def _arranged(self, records: list[Record]) -> list[Record]:
        found = [*records, *records] if self._instants in self.plan.twice else records
        if not self.plan.reordered:
            return found
        items: dict[str, list[Record]] = {}
        for record in found:
            items.setdefault(str(record["dynamodb"]["Keys"]), []).append(record)
        return [record for item in reversed(items.values()) for record in item]

    def _instant(self, steps: list[TimedStep]) -> None:
        self._instants += 1
        held = self._instants in self.plan.held
        for stream in self.cloud.streams:
            stream.held = held
        super()._instant(steps)
        for loss in self.plan.aborted:
            if loss.instant == self._instants:
                self._abort(loss.pick)
        for loss in self.plan.unscheduled:
            if loss.instant == self._instants:
                self._unschedule(loss.pick)
        for loss in self.plan.dropped:
            if loss.instant == self._instants:
                self._drop(loss.pick)
        if held:
            # Nothing was written that the loop could notice: it has to come back for what stands in the streams.
            for stream in self.cloud.streams:
                stream.held = False
            self._held_until = self.clock.now() + timedelta(seconds=1)

    def _next_instant(self, now: datetime, step_at: datetime | None) -> datetime | None:
        found = [super()._next_instant(now, step_at), self._held_until]
        self._held_until = None
        return min((at for at in found if at is not None), default=None)

    _held_until: datetime | None = None

    def _abort(self, pick: int) -> None:
        names = sorted(one.name for one in self.engine.executions.list_open(1000))
        if names:
            self.struck += 1
            self.cloud.machine.lose(names[pick % len(names)])
            self._watched_head = -1

    def _unschedule(self, pick: int) -> None:
        armed = self.cloud.schedules.armed()
        if armed:
            self.struck += 1
            self.cloud.schedules.remove(armed[pick % len(armed)])
            self._watched_head = -1

    def _drop(self, pick: int) -> None:
        if self.cloud.queues.drop(f"{self.cloud.plan.environment}-interlock-timers", pick):
            self.struck += 1
            self._watched_head = -1

    @property
    def points(self) -> int:
        """At how many points a function could have been killed."""
        return 2 * self._counts.get("kills", 0)

    def finish(self) -> "FaultyAwsWorld":
        """Play to the end, and on without steps until what was struck has been tried again."""
        self.play()
        until = self.clock.now() + _AFTERMATH
        while self.engine.router.lag() or self.cloud.next_at() is not None:
            following = self._next_instant(self.clock.now(), None)
            if following is None or following > until:
                break
            self.clock.move_to(following)
            self._instant([])
        return self


@contextmanager
def faulty(scenario: Scenario, plan: AwsFaults | None = None) -> Iterator[FaultyAwsWorld]:
    """A world of that scenario, in which that goes wrong."""
    world = FaultyAwsWorld(scenario, plan)
    with world.cloud.running():
        yield world
