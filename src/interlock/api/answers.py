"""The way back to the client: the headers that every answer has, compression, and problem documents.

JSON of more than a kilobyte is compressed for a client that asks for it; a stream never is, since what waits in a
compressor does not arrive. Every answer of the API says what time the controller has and how fast its clock runs, so
that a page can count down to a deadline without trusting the clock of the browser.
"""

import asyncio
import gzip
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Final

import msgspec

from interlock.api import problems
from interlock.api.http.messages import Header, Message, Scope, Send
from interlock.api.problems import RequestError
from interlock.embedded.clock import rate
from interlock.model.times import format_instant
from interlock.ports.clock import Clock

TIME: Final = b"x-interlock-time"
_COMPRESSED_FROM: Final = 1024
# Larger bodies are compressed on a thread: the loop serves everybody.
_ON_THREAD_FROM: Final = 32 * 1024
_LEVEL: Final = 4
_JSON: Final = (b"application/json", problems.MEDIA_TYPE.encode())
ALWAYS: Final[tuple[Header, ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Answer:
    """One answer: adds what every answer has, remembers the status."""

    def __init__(self, send: Send, request_id: str, *, compress: bool, clock: Clock | None) -> None:
        """With a clock it is an answer of the API, which is not kept by caches and tells the time."""
        self._send = send
        self._request_id = request_id
        self._compress = compress
        self._clock = clock
        self._held: Message | None = None
        self.status = 0

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            message["headers"] = [*message.get("headers", []), *self._headers(message)]
            if self._compress and _header(message, b"content-type").partition(b";")[0] in _JSON:
                self._held = message
                return
        held, self._held = self._held, None
        if held is not None:
            message = await _compressed(held, message)
            await self._send(held)
        await self._send(message)

    def _headers(self, start: Message) -> list[Header]:
        headers = [(b"x-request-id", self._request_id.encode()), *ALWAYS]
        if self._clock is not None:
            stamp = f"{format_instant(self._clock.now())};rate={rate(self._clock):g}"
            headers.append((TIME, stamp.encode()))
            if not _header(start, b"cache-control"):
                headers.append((b"cache-control", b"no-store"))
        return headers

    async def give(self, body: bytes) -> None:
        """Answer with JSON."""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, scope: Scope, error: RequestError) -> None:
        """Answer with a problem, unless an answer has begun."""
        if self.status:
            return
        made = problems.document(scope, error.status, error.slug, str(error), error.errors)
        body = msgspec.json.encode(made)
        headers = [(b"content-type", problems.MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        if error.status in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT):
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        await self.send({"type": "http.response.start", "status": int(error.status), "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def takes_gzip(headers: MutableMapping[bytes, bytes]) -> bool:
    """Does a client ask for compressed answers?"""
    for part in headers.get(b"accept-encoding", b"").lower().split(b","):
        name, _, weight = part.strip().partition(b";")
        if name.strip() == b"gzip":
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


async def _compressed(start: Message, body: Message) -> Message:
    """The body compressed, where that is worth it; the headers in `start` then say so."""
    content = body.get("body", b"")
    headers = [one for one in start["headers"] if one[0].lower() != b"vary"]
    start["headers"] = [*headers, (b"vary", b"accept-encoding")]
    if body.get("more_body", False) or len(content) < _COMPRESSED_FROM or _header(start, b"content-encoding"):
        return body
    if len(content) < _ON_THREAD_FROM:
        packed = gzip.compress(content, _LEVEL, mtime=0)
    else:
        packed = await asyncio.to_thread(gzip.compress, content, _LEVEL, mtime=0)
    kept = [one for one in start["headers"] if one[0].lower() != b"content-length"]
    start["headers"] = [*kept, (b"content-encoding", b"gzip"), (b"content-length", str(len(packed)).encode())]
    return {**body, "body": packed}


def _header(message: Message, name: bytes) -> bytes:
    return next((value for key, value in message.get("headers", []) if key.lower() == name), b"")
