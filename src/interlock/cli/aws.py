"""`interlock aws replay`: what only an environment on AWS needs."""

from typing import Annotated

import typer

from interlock.cli.output import JsonOption, counted, log_to_stderr, plain_console, print_json
from interlock.cli.store_access import StoreOption, find_target
from interlock.cli.wording import now, since_option

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look after an environment on AWS.")


@app.callback()
def aws() -> None:
    """Look after an environment on AWS."""


@app.command()
def replay(
    pipelines: Annotated[
        list[str] | None, typer.Argument(metavar="[PIPELINE]...", help="Only these; default: all.", show_default=False)
    ] = None,
    *,
    since: Annotated[str, typer.Option("--since", metavar="WHEN", help="2026-03-02T08:00:00Z, 2026-03-02, 90m, 2d.")],
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Up to when; default: now.", show_default=False)
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Route again what was written since then, after an outage of more than a day: the streams forget after 24 hours.

    Sensors, requests, runs and configs as they are now, the job log, and the events. What was routed before does
    nothing new, an alert that was sent is not sent again, and the bus may bring an event twice. Safe to run again.

    Example: interlock aws replay --store aws://prod --since 2026-03-02T08:00:00Z
    """
    from interlock.aws.operations.replay import Replay
    from interlock.cli.aws_backend import opened

    log_to_stderr()
    target = find_target(store)
    if target.aws is None:
        raise typer.BadParameter(f"{target} ({target.origin}) is not on AWS: give --store aws://<environment>")
    reference = now()
    begin, end = since_option(since, reference), since_option(until, reference) or reference
    assert begin is not None
    if begin >= end:
        raise typer.BadParameter(f"nothing lies between {begin:%Y-%m-%d %H:%M:%SZ} and {end:%Y-%m-%d %H:%M:%SZ}")
    errors = plain_console(err=True)
    with opened(target.aws) as backend:
        for name in pipelines or ():
            backend.pipeline(name)  # an unknown name is an error with the nearest
        replay_ = Replay(backend.environment, backend.store, begin, end)
        found = replay_.run(pipelines or (), progress=lambda name: errors.print(name, style="dim"))
    if json:
        print_json(found)
        return
    parts = (
        counted(found.control, "record"),
        f"{counted(found.job_log, 'record')} of the job log",
        counted(found.events, "event"),
    )
    plain_console().print(f"routed again: {', '.join(parts)}", style="green")
