"""`interlock cancel`: end a waiting attempt, or stop a running job at its target."""

import time
from typing import Annotated, Final

import typer

from interlock.cli.backend import NOT_SERVED, Backend, connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, log_to_stderr, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import ScheduleOption, period_option
from interlock.model.errors import InterlockError

_WAIT_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 0.2


def cancel(
    pipeline: PipelineArgument,
    *,
    date: Annotated[str | None, typer.Option("--date", metavar="D", help="Default: the active run.")] = None,
    schedule: ScheduleOption = None,
    reason: Annotated[str, typer.Option("--reason", metavar="R", help="Why; kept with the run.")] = "",
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """End a waiting attempt at once, or have a running job stopped at its target. Exits 1 when it cannot be stopped.

    A cancelled run is not retried and gives no SLA alert; it can be rerun.

    Example: interlock cancel gold-revenue --date 2026-03-02 --reason "wrong input"
    """
    log_to_stderr()
    with connected(store, url, writing=True) as there:
        backend = there.backend
        named, schedule = (str(period_option(date)), schedule) if date else _active(backend, pipeline, schedule)
        answer = backend.cancel(pipeline, named, schedule=schedule, reason=reason)
        problem, over = ("", True)
        if answer.outcome == "stopping" and there.served:
            problem, over = _awaited(backend, pipeline, named, answer.schedule)
    if json:
        print_json(answer)
    else:
        what = f"{pipeline} {answer.schedule} {answer.date}"
        _print(what, answer.outcome, problem, over=over, served=there.served)
    if problem:
        raise typer.Exit(1)


def _active(backend: Backend, pipeline: str, schedule: str | None) -> tuple[str, str]:
    """The one run of a pipeline that is under way; several have to be named."""
    found = [one for one in backend.runs(pipeline, schedule=schedule, limit=200) if one.word in ("waiting", "running")]
    if len(found) == 1:
        return found[0].date, found[0].schedule
    if not found:
        raise InterlockError(f"{pipeline} has no active run: there is nothing to cancel")
    dates = ", ".join(f"{one.schedule} {one.date}" for one in found[:10])
    raise InterlockError(f"{pipeline} has {len(found)} active runs ({dates}): name one with --date")


def _awaited(backend: Backend, pipeline: str, date: str, schedule: str) -> tuple[str, bool]:
    """Why the job cannot be stopped, if so, and whether it is over. Looks for a moment: the controller goes on."""
    from interlock.embedded.clock import pause

    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        run = backend.run(pipeline, date, schedule=schedule)
        if run.word not in ("waiting", "running"):
            return "", True
        if run.cancel is not None and run.cancel.problem:
            return run.cancel.problem, False
        pause(_LOOK_SECONDS)
    return "", False


def _print(what: str, outcome: str, problem: str, *, over: bool, served: bool) -> None:
    console = plain_console()
    if problem:
        console.print(f"{what} goes on: {one_line(problem)}", style="red")
    elif outcome == "cancelled" or (over and served):
        console.print(f"{what} is cancelled", style="green")
    elif served:
        console.print(f"{what} is being stopped: `interlock why` says when its target has done so", style="yellow")
    else:
        console.print(f"{what} is to be stopped; {NOT_SERVED}", style="yellow")
