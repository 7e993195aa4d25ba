"""What a played world leaves behind, gathered once for the invariants: runs, events by run, records, true jobs."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from interlock.control import catalog, records
from interlock.embedded.asl.executions import ExecutionInfo
from interlock.model import keys
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import JobRecord, RerunRecord, Run, SlaState
from interlock.ports.store import Store
from interlock.simulation.world import World
from tests.safety.history import History

T = TypeVar("T")


class Ledger:
    """Reads a world; changes nothing. `pipelines`: all there ever were; `configs`: those that are there in the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now: datetime = world.clock.now()
        self.store: Store = world.engine.store
        self.history = History(world.scenario)
        self.pipelines: list[str] = list(self.history.configs)
        self.configs: dict[str, PipelineConfig] = {
            name: eras.last.value for name, eras in self.history.configs.items() if eras.last.value is not None
        }
        self.calendars: dict[str, Calendar] = {name: eras.last.value for name, eras in self.history.calendars.items()}

    def _all(self, table: Table, prefix: str, type_: type[T]) -> list[T]:
        found: list[T] = []
        for pipeline in self.pipelines:
            for record in self.store.query(table, keys.pipeline_pk(pipeline), prefix):
                found.append(records.convert(record.item, type_, record.key))
        return found

    @cached_property
    def runs(self) -> dict[RunKey, Run]:
        """Every run, by its slot."""
        return {run.key: run for run in self._all(Table.CONTROL, keys.RUN, Run)}

    @cached_property
    def slas(self) -> list[SlaState]:
        """Every SLA state that is still kept."""
        return self._all(Table.CONTROL, keys.SLA, SlaState)

    @cached_property
    def reruns(self) -> list[RerunRecord]:
        """Every retry and rerun there was."""
        return self._all(Table.RERUN, keys.RERUN, RerunRecord)

    @cached_property
    def job_log(self) -> list[JobRecord]:
        """Every line of every job log."""
        return self._all(Table.JOBLOG, keys.JOB, JobRecord)

    @cached_property
    def requests(self) -> list[dict[str, Any]]:
        """Every rerun request, with its decision."""
        return self._all(Table.CONTROL, keys.RERUN_REQUEST, dict[str, Any])

    @cached_property
    def active(self) -> set[RunKey]:
        """The slots that have a wake-up record."""
        return {key for pipeline in self.pipelines for key in records.active_runs(self.store, pipeline)}

    @cached_property
    def events(self) -> dict[RunKey, list[Event]]:
        """The events of each run, in the order of their commits."""
        found: dict[RunKey, list[Event]] = defaultdict(list)
        for event in self.world.events:
            found[RunKey(event.pipeline_id, event.schedule_id, event.date)].append(event)
        return dict(found)

    @cached_property
    def executions(self) -> dict[str, ExecutionInfo]:
        """The open executions, by name."""
        return {one.name: one for one in self.world.engine.executions.list_open(100_000)}

    def opened_with(self, key: RunKey, attempt: int) -> PipelineConfig | None:
        """The config an attempt was opened with, by what was told of its opening; None if nothing was."""
        reported = [one for one in self.of(key, EventType.TRIGGER_STARTED) if one.detail["attempt"] == attempt]
        return catalog.opened_with(self.store, key.pipeline, reported[0].detail["configVersion"]) if reported else None

    def config_of(self, run: Run) -> PipelineConfig:
        """The config of a run's latest attempt."""
        return catalog.opened_with(self.store, run.pipeline, run.config_version)

    def of(self, key: RunKey, *types: EventType) -> list[Event]:
        """The events of a run of these types."""
        return [event for event in self.events.get(key, []) if event.type in types]


def attempts(events: Iterable[Event]) -> list[int]:
    """The attempts that events tell of."""
    return [int(event.detail.get("attempt", 0)) for event in events]


class TrueJob(msgspec.Struct, frozen=True):
    """A job as it really ran in its target, whatever the controller thinks of it."""

    key: RunKey
    attempt: int
    began: datetime
    ended: datetime | None


def true_jobs(world: World) -> list[TrueJob]:
    """Every job that was ever started, in the order of the starts."""
    found: list[TrueJob] = []
    for job in world.targets._jobs.values():
        ended = None if job.script.result == "hang" else job.started_at + job.script.after
        stopped = world.targets._stopped.get(job.request.run_id)
        ended = min((at for at in (ended, stopped) if at is not None), default=None)
        found.append(TrueJob(job.request.key, job.request.attempt, job.started_at, ended))
    return found
