"""`interlock open`: the page of a running controller in a browser, without typing a token.

Where tokens are needed, the address carries a single-use code in its fragment, which no browser sends to any server and
no log sees; the page exchanges it for a session. Whoever may open the store's file may make such a code; from elsewhere
the token of INTERLOCK_TOKEN stands for it.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.store_access import StoreOption, UrlOption

if TYPE_CHECKING:
    from interlock.embedded.access.sessions import Sessions
    from interlock.embedded.access.tokens import Tokens
    from interlock.embedded.service import Service


def open_(
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the address instead of opening it; it works once, for five minutes.")
    ] = False,
) -> None:
    """Open the page of a running controller in a browser."""
    import webbrowser

    from interlock.cli.store_access import find_target, through_server
    from interlock.model.errors import UnavailableError

    target = through_server(find_target(store, url))
    if target.aws is not None:
        raise UnavailableError(f"no page runs on AWS itself: `interlock console --store {target}` serves it from here")
    if target.url is None:
        raise UnavailableError(f"no controller runs on {target}: `interlock serve` starts one; --url names one")
    code = _code_of_server(target.url) if target.path is None else _code_of_store(target.path, target.url)
    address = page_address(target.page.rstrip("/") or target.url, code)
    if print_ or not webbrowser.open(address):
        typer.echo(address)
        return
    typer.echo(f"Opened {target.page or target.url} in your browser.")


def page_address(url: str, code: str | None) -> str:
    """The address of the page; with a code it logs its opener in, once."""
    return f"{url}/" if code is None else f"{url}/#code={code}"


def code_for(service: "Service") -> str | None:
    """A code for the page of this very process; None while no token is needed."""
    return _code(service.sessions, service.tokens)


def _code_of_store(path: Path, url: str) -> str | None:
    from interlock.embedded.access.sessions import Sessions
    from interlock.embedded.access.tokens import Tokens
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.sqlite.database import Database

    with Database.open(path, clock=SystemClock(), create=False, inline=True) as database:
        tokens = Tokens(database)
        if not tokens.required() and _demands_token(url):
            tokens.demand()
        return _code(Sessions(database, tokens), tokens)


def _demands_token(url: str) -> bool:
    """Does a server want a token although its store has none? Where there is sign-on, it does."""
    from interlock.cli.store_access import Target, server
    from interlock.model.errors import InterlockError

    try:
        with server(Target("its discovery file", url=url)) as client:
            response = client.get("session")
            return response.status_code == 401 or bool(response.json().get("required"))
    except (InterlockError, ValueError):
        return False


def _code(sessions: "Sessions", tokens: "Tokens") -> str | None:
    """Bound to the owner's token: to revoke that is to end what whoever may open the store can do in a browser."""
    from interlock.embedded.access.owner_token import for_sessions

    if not tokens.required() and sys.platform == "linux":
        return None  # the system says whose the browser is
    token = for_sessions(tokens)
    return None if token is None else sessions.make_code(token)


def _code_of_server(url: str) -> str | None:
    from interlock.cli.store_access import Target, answer_of, server

    with server(Target("--url", url=url)) as client:
        if not answer_of(client.get("session"))["required"]:
            return None
        return str(answer_of(client.post("session/code"))["code"])
