"""How other commands on the machine find a running controller, and how a second one finds that it is not wanted.

Beside the store lie `<store>.lock`, which the controller holds locked while it lives (the kernel lets go of it however
it dies), and `<store>.server.json`, which says where it listens. After a `kill -9` the second is left behind; whoever
reads it checks that the process it names is alive and is still the same one.
"""

import fcntl
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from interlock.model.errors import InterlockError, StoreError

_PROC: Final = Path("/proc")


class Server(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A controller that listens. `process_start` tells its process from a later one of the same number."""

    url: str
    pid: int
    started: datetime
    process_start: str = ""


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
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def announce(store: Path, url: str, started: datetime) -> None:
    """Say where this process listens; readable by its user alone, and whole at any instant. Raises OSError."""
    pid = os.getpid()
    content = msgspec.json.encode(Server(url=url, pid=pid, started=started, process_start=_process_start(pid)))
    target = server_file(store)
    fresh = target.with_name(f"{target.name}.{pid}")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
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
    if found is not None and found.pid == os.getpid():
        server_file(store).unlink(missing_ok=True)


def find_server(store: Path) -> Server | None:
    """The controller that runs on a store now; what a dead one left behind does not count."""
    found = _read(store)
    return found if found is not None and _alive(found) else None


def _read(store: Path) -> Server | None:
    try:
        return msgspec.json.decode(server_file(store).read_bytes(), type=Server)
    except (OSError, msgspec.DecodeError):
        return None


def _alive(server: Server) -> bool:
    if server.pid <= 0:
        return False
    try:
        os.kill(server.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's process: it exists
    return not server.process_start or _process_start(server.pid) == server.process_start


def _process_start(pid: int) -> str:
    """When a process started, in whatever unit the system has; "" where that cannot be told."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The second field is the program's name in parentheses and may hold anything; the start is the 22nd.
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
