"""How commands print: plain aligned text, colours on a terminal only, JSON on request.

No boxes and no wrapping: output is pasted into chats, piped and compared. Text from outside (messages, job errors) is
never taken for markup, and cannot move the cursor or break a line. Rich is loaded when something is printed, not
before: `interlock --version` needs none of it.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from interlock.config.problems import Problem

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_GAP: Final = "  "


def plain_console(*, err: bool = False) -> "Console":
    """A console that prints text as it is; colours only where a person looks at a terminal."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document, indented, in the order it was made."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def problem_rows(problems: "Iterable[Problem]") -> list[dict[str, object]]:
    """Errors or warnings of configs, for JSON."""
    return [{"file": one.file, "line": one.line, "path": one.path, "message": one.message} for one in problems]


def log_to_stderr() -> None:
    """What the controller's functions log on the way is not the command's answer: standard output stays clean."""
    import structlog

    # Looked up for each line: the stream may be redirected later.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def one_line(text: str) -> str:
    """Text from outside on one line, without characters that do something to a terminal."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def many_lines(text: str) -> str:
    """Text from outside with its lines and tabs, and nothing else that does something to a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "" for char in text)


def columns(rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> list["Text"]:
    """The rows as aligned lines; the last column is as wide as it needs to be. `styles` are by row."""
    from rich.cells import cell_len
    from rich.text import Text

    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = [
        _GAP.join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    chosen = [*styles, *[""] * (len(lines) - len(styles))]
    return [Text(line.rstrip(), style=style) for line, style in zip(lines, chosen, strict=True)]


def marks(console: "Console") -> tuple[str, str]:
    """The signs for good and bad that this terminal or pipe can show."""
    try:
        "✓✗".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return "+", "x"
    return "✓", "✗"


def counted(count: int, noun: str) -> str:
    """`1 event`, `14 events`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
