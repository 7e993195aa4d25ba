"""What every request passes before any route sees it: limits, the guard against foreign web pages, an id, a log line.

A page of another origin can make a browser send requests to loopback, and by DNS rebinding even read the answers. As
long as no token is needed that would be everybody's controller; so without tokens the Host must be a loopback name and
a browser's write must come from our own origin. With tokens neither matters to who shows one, since no browser sends a
token by itself. It does send the cookie of a session: a write by cookie must come from our own page (`credentials`).
"""

import asyncio
import random
import re
import time
from collections.abc import MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import structlog

from interlock.api import problems, stream_shares
from interlock.api.answers import Answer, takes_gzip
from interlock.api.auth import authenticate
from interlock.api.credentials import (
    PEER,
    READING,
    SAFE_WAY,
    check_own_page,
    credentials_of,
    headers_of,
    origin_of,
)
from interlock.api.hosts import hostname, is_loopback_name
from interlock.api.http.messages import Asgi, Message, Receive, Scope, Send
from interlock.api.problems import RequestError
from interlock.api.refused_access import RefusedAccess
from interlock.api.sensor_writes import TEMPLATE, SensorWrites, is_sensor_write
from interlock.api.state import AppState
from interlock.api.stream_shares import StreamLimits, StreamShares
from interlock.api.web import Web, is_page
from interlock.embedded.access.callbacks import PATH as CALLBACKS
from interlock.logs import get_logger
from interlock.model.sensor import MAX_SENSOR_BYTES

STREAM: Final = "/api/v1/events/stream"
SESSION: Final = "/api/v1/session"
_LARGE: Final = frozenset({"/api/v1/sensors:batch", "/api/v1/lineage"})
_LARGE_BYTES: Final = 4 * 1024 * 1024
# A sensor may have 64 KiB of plain JSON; spaces and escapes make it longer on the wire.
SENSOR_BYTES: Final = 2 * MAX_SENSOR_BYTES
_BODY_BYTES: Final = 1024 * 1024
_BODY_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 60.0
_DRAIN_SECONDS: Final = 5.0
_COME_BACK_SECONDS: Final = "2"
HEALTH: Final = frozenset({"/healthz", "/readyz"})
_DRAIN_BYTES: Final = 16 * 1024 * 1024
MAX_TARGET: Final = 8 * 1024
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

_log = get_logger("interlock.http")


class Gate:
    """The outermost ASGI application."""

    def __init__(self, app: Asgi, state: AppState, *, streams: StreamLimits = stream_shares.DEFAULT) -> None:
        service = state.service
        self._app = app
        self._service = service
        self._clock = service.clock
        self._tokens = service.tokens
        self._public_origin = origin_of(state.public_url)
        self._web = Web()
        self._sensors = SensorWrites(state)
        self._metrics = state.metrics.http
        self._streams = StreamShares(streams)
        self._refused = RefusedAccess(service.audit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request; or the start and end of the server, or a websocket, of which there are none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        request_id = request_id_of(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        # Pages are compressed once, not for each request; sensor writes come by the thousand, with short answers.
        plain = is_page(scope["path"]) or is_sensor_write(scope)
        answer = Answer(
            send, request_id, compress=not plain and takes_gzip(headers), clock=None if plain else self._clock
        )
        begun = time.monotonic()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._pass(scope, receive, answer, headers)
            finally:
                self._observe(scope, answer.status, time.monotonic() - begun)

    async def _pass(
        self, scope: Scope, receive: Receive, answer: Answer, headers: MutableMapping[bytes, bytes]
    ) -> None:
        limited: _Body | None = None
        try:
            self._check(scope, headers)
            await self._know_key(scope, headers)
            if self._service.refusing and scope["path"] not in HEALTH:
                raise _stopping("the controller is stopping: ask again in a moment")
            if is_page(scope["path"]):
                await self._web(scope, receive, answer.send)
                return
            limited = _Body(receive, limit=_limit_of(scope["path"]), declared=headers.get(b"content-length"))
            if scope["path"] == STREAM:
                with self._streams.held(scope["state"].get(PEER, ""), self._caller(scope, headers)):
                    await self._app(scope, limited.receive, answer.send)
                return
            async with asyncio.timeout(ANSWER_SECONDS):
                if is_sensor_write(scope):
                    await self._write_sensor(scope, headers, limited, answer)
                else:
                    await self._app(scope, limited.receive, answer.send)
        except RequestError as error:
            if error.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE and not (limited is not None and limited.done):
                await _drain(receive)
            if error.status is HTTPStatus.FORBIDDEN:
                self._refused.note(scope, error)
            await answer.refuse(scope, error)
        except TimeoutError:
            await answer.refuse(scope, too_late())
        except asyncio.CancelledError:
            if not self._service.refusing:
                raise
            await answer.refuse(scope, cut_short())

    async def _know_key(self, scope: Scope, headers: MutableMapping[bytes, bytes]) -> None:
        """Have the issuer asked for the key of a sign-on that is not known; everything after this asks nobody."""
        sign_on = self._service.sign_on
        if sign_on is not None and sign_on.wants_keys(credentials_of(scope, headers).bearer):
            await asyncio.to_thread(sign_on.keys.refresh)

    async def _write_sensor(
        self, scope: Scope, headers: MutableMapping[bytes, bytes], body: "_Body", answer: Answer
    ) -> None:
        scope["path_template"] = TEMPLATE
        try:
            await answer.give(await self._sensors.write(scope, headers, await body.whole()))
        except ConnectionError:
            return  # the client went away before it had sent everything
        except Exception as error:
            raise problems.judge(error) from error

    def _check(self, scope: Scope, headers: MutableMapping[bytes, bytes]) -> None:
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MAX_TARGET:
            raise RequestError(
                HTTPStatus.REQUEST_URI_TOO_LONG, "too-large", f"an address of more than {MAX_TARGET} bytes"
            )
        _check_framing(scope)
        _check_way(scope, headers)
        if scope["method"] not in READING and self._is_by_cookie(scope, headers):
            check_own_page(scope, headers, self._public_origin)
        if self._tokens.required():
            return
        host = headers.get(b"host", b"").decode("latin-1")
        if not is_loopback_name(hostname(host)):
            detail = (
                f"the Host {host[:100]!r} is not a name of this machine: use localhost or 127.0.0.1, or make a token"
            )
            raise RequestError(HTTPStatus.MISDIRECTED_REQUEST, "wrong-host", detail)
        if scope["method"] not in READING and _from_elsewhere(headers, host):
            detail = "a web page of another origin may not write without a token: `interlock token create` makes one"
            raise RequestError(HTTPStatus.FORBIDDEN, "cross-origin", detail)

    def _caller(self, scope: Scope, headers: MutableMapping[bytes, bytes]) -> str | None:
        """The name of whoever calls; None for a stranger, whom the route refuses."""
        caller = authenticate(self._service, credentials_of(scope, headers))
        return None if caller is None else caller.name

    def _is_by_cookie(self, scope: Scope, headers: MutableMapping[bytes, bytes]) -> bool:
        """Would this write be done for a session, or begin one in a browser?"""
        shown = credentials_of(scope, headers)
        begins = scope["path"] == SESSION and b"origin" in headers
        return not shown.authorization and (begins or (bool(shown.session) and self._tokens.required()))

    def _observe(self, scope: Scope, status: int, seconds: float) -> None:
        template = str(scope.get("path_template") or "unmatched")
        self._metrics.observe(scope["method"], template, status, seconds)
        # What is read, and sensors that are taken, come by the thousand and say nothing.
        quiet = status < HTTPStatus.BAD_REQUEST and (scope["method"] in READING or "/sensors" in template)
        log = _log.debug if quiet else _log.info
        # The address of a callback is itself the permission to use it.
        path = f"{CALLBACKS}***" if scope["path"].startswith(CALLBACKS) else scope["path"]
        log("request", method=scope["method"], path=path, status=status, milliseconds=round(seconds * 1000, 1))


class _Body:
    """A request's body, not larger than allowed and not slower."""

    def __init__(self, receive: Receive, *, limit: int, declared: bytes | None) -> None:
        self._receive = receive
        self._limit = limit
        self._read = 0
        self._done = False
        self._end = time.monotonic() + _BODY_SECONDS
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise self._too_large()

    @property
    def done(self) -> bool:
        """Has all of it arrived?"""
        return self._done

    async def receive(self) -> Message:
        """The next part of it; afterwards, the news that the client went away."""
        if self._done:
            return await self._receive()
        try:
            async with asyncio.timeout(max(self._end - time.monotonic(), 0.0)):
                message = await self._receive()
        except TimeoutError:
            detail = f"the body did not arrive within {_BODY_SECONDS:.0f} s"
            raise RequestError(HTTPStatus.REQUEST_TIMEOUT, "timeout", detail) from None
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._done = not message.get("more_body", False)
            if self._read > self._limit:
                raise self._too_large()
        return message

    async def whole(self) -> bytes:
        """All of it."""
        parts: list[bytes] = []
        while not self._done:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client went away")
            parts.append(message.get("body", b""))
        return b"".join(parts)

    def _too_large(self) -> RequestError:
        detail = f"a body of more than {self._limit} bytes is not taken here"
        return RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)


async def _drain(receive: Receive) -> None:
    """Take in the rest of a body that is refused: most clients read no answer while they still write."""
    read = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while read < _DRAIN_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _check_way(scope: Scope, headers: MutableMapping[bytes, bytes]) -> None:
    """No token in the clear: whoever listened on the way has it, and it had better be changed."""
    if scope["state"].get(SAFE_WAY, True):
        return
    shown = credentials_of(scope, headers)
    if shown.authorization or shown.session or scope["path"] == SESSION:
        detail = (
            "a token over plain HTTP is refused, since others on the way can read it: use https (`serve --tls-cert`)"
            ", or a proxy that interlock.toml names in trusted_proxies; `interlock token rotate` makes a token new"
        )
        raise RequestError(HTTPStatus.FORBIDDEN, "insecure-transport", detail)


def _check_framing(scope: Scope) -> None:
    """What two readers of the same request could take for two different things is not answered but refused.

    A proxy in front of us may have read the other one.
    """
    names = [name.lower() for name, _ in scope["headers"]]
    close = {"Connection": "close"}
    if names.count(b"authorization") > 1:
        detail = "there are two Authorization headers: send one"
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", detail, headers=close)
    if names.count(b"host") > 1 or (b"host" not in names and scope.get("http_version") == "1.1"):
        detail = "there must be one Host header: send the name that is in the address"
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", detail, headers=close)
    if b"content-length" in names and b"transfer-encoding" in names:
        detail = "there are both Content-Length and Transfer-Encoding: send one of them"
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", detail, headers=close)


def too_late() -> RequestError:
    """The refusal of a request that takes too long."""
    detail = f"there was no answer within {ANSWER_SECONDS:.0f} s: what was asked may still be done"
    return RequestError(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail)


def cut_short() -> RequestError:
    """The grace for requests is over. This is the last chance to say something better than nothing."""
    return _stopping("the controller is stopping: what was asked may have been done, ask the next one")


def _stopping(detail: str) -> RequestError:
    headers = {"Retry-After": _COME_BACK_SECONDS, "Connection": "close"}
    return RequestError(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers=headers)


def _limit_of(path: str) -> int:
    if path in _LARGE:
        return _LARGE_BYTES
    return SENSOR_BYTES if "/sensors/" in path else _BODY_BYTES


def request_id_of(headers: MutableMapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(64):016x}"


def _from_elsewhere(headers: MutableMapping[bytes, bytes], host: str) -> bool:
    """Did a browser send this for a page that is not ours?"""
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        return True
    origin = headers.get(b"origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin.decode("latin-1")).netloc.lower() != host.lower()
    except ValueError:
        return True
