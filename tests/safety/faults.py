"""A world in which things go wrong on purpose: crashes at commits, redelivery, a slow stream, lost timers and starts.

A plan is plain data, counted in commits and instants, so that a failing example can be written down and played again.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from interlock.embedded.stream.lanes import Handler
from interlock.embedded.stream.stream import StreamConsumer
from interlock.model.events import Event
from interlock.model.keys import Table
from interlock.ports.store import Change
from interlock.simulation.scenario import Scenario, TimedStep
from interlock.simulation.world import SimulatedCrash, World

_ALL: Final = 1_000_000


class Redelivery(msgspec.Struct, frozen=True):
    """At the start of an instant the router's checkpoint goes back by so many changes."""

    instant: int
    back: int


class Loss(msgspec.Struct, frozen=True):
    """At the end of an instant the `pick`-th timer, or open execution, is gone."""

    instant: int
    pick: int


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What goes wrong. `crashes`: numbers of the points before and after each COMMIT (2n is before, 2n + 1 after).

    `lags`: instants during which the router is not driven. `shuffled`: partitions are handed over in reverse order.
    """

    crashes: tuple[int, ...] = ()
    redeliveries: tuple[Redelivery, ...] = ()
    lags: tuple[int, ...] = ()
    shuffled: bool = False
    lost_timers: tuple[Loss, ...] = ()
    lost_executions: tuple[Loss, ...] = ()


class ShuffledConsumer(StreamConsumer):
    """Keeps the order within a partition, as it must, and turns the order of the partitions round."""

    def pump(self) -> int:
        """Deliver what is there now, partition by partition, the last one first."""
        position, end = self._registered(), self._database.head()
        changes, _ = self._read(position, end, _ALL)
        partitions: dict[str, list[Change]] = {}
        for change in changes:
            partitions.setdefault(change.pk, []).append(change)
        for pk in reversed(partitions):
            for start in range(0, len(partitions[pk]), self._batch_size):
                self._deliver(partitions[pk][start : start + self._batch_size])
        self._passed(end)
        return len(changes)


class FaultyWorld(World):
    """A world that follows a plan of faults, and remembers what its bus delivered."""

    def __init__(self, scenario: Scenario, plan: FaultPlan | None = None) -> None:
        self.plan = plan or FaultPlan()
        self.delivered: list[Event] = []
        # Where it crashed, and how many points there were to crash at.
        self.crashed: list[int] = []
        self.points = 0
        self._instants = -1
        self._crashes = frozenset(self.plan.crashes)
        super().__init__(scenario, fault=self._strike)

    def _strike(self, point: str) -> None:
        # Counted from the first instant on: the scenario begins with a controller that has its configs.
        if self._instants < 0:
            return
        number, self.points = self.points, self.points + 1
        if number in self._crashes:
            self.crashed.append(number)
            raise SimulatedCrash(point)

    def _wire(self) -> None:
        super()._wire()
        self.engine.bus.subscribe(self.delivered.append)
        if self.plan.shuffled:
            handler: Handler = self.engine._route
            tables = (Table.CONTROL, Table.JOBLOG)
            self.engine.router = ShuffledConsumer(self.database, "stream-router", tables, handler)

    def _instant(self, steps: list[TimedStep]) -> None:
        self._instants += 1
        for again in self.plan.redeliveries:
            if again.instant == self._instants:
                self._redeliver(again.back)
        super()._instant(steps)
        for lost in self.plan.lost_timers:
            if lost.instant == self._instants:
                self._lose("timers", "kind IN ('sla', 'retry')", lost.pick)
        for lost in self.plan.lost_executions:
            if lost.instant == self._instants:
                self._lose("executions", "status = 'RUNNING'", lost.pick)

    def _redeliver(self, back: int) -> None:
        """What a consumer that lost its checkpoint sees: everything since an older one, again."""
        sql = "UPDATE consumers SET checkpoint = max(0, checkpoint - ?) WHERE name = 'stream-router'"
        self._quietly(sql, (back,))
        self.crash()

    def _lose(self, table: str, where: str, pick: int) -> None:
        rows = self.database.read(f"SELECT name FROM {table} WHERE {where} ORDER BY name")
        if rows:
            self._quietly(f"DELETE FROM {table} WHERE name = ?", (rows[pick % len(rows)][0],))
            # Nothing was written that the simulation could notice: the watchdog has its turn as usual.
            self._watched_head = -1

    def _quietly(self, sql: str, values: Sequence[object]) -> None:
        """An act of the world, not of the controller: no fault strikes here."""
        crashes, self._crashes = self._crashes, frozenset()
        try:
            self.database.write(lambda connection: connection.execute(sql, values).rowcount)
        finally:
            self._crashes = crashes

    def _pump(self) -> int:
        if self._instants not in self.plan.lags:
            return super()._pump()
        return self.engine.sink.pump() + self._recorder.pump()

    def finish(self) -> "FaultyWorld":
        """Play to the end, and deliver what a lag of the last instant left over."""
        self.play()
        self._instants += 1
        while self._instants in self.plan.lags:
            self._instants += 1
        self._settle(self.clock.now())
        return self
