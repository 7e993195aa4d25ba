"""The two brakes of SPEC 2: a pipeline that is a dry run, or was deleted, starts no job, whatever is under way.

An attempt keeps the config it was opened with, so the current one has to be asked. Three places ask, and together they
leave no gap. An attempt that was opened before the brake was committed is withdrawn by the change of the config
(`pull`). An attempt that was opened after it, by somebody who had read the config before, is withdrawn by the change of
its run, before its execution is started (`start`). An attempt that is about to start its job commits TRIGGERING on the
condition that the config is the one that was asked (`starting`): either that comes before the brake, and the job counts
as started, or it does not come at all.

A job that runs is followed to its end; `completion` gives it no retry.
"""

from interlock.control import catalog, records
from interlock.control.attempts import completion, opening
from interlock.control.context import Control
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus
from interlock.ports.store import Write


def pull(control: Control, pipeline: str) -> None:
    """A config was written or removed: if that was a brake, withdraw the attempts whose job has not been started."""
    if catalog.brake(control.store, pipeline).reason is None:
        return
    for key in records.active_runs(control.store, pipeline):
        withdraw(control, key)


def start(control: Control, run: Run) -> None:
    """Start the execution of an attempt, unless the brakes are on."""
    if not withdraw(control, run.key):
        opening.start_execution(control, run)


def withdraw(control: Control, key: RunKey) -> bool:
    """End the attempt of a run, if the brakes are on and its job has not been started; True when that ended it."""

    def decide() -> tuple[tuple[bool, str | None], list[Write]]:
        brake = catalog.brake(control.store, key.pipeline)
        run = records.get_run(control.store, key)
        if brake.reason is None or run is None or not _startable(run):
            return (False, None), []
        active = records.get_active(control.store, key)
        writes = completion.withdrawn_writes(control, run, brake.reason)
        return (True, active.token if active is not None else None), [*writes, brake.unchanged]

    withdrawn, token = records.settle_commit(control, decide)
    if token is not None:
        control.executions.answer(token)
    return withdrawn


def _startable(run: Run) -> bool:
    """Is its job still to be started, and surely not started yet?"""
    if run.status is RunStatus.TRIGGERING:
        return run.refused
    return run.status in (RunStatus.PENDING, RunStatus.FAILED)
