"""`interlock logs`: what a job wrote."""

import sys
from typing import Annotated, Final

import typer

from interlock.cli.backend import connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, log_to_stderr, many_lines, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import ScheduleOption, period_option
from interlock.model.errors import InterlockError

_FOLLOW_SECONDS: Final = 0.5


def logs(
    pipeline: PipelineArgument,
    *,
    date: Annotated[str | None, typer.Option("--date", metavar="D", help="Default: the latest run.")] = None,
    schedule: ScheduleOption = None,
    attempt: Annotated[int | None, typer.Option("--attempt", metavar="N", min=1, help="Default: the latest.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Show what the job of a run wrote, live while it runs; where its target keeps that elsewhere, the link to it.

    Example: interlock logs gold-revenue --date 2026-03-02 --attempt 1
    """
    from interlock.embedded.clock import pause

    log_to_stderr()
    with connected(store, url) as there:
        backend = there.backend
        if date is None:
            latest = backend.runs(pipeline, schedule=schedule, limit=1)
            if not latest:
                raise InterlockError(f"{pipeline} has never run: there is no output")
            named, schedule = latest[0].date, latest[0].schedule
        else:
            named = str(period_option(date))
        offset = 0
        while True:
            piece = backend.job_output(pipeline, named, schedule=schedule, attempt=attempt, offset=offset)
            if json:
                print_json(piece)
            else:
                sys.stdout.write(many_lines(piece.text))
                sys.stdout.flush()
            progressed, offset = piece.next_offset > offset, piece.next_offset
            if piece.complete or (not progressed and not follow):
                break
            if not progressed:
                pause(_FOLLOW_SECONDS)
        if piece.link and not json:
            plain_console(err=True).print(f"the rest: {piece.link}")
