"""`interlock demo`: the medallion example on a throw-away controller, in compressed time."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from interlock.cli.output import columns, marks, one_line, plain_console

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.demo.play import Outcome
    from interlock.demo.timeline import Entry

_STYLES: Final = {"warning": "yellow", "error": "red", "critical": "bold red", "act": "bold cyan", "feed": "blue"}
_WIDTHS: Final = (20, 18, 13, 26)


def demo(
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Play every act once, prove it, and end: half a minute.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Of the HTTP API, without --once; 0 is any free one.")
    ] = 8765,
    keep: Annotated[
        bool, typer.Option("--keep", help="Do not remove the folder with the data at the end (--once never does).")
    ] = False,
) -> None:
    """Show what Interlock does: hourly feeds, silver and gold jobs that really run, and everything that goes wrong.

    Nothing is needed and nothing is left behind but a folder of results. With --once it exits 1 if an act did not
    happen.
    """
    from interlock.embedded.process.logging import configure_logging

    configure_logging(level="warning")
    if once:
        _play_once()
    else:
        _play_on(port, keep=keep)


# ----------------------------------------------------------------------------------------------------------- once


def _play_once() -> None:
    from interlock.demo.play import play_once
    from interlock.demo.timeline import Stopped

    console = plain_console()
    folder = Path(tempfile.mkdtemp(prefix="interlock-demo-"))
    console.print(f"The medallion example, on a controller of its own, in {folder}", style="bold")
    began = perf_counter()
    try:
        outcome = play_once(folder, lambda entry: _print(console, entry))
    except Stopped as stopped:  # nobody reads on
        raise typer.Exit(1) from stopped
    _print_outcome(console, outcome, perf_counter() - began)
    _print_results(console, outcome, folder)
    if not outcome.ok:
        raise typer.Exit(1)


def _print_outcome(console: "Console", outcome: "Outcome", seconds: float) -> None:
    good, bad = marks(console)
    console.print(f"\nShown in {seconds:.0f} s, and found in the events:", style="bold")
    for act in outcome.acts:
        console.print(f"  {bad if act.missing else good} {act.title}", style="red" if act.missing else "green")
        for problem in act.missing:
            console.print(f"      {one_line(problem)}", style="red")
    if outcome.trouble:
        console.print(f"  {bad} {one_line(outcome.trouble)}", style="bold red")


def _print_results(console: "Console", outcome: "Outcome", folder: Path) -> None:
    for table in outcome.gold:
        console.print(f"\n{table.file}", style="bold")
        for line in columns(table.rows):
            console.print("  ", line, sep="")
    console.print("\nTo look at:", style="bold")
    for line in columns(
        [
            [f"{folder}/bronze", "what the feeds landed (JSON lines)"],
            [f"{folder}/silver", "what the jobs made of it (CSV)"],
            [f"{folder}/gold", "what came of both (CSV)"],
            [f"interlock status --store sqlite:///{folder}/interlock.db", "the controller's own account"],
            [f"rm -r {folder}", "when you have seen enough"],
        ]
    ):
        console.print("  ", line, sep="")


# -------------------------------------------------------------------------------------------------------- lasting


def _play_on(port: int, *, keep: bool) -> None:
    from interlock.demo.play import play_on

    console = plain_console()
    with _throw_away(console, keep=keep) as folder:
        play_on(
            folder,
            port,
            lambda entry: _print(console, entry),
            lambda url: _print_welcome(console, url, folder, keep=keep),
        )


@contextmanager
def _throw_away(console: "Console", *, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="interlock-demo-"))
    try:
        yield folder
    finally:
        if keep:
            console.print(f"\nThe data is in {folder}", style="bold")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            console.print(f"\n{folder} is removed", style="bold")


def _print_welcome(console: "Console", url: str, folder: Path, *, keep: bool) -> None:
    console.print(f"The medallion example is served at {url}; an hour passes in half a minute.", style="bold")
    console.print(f"The page: {url}/")
    console.print("In another terminal:")
    for line in columns(
        [
            [f"interlock status --url {url}", "how the pipelines stand"],
            [f"interlock why crypto-silver --url {url}", "why it ran, or has not"],
            [f"interlock events --follow --url {url}", "what happens, as it happens"],
            [f"curl {url}/api/v1/events", "the same over HTTP; all of it is in /openapi.json"],
            [f"ls {folder}/gold/crypto", "what came of it; the pipelines beside it may be edited"],
        ]
    ):
        console.print("  ", line, sep="")
    console.print("Ctrl-C ends it.\n" if keep else "Ctrl-C ends it and removes everything.\n")


# ------------------------------------------------------------------------------------------------------- timeline


def _print(console: "Console", entry: "Entry") -> None:
    """A line of the timeline. It is printed as it happens, so the columns cannot wait for the widest cell."""
    from rich.text import Text

    from interlock.demo.timeline import Note

    if isinstance(entry, Note) and entry.kind == "act":
        console.print(Text(f"\n-- {entry.text}", style=_STYLES["act"]))
        return
    if isinstance(entry, Note):
        at, style = entry.at, _STYLES.get(entry.kind, "")
        cells = (entry.pipeline, entry.date, f"({entry.kind})")
        message = entry.text
    else:
        at, style = entry.timestamp, _STYLES.get(entry.severity, "")
        cells, message = (entry.pipeline_id, entry.date, entry.type.value), entry.message
    padded = "  ".join(
        one_line(cell).ljust(width) for cell, width in zip((f"{at:%Y-%m-%d %H:%M:%S}Z", *cells), _WIDTHS, strict=True)
    )
    console.print(Text(f"{padded}  {one_line(message)}".rstrip(), style=style))
