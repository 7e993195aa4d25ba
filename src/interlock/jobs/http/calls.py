"""The requests of an HTTP job: what is sent, to where, and what of an answer may be repeated.

A message names the method and the host, never path, query or headers: those are places where people put tokens. Of an
answer only a little is quoted or kept, on one line, without what was sent in confidence.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec

from interlock.decide.masking import Masks
from interlock.decide.templates import JOB_ID
from interlock.jobs.configs import default_payload, refused, with_callback
from interlock.model.durations import Duration
from interlock.model.job_configs import HTTP_METHODS, BasicAuth, BearerAuth, HttpConfig
from interlock.ports.jobs import JobRequest

_BODY_LIMIT: Final = 64 * 1024
_KEPT_BYTES: Final = 512
_QUOTED: Final = 500
_MAX_REDIRECTS: Final = 5
_POLL_SECONDS: Final = 30.0
_PLAIN_HEADERS: Final = frozenset({"accept", "content-type", "user-agent", "accept-language", "cache-control"})
_SECRET_NAMES: Final = ("token", "key", "secret", "password", "passwd", "sig", "auth", "credential", "code")
_SHORTEST_SECRET: Final = 4
_NO_URL: Final = "is not a URL: write http://host/path or https://host/path"


class Target(msgspec.Struct, frozen=True):
    """Where to, with everything that must not be repeated taken out of the URL."""

    method: str
    url: httpx.URL
    auth: BearerAuth | BasicAuth | None
    masks: Masks

    def __str__(self) -> str:
        return f"{self.method} {self.url.scheme}://{self.url.netloc.decode()}"

    def quoted(self, text: str) -> str:
        """Foreign text for a message: one line, not too long, without what we sent as a secret."""
        cleaned = " ".join(self.masks.hide(text).split())
        return cleaned[:_QUOTED] + ("..." if len(cleaned) > _QUOTED else "")

    def kept(self, text: str) -> str:
        """What is kept of an answer: 512 bytes, without control characters and secrets."""
        cleaned = "".join(char for char in self.masks.hide(text) if char.isprintable() or char in "\n\t")
        return cleaned.encode()[:_KEPT_BYTES].decode(errors="ignore").strip()


class HttpAnswer(msgspec.Struct, frozen=True):
    """An answer, with the beginning of its body."""

    code: int
    text: str
    location: str = ""

    def words(self, target: Target) -> str:
        """`404 Not Found: what it says`."""
        try:
            phrase = f" {HTTPStatus(self.code).phrase}"
        except ValueError:
            phrase = ""
        said = target.quoted(self.text)
        return f"{self.code}{phrase}{f': {said}' if said else ''}"


# ------------------------------------------------------------------------------------------------------ the request


def target_of(request: JobRequest, config: HttpConfig, callback: str = "") -> Target:
    """Where the job is started; a config that cannot be sent is refused. `callback` is as secret as a token."""
    method = config.method.upper()
    if method not in HTTP_METHODS:
        raise refused(request, f"method: {config.method!r} is not one of {', '.join(HTTP_METHODS)}")
    if config.timeout <= Duration(0):
        raise refused(request, "timeout: must be longer than nothing")
    url = _url(request, "url", with_callback(config.url, callback))
    auth = config.auth or (BasicAuth(username=url.username, password=url.password) if url.userinfo else None)
    return Target(method, url.copy_with(userinfo=b""), auth, Masks({*secrets_of(config.headers, url, auth), callback}))


def poll_target_of(request: JobRequest, config: HttpConfig, poll_url: str, job_id: str) -> Target:
    """Where the job is asked for.

    A job id in a path is put there as one word. One that is the whole address (an API that answers with the status
    address) may be relative to `url`, and must lead to the same place: the credentials are sent along.
    """
    start = target_of(request, config)
    if poll_url.startswith(JOB_ID):
        url = start.url.join(poll_url.replace(JOB_ID, job_id))
        if (url.scheme, url.host, url.port) != (start.url.scheme, start.url.host, start.url.port):
            raise refused(request, f"poll.url: the job's address is at {url.host}, not at {start.url.host} as `url` is")
    else:
        url = _url(request, "poll.url", poll_url.replace(JOB_ID, quote(job_id, safe="")))
        if url.host != _url(request, "poll.url", poll_url.replace(JOB_ID, "x")).host:
            raise refused(request, f"poll.url: {JOB_ID} cannot be part of a host")
    return Target("GET", url.copy_with(userinfo=b""), start.auth, start.masks)


def _url(request: JobRequest, name: str, text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        # What it says is wrong may be the password.
        raise refused(request, f"{name}: {_NO_URL}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise refused(request, f"{name}: {_NO_URL}")
    return url


def secrets_of(
    headers: Mapping[str, str | int | float], url: httpx.URL, auth: BearerAuth | BasicAuth | None
) -> set[str]:
    """What a target might echo and a message must not repeat."""
    return {text for text in _secrets(headers, url, auth) if len(text) >= _SHORTEST_SECRET}


def _secrets(
    headers: Mapping[str, str | int | float], url: httpx.URL, auth: BearerAuth | BasicAuth | None
) -> Iterator[str]:
    yield from auth.secrets if auth is not None else []
    yield url.password
    for name, value in headers.items():
        if name.lower() not in _PLAIN_HEADERS:
            yield str(value)
            yield str(value).rpartition(" ")[2]  # of `Bearer abc`, the token alone
    for name, value in url.params.multi_items():
        if any(word in name.lower() for word in _SECRET_NAMES):
            yield value


def start_request(
    client: httpx.Client, request: JobRequest, config: HttpConfig, target: Target, callback: str
) -> httpx.Request:
    """The request that starts the job."""
    headers = _headers(config, target, callback)
    # Ours last: `recover` relies on them.
    headers |= {"idempotency-key": request.run_id, "x-interlock-run-id": request.run_id}
    if callback:
        headers["x-interlock-callback-url"] = callback
    body = with_callback(_body(request, config, target.method, callback), callback)
    return _built(client, request, target, headers, body, config.timeout.total_seconds())


def poll_request(client: httpx.Client, request: JobRequest, config: HttpConfig, target: Target) -> httpx.Request:
    """The request that asks how the job is; with the same headers, so that it is asked by the same person."""
    headers = {**_headers(config, target, ""), "x-interlock-run-id": request.run_id}
    headers.pop("content-type", None)
    return _built(client, request, target, headers, None, min(config.timeout.total_seconds(), _POLL_SECONDS))


def _headers(config: HttpConfig, target: Target, callback: str) -> dict[str, str]:
    # Uncompressed: little of an answer is read, and what is read should be as long as it seems.
    headers = {"accept-encoding": "identity"}
    headers |= {name.lower(): str(with_callback(str(value), callback)) for name, value in config.headers.items()}
    if target.auth is not None:
        headers["authorization"] = target.auth.header
    return headers


def _body(request: JobRequest, config: HttpConfig, method: str, callback: str) -> Any:
    if config.body is not None:
        return config.body
    if method in ("GET", "DELETE"):
        return None
    return default_payload(request, callback)


def _built(
    client: httpx.Client, request: JobRequest, target: Target, headers: Mapping[str, str], body: Any, seconds: float
) -> httpx.Request:
    try:
        return client.build_request(
            target.method,
            target.url,
            headers=headers,
            content=body if isinstance(body, str) else None,
            json=None if isinstance(body, str) else body,
            timeout=seconds,
            extensions={"deadline": time.monotonic() + seconds},
        )
    except (UnicodeEncodeError, ValueError, TypeError) as error:
        # The error of an encoder quotes what it could not encode.
        raise refused(request, f"headers or body: cannot be sent ({type(error).__name__})") from None


# ------------------------------------------------------------------------------------------------------- the answer


def send(client: httpx.Client, request: httpx.Request, *, whole: Callable[[int], bool]) -> HttpAnswer:
    """Send it, following redirects to the same place; `whole`: must the body of such an answer be complete?

    A good answer is complete when its body is: a target may begin to answer before it has finished the work. Of any
    other answer, and of an acceptance, the status says it all.
    """
    response = client.send(request, stream=True, auth=None)
    try:
        for _ in range(_MAX_REDIRECTS):
            following = response.next_request
            if following is None or not _may_follow(request, following):
                break
            response.close()
            request = following
            response = client.send(request, stream=True, auth=None)
        return _read(response, whole=whole(response.status_code))
    finally:
        response.close()


def _may_follow(request: httpx.Request, following: httpx.Request) -> bool:
    """Only to the same place, or the same host's TLS, and as the same request: a GET in place of a POST is no job."""
    if following.method != request.method:
        return False
    here, there = request.url, following.url
    upgraded = (here.scheme, here.port, there.scheme, there.port) == ("http", None, "https", None)
    same = (here.scheme, here.port) == (there.scheme, there.port)
    return here.host == there.host and (same or upgraded)


def _read(response: httpx.Response, *, whole: bool) -> HttpAnswer:
    data = b""
    try:
        for chunk in response.iter_raw():
            data += chunk
            if len(data) >= _BODY_LIMIT:
                break
    except httpx.TransportError:
        if whole:
            raise
    text = data[:_BODY_LIMIT].decode(errors="replace")
    return HttpAnswer(response.status_code, text, response.headers.get("location", ""))
