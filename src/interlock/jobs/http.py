"""A job that is one HTTP request: done when it is answered, or (`callback: true`) accepted now and reported later.

What an answer means depends on whether anything was done for it. Nothing was (no connection, 429, 503): the start is
tried again. The target will never take it (most 4xx): the start has failed for good. It took it and broke (other
5xx, no answer in time): without a callback the request *was* the job, and the job has failed; with one the answer got
lost, and the same request may be sent again, since it carries the run id as its idempotency key.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import httpx
import msgspec

from interlock.jobs.addresses import AddressPolicy, Resolve, guarded_client, resolve_host
from interlock.jobs.configs import read_config, refused
from interlock.model.durations import Duration
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import HTTP_METHODS, BasicAuth, BearerAuth, HttpConfig
from interlock.model.run import FailureCategory
from interlock.ports.job_targets import JobTarget
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

_BODY_LIMIT: Final = 64 * 1024
_QUOTED: Final = 500
_MAX_REDIRECTS: Final = 5
# Nothing was done for these: not yet (408, 425), too much (429), not now (503).
_NOT_NOW: Final = frozenset({408, 425, 429, 503})
_PLAIN_HEADERS: Final = frozenset({"accept", "content-type", "user-agent", "accept-language", "cache-control"})
_SECRET_NAMES: Final = ("token", "key", "secret", "password", "passwd", "sig", "auth", "credential", "code")
_SHORTEST_SECRET: Final = 4


class _Target(msgspec.Struct, frozen=True):
    """Where to, with everything that must not be told taken out of the URL."""

    method: str
    url: httpx.URL
    auth: BearerAuth | BasicAuth | None
    secrets: list[str]

    def __str__(self) -> str:
        # No path and no query: both are places where people put tokens.
        return f"{self.method} {self.url.scheme}://{self.url.netloc.decode()}"

    def quote(self, text: str) -> str:
        """Foreign text for a message: one line, not too long, without what we sent as a secret."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        cleaned = " ".join(text.split())
        return cleaned[:_QUOTED] + ("..." if len(cleaned) > _QUOTED else "")


class _Answer(msgspec.Struct, frozen=True):
    code: int
    text: str
    location: str


class HttpRunner:
    """Jobs of type `http`. `allow_private` as in AddressPolicy."""

    def __init__(self, *, allow_private: bool | Sequence[str] = False, resolve: Resolve = resolve_host) -> None:
        self._policy = AddressPolicy(allow_private)
        self._resolve = resolve
        self._lock = threading.Lock()
        self._made: httpx.Client | None = None

    def start(self, request: JobRequest) -> JobStarted:
        """Send the request. Without a callback this lasts as long as the job, at most its `timeout`."""
        config = read_config(request, HttpConfig)
        target = _target(request, config)
        try:
            answer = self._send(_built(self._client(), request, config, target), config)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            told = target.quote(str(error)) or "no connection in time"
            raise JobStartError(f"{target}: no connection: {told}", permanent=False) from error
        except httpx.LocalProtocolError:
            # The error itself quotes the header, which may be a secret.
            raise refused(request, "headers: a name or value has characters that HTTP does not allow") from None
        except httpx.TransportError as error:
            return self._unanswered(request, config, target, error)
        return _judge(request, config, target, answer)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """Whether a lost request arrived cannot be asked; it may be repeated where the target knows its key."""
        config = read_config(request, HttpConfig)
        return Recovery.START_AGAIN if config.callback or config.idempotent else Recovery.UNDECIDABLE

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """Running, until the callback is in the job log; the end of a job without one was known at its start."""
        return JobStatus(state=JobState.RUNNING)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Refused for a job that reports back: there is no standard request that ends it."""
        if not read_config(request, HttpConfig).callback:
            return JobStop.ENDED  # the request was the job, and was answered
        raise JobStopError(
            f"{job_id} cannot be stopped over HTTP: stop it where it runs, then report its end"
            f" (interlock job report {request.key.pipeline} --date {request.key.date} fail)"
        )

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """Nothing: what the job writes stays with the target."""
        return JobOutput(next_offset=offset, complete=True)

    def link(self, request: JobRequest, job_id: str) -> str:
        """None is known."""
        return ""

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None

    def _client(self) -> httpx.Client:
        # Made when first needed: loading the certificates takes longer than all the rest of a controller's start.
        with self._lock:
            if self._made is None:
                self._made = guarded_client(self._policy, self._resolve)
            return self._made

    def _send(self, request: httpx.Request, config: HttpConfig) -> _Answer:
        client = self._client()
        response = client.send(request, stream=True, auth=None)
        try:
            for _ in range(_MAX_REDIRECTS):
                following = response.next_request
                if following is None or not _may_follow(request, following):
                    break
                response.close()
                request = following
                response = client.send(request, stream=True, auth=None)
            return _read(response, config)
        finally:
            response.close()

    def _unanswered(
        self, request: JobRequest, config: HttpConfig, target: _Target, error: httpx.TransportError
    ) -> JobStarted:
        timed_out = isinstance(error, httpx.TimeoutException)
        what = f"no answer within {config.timeout.total_seconds():g} s" if timed_out else "the connection broke"
        message = f"{target}: {what}{_detail(target.quote(str(error)))}"
        if config.callback:
            # Not a JobStartError: the target may have accepted it.
            raise UnavailableError(message) from error
        if timed_out:
            status = JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TIMEOUT, error=message)
        else:
            status = JobStatus(state=JobState.FAILED, category=FailureCategory.TRANSIENT, error=message)
        return JobStarted(job_id=request.run_id, status=status)


# -------------------------------------------------------------------------------------------------------- request


def _target(request: JobRequest, config: HttpConfig) -> _Target:
    method = config.method.upper()
    if method not in HTTP_METHODS:
        raise refused(request, f"method: {config.method!r} is not one of {', '.join(HTTP_METHODS)}")
    try:
        url = httpx.URL(config.url)
    except httpx.InvalidURL:
        # What it says is wrong may be the password.
        raise refused(request, "url: is not a URL: write http://host/path or https://host/path") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise refused(request, "url: write http://host/path or https://host/path")
    if config.timeout <= Duration(0):
        raise refused(request, "timeout: must be longer than nothing")
    auth = config.auth or (BasicAuth(username=url.username, password=url.password) if url.userinfo else None)
    secrets = sorted({text for text in _secrets(config, url, auth) if len(text) >= _SHORTEST_SECRET}, key=len)
    return _Target(method, url.copy_with(userinfo=b""), auth, secrets[::-1])


def _secrets(config: HttpConfig, url: httpx.URL, auth: BearerAuth | BasicAuth | None) -> Iterator[str]:
    """What a target might echo and a message must not repeat."""
    yield from auth.secrets if auth is not None else []
    yield url.password
    for name, value in config.headers.items():
        if name.lower() not in _PLAIN_HEADERS:
            yield str(value)
            yield str(value).rpartition(" ")[2]  # of `Bearer abc`, the token alone
    for name, value in url.params.multi_items():
        if any(word in name.lower() for word in _SECRET_NAMES):
            yield value


def _built(client: httpx.Client, request: JobRequest, config: HttpConfig, target: _Target) -> httpx.Request:
    # Uncompressed: little of an answer is read, and what is read should be as long as it seems.
    headers = {"accept-encoding": "identity"}
    headers |= {name.lower(): str(value) for name, value in config.headers.items()}
    if target.auth is not None:
        headers["authorization"] = target.auth.header
    # Ours last: `recover` relies on them.
    headers |= {"idempotency-key": request.run_id, "x-interlock-run-id": request.run_id}
    seconds = config.timeout.total_seconds()
    body = _body(request, config, target.method)
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


def _body(request: JobRequest, config: HttpConfig, method: str) -> Mapping[str, Any] | list[Any] | str | None:
    if config.body is not None:
        return config.body
    if method in ("GET", "DELETE"):
        return None
    return {
        "pipeline": request.key.pipeline,
        "schedule": request.key.schedule,
        "date": request.key.date,
        "attempt": request.attempt,
        "runId": request.run_id,
    }


def _may_follow(request: httpx.Request, following: httpx.Request) -> bool:
    """Only to the same place, or the same host's TLS, and as the same request: a GET in place of a POST is no job."""
    if following.method != request.method:
        return False
    here, there = request.url, following.url
    upgraded = (here.scheme, here.port, there.scheme, there.port) == ("http", None, "https", None)
    same = (here.scheme, here.port) == (there.scheme, there.port)
    return here.host == there.host and (same or upgraded)


# --------------------------------------------------------------------------------------------------------- answer


def _read(response: httpx.Response, config: HttpConfig) -> _Answer:
    """The answer, with the beginning of its body.

    A good answer is complete when its body is: a target may begin to answer before it has finished the work. Of any
    other answer, and of an acceptance, the status says it all.
    """
    data = b""
    try:
        for chunk in response.iter_raw():
            data += chunk
            if len(data) >= _BODY_LIMIT:
                break
    except httpx.TransportError:
        if response.is_success and not config.callback:
            raise
    return _Answer(
        response.status_code, data[:_BODY_LIMIT].decode(errors="replace"), response.headers.get("location", "")
    )


def _judge(request: JobRequest, config: HttpConfig, target: _Target, answer: _Answer) -> JobStarted:
    if 200 <= answer.code < 300:
        status = None if config.callback else JobStatus(state=JobState.SUCCEEDED)
        return JobStarted(job_id=request.run_id, status=status)
    message = f"{target} answered {answer.code}{_phrase(answer.code)}{_detail(target.quote(answer.text))}"
    if answer.code in _NOT_NOW or (config.callback and answer.code >= 500):
        raise JobStartError(message, permanent=False)
    if answer.code >= 500:
        status = JobStatus(state=JobState.FAILED, category=FailureCategory.TRANSIENT, error=message)
        return JobStarted(job_id=request.run_id, status=status)
    if answer.location and answer.code < 400:
        message += "; redirects to other hosts or methods are not followed: put the final address into `url`"
    raise JobStartError(message, permanent=True)


def _phrase(code: int) -> str:
    try:
        return f" {HTTPStatus(code).phrase}"
    except ValueError:
        return ""


def _detail(text: str) -> str:
    return f": {text}" if text else ""


TARGET: Final = JobTarget(make=lambda settings: HttpRunner(allow_private=settings.allow_private), config=HttpConfig)
