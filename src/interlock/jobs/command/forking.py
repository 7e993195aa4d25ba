"""The controller's end of the fork server: has a wrapper forked for a command. See `fork_server`."""

import array
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from interlock.jobs.command import fork_server
from interlock.logs import get_logger
from interlock.model.errors import InterlockError

_log = get_logger(__name__)

_ANSWER_SECONDS: Final = 30.0


class Forked(msgspec.Struct, frozen=True):
    """A wrapper that was forked: its number, and a pidfd, or -1 where there are none. Who has this closes it."""

    pid: int
    pidfd: int


class ForkServer:
    """Starts the fork server when it is first needed, and again when it has died. Threads may share it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._pid = 0
        self._closed = False

    def fork(self, arguments: Sequence[str], lock: int, output: int) -> Forked | None:
        """A wrapper with these arguments and descriptors. None: it was not asked for one, and none was forked.

        An OSError is the server's own: it could not fork. An InterlockError: nobody knows whether it has.
        """
        request = b"\0".join(os.fsencode(argument) for argument in arguments)
        if len(request) >= fork_server.MOST_BYTES:
            return None
        with self._lock:
            there = self._there()
            if there is None or not self._sent(there, request, lock, output):
                return None
            return self._answer(there)

    def close(self) -> None:
        """No more wrappers. Those that run go on."""
        with self._lock:
            self._closed = True
            self._end()

    # ---------------------------------------------------------------------------------------------------- inside

    def _there(self) -> socket.socket | None:
        if self._socket is None and not self._closed:
            try:
                self._begin()
            except OSError as error:
                _log.warning("the fork server cannot be started; each command starts its own wrapper", error=str(error))
        return self._socket

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", fork_server.__file__],
                self._environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM),
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.settimeout(_ANSWER_SECONDS)
        self._socket = ours

    def _sent(self, there: socket.socket, request: bytes, lock: int, output: int) -> bool:
        """Was it handed over? What a dead server was sent has reached nobody."""
        rights = array.array("i", [lock, output])
        try:
            there.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError:
            self._end()
            return False
        return True

    def _answer(self, there: socket.socket) -> Forked:
        try:
            data, control, _, _ = there.recvmsg(64, socket.CMSG_SPACE(4))
        except OSError as error:
            self._end()
            raise InterlockError(f"the fork server did not answer ({error}): a command may have started") from error
        if not data:
            self._end()
            raise InterlockError("the fork server has died: a command may have started")
        if data.startswith(b"E"):
            number = int(data[1:])
            raise OSError(number, os.strerror(number))
        passed = array.array("i")
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                passed.frombytes(content)
        return Forked(int(data), passed[0] if passed else -1)

    def _end(self) -> None:
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        # It ends by itself when its socket does; one that hangs must not be left behind.
        with suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
