"""Ending an attempt because somebody says so (SPEC 16, `interlock cancel`).

An attempt whose job has not been started ends at once. The job of any other is stopped at its target: the wish is
committed with the run, and the lifecycle, woken by it, asks the target until that says that the job is over, also after
a crash. What the job then came to decides: a failure is the cancellation, a success is a success.
"""

from typing import Literal

from interlock.control import records, waking
from interlock.control.attempts import completion, starting
from interlock.control.auditing import note, noted
from interlock.control.context import Control
from interlock.decide import transitions
from interlock.logs import get_logger
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.config import PipelineConfig
from interlock.model.errors import InvalidValueError, JobStopError
from interlock.model.keys import RunKey
from interlock.model.run import Cancel, Run, RunStatus
from interlock.ports.store import Write

log = get_logger(__name__)

Outcome = Literal["cancelled", "stopping"]


def cancel(control: Control, key: RunKey, *, reason: str = "", by: str = "") -> Outcome:
    """End a waiting attempt (`cancelled`), or have a running job stopped (`stopping`); an error when none is active."""

    def decide() -> tuple[tuple[Outcome, str | None], list[Write]]:
        run = records.get_run(control.store, key)
        if run is None:
            raise InvalidValueError(f"{key} has never run: there is nothing to cancel")
        if not run.active:
            raise InvalidValueError(f"{key} has no active attempt: attempt {run.attempt} is {run.word}")
        wish = Cancel(at=control.now(), by=by, reason=reason)
        if _not_started(run):
            active = records.get_active(control.store, key)
            token = active.token if active is not None else None
            return ("cancelled", token), noted(
                completion.cancelled_writes(control, run, wish), _recorded(control, run, wish, "cancelled")
            )
        if run.cancel is not None and not run.cancel.problem:
            return ("stopping", None), []
        wished = records.put_run(transitions.amend(run, now=control.now(), cancel=wish), run)
        return ("stopping", None), noted([wished], _recorded(control, run, wish, "stopping"))

    outcome, token = records.settle_commit(control, decide)
    if token is not None:
        control.executions.answer(token)
    elif outcome == "stopping":
        waking.wake(control, key)
    return outcome


def _recorded(control: Control, run: Run, wish: Cancel, outcome: Outcome) -> AuditNote | None:
    before = {"status": run.status.value, "attempt": run.attempt}
    after = {"outcome": outcome}
    return note(control, AuditAction.RUN_CANCELLED, run.key, reason=wish.reason, before=before, after=after)


def _not_started(run: Run) -> bool:
    """Is its job surely not started? A start that is under way may succeed: then the job is stopped."""
    if run.status is RunStatus.TRIGGERING:
        return run.refused
    return run.status in (RunStatus.PENDING, RunStatus.FAILED)


def stop_job(control: Control, config: PipelineConfig, run: Run) -> None:
    """Ask the target to stop a job whose run somebody wants cancelled; remember it if the target cannot."""
    wish = run.cancel
    if wish is None or wish.problem:
        return
    try:
        starting.runner_of(control, config).stop(starting.request_of(control, config, run), run.job_id)
    except JobStopError as error:
        _remember_problem(control, run, str(error))
    except Exception as error:  # noqa: BLE001 - asked again at the next poll
        log.warning("job-stop-failed", run=str(run.key), attempt=run.attempt, error=str(error))


def _remember_problem(control: Control, run: Run, problem: str) -> None:
    def decide() -> tuple[None, list[Write]]:
        current = records.get_run(control.store, run.key)
        if current is None or current.attempt != run.attempt or current.cancel is None or not current.active:
            return None, []
        wish = Cancel(at=current.cancel.at, by=current.cancel.by, reason=current.cancel.reason, problem=problem[:500])
        return None, [records.put_run(transitions.amend(current, now=control.now(), cancel=wish), current)]

    records.settle_commit(control, decide)
