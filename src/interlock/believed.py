"""Whom the client of a command believes to be its server, as its options and files say. `client.trust` acts on it."""

from contextvars import ContextVar
from pathlib import Path

import msgspec


class Believed(msgspec.Struct, frozen=True):
    """What a command believes: the authority of its options, that of `interlock.toml`, and a server that it found."""

    ca_file: str = ""
    ca_of_toml: str = ""
    url: str = ""
    certificate: str = ""


_believed: ContextVar[Believed] = ContextVar("believed", default=Believed())  # noqa: B039  it is frozen


def now() -> Believed:
    """What is believed now."""
    return _believed.get()


def begin(ca_file: Path | None) -> None:
    """A command line begins, with this option."""
    _believed.set(Believed(ca_file=str(ca_file or "")))


def believe_toml(ca_file: str) -> None:
    """`interlock.toml` names an authority."""
    _believed.set(msgspec.structs.replace(_believed.get(), ca_of_toml=ca_file))


def believe_server(url: str, certificate: str) -> None:
    """The server at that address is the one that shows this certificate, as PEM: a discovery file says so."""
    _believed.set(msgspec.structs.replace(_believed.get(), url=url, certificate=certificate))
