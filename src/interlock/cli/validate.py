"""`interlock validate`: all errors and warnings of configs, each with file, line and path."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from interlock.config.loader import LoadResult
    from interlock.config.problems import Problem


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", exists=True, help="Files, folders of pipelines, or projects.", show_default=False
        ),
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check pipeline configs: prints every error and warning at once; exits 1 if there is an error."""
    from interlock.config.loader import load_paths

    result = load_paths(paths)
    if json:
        _print_json(result)
    else:
        _print_lines(result)
    if result.errors:
        raise typer.Exit(1)


def _print_json(result: "LoadResult") -> None:
    import msgspec

    report = {
        "pipelines": result.pipelines,
        "errors": [_row(problem) for problem in result.errors],
        "warnings": [_row(problem) for problem in result.warnings],
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))


def _row(problem: "Problem") -> dict[str, object]:
    return {"file": problem.file, "line": problem.line, "path": problem.path, "message": problem.message}


def _print_lines(result: "LoadResult") -> None:
    from rich.console import Console

    from interlock.config.problems import Severity

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for problem in result.problems:
        console.print(str(problem), style="red" if problem.severity is Severity.ERROR else "yellow")
    style = "bold red" if result.errors else "green"
    console.print(_summary(result), style=style)


def _summary(result: "LoadResult") -> str:
    counts = (
        (result.pipelines, "pipeline"),
        (len(result.errors), "error"),
        (len(result.warnings), "warning"),
    )
    return ", ".join(f"{count} {noun}" if count == 1 else f"{count} {noun}s" for count, noun in counts)
