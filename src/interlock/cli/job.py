"""`interlock job report`: report how a job ended."""

from enum import StrEnum
from typing import Annotated

import typer

from interlock.cli.backend import NOT_SERVED, connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, log_to_stderr, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import DateOption, ScheduleOption, period_option

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Report how jobs ended.")


class Result(StrEnum):
    """How it ended."""

    SUCCESS = "success"
    FAIL = "fail"
    TIMEOUT = "timeout"


class Category(StrEnum):
    """Whose fault it is."""

    PERMANENT = "PERMANENT"
    TRANSIENT = "TRANSIENT"
    TIMEOUT = "TIMEOUT"


@app.callback()
def job() -> None:
    """Report how jobs ended."""


@app.command()
def report(  # noqa: PLR0913 - an argument per option
    pipeline: PipelineArgument,
    result: Annotated[Result, typer.Argument(help="How it ended.", show_default=False)],
    *,
    date: DateOption,
    schedule: ScheduleOption = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help="Default: the active attempt.")
    ] = None,
    run_id: Annotated[str, typer.Option("--run-id", metavar="ID", help="The RUN_ID the job was started with.")] = "",
    category: Annotated[
        Category | None,
        typer.Option("--category", case_sensitive=False, help="PERMANENT uses maxCodeRetries, the rest maxRetries."),
    ] = None,
    error: Annotated[str, typer.Option("--error", metavar="TEXT", help="What went wrong.")] = "",
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Report the outcome of a job that somebody else ran.

    Example: interlock job report gold-revenue --date 2026-03-02 fail --category TRANSIENT --error "lost executor"
    """
    log_to_stderr()
    named = str(period_option(date))
    with connected(store, url, writing=True) as there:
        record = there.backend.report_job(
            pipeline,
            named,
            result.value,
            schedule=schedule,
            attempt=attempt,
            run_id=run_id,
            category=None if category is None else category.value,
            error=error,
        )
    if json:
        print_json(record)
        return
    console = plain_console()
    what = f"{record.pipeline} {record.schedule} {record.date} attempt {record.attempt}"
    console.print(f"reported {record.event} of {what}", style="green")
    if not there.served:
        console.print(NOT_SERVED, style="yellow")
