"""The runtime reports that an execution has ended: its attempt goes on or ends at once.

Without this the watchdog finds it at its next pass. An attempt that is over, or that another execution drives by now,
is left alone; so the same end may be reported twice. How often an attempt goes on is bounded (`decide.early_ends`).
"""

from interlock.control import records
from interlock.control.attempts import completion, parts
from interlock.control.context import Control
from interlock.decide import early_ends
from interlock.decide.early_ends import AfterEarlyEnd
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, Run, RunStatus


def ended(control: Control, key: RunKey, attempt: int, execution: str, *, why: str, failed: bool) -> bool:
    """Have the attempt go on in a new part; end it where its execution `failed`. True when there was anything to do.

    `why`: what the execution ended with, if that is known. An execution that failed by itself would fail again: its
    run is FAILED_FINAL (infra). So is a run whose executions keep ending early; before that each has to wait longer for
    the next, which the watchdog then begins.
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
        return _go_on(control, run, execution, why)
    return True


def _go_on(control: Control, run: Run, execution: str, why: str) -> bool:
    verdict = early_ends.judge(run, control.now())
    how = f"its execution had ended early{f' ({why})' if why else ''}"
    match verdict.follows:
        case AfterEarlyEnd.LATER:
            return False
        case AfterEarlyEnd.GIVE_UP:
            message = f"{how}, as did the {verdict.in_a_row - 1} before it: nothing that drives the run stays alive"
            completion.fail_final(control, run.key, run.attempt, FinalReason.INFRA, message)
        case AfterEarlyEnd.GO_ON:
            reason = f"attempt {run.attempt} goes on: {how}"
            message = f"{run.pipeline} for {run.date}: {reason}"
            event = records.event(EventType.TRIGGER_RECOVERED, run.key, control.now(), message, reason=reason)
            parts.follow(control, run.key, run.attempt, execution, event, early_ends=verdict.in_a_row)
    return True
