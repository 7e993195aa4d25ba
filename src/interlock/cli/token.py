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
from interlock.cli.wording import now

if TYPE_CHECKING:
    from interlock.embedded.access.tokens import Token, Tokens

token = typer.Typer(
    help="Make, list, rotate and revoke tokens of the HTTP API.", no_args_is_help=True, rich_markup_mode=None
)


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
        list[str] | None, typer.Option("--pipeline", help="Limits it to this pipeline; repeatable.")
    ] = None,
    owner: Annotated[
        list[str] | None, typer.Option("--owner", help="Limits it to the pipelines of an owner; repeatable.")
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option("--network", help="Where it may be used from: 10.0.0.0/8; repeatable.")
    ] = None,
    expires: Annotated[str, typer.Option("--expires", metavar="DURATION", help="90d, or never.")] = "365d",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token and print it, this once. From the first one on, every caller of the API needs one."""
    from interlock.embedded.access.tokens import Scope, expiry

    unknown = [one for one in scope if one not in list(Scope)]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(Scope)}", param_hint="--scope")
    with _tokens(store, create_store=True) as tokens:
        chosen = name or f"token-{len(tokens.list()) + 1}"
        text, made = tokens.create(
            chosen,
            [Scope(one) for one in scope],
            pipelines=pipeline or (),
            owners=owner or (),
            networks=network or (),
            expires_at=expiry(expires, now()),
        )
    if json:
        import msgspec

        print_json({"token": text, **msgspec.to_builtins(made)})
        return
    typer.echo(text)
    limits = _limits(made)
    note = f"Token {made.name!r}: {', '.join(made.scopes)}{f', limited to {limits}' if limits else ''}."
    until = f"It expires on {made.expires_at:%Y-%m-%d}" if made.expires_at else "It never expires"
    typer.echo(f"{note} {until}. It is not shown again; set INTERLOCK_TOKEN to it.", err=True)


def _limits(token: "Token") -> str:
    return ", ".join(
        [*token.pipelines, *(f"owner {one}" for one in token.owners), *(f"from {one}" for one in token.networks)]
    )


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
    rows = [["NAME", "SCOPES", "LIMITED TO", "CREATED", "LAST USED", "ENDS"]]
    for one in found:
        used = f"{one.used_at:%Y-%m-%d %H:%M}" if one.used_at else "never"
        rows.append([one.name, ", ".join(one.scopes), _limits(one), f"{one.created_at:%Y-%m-%d}", used, _end(one)])
    for line in columns(rows):
        console.print(line)


def _end(token: "Token") -> str:
    from interlock.embedded.access.tokens import EXPIRES_SOON

    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d %H:%M}"
    if token.expires_at is None:
        return "never (yours on this machine)" if token.local else "never"
    if token.expires_at <= now():
        return f"expired {token.expires_at:%Y-%m-%d}"
    soon = " (soon: interlock token rotate)" if token.expires_at - now() <= EXPIRES_SOON else ""
    return f"{token.expires_at:%Y-%m-%d}{soon}"


@token.command()
def rotate(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    *,
    grace: Annotated[
        str, typer.Option("--grace", metavar="DURATION", help="How long the one before works; 0s: not at all.")
    ] = "1h",
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DURATION", help="From now on; default: when it did before.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make a new text for a token and print it, this once. Name, scopes and limits stay."""
    from interlock.embedded.access.tokens import expiry
    from interlock.model.durations import parse_duration

    if expires is not None and expires.strip().lower() == "never":
        raise typer.BadParameter(
            "a token that is rotated keeps its end or gets another: write 90d", param_hint="--expires"
        )
    kept = parse_duration(grace)
    with _tokens(store, create_store=False) as tokens:
        text = tokens.rotate(name, grace=kept, expires_at=expiry(expires, now()) if expires else None)
    if json:
        print_json({"token": text, "name": name})
        return
    typer.echo(text)
    until = f"The one before works for {grace} more" if kept else "The one before works no more, nor do its sessions"
    typer.echo(f"Token {name!r} has a new text. {until}. It is not shown again.", err=True)


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
    from interlock.embedded.access.tokens import Tokens
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.sqlite.database import Database

    named = store or os.environ.get("INTERLOCK_STORE")
    if named and named.startswith("aws:"):
        from interlock.aws.operations.address import parse_address
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
