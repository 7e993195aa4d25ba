"""What a job wrote, wherever it lives: read from its target, piece by piece (SPEC 16, `interlock logs`)."""

from typing import Final

import msgspec

from interlock.control import catalog, records
from interlock.control.attempts import starting
from interlock.control.context import Control
from interlock.control.views import event_views, run_views
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run
from interlock.ports.jobs import JobOutput

_SCHEDULES: Final = 100


class OutputView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A piece of a job's output, and whose it is. `complete`: nothing more will come."""

    pipeline: str
    schedule: str
    date: str
    attempt: int
    run_id: str
    job_id: str
    text: str = ""
    next_offset: int = 0
    complete: bool = False
    link: str = ""


def read(control: Control, key: RunKey, attempt: int | None = None, *, offset: int = 0) -> OutputView:
    """What the job of an attempt (default: the latest that started one) wrote, from an offset on."""
    run = _attempt(control, key, attempt)
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    request = starting.request_of(control, config, run)
    piece: JobOutput = starting.runner_of(control, config).output(request, run.job_id, offset=offset)
    return OutputView(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        attempt=run.attempt,
        run_id=run.run_id,
        job_id=run.job_id,
        text=piece.text,
        next_offset=piece.next_offset,
        complete=piece.complete,
        link=piece.link,
    )


def find(control: Control, pipeline: str, run_id: str) -> tuple[RunKey, int]:
    """The run and attempt that a run id of ours belongs to."""
    for key in _slots(control, pipeline, run_id):
        detail = run_views.run(control.store, key, control.now())
        for one in detail.attempts if detail is not None else ():
            if one.run_id == run_id:
                return key, one.attempt
    raise InvalidValueError(f"{pipeline} has no job of the run id {run_id!r}")


def _slots(control: Control, pipeline: str, run_id: str) -> list[RunKey]:
    """A run id begins with pipeline and date; which schedule it is, is tried."""
    rest = run_id.removeprefix(f"{pipeline}-")
    config = catalog.current(control.store, pipeline)
    if rest == run_id or config is None:
        return []
    lengths = (len("2026-03-02"), len("2026-03-02T10"), len("2026-03-02T1015"))
    dates = [rest[:length] for length in lengths if rest[length : length + 1] == "-"]
    return [RunKey(pipeline, one.schedule_id, date) for one in config.all_schedules[:_SCHEDULES] for date in dates]


def _attempt(control: Control, key: RunKey, attempt: int | None) -> Run:
    """The run as it was in that attempt, as far as its target has to know."""
    run = records.get_run(control.store, key)
    detail = run_views.run(control.store, key, control.now())
    if run is None or detail is None:
        raise InvalidValueError(f"{key} has never run: there is no output")
    started = [one for one in detail.attempts if one.run_id and (attempt is None or one.attempt == attempt)]
    if not started:
        which = "no attempt" if attempt is None else f"attempt {attempt}"
        raise InvalidValueError(f"{key}: {which} has started a job: there is no output")
    one = started[-1]
    if one.attempt == run.attempt:
        return run
    return msgspec.structs.replace(
        run,
        attempt=one.attempt,
        run_id=one.run_id,
        job_id=one.job_id,
        triggered_at=one.triggered_at,
        config_version=_version(control, run, one.attempt) or run.config_version,
    )


def _version(control: Control, run: Run, attempt: int) -> str:
    """The config that an earlier attempt of a run was opened with."""
    for event in event_views.of_run(control.store, run):
        if event.type is EventType.TRIGGER_STARTED and event.detail.get("attempt") == attempt:
            return str(event.detail.get("configVersion", ""))
    return ""
