"""What both shells know of the HTTP library: settings of a connection, and what its errors mean."""

from typing import TYPE_CHECKING, Any

from interlock import __version__
from interlock.client.retries import Fate
from interlock.client.settings import Settings, on_this_machine
from interlock.client.steps import NoAnswer, Reply
from interlock.client.trust import verification

if TYPE_CHECKING:
    import httpx


def http_settings(settings: Settings) -> dict[str, Any]:
    """The arguments of an `httpx` client. Redirects are not followed: a token goes where it was meant to go."""
    headers = {"Accept": "application/json", "User-Agent": f"interlock-python/{__version__}"}
    if settings.token:
        headers["Authorization"] = f"Bearer {settings.token}"
    return {
        "base_url": settings.url,
        "headers": headers,
        "timeout": settings.timeout,
        "follow_redirects": False,
        "trust_env": not on_this_machine(settings.url),
        "verify": verification(settings.url, ca_file=settings.ca_file),
    }


def stream_timeout(settings: Settings, silence: float) -> "httpx.Timeout":
    """A stream may be silent for longer, or shorter, than an answer may take."""
    import httpx

    return httpx.Timeout(settings.timeout, read=silence)


def no_answer(error: "httpx.RequestError") -> NoAnswer:
    """Did the request go out before it failed? Only where it surely did not may it be sent again blindly."""
    import httpx

    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    reason = str(error) or type(error).__name__
    return NoAnswer(Fate.NOT_SENT if unsent else Fate.UNKNOWN, reason)


def reply_of(response: "httpx.Response", body: bytes) -> Reply:
    """An answer, as the core reads it."""
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)
