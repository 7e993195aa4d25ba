"""What comes in and what goes out: the messages of ASGI, a request as a route sees it, and its answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Final = "application/json"
T = TypeVar("T")


class App(Protocol):
    """What a request knows of the application that answers it."""

    @property
    def state(self) -> Any:
        """What the application's routes share."""
        ...

    def description(self) -> bytes:
        """The OpenAPI document of all routes."""
        ...


class Request:
    """One request, as a route sees it."""

    __slots__ = ("app", "path_values", "receive", "scope")

    def __init__(self, app: App, scope: Scope, receive: Receive, path_values: Mapping[str, str]) -> None:
        self.app = app
        self.scope = scope
        self.receive = receive
        self.path_values = path_values

    def header(self, name: str) -> str | None:
        """A header by its name in any case; of several, the first."""
        wanted = name.lower().encode()
        found = next((value for key, value in self.scope["headers"] if key.lower() == wanted), None)
        return None if found is None else str(found.decode("latin-1"))

    async def body(self) -> bytes:
        """All of the body. Raises ConnectionError when the client goes away before it has sent everything."""
        parts: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client went away")
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)


class Response(Generic[T]):
    """An answer that says more than its content: another status, other headers, another media type."""

    __slots__ = ("content", "headers", "media_type", "status_code")

    def __init__(
        self,
        content: T,
        *,
        status_code: int | None = None,
        media_type: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Without a status or a media type it has those that its route declares."""
        self.content = content
        self.status_code = status_code
        self.media_type = media_type
        self.headers = headers or {}

    async def send(self, send: Send, *, status: int, media_type: str) -> None:
        """Send it, with what the route declares for what it does not say itself."""
        body, kind = encode(self.content, self.media_type or media_type)
        headers: list[Header] = [(b"content-type", kind.encode())] if kind else []
        headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        if kind:
            headers.append((b"content-length", str(len(body)).encode()))
        code = self.status_code if self.status_code is not None else status
        await send({"type": "http.response.start", "status": int(code), "headers": headers})
        await send({"type": "http.response.body", "body": body})


def encode(content: object, media_type: str) -> tuple[bytes, str]:
    """The body of an answer and its content type; nothing of None."""
    if content is None:
        return b"", ""
    kind = (
        f"{media_type}; charset=utf-8" if media_type.startswith("text/") and "charset" not in media_type else media_type
    )
    if isinstance(content, bytes):
        return content, kind
    if isinstance(content, str) and media_type != JSON:
        return content.encode(), kind
    return msgspec.json.encode(content), kind


class Stream:
    """An answer without an end of its own: what `chunks` yields, until the client goes or the chunks end."""

    __slots__ = ("_chunks", "_headers", "_media_type")

    def __init__(self, chunks: AsyncIterator[bytes], *, media_type: str, headers: Mapping[str, str]) -> None:
        self._chunks = chunks
        self._media_type = media_type
        self._headers = headers

    async def send(self, receive: Receive, send: Send, *, status: int) -> None:
        """Send what comes. The iterator is closed before this returns, however it ends."""
        headers = [(b"content-type", f"{self._media_type}; charset=utf-8".encode())]
        headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        sending = asyncio.ensure_future(self._send_chunks(send))
        leaving = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            await _end(sending, leaving)

    async def _send_chunks(self, send: Send) -> None:
        try:
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            close = getattr(self._chunks, "aclose", None)
            if close is not None:
                await close()
        await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):  # what sending failed of was raised by the caller
            await task
