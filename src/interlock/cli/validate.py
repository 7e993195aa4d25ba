"""`interlock validate`: all errors and warnings of configs, each with file, line and path."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.output import JsonOption, plain_console, print_json, problem_rows

if TYPE_CHECKING:
    from interlock.config.loader import LoadResult
    from interlock.config.problems import Problem
    from interlock.config.warnings import Abilities


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", exists=True, help="Files, folders of pipelines, or projects.", show_default=False
        ),
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Check pipeline configs: prints every error and warning at once; exits 1 if there is an error."""
    from msgspec.structs import replace

    from interlock.config.loader import load_paths

    result = load_paths(paths, abilities=local_abilities(paths[0]))
    result = replace(result, problems=(*result.problems, *_of_settings(paths[0])))
    if json:
        _print_json(result)
    else:
        _print_lines(result)
    if result.errors:
        raise typer.Exit(1)


def local_abilities(path: Path, *, pools: bool = True) -> "Abilities":
    """What a controller of this version can do on this machine; commands run in the folder of `interlock.toml`.

    `pools`: are their sizes those of that file? On AWS they are not.
    """
    from msgspec.structs import replace

    from interlock.cli.trusting import find_toml
    from interlock.embedded.targets import abilities

    toml = find_toml(path.resolve() if path.is_dir() else path.resolve().parent)
    known = abilities(_pools(toml) if toml is not None and pools else None)
    return replace(known, folder=toml.parent if toml is not None else Path.cwd())


def _of_settings(path: Path) -> "list[Problem]":
    """Secrets that are written into `interlock.toml`, and packages that it needs and that are not installed.

    What else is wrong with it is said by those who need it whole.
    """
    import tomllib

    from interlock.cli.trusting import find_toml
    from interlock.config.literals import find_literals_of_settings
    from interlock.config.settings_packages import find_missing_packages

    toml = find_toml(path.resolve() if path.is_dir() else path.resolve().parent)
    if toml is None:
        return []
    try:
        text = toml.read_text(encoding="utf-8")
        settings = tomllib.loads(text)
        return [*find_literals_of_settings(toml, text, settings), *find_missing_packages(toml, text, settings)]
    except (OSError, ValueError):
        return []


def _pools(toml: Path) -> list[str] | None:
    """The pools that `interlock.toml` sizes; what is wrong with that file is said by those who need it whole."""
    import tomllib

    try:
        found = tomllib.loads(toml.read_text(encoding="utf-8")).get("pools", {})
    except (OSError, ValueError):
        return None
    return list(found) if isinstance(found, dict) else None


def _print_json(result: "LoadResult") -> None:
    """Also what the Terraform module stores: configs and calendars as they are stored, and the digests of their files.

    `document` is text: exactly what the version is a hash of, which no tool on the way may write in another form.
    """
    from interlock.config.versions import canonical_json

    print_json(
        {
            "pipelines": result.pipelines,
            "errors": problem_rows(result.errors),
            "warnings": problem_rows(result.warnings),
            "configs": [
                {
                    "id": one.config.id,
                    "version": one.version,
                    "file": one.file,
                    "document": canonical_json(one.document).decode(),
                }
                for one in result.configs
            ],
            "calendars": [
                {
                    "name": calendar.name,
                    "days": [str(day) for day in calendar.days],
                    "dates": [str(date) for date in calendar.dates],
                    "description": calendar.description,
                }
                for _, calendar in sorted(result.calendars.items())
            ],
            "files": [{"path": path, "sha256": digest} for path, digest in result.digests.items()],
        }
    )


def _print_lines(result: "LoadResult") -> None:
    from interlock.config.problems import Severity

    console = plain_console()
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
