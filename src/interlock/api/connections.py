"""What a connection may cost before there is a request to judge: how many there are, and how long a head may take.

uvicorn bounds neither: a client that opens connections and says nothing would hold them forever, until nobody else
gets in and the controller itself can open no file. So a connection on which no request is under way has a limited time
to complete one. While a request is answered no limit of this module counts: a stream lasts as long as it likes. The
gate limits bodies and answers.
"""

import asyncio
import resource
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import h11
import msgspec
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from interlock.api import problems
from interlock.api.credentials import OWN_USER
from interlock.api.peers import is_own_user

_MOST: Final = 2000
_QUIET_SECONDS: Final = 10.0

_log = structlog.get_logger("interlock.http")


def _affordable() -> int:
    """Half of the files that the process may have open; the store, the jobs and the pipelines need the others."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else min(_MOST, max(files // 2, 1))


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections are served, and how long a client may take for the head of a request."""

    connections: int
    head_seconds: float = 30.0

    @classmethod
    def of_this_process(cls) -> "ConnectionLimits":
        """As many as the process can afford."""
        return cls(_affordable())

    @property
    def most(self) -> int:
        """A tenth more are told that it is full; beyond that they are closed unheard."""
        return self.connections + max(self.connections // 10, 1)


class Connection(H11Protocol):
    """One client's connection, within limits that a subclass names (see `limited`)."""

    limits: ConnectionLimits
    quiet_until = 0.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Served, told that it is full once it has asked, or closed at once."""
        count = len(self.connections)
        if count >= self.limits.connections:
            self._warn(count)
            self.app = _full
        super().connection_made(transport)
        # At once: of a client that closes its end while it is answered, nobody could tell later.
        self.app_state = {**self.app_state, OWN_USER: is_own_user(self.client, self.server)}
        if count >= self.limits.most:
            transport.close()
        else:
            self._expect_a_head()

    def data_received(self, data: bytes) -> None:
        """The limit is for the whole head: more bytes do not prolong it."""
        super().data_received(data)
        if self._answering():
            self._expect_nothing()
        elif self._late is None:
            self._expect_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._expect_nothing()
        super().connection_lost(exc)

    def _answering(self) -> bool:
        return self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY)

    def _expect_a_head(self) -> None:
        self._late = self.loop.call_later(self.limits.head_seconds, self._head_is_late)

    def _expect_nothing(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _head_is_late(self) -> None:
        """Who began a request is told; who said nothing, or still sends what nobody reads, is just let go."""
        self._late = None
        if self._answering() or self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            detail = f"the head of the request did not arrive within {self.limits.head_seconds:g} s"
            self.transport.write(_timeout(self.conn, detail))
        self.transport.close()

    def _warn(self, count: int) -> None:
        """Once in a while: whoever floods us should not fill the log, too."""
        now = self.loop.time()
        if now >= type(self).quiet_until:
            type(self).quiet_until = now + _QUIET_SECONDS
            _log.warning("too many connections: new ones are refused", open=count, served=self.limits.connections)


def limited(limits: ConnectionLimits) -> type[Connection]:
    """Connections within these limits, for uvicorn to make."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


def _timeout(conn: h11.Connection, detail: str) -> bytes:
    status = HTTPStatus.REQUEST_TIMEOUT
    body = msgspec.json.encode(problems.document({}, status, "timeout", detail, []))
    answer = h11.Response(status_code=status, reason=status.phrase, headers=_headers(body))
    parts = (conn.send(answer), conn.send(h11.Data(data=body)), conn.send(h11.EndOfMessage()))
    return b"".join(part for part in parts if part)


async def _full(scope: Any, _receive: Any, send: Any) -> None:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    detail = "the controller has as many connections as it can serve: try again"
    body = msgspec.json.encode(problems.document(scope, status, "unavailable", detail, []))
    headers = [*_headers(body), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", problems.MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
