"""`interlock status`: every pipeline in a line, or one of them closely; `--watch` keeps the table current."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from interlock.cli.backend import NOT_SERVED, Backend, connected
from interlock.cli.completion import complete_pipeline
from interlock.cli.output import JsonOption, columns, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import WORD_STYLES, away, moment, now, print_events, print_rules
from interlock.model.errors import InterlockError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from interlock.client.answers import Controller, InvalidFile, NextRun, Pipeline, Run, Sla

_REFRESH_SECONDS: Final = 1.0
_EVENTS: Final = 5
_LONGEST_CAUSE: Final = 40


class StatusRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One schedule of a pipeline. `run` is waiting, running, done, failed or held; null before the first."""

    pipeline: str
    schedule: str
    run: str | None = None
    date: str | None = None
    attempt: int | None = None
    since: datetime | None = None
    next_start: datetime | None = None
    opens: str = ""
    sla: str | None = None
    sla_at: datetime | None = None
    message: str = ""
    valid: bool = True
    removed: bool = False
    file_errors: list[str] = []


def status(
    pipeline: Annotated[
        str | None,
        typer.Argument(metavar="[PIPELINE]", help="Only this one, closely.", autocompletion=complete_pipeline),
    ] = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the table current, until Ctrl-C.")] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Show each pipeline: latest run, its status, since when, next start, SLA. With PIPELINE: its rules and events too.

    Example: interlock status --watch
    """
    if watch and json:
        raise typer.BadParameter("--watch is for people: `interlock events --follow --json` is the stream for programs")
    with connected(store, url) as there:
        table = _Table(there.backend, pipeline)
        if watch:
            _watch(table)
            return
        rows = table.rows()
        if json:
            print_json({"served": there.served, "degraded": table.controller.degraded, "pipelines": rows})
            return
        console = plain_console()
        for line in _lines(rows, now()):
            console.print(line)
        for notice in _notices(table.controller, pipeline):
            console.print(notice, style="red")
        if pipeline is not None:
            _closely(console, there.backend, pipeline)
        if not there.served:
            console.print(NOT_SERVED, style="yellow")


class _Table:
    """The rows, read again each time."""

    def __init__(self, backend: Backend, only: str | None) -> None:
        self._backend = backend
        self._only = only
        self.controller: Controller = _no_news()

    def rows(self) -> list[StatusRow]:
        """The table as it is now: the pipelines there are, those that are gone and still run, files that are none."""
        self.controller = _how_it_stands(self._backend)
        if self._only is not None:
            return list(self._of(self._backend.pipeline(self._only)))
        stored = self._backend.pipelines()
        rows = [row for one in stored for row in self._of(one)]
        rows += [_gone(run) for one in self.controller.removed for run in one.runs]
        known = {one.id for one in stored}
        return rows + [_unread(one) for one in self.controller.invalid_files if one.pipeline not in known]

    def _of(self, pipeline: "Pipeline") -> Iterator[StatusRow]:
        if not pipeline.valid:
            errors = "; ".join(pipeline.errors)
            yield StatusRow(pipeline=pipeline.id, schedule="-", valid=False, message=f"invalid config: {errors}")
            return
        wrong = [error for one in self.controller.invalid_files if one.pipeline == pipeline.id for error in one.errors]
        for standing in pipeline.by_schedule:
            row = _row(pipeline.id, standing.schedule, standing.latest, standing.sla, standing.next_run)
            yield msgspec.structs.replace(row, file_errors=wrong)


def _row(pipeline: str, schedule: str, run: "Run | None", sla: "Sla | None", next_: "NextRun | None") -> StatusRow:
    opens, start = ("", None) if next_ is None else (next_.opens, next_.start_at)
    if run is None:
        return StatusRow(pipeline=pipeline, schedule=schedule, opens=opens, next_start=start)
    word, at = _sla(sla)
    return StatusRow(
        pipeline=pipeline,
        schedule=schedule,
        run=run.word,
        date=run.date,
        attempt=run.attempt,
        since=run.updated_at,
        next_start=start,
        opens=opens,
        sla=word,
        sla_at=at,
        message=run.message,
    )


def _gone(run: "Run") -> StatusRow:
    """A removed pipeline has nothing to come but the end of what is under way."""
    row = _row(run.pipeline, run.schedule, run, None, None)
    return msgspec.structs.replace(row, removed=True, opens="removed: opens nothing new")


def _unread(file: "InvalidFile") -> StatusRow:
    """A file whose pipeline never was in force."""
    return StatusRow(
        pipeline=file.pipeline,
        schedule="-",
        valid=False,
        message=f"invalid file: {'; '.join(file.errors)}",
        file_errors=file.errors,
    )


def _no_news() -> "Controller":
    from interlock.client.answers import Controller

    return Controller()


def _how_it_stands(backend: Backend) -> "Controller":
    """What the controller says of itself; an older server says nothing."""
    from interlock.client import NotFoundError

    try:
        return backend.controller()
    except NotFoundError:
        return _no_news()


def _notices(controller: "Controller", only: str | None) -> list[str]:
    """What a person has to see beside the table."""
    found = [f"degraded: {one}" for one in controller.degraded]
    for one in controller.folders:
        if one.lost:
            advice = "bring the files back, or `interlock apply PATH --prune` if they are meant to be gone"
            found.append(f"{one.folder} is lost since {moment(one.lost_since)}: {one.lost}; {advice}")
    for file in controller.invalid_files:
        if only in (None, file.pipeline):
            name = file.file.rpartition("/")[2]
            found.append(f"{file.pipeline}: {name} {file.verdict}: {one_line('; '.join(file.errors))}")
    return found


def _sla(sla: "Sla | None") -> "tuple[str | None, datetime | None]":
    """How the SLA of a run stands, in a word, and the instant that goes with it."""
    if sla is None:
        return None, None
    breach = min((at for at in (sla.breach_at, sla.relative_breach_at) if at is not None), default=None)
    if sla.outcome is not None:
        return sla.outcome, breach
    if sla.back_fill:
        return "back-fill", None
    if any(kind in sla.fired for kind in ("breach", "relative-breach")):
        return "breached", breach
    if sla.fired:
        return "warned", breach
    return ("due" if breach is not None else None), breach


# ------------------------------------------------------------------------------------------------------ printing


def _lines(rows: list[StatusRow], at: datetime) -> "list[Text]":
    if not rows:
        from rich.text import Text

        return [Text("no pipelines: `interlock apply PATH` adds some")]
    cells = [["pipeline", "schedule", "latest", "run", "since", "next start", "sla"]]
    cells += [_cells(row, at) for row in rows]
    return columns(cells, ["bold", *(_style(row) for row in rows)])


def _cells(row: StatusRow, at: datetime) -> list[str]:
    if not row.valid:
        return [row.pipeline, row.schedule, "-", "invalid", "-", "-", one_line(row.message)]
    word = "-" if row.run is None else row.run
    if row.attempt is not None and row.attempt > 1:
        word += f" (attempt {row.attempt})"
    start = moment(row.next_start) if row.next_start else _cut(row.opens) or "-"
    return [row.pipeline, row.schedule, row.date or "-", word, away(row.since, at), start, _sla_cell(row, at)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CAUSE else f"{text[: _LONGEST_CAUSE - 1]}…"


def _sla_cell(row: StatusRow, at: datetime) -> str:
    match row.sla:
        case None:
            return "-"
        case "due" | "warned" if row.sla_at is not None:
            return f"{row.sla}, breach {away(row.sla_at, at)}"
        case "breached":
            return f"breached {away(row.sla_at, at)}"
        case _:
            return row.sla


def _style(row: StatusRow) -> str:
    if not row.valid or row.sla == "breached":
        return "red"
    return WORD_STYLES.get(row.run or "", "")


def _closely(console: "Console", backend: Backend, pipeline: str) -> None:
    """The rules of the current run of each schedule, and the latest events."""
    for schedule in backend.pipeline(pipeline).schedules:
        console.print()
        try:
            print_rules(console, backend.readiness(pipeline, schedule=schedule))
        except InterlockError as error:
            console.print(one_line(str(error)), style="red")
    console.print()
    print_events(console, backend.events(pipeline=pipeline, limit=_EVENTS))
    console.print(f"`interlock why {pipeline}` explains it")


def _watch(table: _Table) -> None:
    from rich.console import Group
    from rich.live import Live

    from interlock.embedded.clock import pause

    console = plain_console()
    if not console.is_terminal:
        raise typer.BadParameter("--watch needs a terminal: `interlock events --follow` goes into a pipe")
    try:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                at = now()
                lines = _lines(table.rows(), at)
                notices = _notices(table.controller, None)
                live.update(Group(*lines, *notices, f"{moment(at)}  Ctrl-C ends"), refresh=True)
                pause(_REFRESH_SECONDS)
    except KeyboardInterrupt:
        # How watching is ended.
        return
