"""`interlock stpa`: which hazards each pipeline's config covers, by what, and YAML for those it leaves open."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from interlock.cli.output import JsonOption, many_lines, marks, one_line, plain_console, print_json
from interlock.cli.plan import ConfigPath, load_or_exit

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.decide.stpa import Coverage, Hazard

_STYLES: Final = {"covered": "", "weak": "yellow", "uncovered": "red"}


def stpa(
    path: ConfigPath,
    *,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a hazard is uncovered.")] = False,
    json: JsonOption = False,
) -> None:
    """Hazard coverage: the four kinds of unsafe control action, what covers each, and what is uncovered.

    Example: interlock stpa pipelines/ --strict
    """
    from interlock.decide.stpa import Cover, analyse

    loaded = load_or_exit(path)
    found = [analyse(one.config) for one in loaded.configs]
    if json:
        print_json({"pipelines": found})
    else:
        console = plain_console()
        for coverage in found:
            _print(console, coverage)
        _print_summary(console, found)
    if strict and any(coverage.count(Cover.UNCOVERED) for coverage in found):
        raise typer.Exit(1)


def _print(console: "Console", coverage: "Coverage") -> None:
    dry = "  (dry run: it starts nothing; this is what it will be)" if coverage.dry_run else ""
    console.print(f"{one_line(coverage.pipeline)}{dry}", style="bold")
    good, bad = marks(console)
    signs = {"covered": good, "weak": "~", "uncovered": bad}
    kind = None
    for hazard in coverage.hazards:
        if hazard.kind is not kind:
            kind = hazard.kind
            console.print(f"  {kind}")
        _print_hazard(console, hazard, signs[hazard.cover])
    console.print()


def _print_hazard(console: "Console", hazard: "Hazard", sign: str) -> None:
    given = "; ".join(hazard.constraints)
    console.print(f"    {sign} {one_line(hazard.hazard)}: {one_line(given) or 'nothing'}", style=_STYLES[hazard.cover])
    if hazard.gap:
        console.print(f"        {one_line(hazard.gap)}", style=_STYLES[hazard.cover])
    for line in hazard.suggestion.splitlines():
        console.print(f"          {many_lines(line)}")


def _print_summary(console: "Console", found: "list[Coverage]") -> None:
    from interlock.decide.stpa import Cover

    totals = {cover: sum(one.count(cover) for one in found) for cover in Cover}
    style = "red" if totals[Cover.UNCOVERED] else "yellow" if totals[Cover.WEAK] else "green"
    console.print(", ".join(f"{count} {cover}" for cover, count in totals.items()), style=style)
