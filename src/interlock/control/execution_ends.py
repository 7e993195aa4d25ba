"""An execution has ended, and whoever runs executions says so: its attempt goes on or ends at once.

Without this the watchdog finds it at its next pass. An attempt that is over, or that another execution drives by now,
is left alone; so the same end may be told twice.
"""

from interlock.control import completion, parts, records
from interlock.control.context import Control
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus


def ended(control: Control, key: RunKey, attempt: int, execution: str, *, why: str, failed: bool) -> bool:
    """Have the attempt go on in a new part; end it where its execution `failed`. True when there was anything to do.

    `why`: what the execution ended with. One that failed by itself would fail again: its run is FAILED_FINAL (infra).
    """
    run = records.get_run(control.store, key)
    if run is None or run.attempt != attempt or not run.active or run.status is RunStatus.FAILED:
        return False
    if parts.execution_of(run) != execution:
        return False
    if run.status is RunStatus.RUNNING and records.outcome_of(control.store, run) is not None:
        completion.settle(control, key, attempt)
    elif failed:
        completion.fail_final(control, key, attempt, FinalReason.INFRA, f"its execution ended: {why}")
    else:
        reason = f"attempt {attempt} goes on: its execution ended early ({why})"
        message = f"{key.pipeline} for {key.date}: {reason}"
        event = records.event(EventType.TRIGGER_RECOVERED, key, control.now(), message, reason=reason)
        parts.follow(control, key, attempt, execution, event)
    return True
