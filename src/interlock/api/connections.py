"""What a connection may cost before there is a request to judge, and after it was answered.

uvicorn bounds neither: a client that opens connections and says nothing, or asks and never reads, would hold them
forever, until nobody else gets in and the controller itself can open no file. So a connection on which no request is
under way has a limited time to complete one, what was written must be read within a limited time, and each peer has its
share (`connection_table`). While a request is answered nothing else of this module counts: a stream lasts as long as
somebody reads it. The gate limits bodies and answers.

Requests that are sent before the first is answered wait in the socket, whose buffers `server` keeps small: the parser
is given little at a time, and nothing as long as a request that it has read waits for another to be answered.
"""

import asyncio
import resource
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from interlock.api import problems
from interlock.api.connection_table import ConnectionTable, Place, peer_of
from interlock.api.credentials import CONNECTION, OWN_USER, PEER, SAFE_WAY
from interlock.api.gate import HEALTH
from interlock.api.peers import is_own_user, local_user
from interlock.api.transport import Ways
from interlock.logs import get_logger

_MOST: Final = 2000
# More than this is not written while the client does not read.
_UNREAD_BYTES: Final = 16 * 1024
# Who reads at least so much within the time for reading is slow, but reads.
_LEAST_READ: Final = 64 * 1024
_RESERVED_HEAD_SECONDS: Final = 5.0
_HEAD_BYTES: Final = 32 * 1024
# So much is parsed at a time; of requests that wait for another to be answered, so much is held.
_PIECE: Final = 16 * 1024
_HELD_BYTES: Final = 1024 * 1024
_QUIET_SECONDS: Final = 10.0

_log = get_logger("interlock.http")


def _affordable() -> int:
    """Half of the files that the process may have open; the store, the jobs and the pipelines need the others."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else min(_MOST, max(files // 2, 1))


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections are served, in all and of one peer, and how long a client may take to ask and to read."""

    connections: int
    head_seconds: float = 30.0
    write_seconds: float = 20.0
    per_peer: int = 0

    @classmethod
    def of_this_process(cls) -> "ConnectionLimits":
        """As many as the process can afford."""
        return cls(_affordable())

    @property
    def share(self) -> int:
        """How many one peer may have: half of them, unless a number is given."""
        return min(self.per_peer or max(self.connections // 2, 1), self.connections)

    @property
    def reserved(self) -> int:
        """So many more get the answer that it is full; beyond that, connections are closed without one."""
        return max(self.connections // 10, 1)

    @property
    def most(self) -> int:
        """How many there ever are."""
        return self.connections + self.reserved


class Connection(HttpToolsProtocol):
    """One client's connection, within limits that a subclass names (see `limited`)."""

    limits: ConnectionLimits
    table: "ConnectionTable[Connection]"
    quiet_until: dict[str, float]
    ways: Ways
    _place = Place.SERVED
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    # A head has begun and is not complete; how much came meanwhile.
    _in_head = False
    _head_bytes = 0
    _held = b""
    _arrival: "asyncio.Future[None] | None" = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Served; or answered that it is full; or closed at once."""
        super().connection_made(transport)
        # Above the first, `pause_writing` is called; when everything was taken, `resume_writing`.
        transport.set_write_buffer_limits(high=_UNREAD_BYTES, low=0)
        # At once: of a client that closes its end while it is answered, nobody could tell later.
        user = local_user(self.client, self.server)
        peer = peer_of(self.client[0] if self.client else None, user)
        self.app_state = {
            **self.app_state,
            OWN_USER: is_own_user(user),
            PEER: peer,
            CONNECTION: self,
            SAFE_WAY: self._is_safe_way(),
        }
        self._place, ended = self.table.enter(self, peer)
        if ended is not None:
            ended.transport.abort()
        if self._place is not Place.SERVED:
            self._warn("too many connections: new ones are refused", peer=peer, open=len(self.table))
            self.app = _Full(self.app, self._place)
        if self._place is Place.NONE:
            transport.abort()
        else:
            self._expect_a_head()

    def _is_safe_way(self) -> bool:
        client, server = (end[0] if end else None for end in (self.client, self.server))
        return self.ways.may_carry_token(self.scheme, client, server)

    def data_received(self, data: bytes) -> None:
        """The limit is for the whole head: more bytes do not prolong it."""
        if self._held or self.pipeline:
            self._hold(data)
            return
        for at in range(0, len(data), _PIECE):
            super().data_received(data if len(data) <= _PIECE else data[at : at + _PIECE])
            if self.transport.is_closing() or self._head_is_too_large(min(len(data) - at, _PIECE)):
                return
            if self.pipeline and len(data) > at + _PIECE:
                self._hold(data[at + _PIECE :])
                break
        if self._answering():
            self._expect_nothing()
        elif self._late is None:
            self._expect_a_head()

    def _hold(self, data: bytes) -> None:
        """Requests come before others are answered: no more of them is read."""
        self._held += data
        self.flow.pause_reading()
        if len(self._held) > _HELD_BYTES:
            self.transport.abort()

    def _go_on(self) -> None:
        data, self._held = self._held, b""
        if not self.transport.is_closing():
            self.data_received(data)

    def _head_is_too_large(self, more: int) -> bool:
        if not self._in_head:
            return False
        self._head_bytes += more
        if self._head_bytes <= _HEAD_BYTES:
            return False
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self.transport.write(_refusal(status, "too-large", f"the head of the request is more than {_HEAD_BYTES} bytes"))
        self._close()
        return True

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """An answer was given; the next request may be here already."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif not self._answering():
            self.table.waits(self)
        if self._held:
            self.flow.pause_reading()
            if not self.pipeline:
                self.loop.call_soon(self._go_on)

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        super().on_message_complete()
        self._arrived()

    def arrival(self) -> "asyncio.Future[None]":
        """Done when the rest of the body is here, or the client is gone. For a body that nobody reads meanwhile."""
        if self._arrival is None or self._arrival.done():
            self._arrival = self.loop.create_future()
        return self._arrival

    def _arrived(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def whole_body(self) -> bytes | None:
        """The body of the request that is answered, if all of it is here; it is not taken."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.more_body or self.pipeline or cycle.response_started:
            return None
        return bytes(cycle.body)

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more was asked for a while."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._expect_nothing()
        self._expect_no_reader()
        self.table.leave(self)
        self.app_state = {}
        super().connection_lost(exc)
        self._arrived()

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect_a_head(self) -> None:
        seconds = self.limits.head_seconds
        if self._place is not Place.SERVED:
            seconds = min(seconds, _RESERVED_HEAD_SECONDS)
        self._late = self.loop.call_later(seconds, self._head_is_late)
        self.table.waits(self)

    def _expect_nothing(self) -> None:
        self.table.works(self)
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _head_is_late(self) -> None:
        """A client that began a request gets an answer; silence, or more of what nobody reads, gets none."""
        self._late = None
        if self._answering() or self.transport.is_closing():
            return
        if self._in_head:
            detail = f"the head of the request did not arrive within {self.limits.head_seconds:g} s"
            self.transport.write(_refusal(HTTPStatus.REQUEST_TIMEOUT, "timeout", detail))
        self._close()

    # ------------------------------------------------------------------------------------------- who does not read

    def pause_writing(self) -> None:
        """Something that was written is not taken yet."""
        super().pause_writing()
        self._expect_a_reader()

    def resume_writing(self) -> None:
        """All of it was taken."""
        self._expect_no_reader()
        super().resume_writing()

    def _close(self) -> None:
        """The transport waits until the rest is read; we do not wait forever."""
        self.transport.close()
        if self._unread is None and self.transport.get_write_buffer_size():
            self._expect_a_reader()

    def _expect_a_reader(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(self.limits.write_seconds, self._check_reader, size)

    def _expect_no_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _check_reader(self, size: int) -> None:
        """Closing would wait until the rest is read; this does not."""
        if self.transport.get_write_buffer_size() <= size - _LEAST_READ:
            self._expect_a_reader()
            return
        self._unread = None
        self._warn("answers that nobody reads: their connections are ended", seconds=self.limits.write_seconds)
        self.transport.abort()

    def _warn(self, what: str, **facts: object) -> None:
        """Once in a while: a flood should not fill the log, too."""
        now = self.loop.time()
        if now >= self.quiet_until.get(what, 0.0):
            self.quiet_until[what] = now + _QUIET_SECONDS
            _log.warning(what, **facts)


def limited(limits: ConnectionLimits, ways: Ways | None = None) -> type[Connection]:
    """Connections within these limits, for uvicorn to make."""
    table: ConnectionTable[Connection] = ConnectionTable(limits.connections, limits.share, limits.reserved)
    own = {"limits": limits, "table": table, "quiet_until": {}, "ways": ways or Ways()}
    return type("LimitedConnection", (Connection,), own)


def limits_of(config: Config) -> ConnectionLimits:
    """The limits of a server that was made with `limited`."""
    protocol = config.http_protocol_class
    return protocol.limits if issubclass(protocol, Connection) else ConnectionLimits.of_this_process()


def _refusal(status: HTTPStatus, slug: str, detail: str) -> bytes:
    """An answer to what is no request yet."""
    body = msgspec.json.encode(problems.document({}, status, slug, detail, []))
    head = b"".join(b"%s: %s\r\n" % header for header in _headers(body))
    return STATUS_LINE[status] + head + b"\r\n" + body


_REFUSALS: Final = {
    Place.SHARE: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "too-many-requests",
        "you have as many connections as one peer may have, and all are busy: close some, or try again",
    ),
    Place.FULL: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        "the controller has as many connections as it can serve: try again",
    ),
}


class _Full:
    """The application of a connection in the reserve: health is answered, everything else is refused."""

    def __init__(self, app: Any, place: Place) -> None:
        self._app = app
        self._refusal = _REFUSALS.get(place, _REFUSALS[Place.FULL])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request; the connection is closed behind the answer."""
        if scope.get("path") in HEALTH and scope.get("method") in ("GET", "HEAD"):

            async def closing(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
                await send(message)

            await self._app(scope, receive, closing)
            return
        status, slug, detail = self._refusal
        body = msgspec.json.encode(problems.document(scope, status, slug, detail, []))
        headers = [*_headers(body), (b"retry-after", b"1")]
        await send({"type": "http.response.start", "status": status.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", problems.MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
