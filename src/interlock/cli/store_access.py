"""Which store or server a command means, and opening it. Reading never creates a store.

The first that says something decides: `--store` / `--url`, then INTERLOCK_STORE / INTERLOCK_URL, then an
`interlock.toml` in this folder or one above it (`trusting`), then `sqlite:///interlock.db`. A store that a server of
this machine has open (its discovery file lies beside the store) is written through that server, and read directly.
`aws://<environment>` is a store, too: its controller is the functions in the account.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from interlock import believed
from interlock.cli.names import nearest_names
from interlock.cli.trusting import check_store, find_toml
from interlock.model.errors import (
    InterlockError,
    InvalidValueError,
    StoreError,
    UnavailableError,
)

if TYPE_CHECKING:
    import httpx

    from interlock.aws.operations.address import AwsAddress
    from interlock.control.context import Control
    from interlock.ports.clock import Clock
    from interlock.ports.store import Store

DEFAULT_NAME: Final = "interlock.db"
_SQLITE: Final = "sqlite:///"
_SECONDS: Final = 30.0

StoreOption = Annotated[
    str | None, typer.Option("--store", metavar="ADDRESS", help="sqlite:///interlock.db, or aws://prod.")
]
UrlOption = Annotated[str | None, typer.Option("--url", metavar="URL", help="A running server, https://...")]


class Target(msgspec.Struct, frozen=True):
    """Where a command reads or writes: a server, the file of a store, a store and the server that has it open, or AWS.

    `origin` says who said so. With both, the store is read and the server is written to. `page`: where people see the
    server's page, if that is another address. `audit_sensors`: as the project's `[audit]` says, for who writes to its
    store directly.
    """

    origin: str
    url: str | None = None
    path: Path | None = None
    aws: "AwsAddress | None" = None
    page: str = ""
    audit_sensors: bool = False

    @property
    def stored(self) -> bool:
        """Is there a store that can be read without a server?"""
        return self.path is not None or self.aws is not None

    def __str__(self) -> str:
        return self.url or (str(self.aws) if self.aws is not None else f"{_SQLITE}{self.path}")


class Reader(msgspec.Struct, frozen=True):
    """A store opened for reading, and the clock it is read by."""

    store: "Store"
    clock: "Clock"


# ------------------------------------------------------------------------------------------------------ choosing


def find_target(
    store: str | None = None,
    url: str | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    check: bool = True,
) -> Target:
    """The store or server that is meant. `check`: refuse a store that is not to be obeyed."""
    folder = folder or Path.cwd()
    environment = os.environ if environment is None else environment
    if store and url:
        raise typer.BadParameter("give --store or --url, not both")
    given = _target(store, url, folder, "the command line") or _target(
        environment.get("INTERLOCK_STORE"), environment.get("INTERLOCK_URL"), folder, "the environment"
    )
    found = given or _of_toml(folder)
    if found is None:
        found = Target("default", path=folder / DEFAULT_NAME)
    if check and found.path is not None:
        check_store(found.path, named=found.origin != "default")
    return found


def _target(store: str | None, url: str | None, folder: Path, origin: str) -> Target | None:
    if url:
        if not url.startswith(("http://", "https://")):
            raise typer.BadParameter(f"{origin}: {url!r} is not a server: write http://host:port")
        return Target(origin, url=url.rstrip("/"))
    if store and store.startswith("aws:"):
        return Target(origin, aws=_environment(store, origin))
    return Target(origin, path=_path_of(store, folder, origin)) if store else None


def _environment(store: str, origin: str) -> "AwsAddress":
    from interlock.aws.operations.address import parse_address

    try:
        return parse_address(store)
    except InvalidValueError as error:
        raise typer.BadParameter(f"{origin}: {error}") from error


def _path_of(store: str, folder: Path, origin: str) -> Path:
    """`sqlite:///interlock.db` is relative to the folder, `sqlite:////var/lib/interlock.db` is not."""
    if not store.startswith(_SQLITE) or store == _SQLITE:
        raise typer.BadParameter(f"{origin}: {store!r} is not a store: write sqlite:///interlock.db or aws://prod")
    return folder / store[len(_SQLITE) :]


def _of_toml(folder: Path) -> Target | None:
    file = find_toml(folder)
    if file is None:
        return None
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InterlockError(f"{file}: cannot be read: {error}") from error
    values = {name: settings.get(name) for name in ("store", "url", "ca_file")}
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InterlockError(f"{file}: {name} is {value!r}: write it as text in quotes")
    if values["ca_file"]:
        believed.believe_toml(str(file.parent / values["ca_file"]))
    found = _target(values["store"], values["url"], file.parent, str(file))
    audit = settings.get("audit")
    if not isinstance(audit, dict) or audit.get("sensors") is not True:
        return found
    return msgspec.structs.replace(found or Target("default", path=folder / DEFAULT_NAME), audit_sensors=True)


def through_server(target: Target) -> Target:
    """For writing: with the server that has this very store open, if one runs."""
    from interlock.embedded.process.discovery import find_server, ignored

    if target.path is None or target.url is not None:
        return target
    found = find_server(target.path)
    if found is None and (why := ignored(target.path)):
        typer.echo(f"Warning: {why}", err=True)
    if found is None:
        return target
    if found.certificate:
        believed.believe_server(found.url, found.certificate)
    return msgspec.structs.replace(target, url=found.url, page=found.public_url)


# ------------------------------------------------------------------------------------------------------- opening


def exists(target: Target) -> bool:
    """Is there anything to read? A server counts as there, and so does an environment: opening it tells."""
    return target.url is not None or target.aws is not None or (target.path is not None and target.path.exists())


@contextmanager
def reading(target: Target) -> Iterator[Reader]:
    """A store for reading; one that does not exist is an error and stays that way."""
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.sqlite.database import Database
    from interlock.embedded.sqlite.store import SqliteStore

    if target.aws is not None:
        from interlock.cli.aws_backend import opened

        with opened(target.aws) as backend:
            yield Reader(backend.store, backend.clock)
        return
    clock = SystemClock()
    with Database.open(_file(target), clock=clock, create=False, read_only=True) as database, nearest_names():
        yield Reader(SqliteStore(database, clock), clock)


@contextmanager
def writing(target: Target) -> Iterator["Control"]:
    """A store for writing. A file is created when there is none; an environment never is."""
    from uuid import uuid4

    from interlock.embedded.audit.actors import this_user
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.engine import Engine
    from interlock.embedded.sqlite.database import Database

    if target.aws is not None:
        from interlock.cli.aws_backend import opened

        with opened(target.aws) as backend:
            yield backend.control
        return
    clock = SystemClock()
    with Database.open(_file(target), clock=clock, inline=True) as database, nearest_names():
        yield Engine(database, clock, {}, new_id=lambda: uuid4().hex[:12]).control.acting(this_user())


def _file(target: Target) -> Path:
    if target.path is None:
        raise StoreError(f"{target} ({target.origin}) is a server, not a store")
    return target.path


# ---------------------------------------------------------------------------------------------------- the server


@contextmanager
def server(target: Target) -> Iterator["httpx.Client"]:
    """A client of the server's API, with the token of INTERLOCK_TOKEN or the owner's; errors are raised in words.

    A server of this machine is reached directly: a proxy would be sent the token.
    """
    import httpx

    from interlock.client.settings import on_this_machine, token_for
    from interlock.client.trust import verification

    direct = target.url is not None and on_this_machine(target.url)
    token = token_for(target.url or "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(
            base_url=f"{target.url}/api/v1/",
            headers=headers,
            timeout=_SECONDS,
            trust_env=not direct,
            verify=verification(target.url or ""),
        ) as client:
            yield client
    except httpx.TransportError as error:
        cause = str(error) or type(error).__name__
        raise UnavailableError(
            f"{target.url} ({target.origin}) does not answer: {cause}; is the server running?"
        ) from error


def answer_of(response: "httpx.Response") -> dict[str, Any]:
    """The JSON object of an answer; a problem document becomes an error with its words."""
    body: Any = None
    with suppress(msgspec.DecodeError):
        body = msgspec.json.decode(response.content) if response.content else {}
    if response.is_success:
        return body if isinstance(body, dict) else {}
    problem = body if isinstance(body, dict) else {}
    what = problem.get("detail") or problem.get("title") or response.reason_phrase
    request = f"{response.request.method} {response.request.url.path}"
    raise InterlockError(f"the server answered {response.status_code} to {request}: {what}")
