"""Calls of a target's own JSON API: guarded as every HTTP call is, bounded in time and size, errors in our words.

What a failed call means depends on whether the target can have acted on it. `NotReachedError`: it cannot, no connection
was made. `UnavailableError`: it may have, the answer got lost. Everything else is an answer, whatever its code.
"""

import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import httpx
import msgspec

from interlock import __version__
from interlock.decide.masking import Masks
from interlock.jobs.addresses import AddressPolicy, Resolve, guarded_client, resolve_host
from interlock.model.errors import InvalidValueError, JobStartError, UnavailableError

TIMEOUT: Final = 30.0
BODY_LIMIT: Final = 4 * 1024 * 1024
_QUOTED: Final = 500
# Not now: tried again in the same call when the target names a short pause, otherwise by the lifecycle.
NOT_NOW: Final = frozenset({429, 503})
_LONGEST_PAUSE: Final = 10.0
_TRIES: Final = 3
# Where the APIs we call put the reason of an error.
_WORDS: Final = ("detail", "message", "error_description", "error", "title")


class NotReachedError(UnavailableError):
    """Nothing was sent: no connection came about."""


class Answer(msgspec.Struct, frozen=True):
    """What a target answered: the beginning of its body, at most BODY_LIMIT bytes."""

    code: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def good(self) -> bool:
        """Is it a 2xx?"""
        return 200 <= self.code < 300

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    def json(self) -> dict[str, Any]:
        """The JSON object of the body; an empty one when it is none."""
        try:
            found = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {}
        return found if isinstance(found, dict) else {}


class RestClient:
    """A client for many threads. `allow_private` as in AddressPolicy; `pause` waits for seconds."""

    def __init__(
        self,
        allow_private: bool | tuple[str, ...] = False,
        *,
        resolve: Resolve = resolve_host,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._policy = AddressPolicy(allow_private)
        self._resolve = resolve
        self._pause = pause or threading.Event().wait
        self._lock = threading.Lock()
        self._made: httpx.Client | None = None

    def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: object = None,
        form: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        limit: int = BODY_LIMIT,
    ) -> Answer:
        """One request and its answer. An answer of NOT_NOW with a short Retry-After is awaited, and asked for again."""
        request = self._built(method, url, headers, params, json, form)
        for _ in range(_TRIES - 1):
            answer = self._send(request, timeout, limit)
            pause = _pause_of(answer)
            if pause is None:
                return answer
            self._pause(pause)
        return self._send(request, timeout, limit)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None

    def _client(self) -> httpx.Client:
        # Made when first needed: loading the certificates takes long.
        with self._lock:
            if self._made is None:
                self._made = guarded_client(self._policy, self._resolve)
            return self._made

    def _built(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        params: Mapping[str, str] | None,
        json: object,
        form: Mapping[str, str] | None,
    ) -> httpx.Request:
        sent = {"user-agent": f"interlock/{__version__}", "accept": "application/json", **(headers or {})}
        sent["accept-encoding"] = "identity"  # what is read should be as long as it seems
        try:
            return self._client().build_request(method, url, headers=sent, params=params, json=json, data=form)
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError, TypeError) as error:
            # The error of an encoder quotes what it could not encode.
            raise InvalidValueError(
                f"the request cannot be sent ({type(error).__name__}): check address and auth"
            ) from None

    def _send(self, request: httpx.Request, timeout: float, limit: int) -> Answer:
        request.extensions = {
            "timeout": httpx.Timeout(timeout).as_dict(),
            "deadline": time.monotonic() + timeout,
        }
        where = f"{request.method} {request.url.scheme}://{request.url.netloc.decode()}{request.url.path}"
        try:
            response = self._client().send(request, stream=True, auth=None)
            try:
                return _read(response, limit)
            finally:
                response.close()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NotReachedError(f"{where}: no connection: {str(error) or 'not in time'}") from error
        except httpx.UnsupportedProtocol:
            raise InvalidValueError(f"{request.url.scheme}://: write http:// or https://") from None
        except httpx.LocalProtocolError:
            # The error itself quotes the header, which may be a secret.
            raise InvalidValueError("a header has characters that HTTP does not allow: check auth") from None
        except httpx.TransportError as error:
            what = f"no answer within {timeout:g} s" if isinstance(error, httpx.TimeoutException) else "it broke off"
            raise UnavailableError(f"{where}: {what}") from error


def _read(response: httpx.Response, limit: int) -> Answer:
    data = bytearray()
    for chunk in response.iter_raw():
        data += chunk
        if len(data) >= limit:
            break
    return Answer(response.status_code, bytes(data[:limit]), dict(response.headers))


def _pause_of(answer: Answer) -> float | None:
    """The seconds that a target asks us to wait, if that is not long."""
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if answer.code in NOT_NOW and 0 <= seconds <= _LONGEST_PAUSE else None


# ------------------------------------------------------------------------------------------------------------ words


def describe(answer: Answer, masks: Masks) -> str:
    """`404 Not Found: what it says`; the words of a JSON answer that is an error, or the beginning of the body."""
    body = answer.json()
    words = next(
        (body[name] for name in ("detail", "message", "error_description", "error", "title") if body.get(name)), ""
    )
    if isinstance(words, dict):
        words = words.get("reason") or words.get("message") or msgspec.json.encode(words).decode()
    if isinstance(words, list):
        words = msgspec.json.encode(words).decode()
    text = one_line(masks.hide(str(words) or ("" if body else answer.text)))
    try:
        phrase = f" {HTTPStatus(answer.code).phrase}"
    except ValueError:
        phrase = ""
    return f"{answer.code}{phrase}{f': {text}' if text else ''}"


def one_line(text: str) -> str:
    """Foreign text on one line, not too long, without control characters."""
    cleaned = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return cleaned[:_QUOTED] + ("..." if len(cleaned) > _QUOTED else "")


def refusal(message: str, answer: Answer) -> Exception:
    """What to raise for a start that was not answered with success.

    4xx: refused, for good unless it says "not now". Anything else may have been acted on before it went wrong.
    """
    if answer.code in NOT_NOW or answer.code in (408, 425):
        return JobStartError(message, permanent=False)
    if answer.code < 500:
        hint = "; redirects are not followed: put the final address into the config" if answer.code < 400 else ""
        return JobStartError(f"{message}{hint}", permanent=True)
    return UnavailableError(message)
