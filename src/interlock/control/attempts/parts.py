"""Parts of an attempt: one execution hands over to the next.

Step Functions ends an execution after 25,000 events of history, and every execution is bounded in time; an attempt is
bounded by its windows alone. So an execution that has looped often ends in good order and the next of the attempt goes
on; and where an execution has ended without an outcome (killed, timed out, stopped by hand), the watchdog has the next
part begin. Windows are counted from the run, so a part begins where the one before it was.
"""

from interlock.control import catalog, records
from interlock.control.attempts import opening
from interlock.control.context import Control
from interlock.decide import transitions
from interlock.model import keys
from interlock.model.events import Event
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus
from interlock.ports.store import Write


def execution_of(run: Run) -> str:
    """The name of the execution that drives an attempt now."""
    return keys.execution_name(run.key, run.attempt, run.part)


def follow(
    control: Control, key: RunKey, attempt: int, execution: str, *events: Event, early_ends: int = 0
) -> Run | None:
    """Begin the part after that execution, with these events; None when the attempt is over.

    `early_ends`: so many executions in a row have ended without handing over, that one included. Called again,
    it starts what was begun: a crash between the commit and the start loses nothing.
    """

    def decide() -> tuple[Run | None, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.attempt != attempt or not run.active or run.status is RunStatus.FAILED:
            return None, []
        if execution_of(run) != execution:
            return run, []
        config = catalog.opened_with(control.store, run.pipeline, run.config_version)
        until = opening.lease_until(control, config, config.schedule_of(run.schedule))
        now = control.now()
        after = transitions.amend(
            run, now=now, part=run.part + 1, part_at=now, early_ends=early_ends, lease_until=until
        )
        in_use = catalog.in_use_writes(control.store, run.pipeline, run.config_version, until)
        return after, [records.put_run(after, run), *in_use, *records.put_events(*events)]

    run = records.settle_commit(control, decide)
    if run is not None:
        opening.start_execution(control, run)
    return run
