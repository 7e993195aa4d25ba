"""`interlock token`: bearer tokens of the HTTP API. They lie in the store, so these commands need the store's file.

With `--store aws://<environment>` they are those of `interlock console`, in its local file.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.output import JsonOption, columns, plain_console, print_json
from interlock.cli.store_access import StoreOption

if TYPE_CHECKING:
    from interlock.embedded.tokens import Tokens

token = typer.Typer(help="Make, list and revoke tokens of the HTTP API.", no_args_is_help=True, rich_markup_mode=None)


@token.command()
def create(
    *,
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope", help="read, sensor:write, job:write, operate (includes read) or admin (everything); repeatable."
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="Who it is for: manual actions carry this name.")] = "",
    pipeline: Annotated[
        list[str] | None, typer.Option("--pipeline", help="Limits sensor:write and job:write; repeatable.")
    ] = None,
    owner: Annotated[
        list[str] | None, typer.Option("--owner", help="Limits them to the pipelines of an owner; repeatable.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token and print it, this once. From the first one on, every caller of the API needs one."""
    from interlock.embedded.tokens import Scope

    unknown = [one for one in scope if one not in list(Scope)]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(Scope)}", param_hint="--scope")
    with _tokens(store, create_store=True) as tokens:
        chosen = name or f"token-{len(tokens.list()) + 1}"
        text, made = tokens.create(chosen, [Scope(one) for one in scope], pipelines=pipeline or (), owners=owner or ())
    if json:
        import msgspec

        print_json({"token": text, **msgspec.to_builtins(made)})
        return
    typer.echo(text)
    limits = ", ".join([*made.pipelines, *(f"owner {one}" for one in made.owners)])
    note = f"Token {made.name!r}: {', '.join(made.scopes)}{f', limited to {limits}' if limits else ''}."
    typer.echo(f"{note} It is not shown again; set INTERLOCK_TOKEN to it.", err=True)


@token.command("list")
def list_(*, store: StoreOption = None, json: JsonOption = False) -> None:
    """Every token there ever was; never the token itself."""
    with _tokens(store, create_store=False) as tokens:
        found = tokens.list()
    if json:
        print_json({"tokens": found})
        return
    console = plain_console()
    if not found:
        console.print(
            "There are no tokens: the API is open to the controller's own user on this machine, to nobody else."
        )
        return
    rows = [["NAME", "SCOPES", "LIMITED TO", "CREATED", "REVOKED"]]
    for one in found:
        limits = ", ".join([*one.pipelines, *(f"owner {name}" for name in one.owners)])
        revoked = f"{one.revoked_at:%Y-%m-%d %H:%M}" if one.revoked_at else ""
        rows.append([one.name, ", ".join(one.scopes), limits, f"{one.created_at:%Y-%m-%d %H:%M}", revoked])
    for line in columns(rows):
        console.print(line)


@token.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME")], *, store: StoreOption = None, json: JsonOption = False
) -> None:
    """End a token; a running server stops taking it within a second or two."""
    with _tokens(store, create_store=False) as tokens:
        ended = tokens.revoke(name)
    if json:
        print_json(ended)
        return
    typer.echo(f"Token {ended.name!r} is revoked.")


@contextmanager
def _tokens(store: str | None, *, create_store: bool) -> Iterator["Tokens"]:
    from interlock.api.settings import DEFAULT_STORE, load_project, store_path
    from interlock.cli.trusting import check_store, find_toml
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.database import Database
    from interlock.embedded.tokens import Tokens

    named = store or os.environ.get("INTERLOCK_STORE")
    if named and named.startswith("aws:"):
        from interlock.aws.address import parse_address
        from interlock.cli.console import state_file

        # Of the console: on AWS itself there is no API.
        path = state_file(parse_address(named))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif named:
        path = store_path(named, Path.cwd())
    else:
        project = load_project(find_toml(Path.cwd()), Path.cwd())
        path = store_path(project.store or DEFAULT_STORE, project.folder)
        check_store(path, named=project.store is not None)
    with Database.open(path, clock=SystemClock(), create=create_store, inline=True) as database:
        yield Tokens(database)
