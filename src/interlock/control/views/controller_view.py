"""The read model of the controller itself: folders it follows, files it cannot use, pipelines that have yet to end.

It decides nothing and writes nothing.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from interlock.control import catalog, config_files, records
from interlock.control.config_files import InvalidFile
from interlock.control.views import run_views
from interlock.control.views.run_views import RunSummary
from interlock.ports.store import Store


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class FolderView(_View, frozen=True, kw_only=True):
    """A folder of pipelines that is followed. `lost`: why nothing that it lacks is removed; "" when all is well."""

    folder: str
    pipelines: int
    lost: str = ""
    lost_since: datetime | None = None


class InvalidFileView(_View, frozen=True, kw_only=True):
    """A config file that cannot be used. `in_force`: the version that goes on; "" when nothing of it is run."""

    pipeline: str
    file: str
    errors: list[str]
    since: datetime
    in_force: str = ""
    verdict: str = ""


class RemovedView(_View, frozen=True, kw_only=True):
    """A pipeline that was removed, with its runs that are still under way."""

    pipeline: str
    runs: list[RunSummary]


class ConfigState(_View, frozen=True, kw_only=True):
    """Where configs come from, and what is wrong there. `degraded`: what the controller works in spite of, in words."""

    folders: list[FolderView]
    invalid_files: list[InvalidFileView]
    removed: list[RemovedView]
    degraded: list[str] = []


class FunctionView(_View, frozen=True, kw_only=True):
    """One of the six functions. `lag`: how much waits for it now. `last_at`: when it last did something, if known."""

    name: str
    lag: int
    last_at: datetime | None = None

    @property
    def reads_stream(self) -> bool:
        """Does it read changes, so that its lag is one of changes?"""
        return self.name in ("stream-router", "event-sink", "alert-dispatcher")


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What waits to be done, in numbers. `deliveries`: how many alerts wait, by channel."""

    functions: list[FunctionView]
    timers: int = 0
    executions_waiting: int = 0
    deliveries: dict[str, int] = {}
    failing_channels: int = 0
    alerts_given_up: int = 0


def config_state(store: Store, degraded: Iterable[str] = ()) -> ConfigState:
    """How things stand now."""
    return ConfigState(
        folders=[
            FolderView(folder=one.folder, pipelines=len(one.pipelines), lost=one.lost, lost_since=one.lost_since)
            for one in config_files.folders(store)
        ],
        invalid_files=[_invalid(one) for one in config_files.invalid_files(store)],
        removed=[found for name in _gone(store) if (found := _removed(store, name)).runs],
        degraded=list(degraded),
    )


def _gone(store: Store) -> list[str]:
    """Those that had runs under way when they were removed; one that was applied again since is back."""
    retired = catalog.retired(store)
    present = set(store.pipelines()) if retired else set()
    return [name for name in retired if name not in present]


def _invalid(found: InvalidFile) -> InvalidFileView:
    return InvalidFileView(
        pipeline=found.pipeline,
        file=found.file,
        errors=found.errors,
        since=found.since,
        in_force=found.in_force,
        verdict=found.verdict(),
    )


def _removed(store: Store, pipeline: str) -> RemovedView:
    runs = (records.get_run(store, key) for key in records.active_runs(store, pipeline))
    return RemovedView(pipeline=pipeline, runs=[run_views.summary_of(run) for run in runs if run is not None])
