"""`interlock simulate`: play scenario files on virtual time, print what happened, mark what should not have."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from interlock.cli.output import (
    JsonOption,
    columns,
    counted,
    log_to_stderr,
    marks,
    one_line,
    plain_console,
    print_json,
)
from interlock.model.errors import InterlockError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from interlock.simulation.play import Played
    from interlock.simulation.world import Line

_SUFFIXES: Final = (".yaml", ".yml")
_STYLES: Final = {"warning": "yellow", "error": "red", "critical": "bold red"}


class TimelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the timeline; what the scenario itself did has no event. `unexpected`: it must never happen."""

    time: str
    pipeline: str = ""
    schedule: str = ""
    date: str = ""
    event: str | None = None
    severity: str = ""
    message: str
    unexpected: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one file. `readable` is False when it could not be played at all."""

    file: str
    name: str
    ok: bool
    readable: bool = True
    failures: list[str] = []
    timeline: list[TimelineRow] = []


class _Timed(msgspec.Struct, frozen=True):
    report: Report
    seconds: float


def simulate(
    scenarios: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCENARIO...", exists=True, help="Scenario files, or folders of them.", show_default=False
        ),
    ],
    *,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print failures and summaries, no timelines.")] = False,
) -> None:
    """Play scenarios in virtual time: prints each timeline, exits 1 if something came out otherwise than expected.

    A scenario that cannot be read exits 2; its problems are printed with file and line.

    Example: interlock simulate scenarios/
    """
    log_to_stderr()
    files = list(_files(scenarios))
    if json:
        reports = [_play(file).report for file in files]
        print_json({"ok": all(one.ok for one in reports), "scenarios": [_plain(one) for one in reports]})
    else:
        reports = _print_all(files, quiet=quiet)
    if not all(one.readable for one in reports):
        raise typer.Exit(2)
    if not all(one.ok for one in reports):
        raise typer.Exit(1)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files themselves, and all YAML files of the folders, in order."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = [one for one in sorted(path.iterdir()) if one.suffix.lower() in _SUFFIXES and one.is_file()]
        if not found:
            raise typer.BadParameter(f"there is no scenario (*.yaml) in {path}", param_hint="SCENARIO")
        yield from found


# ------------------------------------------------------------------------------------------------------- playing


def _play(file: Path) -> _Timed:
    from interlock.simulation.play import play
    from interlock.simulation.scenario import ScenarioError, load_scenario

    began = perf_counter()
    try:
        scenario = load_scenario(file)
    except ScenarioError as error:
        problems = [str(problem) for problem in error.problems]
        report = Report(file=str(file), name=file.stem, ok=False, readable=False, failures=problems)
        return _Timed(report, perf_counter() - began)
    try:
        played = play(scenario)
    except InterlockError as error:
        report = Report(file=str(file), name=scenario.name, ok=False, failures=[f"could not be played: {error}"])
    else:
        report = _report(file, played)
        played.world.database.close()
    return _Timed(report, perf_counter() - began)


def _report(file: Path, played: "Played") -> Report:
    from interlock.model.events import Event

    unwanted = {failure.event for failure in played.failures if failure.event is not None}
    rows: list[TimelineRow] = []
    events = 0
    for line in played.lines:
        is_event = isinstance(line, Event)
        rows.append(_row(line, unexpected=is_event and events in unwanted))
        events += is_event
    failures = [failure.message for failure in played.failures]
    return Report(file=str(file), name=played.scenario.name, ok=played.ok, failures=failures, timeline=rows)


def _row(line: "Line", *, unexpected: bool) -> TimelineRow:
    from interlock.model.times import format_instant
    from interlock.simulation.world import Note

    if isinstance(line, Note):
        return TimelineRow(time=format_instant(line.at), message=line.text)
    return TimelineRow(
        time=format_instant(line.timestamp),
        pipeline=line.pipeline_id,
        schedule=line.schedule_id,
        date=line.date,
        event=line.type.value,
        severity=line.severity.value,
        message=line.message,
        unexpected=unexpected,
    )


def _plain(report: Report) -> dict[str, object]:
    return {name: getattr(report, name) for name in ("file", "name", "ok", "readable", "failures", "timeline")}


# ------------------------------------------------------------------------------------------------------ printing


def _print_all(files: Sequence[Path], *, quiet: bool) -> list[Report]:
    console = plain_console()
    reports: list[Report] = []
    with _progress(console, len(files)) as status:
        for number, file in enumerate(files, start=1):
            if status is not None:
                status.update(f"playing {number} of {len(files)}: {file}")
            timed = _play(file)
            _print(console, timed, quiet=quiet)
            reports.append(timed.report)
    if len(reports) > 1:
        good = sum(one.ok for one in reports)
        style = "green" if good == len(reports) else "bold red"
        console.print(f"{good} of {counted(len(reports), 'scenario')} as expected", style=style)
    return reports


def _progress(console: "Console", files: int) -> "AbstractContextManager[Status | None]":
    """A moving line for a person who waits for many files; nothing in a pipe."""
    # The console that is printed to, if it is a terminal: it keeps the moving line below what it prints.
    shown = console if console.is_terminal else plain_console(err=True)
    return shown.status("playing") if files > 1 and shown.is_terminal else nullcontext()


def _print(console: "Console", timed: _Timed, *, quiet: bool) -> None:
    report = timed.report
    if not report.readable:
        errors = plain_console(err=True)
        for problem in report.failures:
            errors.print(problem, style="red")
        console.print(f"unreadable  {report.file}", style="bold red")
        return
    _, bad = marks(console)
    if report.timeline and not quiet:
        for line in columns(*_table(report.timeline, bad)):
            console.print(line)
    for failure in report.failures:
        console.print(f"{bad} {one_line(failure)}", style="red")
    events = sum(row.event is not None for row in report.timeline)
    figures = f"({counted(events, 'event')}, {timed.seconds:.2f} s)"
    word, style = ("ok", "green") if report.ok else ("FAILED", "bold red")
    console.print(f"{word}  {report.name}  {figures}", style=style)
    if not quiet:
        console.print()


def _table(timeline: Sequence[TimelineRow], bad: str) -> tuple[list[list[str]], list[str]]:
    """The cells of a timeline, and the colour of each row."""
    schedules = {(row.pipeline, row.schedule) for row in timeline if row.schedule}
    several = len(schedules) > len({pipeline for pipeline, _ in schedules})
    cells: list[list[str]] = []
    for row in timeline:
        date = f"{row.date} {row.schedule}".strip() if several else row.date
        event = row.event or "(scenario)"
        cells.append([bad if row.unexpected else "", _time(row.time), row.pipeline, date, event, row.message])
    if not any(row.unexpected for row in timeline):
        cells = [row[1:] for row in cells]
    return cells, ["bold red" if row.unexpected else _STYLES.get(row.severity, "") for row in timeline]


def _time(text: str) -> str:
    """To the second: `2026-03-02 08:30:00Z`."""
    return f"{text[:10]} {text[11:19]}Z"
