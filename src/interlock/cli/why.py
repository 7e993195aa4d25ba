"""`interlock why`: why a pipeline ran, or why it has not. Made to be pasted into a chat at 3 a.m."""

import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Final

import typer

from interlock.cli.output import JsonOption, marks, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, Target, UrlOption, answer_of, find_target, reading, server
from interlock.model.errors import InvalidValueError

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.decide.why import Explanation, Line

WIDTH: Final = 100
_COMMAND: Final = re.compile("`[^`]*`")
_GLUE: Final = "\N{NO-BREAK SPACE}"


def why(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's id.", show_default=False)],
    *,
    date: Annotated[
        str | None, typer.Option("--date", metavar="D", help="2026-03-02, 2026-03-02T10; default: the latest due.")
    ] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", metavar="S", help="For pipelines with several.")] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Explain a run: what opened it, calendar, rules, attempts, what is awaited, what comes next, what to do.

    Example: interlock why gold-revenue --date 2026-03-02
    """
    _check_date(date)
    target = find_target(store, url)
    look = _read if target.stored else _ask
    explanation = look(target, pipeline, date, schedule)
    if json:
        print_json(explanation)
    else:
        print_explanation(plain_console(), explanation)


def _check_date(date: str | None) -> None:
    from interlock.model.periods import parse_period

    try:
        if date is not None:
            parse_period(date)
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--date") from error


def _read(target: Target, pipeline: str, date: str | None, schedule: str | None) -> "Explanation":
    from interlock.control.views.explain import explain

    with reading(target) as reader:
        return explain(reader.store, pipeline, reader.clock.now(), date=date, schedule=schedule)


def _ask(target: Target, pipeline: str, date: str | None, schedule: str | None) -> "Explanation":
    from urllib.parse import quote

    import msgspec

    from interlock.decide.why import Explanation

    asked = {name: value for name, value in (("date", date), ("schedule", schedule)) if value is not None}
    with server(target) as client:
        answer = answer_of(client.get(f"pipelines/{quote(pipeline, safe='')}/why", params=asked))
        return msgspec.convert(answer, Explanation)


# ------------------------------------------------------------------------------------------------------ printing


def print_explanation(console: "Console", explanation: "Explanation") -> None:
    """The explanation as lines of at most 100 columns, readable without colours."""
    from interlock.decide.why_words import stamp

    for part in _wrapped(explanation.verdict, "", ""):
        console.print(part, style="bold")
    about = f"as of {stamp(explanation.at)}"
    if explanation.schedule:
        about += f", schedule {explanation.schedule}, times in {explanation.timezone}"
    console.print(f"({about})")
    signs = dict(zip(("pass", "fail"), marks(console), strict=True))
    for section in explanation.sections:
        console.print()
        console.print(section.title, style="bold")
        for line in section.lines:
            _print_line(console, line, signs)
    console.print()
    for part in _wrapped(explanation.advice, "What to do: ", "  "):
        console.print(part, style="bold")


def _print_line(console: "Console", line: "Line", signs: dict[str, str]) -> None:
    sign = signs.get(line.mark.value, "-")
    style = {"pass": "green", "fail": "red"}.get(line.mark.value, "")
    for part in _wrapped(line.text, f"  {sign} ", "    "):
        console.print(part, style=style)


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    """Lines of at most 100 columns. A command in backticks stays on one line: it is there to be pasted."""
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _GLUE), one_line(text))
    parts = textwrap.wrap(whole, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [part.replace(_GLUE, " ") for part in parts]
