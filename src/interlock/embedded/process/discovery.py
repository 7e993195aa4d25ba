"""How other commands on the machine find a running controller, and how a second one finds that it is not wanted.

Beside the store lie `<store>.lock`, which the controller holds locked while it lives (the kernel lets go of it however
it dies), and `<store>.server.json`, which says where it listens. After a `kill -9` the second is left behind; whoever
reads it checks that the process it names is alive and is still the same one, and that no stranger made the file.
"""

import errno
import fcntl
import os
import socket
import stat
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from interlock.embedded.sqlite.private_files import open_private
from interlock.model.errors import InterlockError, StoreError
from interlock.owner_record import process_owner, process_start

_MOST_BYTES: Final = 64 * 1024


class Server(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A controller that listens. `process_start` tells its process from a later one of the same number.

    `certificate` is the one it shows, as PEM: whoever believes this file believes exactly that one. `public_url`: where
    people see its page, if it is another address.
    """

    url: str
    pid: int
    started: datetime
    process_start: str = ""
    certificate: str = ""
    public_url: str = ""


class StoreInUseError(InterlockError):
    """Another controller runs on the same store."""


class StoreLock:
    """One controller per store. Held from `take` to `release`, or until the process dies."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = store.with_name(store.name + ".lock")
        self._file: int | None = None

    def take(self) -> None:
        """Take it, or say who has it."""
        try:
            file = open_private(self._path, os.O_RDWR)
        except OSError as error:
            raise StoreError(
                f"store {self._store}: its lock {self._path} cannot be opened: {error.strerror}: check its directory"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise StoreInUseError(self._refusal()) from error
        self._file = file
        with suppress(OSError):  # a full disk: the lock is held all the same, the number is for people
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let go of it. The file stays: removing it would let two processes hold two different locks."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _refusal(self) -> str:
        server = find_server(self._store)
        with suppress(OSError):
            pid = self._path.read_text(encoding="utf-8").strip() or "unknown"
            where = f" at {server.url}" if server else ""
            return (
                f"store {self._store}: another controller runs on it{where} (process {pid}): "
                "stop that one, or name another store with --store"
            )
        return f"store {self._store}: another controller runs on it: stop it, or name another store with --store"


def server_file(store: Path) -> Path:
    """Where the discovery file of a store is."""
    return store.with_name(store.name + ".server.json")


def announce(store: Path, url: str, started: datetime, *, certificate: str = "", public_url: str = "") -> None:
    """Say where this process listens; readable by its user alone, and whole at any instant. Raises OSError."""
    pid = os.getpid()
    content = msgspec.json.encode(
        Server(
            url=url,
            pid=pid,
            started=started,
            process_start=process_start(pid),
            certificate=certificate,
            public_url=public_url,
        )
    )
    target = server_file(store)
    fresh = target.with_name(f"{target.name}.{pid}")
    fresh.unlink(missing_ok=True)
    file = open_private(fresh, os.O_WRONLY | os.O_EXCL)
    try:
        os.write(file, content)
        fresh.replace(target)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def withdraw(store: Path) -> None:
    """This process listens no more."""
    found = _read(store)
    if isinstance(found, Server) and found.pid == os.getpid():
        server_file(store).unlink(missing_ok=True)


def find_server(store: Path) -> Server | None:
    """The controller that runs on a store now; what a dead one left behind, or a stranger made, does not count."""
    found = _read(store)
    return found if isinstance(found, Server) and _alive(found) and not _doubt(store, found) else None


def ignored(store: Path) -> str:
    """Why the discovery file of a store is not believed, in words; "" when it is, or when there is none."""
    found = _read(store)
    why = found if isinstance(found, str) else _doubt(store, found) if _alive(found) else ""
    return f"{server_file(store)} is ignored: {why}" if why else ""


def _read(store: Path) -> Server | str:
    """What the file says, or why it is not believed. Whoever can plant one would be sent the token of its reader."""
    path = server_file(store)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return "it is a symbolic link" if error.errno == errno.ELOOP else ""
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return "it is no regular file"
        if found.st_uid not in _believed(store):
            return f"it belongs to user {found.st_uid}, neither to you nor to the owner of the store"
        if found.st_mode & 0o077:
            return f"others may read or write it (mode {stat.S_IMODE(found.st_mode):o})"
        return msgspec.json.decode(os.read(file, _MOST_BYTES), type=Server)
    except (OSError, msgspec.DecodeError):
        return "it cannot be read"
    finally:
        os.close(file)


def _believed(store: Path) -> set[int]:
    """Whose word about a store is believed. That its owner may be trusted was decided when the store was named."""
    users = {os.geteuid(), 0}
    with suppress(OSError):
        users.add(store.stat().st_uid)
    return users


def _doubt(store: Path, server: Server) -> str:
    """Why a file that names a live process is still not believed."""
    owner = process_owner(server.pid)
    if owner is not None and owner not in _believed(store):
        return f"process {server.pid} belongs to user {owner}"
    if not _of_this_machine(server.url):
        return f"{server.url} is not an address of this machine"
    return ""


def _of_this_machine(url: str) -> bool:
    """Loopback, or an address of its own: one that can be bound."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or parts.port is None:
            return False
        if host == "localhost":
            return True
        address = ip_address(host)
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except (ValueError, OSError):
        return False
    return True


def _alive(server: Server) -> bool:
    if server.pid <= 0:
        return False
    try:
        os.kill(server.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's process: it exists
    return process_start(server.pid) == server.process_start
