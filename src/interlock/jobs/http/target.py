"""A job that is one HTTP request: done when it is answered, or accepted now and reported or asked for later.

What an answer means depends on whether anything was done for it. Nothing was (no connection, 429, 503): the start is
tried again. The target will never take it (most 4xx): the start has failed for good. It took it and broke (other
5xx, no answer in time): without `callback` and `poll` the request *was* the job, and the job has failed; with them the
answer got lost. The same request is sent again only to a target that honours its idempotency key, which is the run id
(`idempotent: true`): nobody else can tell a second request from a second job.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx
import msgspec

from interlock.decide.templates import CALLBACK_URL
from interlock.decide.values import equal, lookup
from interlock.jobs.addresses import AddressPolicy, Resolve, guarded_client, resolve_host
from interlock.jobs.configs import read_config, refused
from interlock.jobs.http import calls
from interlock.jobs.http.calls import HttpAnswer, Target
from interlock.jobs.output import piece_of
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import HttpConfig, HttpPoll
from interlock.model.run import FailureCategory
from interlock.ports.job_targets import JobTarget
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

# Nothing was done for these: not yet (408, 425), too much (429), not now (503).
_NOT_NOW: Final = frozenset({408, 425, 429, 503})
_LONGEST_JOB_ID: Final = 512
_MOST_REMEMBERED: Final = 10_000


class HttpRunner:
    """Jobs of type `http`. `allow_private` as in AddressPolicy; `callback_url` as in TargetSettings."""

    def __init__(
        self,
        *,
        allow_private: bool | Sequence[str] = False,
        resolve: Resolve = resolve_host,
        callback_url: Callable[[JobRequest], str] = lambda _: "",
    ) -> None:
        self._policy = AddressPolicy(allow_private)
        self._resolve = resolve
        self._callback_url = callback_url
        self._lock = threading.Lock()
        self._made: httpx.Client | None = None
        # When each job was last asked for, for those that are to be asked less often than they are checked.
        self._asked: OrderedDict[str, float] = OrderedDict()

    def start(self, request: JobRequest) -> JobStarted:
        """Send the request. Without `callback` and `poll` this lasts as long as the job, at most its `timeout`."""
        config = _config(request)
        callback = self._callback(request, config)
        target = calls.target_of(request, config, callback)
        sent = calls.start_request(self._client(), request, config, target, callback)
        try:
            answer = calls.send(
                self._client(), sent, whole=lambda code: _expected(config, code) and not _deferred(config)
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            reason = target.quoted(str(error)) or "no connection in time"
            raise JobStartError(f"{target}: no connection: {reason}", permanent=False) from error
        except httpx.LocalProtocolError:
            # The error itself quotes the header, which may be a secret.
            raise refused(request, "headers: a name or value has characters that HTTP does not allow") from None
        except httpx.TransportError as error:
            return _unanswered(request, config, target, error)
        return _judge(request, config, target, answer)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """Whether a lost request arrived cannot be asked; it may be repeated where the target knows its key."""
        config = _config(request)
        return Recovery.START_AGAIN if config.idempotent else Recovery.UNDECIDABLE

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """What the status address says; without one: running, until the callback is in the job log."""
        config = _config(request)
        poll = config.poll
        if poll is None:
            return JobStatus(state=JobState.RUNNING)
        if self._asked_lately(request.run_id, poll):
            return JobStatus(state=JobState.RUNNING, ask_again=poll.interval)
        target, answer = self._poll(request, config, poll, job_id)
        status = _polled(poll, target, answer)
        if status.state.terminal:
            with self._lock:
                self._asked.pop(request.run_id, None)
        return status

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Refused for a job that goes on after its answer: there is no standard request that ends it."""
        if not _deferred(_config(request)):
            return JobStop.ENDED  # the request was the job, and was answered
        raise JobStopError(
            f"{job_id} cannot be stopped over HTTP: stop it where it runs, then report its end"
            f" (interlock job report {request.key.pipeline} --date {request.key.date} fail)"
        )

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What the status address answers now; what the job itself writes stays with the target."""
        config = _config(request)
        if config.poll is None:
            return JobOutput(next_offset=offset, complete=True)
        target, answer = self._poll(request, config, config.poll, job_id)
        # An answer does not grow: following it shows it once.
        text = target.masks.hide(answer.text) if offset == 0 else ""
        return (
            piece_of(text, 0, ended=True, link=self.link(request, job_id))
            if text
            else JobOutput(next_offset=offset, complete=True, link=self.link(request, job_id))
        )

    def link(self, request: JobRequest, job_id: str) -> str:
        """The status address, unless something in it is a secret."""
        config = _config(request)
        if config.poll is None:
            return ""
        target = calls.poll_target_of(request, config, config.poll.url, job_id)
        return "" if target.masks.found_in(str(target.url)) else str(target.url)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None

    # ---------------------------------------------------------------------------------------------------- inside

    def _client(self) -> httpx.Client:
        # Made when first needed: loading the certificates takes longer than all the rest of a controller's start.
        with self._lock:
            if self._made is None:
                self._made = guarded_client(self._policy, self._resolve)
            return self._made

    def _callback(self, request: JobRequest, config: HttpConfig) -> str:
        """The address to report to. It need not be known, unless the config puts it somewhere."""
        address = self._callback_url(request) if config.callback else ""
        if not address and CALLBACK_URL in str(config):
            problem = "the controller's address is not known: set public_url in interlock.toml"
            raise refused(request, f"{CALLBACK_URL}: {problem if config.callback else 'needs callback: true'}")
        return address

    def _asked_lately(self, run_id: str, poll: HttpPoll) -> bool:
        if poll.interval is None:
            return False
        now = time.monotonic()
        with self._lock:
            last = self._asked.get(run_id)
            # A little early is in time: the lifecycle checks just when the interval is over.
            if last is not None and now - last < poll.interval.total_seconds() * 0.9:
                return True
            self._asked[run_id] = now
            self._asked.move_to_end(run_id)
            if len(self._asked) > _MOST_REMEMBERED:
                self._asked.popitem(last=False)
        return False

    def _poll(self, request: JobRequest, config: HttpConfig, poll: HttpPoll, job_id: str) -> tuple[Target, HttpAnswer]:
        target = calls.poll_target_of(request, config, poll.url, job_id)
        sent = calls.poll_request(self._client(), request, config, target)
        try:
            return target, calls.send(self._client(), sent, whole=lambda code: 200 <= code < 300)
        except httpx.TransportError as error:
            raise UnavailableError(f"{target}: {target.quoted(str(error)) or 'no answer'}") from error


def _config(request: JobRequest) -> HttpConfig:
    return read_config(request, HttpConfig)


def _deferred(config: HttpConfig) -> bool:
    """Does the job go on after its start was answered?"""
    return config.callback or config.poll is not None


def _expected(config: HttpConfig, code: int) -> bool:
    return code in config.expect if config.expect else 200 <= code < 300


# ------------------------------------------------------------------------------------------------ what answers mean


def _judge(request: JobRequest, config: HttpConfig, target: Target, answer: HttpAnswer) -> JobStarted:
    if _expected(config, answer.code):
        job_id = _job_id(request, config, target, answer)
        kept = target.kept(answer.text)
        if _deferred(config):
            return JobStarted(job_id=job_id, answer=kept)
        return JobStarted(job_id=job_id, status=JobStatus(state=JobState.SUCCEEDED, answer=kept))
    message = f"{target} answered {answer.words(target)}"
    if answer.code in _NOT_NOW:
        raise JobStartError(message, permanent=False)
    if answer.code >= 500 and _deferred(config):
        # Not a JobStartError: the target may have accepted it.
        raise UnavailableError(message)
    if answer.code >= 500:
        return JobStarted(job_id=request.run_id, status=_failed(message, target.kept(answer.text)))
    if answer.code < 300:
        wanted = ", ".join(str(code) for code in config.expect)
        message += f"; `expect` says {wanted}"
    elif answer.location and answer.code < 400:
        message += "; redirects to other hosts or methods are not followed: put the final address into `url`"
    raise JobStartError(message, permanent=True)


def _job_id(request: JobRequest, config: HttpConfig, target: Target, answer: HttpAnswer) -> str:
    """The target's own id, where the config says that it has one. Without it nobody could ask for the job."""
    if config.job_id_path is None:
        return request.run_id
    found = _at(answer.text, config.job_id_path)
    text = str(found) if isinstance(found, str | int | float) and not isinstance(found, bool) else ""
    if not text or len(text) > _LONGEST_JOB_ID or not text.isprintable():
        # Not a JobStartError: the target has accepted it.
        raise UnavailableError(
            f"{target} accepted the job, but there is no id at {config.job_id_path!r} (jobIdPath) in its answer:"
            f" {target.quoted(answer.text)}"
        )
    return text


def _polled(poll: HttpPoll, target: Target, answer: HttpAnswer) -> JobStatus:
    if answer.code == 410:
        return _failed(f"{target} answered {answer.words(target)}", permanent=True)
    if not 200 <= answer.code < 300:
        raise UnavailableError(f"{target} answered {answer.words(target)}")
    state, kept = _at(answer.text, poll.path), target.kept(answer.text)
    if _among(state, poll.done):
        return JobStatus(state=JobState.SUCCEEDED, answer=kept)
    if _among(state, poll.failed):
        said = target.quoted(answer.text)
        return _failed(f"{poll.path} is {target.quoted(str(state))}: {said}", kept, permanent=True)
    return JobStatus(state=JobState.RUNNING, ask_again=poll.interval)


def _among(state: object, values: object) -> bool:
    if state is None:
        return False
    return any(equal(state, value) for value in (values if isinstance(values, list) else [values]))


def _at(text: str, path: str) -> object:
    """What stands at a dotted path of a JSON answer; None when there is nothing."""
    try:
        body: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return lookup(body, path) if isinstance(body, Mapping) else None


def _unanswered(request: JobRequest, config: HttpConfig, target: Target, error: httpx.TransportError) -> JobStarted:
    timed_out = isinstance(error, httpx.TimeoutException)
    what = f"no answer within {config.timeout.total_seconds():g} s" if timed_out else "the connection broke"
    detail = target.quoted(str(error))
    message = f"{target}: {what}{f': {detail}' if detail else ''}"
    if _deferred(config):
        # Not a JobStartError: the target may have accepted it.
        raise UnavailableError(message) from error
    if timed_out:
        status = JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TIMEOUT, error=message)
        return JobStarted(job_id=request.run_id, status=status)
    return JobStarted(job_id=request.run_id, status=_failed(message))


def _failed(message: str, answer: str = "", *, permanent: bool = False) -> JobStatus:
    category = FailureCategory.PERMANENT if permanent else FailureCategory.TRANSIENT
    return JobStatus(state=JobState.FAILED, category=category, error=message, answer=answer)


TARGET: Final = JobTarget(
    make=lambda settings: HttpRunner(allow_private=settings.allow_private, callback_url=settings.callback_url),
    config=HttpConfig,
)
