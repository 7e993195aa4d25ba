"""Alerts as CloudEvents 1.0 to any HTTP receiver, signed if wanted.

The id of the CloudEvent is the event's key, the same for every try: a receiver that remembers ids ignores what comes
twice, so an uncertain delivery is simply made again.
"""

import hmac
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, Final

import httpx
import msgspec

from interlock.alerts.secrets import HIDDEN, Secret, redact
from interlock.model.errors import InterlockError, JobStartError
from interlock.model.events import SOURCE, Event
from interlock.model.times import format_instant
from interlock.ports.channel import Alert, DeliveryError
from interlock.ports.clock import Clock

SIGNATURE: Final = "X-Interlock-Signature"
CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
DEFAULT_TIMEOUT: Final = timedelta(seconds=10)
_TEMPORARY: Final = frozenset({408, 425, 429})
_READ_BYTES: Final = 4096
_MAX_EXCERPT: Final = 200


class _HideAddress(logging.Filter):
    """httpx logs the address of every request; an address may be all that is needed to post to it."""

    def __init__(self, secrets: tuple[Secret, ...]) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line, and let it pass."""
        record.msg, record.args = redact(record.getMessage(), self._secrets), None
        return True


class WebhookChannel:
    """`ports.channel.Channel`. The caller's client decides which addresses may be reached."""

    def __init__(
        self,
        name: str,
        url: Secret,
        *,
        client: httpx.Client,
        clock: Clock,
        signing_key: Secret | None = None,
        headers: Mapping[str, Secret] | None = None,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        self.name = name
        self._url = url
        self._client = client
        self._clock = clock
        self._signing_key = signing_key
        self._headers = dict(headers or {})
        self._timeout = timeout.total_seconds()
        self._secrets = tuple(one for one in (url, signing_key, *self._headers.values()) if one)
        logging.getLogger("httpx").addFilter(_HideAddress((url,)))

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> None:
        """Post it; any 2xx means that it was taken."""
        body = msgspec.json.encode(cloud_event(alert))
        failure: DeliveryError
        try:
            with self._client.stream("POST", self._url.reveal(), content=body, **self._how(body)) as response:
                if response.is_success:
                    return
                failure = self._refused(response)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, InterlockError) as error:
            failure = self._not_reached(error)
        # Raised out here, so that it has no cause: the causes hold the request, its address and its headers.
        raise failure

    def _how(self, body: bytes) -> dict[str, Any]:
        return {
            "headers": self._request_headers(body),
            "timeout": self._timeout,
            "follow_redirects": False,
            # For transports that know it: an answer that drips is over by then, too.
            "extensions": {"deadline": time.monotonic() + self._timeout},
        }

    def _request_headers(self, body: bytes) -> dict[str, str]:
        headers = {name: value.reveal() for name, value in self._headers.items()}
        headers["Content-Type"] = CONTENT_TYPE
        headers["Accept-Encoding"] = "identity"
        if self._signing_key is not None:
            headers[SIGNATURE] = sign(body, self._signing_key, self._clock.now())
        return headers

    def _not_reached(self, error: Exception) -> DeliveryError:
        permanent = isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError)
        # The guard of the caller's client says so of an address that may not be reached.
        permanent = permanent or (isinstance(error, JobStartError) and error.permanent)
        certain = permanent or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | InterlockError)
        text = redact(str(error), self._secrets) or "no answer"
        return DeliveryError(f"{self.name}: {type(error).__name__}: {text}", permanent=permanent, uncertain=not certain)

    def _refused(self, response: httpx.Response) -> DeliveryError:
        status = response.status_code
        if response.is_redirect:
            return DeliveryError(f"{self.name}: HTTP {status}, redirected: name the final address", permanent=True)
        # The beginning tells why; a body without end is not read to its end.
        # Nor is it unpacked: a little of it can become gigabytes. We asked for a plain one.
        packed = response.headers.get("Content-Encoding", "identity") != "identity"
        start = "" if packed else next(response.iter_raw(_READ_BYTES), b"").decode(errors="replace")
        excerpt = redact(start, self._secrets)[:_MAX_EXCERPT].strip()
        temporary = status >= 500 or status in _TEMPORARY
        return DeliveryError(
            f"{self.name}: HTTP {status}" + (f": {excerpt}" if excerpt else ""),
            permanent=not temporary,
            uncertain=status >= 500,
            retry_after=retry_after(response.headers.get("Retry-After"), self._clock.now()) if temporary else None,
        )

    def __repr__(self) -> str:
        return f"WebhookChannel({self.name!r}, url={HIDDEN})"


def cloud_event(alert: Alert) -> dict[str, Any]:
    """The alert in the structured JSON form of CloudEvents 1.0."""
    event = alert.event
    return {
        "specversion": "1.0",
        "id": alert.id,
        "source": SOURCE,
        "type": event.type.value,
        "subject": _subject(event),
        "time": format_instant(event.timestamp),
        "datacontenttype": "application/json",
        "data": event.envelope()["detail"],
    }


def _subject(event: Event) -> str:
    return "/".join(part for part in (event.pipeline_id, event.schedule_id, event.date) if part)


def sign(body: bytes, key: Secret, at: datetime) -> str:
    """`t=<unix>,v1=<hex>`: HMAC-SHA256 over `<unix>.<body>`. The time is signed, so that it can be checked."""
    stamp = int(at.timestamp())
    digest = hmac.new(key.reveal().encode(), b"%d." % stamp + body, sha256).hexdigest()
    return f"t={stamp},v1={digest}"


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """A `Retry-After` header: seconds, or a date; None when there is none that can be read."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text), 10**9))
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(at.replace(tzinfo=at.tzinfo or UTC) - now, timedelta(0))
