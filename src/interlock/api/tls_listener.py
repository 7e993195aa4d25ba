"""Connections over TLS, accepted by ourselves: limits count from the first packet, not from the end of the handshake.

uvicorn hears of a connection once its handshake is done. Until then it would belong to nobody's share, for as long as a
minute: who opens connections and says nothing would use up the files of the process. So each handshake has its place in
a table of its own, a short time, and gives way to newer ones of the same peer.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from interlock.api.connection_table import ConnectionTable, Place, peer_of
from interlock.api.connections import ConnectionLimits
from interlock.api.peers import local_user
from interlock.api.tls import Certificates
from interlock.logs import get_logger

_HANDSHAKE_SECONDS: Final = 10.0
_GOODBYE_SECONDS: Final = 5.0
_AT_ONCE: Final = 64
_PAUSE_SECONDS: Final = 0.5
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = get_logger(__name__)


class _Handshake:
    """A connection that does not speak TLS yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Let it go."""
        if self.task is not None:
            self.task.cancel()


class TlsListener:
    """Accepts connections for a server, as `asyncio.Server` does: it is closed, and waited for."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        certificates: Certificates,
        limits: ConnectionLimits,
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._certificates = certificates
        most = max(limits.connections // 4, 1)
        self._handshakes: ConnectionTable[_Handshake] = ConnectionTable(most, max(min(most, limits.share) // 2, 1), 0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Accept from now on."""
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more; handshakes that are not done are ended."""
        if self._again is not None:
            self._again.cancel()
        with suppress(OSError, ValueError):
            self._loop.remove_reader(self._listener.fileno())
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        """Until the last handshake is gone."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                self._pause(error)
                return
            connection.setblocking(False)
            self._enter(connection, address)

    def _pause(self, error: OSError) -> None:
        """The system has no room: callers wait in line until it has."""
        _log.warning("no connection can be accepted for a moment", error=error.strerror)
        self._loop.remove_reader(self._listener.fileno())
        self._again = self._loop.call_later(_PAUSE_SECONDS, self.start)

    def _enter(self, connection: socket.socket, address: tuple[str, int]) -> None:
        handshake = _Handshake(connection)
        own = connection.getsockname()
        user = local_user((address[0], address[1]), (own[0], own[1]))
        place, ended = self._handshakes.enter(handshake, peer_of(address[0], user))
        if ended is not None:
            ended.end()
        if place is not Place.SERVED:
            self._handshakes.leave(handshake)
            connection.close()
            return
        handshake.task = task = self._loop.create_task(self._shake_hands(handshake))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, handshake: _Handshake) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._make_protocol,
                handshake.connection,
                ssl=self._certificates.context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except (OSError, asyncio.CancelledError) as error:
            # Port scanners, plain HTTP, clients that do not trust the certificate: theirs to mend.
            _log.debug("a connection ended before it spoke TLS", error=str(error) or type(error).__name__)
            with suppress(OSError):
                handshake.connection.close()
        finally:
            self._handshakes.leave(handshake)
