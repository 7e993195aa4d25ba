"""`interlock dlq list | show | redrive`: what was given up on, and having it done again."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from interlock.cli.backend import NOT_SERVED, connected
from interlock.cli.output import (
    JsonOption,
    columns,
    counted,
    log_to_stderr,
    one_line,
    plain_console,
    print_json,
)
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import moment
from interlock.model.errors import InvalidValueError

if TYPE_CHECKING:
    from interlock.client.answers import DeadLetter

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at dead letters, and redrive them.")

_SEARCHED: Final = 100_000


@app.command("list")
def list_(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many.")] = 100,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """List what was given up on after every try, in the order it came.

    Example: interlock dlq list
    """
    with connected(store, url) as there:
        found = there.backend.dead_letters(limit=limit)
    if json:
        print_json({"deadLetters": found})
        return
    console = plain_console()
    if not found:
        console.print("no dead letters", style="green")
        return
    rows = [["id", "kind", "source", "tries", "last", "about", "error"]]
    rows += [_row(one) for one in found]
    for line in columns(rows, ["bold"]):
        console.print(line)
    console.print("`interlock dlq show ID` has the whole record, `interlock dlq redrive ID` has it done again")


@app.command()
def show(
    id: Annotated[int, typer.Argument(metavar="ID", help="As `dlq list` shows it.", show_default=False)],
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Show one dead letter whole: the record, the error, how often it was tried.

    Example: interlock dlq show 3
    """
    with connected(store, url) as there:
        letters = there.backend.dead_letters(limit=_SEARCHED)
    found = next((one for one in letters if one.id == id), None)
    if found is None:
        raise InvalidValueError(f"there is no dead letter {id}: `interlock dlq list` shows those there are")
    if json:
        print_json(found)
        return
    console = plain_console()
    console.print(f"dead letter {found.id}: a {found.kind} that {found.source} failed on", style="bold")
    console.print(f"tried {counted(found.tries, 'time')}, {moment(found.first_at)} to {moment(found.last_at)}")
    console.print(f"error: {one_line(found.error)}", style="red")
    print_json(found.record)


@app.command()
def redrive(
    ids: Annotated[list[int] | None, typer.Argument(metavar="[ID]...", help="Which ones.", show_default=False)] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Have dead letters done again by who failed on them; what fails again is a dead letter again.

    Example: interlock dlq redrive --all
    """
    log_to_stderr()
    if bool(ids) == all_:
        raise typer.BadParameter("name the dead letters, or say --all")
    with connected(store, url, writing=True) as there:
        count = there.backend.redrive(None if all_ else ids)
    if json:
        print_json({"redriven": count})
        return
    console = plain_console()
    console.print(f"{counted(count, 'dead letter')} redriven", style="green" if count else "")
    if count and not there.served:
        console.print(NOT_SERVED, style="yellow")


def _row(letter: "DeadLetter") -> list[str]:
    about = str(letter.record.get("pk") or letter.record.get("name") or "")
    last = moment(letter.last_at)
    return [str(letter.id), letter.kind, letter.source, str(letter.tries), last, about, letter.error[:200]]
