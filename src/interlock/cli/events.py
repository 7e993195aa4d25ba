"""`interlock events`: what happened, and with `--follow` what happens."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.backend import connected
from interlock.cli.completion import complete_pipeline
from interlock.cli.output import one_line, plain_console
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import SEVERITY_STYLES, moment, now, print_events, since_option
from interlock.model.events import EventType

if TYPE_CHECKING:
    from interlock.client.answers import Event


def _complete_type(incomplete: str) -> list[str]:
    return [one.value for one in EventType if one.value.startswith(incomplete.upper())]


def events(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")] = False,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="T", help="Only of this type; may be repeated.", autocompletion=_complete_type),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", metavar="P", help="Only of this pipeline.", autocompletion=complete_pipeline),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="2026-03-02T08:00:00Z, 2026-03-02, 90m, 2d.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many, the latest.")] = 50,
    store: StoreOption = None,
    url: UrlOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show the latest events, oldest first; with --follow those to come (after those --since, if given).

    Example: interlock events --follow --pipeline gold-revenue --type SLA_BREACH
    """
    types = [_known(name) for name in type or []] or None
    begin = since_option(since, now())
    with connected(store, url) as there:
        backend = there.backend
        shown = [] if follow else list(backend.events(pipeline=pipeline, type=types, since=begin, limit=limit))
        if pipeline is not None and not shown:
            # An unknown name is an error with the nearest one. A deleted pipeline's events are still there.
            backend.pipeline(pipeline)
        if not follow:
            _print_page(shown, json=json)
            return
        try:
            _print_live(backend.events(follow=True, pipeline=pipeline, type=types, since=begin), json=json)
        except KeyboardInterrupt:
            # How following is ended.
            return


def _known(name: str) -> str:
    from interlock.config.suggestions import did_you_mean

    wanted = name.upper()
    names = [one.value for one in EventType]
    if wanted not in names:
        raise typer.BadParameter(f"{name!r} is not an event type{did_you_mean(name, names)}", param_hint="--type")
    return wanted


def _print_page(shown: "list[Event]", *, json: bool) -> None:
    if json:
        for event in shown:
            typer.echo(msgspec.json.encode(event))
    elif shown:
        print_events(plain_console(), shown)
    else:
        plain_console().print("no such events")


def _print_live(coming: "Iterator[Event]", *, json: bool) -> None:
    console = plain_console()
    for event in coming:
        if json:
            typer.echo(msgspec.json.encode(event))
            continue
        # Columns of a fixed width: what comes later is not known yet.
        where = f"{one_line(event.pipeline_id):<24}  {one_line(event.date):<15}"
        line = f"{moment(event.timestamp)}  {where}  {event.type:<26}  {one_line(event.message)}"
        console.print(line, style=SEVERITY_STYLES.get(event.severity, ""))
