"""The folder of one command: who claimed it, how far it came, how it ended. One per run id, and proof after any crash.

At most one start per run id, and why
-------------------------------------
A claim is prepared under another name: the request, and a lock file that is already locked. Then it is *renamed* to
the run id, which fails when that name is taken, a claimed folder never being empty. The locked file is handed to the
wrapper as its standard input, and the controller closes its own copy only then; the wrapper's child has it, too, until
it becomes the command, which it does only when the wrapper has written `started` and says so. So from the moment a
claim can be seen the lock is held without a gap until there is a `started` or nobody left to write one, and no one ever
takes it a second time.

A free lock therefore means that no wrapper is at work and none will start. Without `started` the command
was never run and never will be: it may be started again. With it the command was run; it may outlive its wrapper, which
its process number and start time tell.

A process number alone proves nothing (it may be used again), a held lock does: it cannot outlive its process.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from interlock.jobs.command.output import CommandOutput
from interlock.jobs.command.wrapper import EXIT, STARTED, STOP, WRAPPER, identity
from interlock.model.errors import JobStartError
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobRequest

_REQUEST: Final = "request.json"
_LOCK: Final = "lock"
_REPORTED: Final = "reported"
# Its name in folders that earlier versions left.
_REPORTED_BEFORE: Final = "told"
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_T = TypeVar("_T")


class Phase(StrEnum):
    """What a folder proves."""

    ABSENT = "absent"
    UNSTARTED = "unstarted"  # claimed; the command was not started and will not be
    UNCERTAIN = "uncertain"  # a damaged folder: nobody can tell whether it was
    RUNNING = "running"
    ENDED = "ended"
    VANISHED = "vanished"  # it was started and is gone, and nobody saw how it ended


class Exit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a command ended: a code, or a signal, or (errno) it could not be started at all. Times are epoch seconds."""

    code: int | None
    signal: int | None
    timed_out: bool
    errno: int | None
    started_at: float
    ended_at: float


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Whose command it is, for the controller that finds the folder after a restart."""

    key: RunKey
    attempt: int
    run_id: str

    @classmethod
    def of(cls, request: JobRequest) -> "Claim":
        """The claim of a request."""
        return cls(key=request.key, attempt=request.attempt, run_id=request.run_id)


class Process(msgspec.Struct, frozen=True):
    """A process by its number, and by what tells it from a later one with the same number."""

    pid: int
    identity: str = ""

    @property
    def alive(self) -> bool:
        """Is it this very process that is running, and not a later one with its number?"""
        if identity(os.getpid()):
            return bool(self.identity) and identity(self.pid) == self.identity
        try:  # no /proc: the number is all there is
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class RunFolder:
    """One command's folder. Reading it changes nothing; any number of threads and processes may."""

    def __init__(self, root: Path, run_id: str) -> None:
        # A run id becomes a file name; ours always can, a foreign one must not lead elsewhere.
        if not _RUN_ID.fullmatch(run_id):
            raise JobStartError(
                f"{run_id!r} cannot name a folder: use at most 200 letters, digits, '.', '_' and '-'", permanent=True
            )
        self.path: Final = root / run_id
        self.run_id: Final = run_id

    def claim(self, claim: Claim, environment: Mapping[str, str]) -> int | None:
        """Claim it: the descriptor of the held lock, which the caller hands on and closes; None when it is taken.

        The environment of the command goes into the lock file, from where the wrapper takes it.
        """
        variables = b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items())
        root = self.path.parent
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            prepared = Path(tempfile.mkdtemp(prefix=".claim-", dir=root))
        except OSError as error:
            raise _cannot_claim(self.run_id, error) from error
        lock = None
        try:
            (prepared / _REQUEST).write_bytes(msgspec.json.encode(claim))
            lock = os.open(prepared / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(lock, "wb", closefd=False) as file:
                file.write(variables)
            prepared.rename(self.path)
        except OSError as error:
            if lock is not None:
                os.close(lock)
            shutil.rmtree(prepared, ignore_errors=True)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return None
            raise _cannot_claim(self.run_id, error) from error
        return lock

    def phase(self) -> Phase:
        """What is known of the command now."""
        if not self.path.is_dir():
            return Phase.ABSENT
        # The lock before the exit: a wrapper writes first and lets go then, so a free lock and no exit mean no exit.
        held = self._lock_held()
        if (self.path / EXIT).exists():
            return Phase.ENDED
        if held:
            return Phase.RUNNING
        started = self._read(STARTED, Process)
        if started is not None:
            return Phase.RUNNING if started.alive else Phase.VANISHED
        return Phase.UNCERTAIN if (self.path / STARTED).exists() else Phase.UNSTARTED

    def awaited(self) -> int:
        """The process whose end is the next thing to happen here; 0 while that is not known."""
        if self._lock_held():
            wrapper = self._read(WRAPPER, Process)
            return wrapper.pid if wrapper is not None else 0
        started = self._read(STARTED, Process)
        return started.pid if started is not None and started.alive else 0

    def wrapper(self) -> Process | None:
        """The wrapper, while it is at work and has said its number."""
        return self._read(WRAPPER, Process) if self._lock_held() else None

    def command(self) -> Process | None:
        """The command's own process, once it was started; its number is also that of its group."""
        return self._read(STARTED, Process)

    @property
    def stop_requested(self) -> bool:
        """Has somebody asked for the end of this command?"""
        return (self.path / STOP).exists()

    def request_stop(self) -> None:
        """Remember that its end was asked for: the wrapper may not have started yet, and people want to know."""
        with contextlib.suppress(FileNotFoundError):  # removed in the meantime
            (self.path / STOP).touch(mode=0o600)

    def exit(self) -> Exit | None:
        """How the command ended, if it did and somebody saw it."""
        return self._read(EXIT, Exit)

    def claimed_by(self) -> Claim | None:
        """Whose command it is; None when that cannot be read."""
        return self._read(_REQUEST, Claim)

    @property
    def reported(self) -> bool:
        """Was the end reported to the controller?"""
        return any((self.path / name).exists() for name in (_REPORTED, _REPORTED_BEFORE))

    def mark_reported(self) -> None:
        """The controller knows: the end is not reported again after a restart."""
        with contextlib.suppress(FileNotFoundError):  # removed in the meantime
            (self.path / _REPORTED).touch(mode=0o600)

    def touched_at(self) -> float:
        """When the command ended, or else when anything was last written here; epoch seconds."""
        ended = self.exit()
        return ended.ended_at if ended is not None else self.path.stat().st_mtime

    @property
    def output(self) -> CommandOutput:
        """What the command wrote."""
        return CommandOutput(self.path)

    def remove(self) -> None:
        """Take it away in one step, so that nobody ever reads half a folder; then delete it."""
        gone = self.path.parent / f".gone-{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            self.path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _lock_held(self) -> bool:
        try:
            file = os.open(self.path / _LOCK, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            # Shared: two who look at the same time do not take each other for the wrapper.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def _read(self, name: str, type_: type[_T]) -> _T | None:
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=type_)
        except (FileNotFoundError, msgspec.DecodeError):
            # Unreadable is what a crash of the machine may leave of a file that was not on disk yet.
            return None


def _cannot_claim(run_id: str, error: OSError) -> JobStartError:
    """Without a claim nothing was started: trying again is safe, and may help."""
    return JobStartError(f"no folder could be made for {run_id}: {error.strerror or error}", permanent=False)


def run_folders(root: Path) -> list[RunFolder]:
    """Every claimed folder."""
    if not root.is_dir():
        return []
    return [RunFolder(root, entry.name) for entry in root.iterdir() if _RUN_ID.fullmatch(entry.name)]


def stray_folders(root: Path) -> list[Path]:
    """What a crash left of claims and removals that were under way."""
    if not root.is_dir():
        return []
    return [entry for entry in root.iterdir() if entry.name.startswith((".claim-", ".gone-"))]
