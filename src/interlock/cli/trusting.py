"""Which `interlock.toml`, pipelines and store a command obeys: its own user's, root's, and those that a person named.

`interlock.toml` is looked for from this folder upwards, up to the home folder or the root of the repository. The one
found must not be another user's (`interlock.ownership`), or anybody could have a command run their jobs, or send its
token to their server. `--config` or INTERLOCK_CONFIG names a file, `--trust-dir` a folder that is obeyed all the same.
"""

import os
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from interlock.model.errors import InterlockError
from interlock.ownership import Trust

TOML: Final = "interlock.toml"
CONFIG_VARIABLE: Final = "INTERLOCK_CONFIG"
_BESIDE: Final = ("calendars", "archetypes")

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The interlock.toml to obey, whoever owns it.", show_default=False),
]
TrustOption = Annotated[
    list[Path] | None,
    typer.Option("--trust-dir", metavar="DIR", help="Obey the files in it, whoever owns them.", show_default=False),
]

CaOption = Annotated[
    Path | None,
    typer.Option("--ca-file", metavar="FILE", help="Whom to believe for https: an authority, PEM.", show_default=False),
]
TlsCertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Serve https with this certificate, PEM.")
]
TlsKeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key, PEM.")]
TlsClientOption = Annotated[
    Path | None, typer.Option("--tls-client-ca", metavar="FILE", help="Clients must show a certificate of this CA.")
]


class _Given(msgspec.Struct, frozen=True):
    """What the command line names."""

    config: Path | None = None
    folders: tuple[Path, ...] = ()


_given: ContextVar[_Given] = ContextVar("given", default=_Given())  # noqa: B039  it is frozen


def begin(config: Path | None, trusted: Sequence[Path] | None) -> None:
    """A command line begins, with these options before the command's name."""
    _given.set(_Given(config, tuple(trusted or ())))


def add(config: Path | None, trusted: Sequence[Path] | None) -> None:
    """These stand behind the command's name."""
    before = _given.get()
    _given.set(_Given(config or before.config, (*before.folders, *(trusted or ()))))


def find_toml(folder: Path) -> Path | None:
    """The `interlock.toml` that was named, or else the nearest, from a folder upwards; a foreign one is an error."""
    named = _named_config()
    if named is not None:
        if not named.is_file():
            raise InterlockError(f"{named}: there is no such file: mend --config or {CONFIG_VARIABLE}")
        return _obeyed(named, Trust((named,)), "make it writable by its owner alone")
    file = next((one / TOML for one in _upwards(folder.absolute()) if (one / TOML).is_file()), None)
    if file is None:
        return None
    return _obeyed(file, trust(), f"If you trust it, name it: --config {file}, or {CONFIG_VARIABLE}={file}")


def trust() -> Trust:
    """What the options of this command trust: the folders, and the folder of the config file."""
    config = _named_config()
    return Trust().also(*_given.get().folders, config.parent if config is not None else None)


def check_pipelines(folder: Path, trusted: Trust, *, named: bool) -> Trust:
    """The folder that is to be followed must be obeyed; with what is then trusted. `named`: a person named it."""
    if named:
        trusted = trusted.also(folder, *(folder.absolute().parent / name for name in _BESIDE))
    _obeyed(folder, trusted, f"If you trust it, name it: --pipelines {folder}, or --trust-dir {folder.parent}")
    return trusted


def check_store(path: Path, *, named: bool) -> None:
    """Another user's store is not opened unless a person named it; one that everybody may write never is."""
    if not named:
        _obeyed(path, trust(), f"If you trust it, name it: --store sqlite:///{path}")
    elif path.exists() and path.stat().st_mode & 0o002:
        raise InterlockError(f"store {path}: everybody may write it: chmod 600 {path}, if its content can be trusted")


def _obeyed(path: Path, trusted: Trust, advice: str) -> Path:
    refusal = trusted.refusal(path)
    if refusal:
        raise InterlockError(f"{path} is not obeyed: {refusal}. {advice}")
    return path


def _upwards(folder: Path) -> Iterator[Path]:
    """A folder and those above it, as far as they belong to the same home or repository."""
    home = _home()
    for one in (folder, *folder.parents):
        yield one
        if one == home or (one / ".git").exists():
            return


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a user of whom the system knows nothing, as in some containers
        return None


def _named_config() -> Path | None:
    named = _given.get().config or os.environ.get(CONFIG_VARIABLE)
    return Path(named).absolute() if named else None
