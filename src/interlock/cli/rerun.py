"""`interlock rerun`: ask for another attempt of a run."""

from typing import Annotated

import typer

from interlock.cli.backend import NOT_SERVED, connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, log_to_stderr, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import DateOption, ScheduleOption, period_option
from interlock.client.answers import Rerun


def rerun(
    pipeline: PipelineArgument,
    *,
    date: DateOption,
    schedule: ScheduleOption = None,
    reason: Annotated[str, typer.Option("--reason", metavar="R", help="Why; kept with the attempt.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Although nothing has changed since it succeeded.")] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Ask for another attempt of a run, also of a date that never ran; exits 1 when it is refused.

    Refused: the schedule has no run of that date, the budget (maxManualReruns) is used up, the date is excluded, the
    run is active, or it succeeded and nothing has changed since (--force passes this one).

    Example: interlock rerun gold-revenue --date 2026-03-02 --reason "late correction"
    """
    log_to_stderr()
    named = str(period_option(date))
    with connected(store, url, writing=True) as there:
        answer = there.backend.rerun(pipeline, named, schedule=schedule, reason=reason, force=force)
    if json:
        print_json(answer)
    else:
        _print(answer.decision, answer.reason, f"rerun of {pipeline} {answer.schedule} {answer.date}", there.served)
        _print_undated(answer)
    if answer.decision == "rejected":
        raise typer.Exit(1)


def _print_undated(answer: Rerun) -> None:
    if answer.undated_sensors:
        names = one_line(", ".join(answer.undated_sensors))
        plain_console().print(f"read as of now, since they name no period: {names}", style="yellow")


def _print(decision: str, reason: str, what: str, served: bool) -> None:
    console = plain_console()
    because = f": {one_line(reason)}" if reason else ""
    match decision:
        case "accepted":
            console.print(f"{what} accepted{because}", style="green")
        case "rejected":
            console.print(f"{what} refused{because}", style="red")
        case _ if served:
            console.print(f"{what} asked for, not decided yet: `interlock events --type RERUN_ACCEPTED` will tell")
        case _:
            console.print(f"{what} asked for; {NOT_SERVED}", style="yellow")
