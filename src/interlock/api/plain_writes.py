"""The short way of a plain sensor write: from the connection's buffer to the store, with nothing in between.

Nearly every write is plain: all of its body is here, no browser sent it, and it is good. Such a write is checked and on
its way to the disk before the first `await`, and many share a commit and a wake-up of the loop. What is not plain, and
everything that is refused, takes the long way through the gate and `sensor_writes`, which look again and say what is
wrong: the only errors that are answered here are those of the commit.

All limits hold: those of the connection (`connections`), of the address, of the body, of a token's rate, and the time
for an answer, which one timer watches for all that wait instead of one for each.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from interlock.api.answers import ALWAYS, Answer
from interlock.api.auth import Principal, authenticate
from interlock.api.connections import Connection
from interlock.api.credentials import CONNECTION, SAFE_WAY, credentials_of
from interlock.api.gate import ANSWER_SECONDS, MAX_TARGET, SENSOR_BYTES, cut_short, request_id_of, too_late
from interlock.api.hosts import is_own_host
from interlock.api.http.messages import Asgi, Header, Receive, Scope, Send
from interlock.api.problems import RequestError, judge
from interlock.api.sensor_writes import TEMPLATE
from interlock.api.state import AppState
from interlock.control import catalog, writing
from interlock.control.writing import Written
from interlock.embedded.access import tokens
from interlock.embedded.service import Service
from interlock.logs import get_logger
from interlock.model.errors import InterlockError
from interlock.model.sensor import check_observation
from interlock.ports.store import Conflict

# No dot segments, no empty ones: an address that could be read in two ways takes the long way.
_ADDRESS: Final = re.compile(rb"/api/v1/pipelines/([\w.~%-]+)/sensors/([\w.~%:@-]+)")
# A request with one of these is looked at more closely.
_NOT_PLAIN: Final = frozenset(
    {b"origin", b"sec-fetch-site", b"cookie", b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"}
)
_FORWARDED: Final = frozenset({b"x-forwarded-for"})
_LOOK_SECONDS: Final = 1.0
# Of a body that comes behind its head, so much is waited for here, and so long; then the long way waits, and refuses.
_WAITED_BYTES: Final = 32 * 1024
_BODY_SECONDS: Final = 2.0
_KIND: Final[Header] = (b"content-type", b"application/json")

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode
_log = get_logger("interlock.http")


class _Plain(NamedTuple):
    """A write whose head is plain."""

    connection: Connection
    headers: dict[bytes, bytes]
    pipeline: bytes
    key: bytes


class _Begun(NamedTuple):
    """A write on its way to the disk."""

    written: Written
    committed: "asyncio.Future[Conflict | None]"
    request_id: str
    at: float


class PlainWrites:
    """In front of an application: answers plain sensor writes, and passes everything else on."""

    def __init__(self, app: Asgi, service: Service, state: AppState) -> None:
        self._app = app
        self._service = service
        self._rates = state.rates
        self._observe: Callable[[float], None] = state.metrics.http.observer("PUT", TEMPLATE, 200)
        # Where writes are recorded with their address, what a proxy says of it is read on the long way.
        self._not_plain = _NOT_PLAIN | _FORWARDED if service.settings.audit.sensors else _NOT_PLAIN
        self._waiting: dict[asyncio.Future[Any], float] = {}
        self._watching = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it here, or have it answered."""
        begun: _Begun | None = None
        if scope["type"] == "http" and scope["method"] == "PUT":
            at = time.monotonic()
            plain = self._plain(scope)
            # Many clients send the head and the body one after the other.
            if plain is not None and (plain.connection.whole_body() is not None or await self._arrives(plain, at)):
                begun = self._begin(scope, plain, at)
        if begun is None:
            await self._app(scope, receive, send)
        else:
            await self._finish(begun, scope, send)

    def _plain(self, scope: Scope) -> _Plain | None:
        """What there is to know of a write before its body is here; None for one that takes the long way."""
        found = _ADDRESS.fullmatch(scope["raw_path"])
        headers: dict[bytes, bytes] = dict(scope["headers"])
        connection = scope["state"].get(CONNECTION)
        if (
            found is None
            or scope["query_string"]
            or len(scope["raw_path"]) > MAX_TARGET
            or len(headers) != len(scope["headers"])
            or not self._not_plain.isdisjoint(headers)
            or not isinstance(connection, Connection)
            or not scope["state"].get(SAFE_WAY, True)
        ):
            return None
        return _Plain(connection, headers, *found.groups())

    async def _arrives(self, plain: _Plain, at: float) -> bool:
        """Wait for the rest of a short body; a long one is only sent while it is read. False: it did not come."""
        length = plain.headers.get(b"content-length", b"")
        if not length.isdigit() or int(length) > _WAITED_BYTES:
            return False
        arrival = plain.connection.arrival()
        self._watch(arrival, at + _BODY_SECONDS)
        try:
            await arrival
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(arrival, None)
        return True

    def _begin(self, scope: Scope, plain: _Plain, at: float) -> _Begun | None:
        """Put a plain write on its way; None for one that takes the long way, of which nothing has been done."""
        body = plain.connection.whole_body()
        if body is None or len(body) > SENSOR_BYTES or self._service.refusing:
            return None
        caller = self._caller(scope, plain.headers)
        if caller is None:
            return None
        pipeline, key = (unquote(part.decode("latin-1"), errors="replace") for part in (plain.pipeline, plain.key))
        try:
            written, committed = self._submit(caller, pipeline, key, body)
        except (InterlockError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return _Begun(written, committed, request_id_of(plain.headers), at)

    def _caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        service = self._service
        if b"host" not in headers or not (service.tokens.required() or is_own_host(headers[b"host"])):
            return None
        caller = authenticate(service, credentials_of(scope, headers))
        return caller if caller is not None and caller.may(tokens.Scope.SENSOR_WRITE) else None

    def _submit(
        self, caller: Principal, pipeline: str, key: str, body: bytes
    ) -> "tuple[Written, asyncio.Future[Conflict | None]]":
        """Raises what refuses it; then nothing was written."""
        service = self._service
        observation = check_observation(key, _decode(body))
        stored = catalog.stored(service.store, pipeline)
        config = stored.config if stored is not None else None
        caller.check_for(tokens.Scope.SENSOR_WRITE, pipeline, config)
        if stored is None:
            writing.known_pipeline(service.control, pipeline)
        control = caller.writing_sensors(service)
        put, written = writing.prepare_checked(control, pipeline, config, key, observation, by=caller.name)
        self._rates.take(caller.name)
        return written, service.store.submit_on(asyncio.get_running_loop(), [put])

    async def _finish(self, begun: _Begun, scope: Scope, send: Send) -> None:
        self._watch(begun.committed, begun.at + ANSWER_SECONDS)
        try:
            await begun.committed
        except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001  it is answered, or raised
            await self._refuse(begun, scope, send, error)
            return
        finally:
            self._waiting.pop(begun.committed, None)
        body = _encode(begun.written)
        length = (b"content-length", b"%d" % len(body))
        headers = [_KIND, length, (b"x-request-id", begun.request_id.encode()), *ALWAYS]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        seconds = time.monotonic() - begun.at
        self._observe(seconds)
        if logging.root.level <= logging.DEBUG:
            milliseconds, id_ = round(seconds * 1000, 1), begun.request_id
            _log.debug(
                "request", method="PUT", path=scope["path"], status=200, milliseconds=milliseconds, request_id=id_
            )

    async def _refuse(self, begun: _Begun, scope: Scope, send: Send, error: Exception | asyncio.CancelledError) -> None:
        """The commit failed, took too long, or the server ends."""
        if isinstance(error, asyncio.CancelledError):
            if not self._service.refusing:
                raise error
            refusal: RequestError = cut_short()
        else:
            refusal = too_late() if isinstance(error, TimeoutError) else judge(error)
        scope["state"]["request_id"] = begun.request_id
        await Answer(send, begun.request_id, compress=False, clock=None).refuse(scope, refusal)
        _log.info("request", method="PUT", path=scope["path"], status=int(refusal.status), request_id=begun.request_id)

    # ------------------------------------------------------------------------------------------- the time for answers

    def _watch(self, awaited: "asyncio.Future[Any]", deadline: float) -> None:
        self._waiting[awaited] = deadline
        if not self._watching:
            self._watching = True
            awaited.get_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        for awaited, deadline in self._waiting.items():
            if deadline <= now and not awaited.done():
                awaited.set_exception(TimeoutError())
        self._watching = bool(self._waiting)
        if self._watching:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
