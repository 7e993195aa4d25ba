"""Alerts in Slack: `chat.postMessage` of the Bot API, one thread per run.

Slack has no idempotency key. Every message carries its event's id as metadata; after a try whose end nobody knows
(a crash, a time-out) the channel's history is searched for that id first. This needs the scope `channels:history` (or
`groups:history`) and, for the first message of a thread, a channel given by its id; without them the alert is posted
again, for twice is better than not at all.
"""

import logging
import re
import socket
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Any, Final
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from interlock.alerts.blocks import blocks_of, fallback_of
from interlock.alerts.secrets import Secret, redact
from interlock.logs import get_logger
from interlock.model.errors import InvalidValueError
from interlock.ports.channel import Alert, DeliveryError

SLACK_API: Final = "https://slack.com/api/"
METADATA_TYPE: Final = "interlock_alert"
_TIMEOUT_SECONDS: Final = 10
# Slack's own word for these is "try again"; of the first group it says that the call may have succeeded in part.
_BROKE_DOWN: Final = frozenset({"internal_error", "fatal_error", "request_timeout"})
_TEMPORARY: Final = frozenset(
    {"ratelimited", "rate_limited", "message_limit_exceeded", "service_unavailable", "team_added_to_org"}
)
_LOST_THREAD: Final = frozenset({"thread_not_found", "message_not_found"})
# Nobody may look: the bot lacks the scope, is not in the channel, or the channel is known by name only.
_UNSEARCHABLE: Final = frozenset({"missing_scope", "channel_not_found", "not_in_channel", "invalid_channel"})
_CODE: Final = re.compile(r"[a-z0-9_]+")
_TOKEN: Final = re.compile(r"[!-~]+")
_CLOCKS_DIFFER: Final = timedelta(minutes=5)
_PAGE: Final = 200
_MAX_PAGES: Final = 10
_MAX_EXCERPT: Final = 200

_log = get_logger(__name__)


class SlackError(DeliveryError):
    """Slack said no; `code` is its word for the reason."""

    def __init__(self, message: str, code: str, **how: Any) -> None:
        super().__init__(message, **how)
        self.code = code


class SlackChannel:
    """`ports.channel.Channel`. A thread is kept as `{channel id}/{ts of its first message}`."""

    def __init__(
        self,
        channel: str,
        token: Secret,
        *,
        name: str = "",
        base_url: str = SLACK_API,
        timeout: int = _TIMEOUT_SECONDS,
    ) -> None:
        if not _TOKEN.fullmatch(token.reveal()):
            # Checked here, for the HTTP library would repeat it in its error.
            raise InvalidValueError(
                "the Slack token holds spaces or other characters no token has: check SLACK_BOT_TOKEN"
            )
        self.name = name or f"slack:{channel}"
        self._channel = channel
        self._token = token
        # No retry handlers: the queue retries, and a second post after a broken connection would be a second message.
        # The SDK logs bodies and errors as they come; all it knows reaches our own log, without the token.
        self._client = WebClient(
            base_url=base_url,
            timeout=timeout,
            retry_handlers=[],
            logger=logging.Logger("slack-sdk", level=logging.CRITICAL),
        )

    def __repr__(self) -> str:
        return f"SlackChannel({self.name!r})"

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> str | None:
        """Post it, into the run's thread if there is one."""
        if maybe_sent is not None and (found := self._find(alert, thread, maybe_sent)) is not None:
            return found
        if thread is None:
            return self._post(alert, self._channel, None)
        channel, _, ts = thread.partition("/")
        try:
            return self._post(alert, channel, ts)
        except SlackError as error:
            if error.code not in _LOST_THREAD:
                raise
        # Somebody deleted the first message: the run gets a new thread.
        return self._post(alert, self._channel, None)

    def _post(self, alert: Alert, channel: str, thread_ts: str | None) -> str:
        answer = self._call(
            "chat.postMessage",
            {
                "channel": channel,
                "text": fallback_of(alert.event),
                "blocks": blocks_of(alert.event),
                "unfurl_links": False,
                "unfurl_media": False,
                "metadata": {"event_type": METADATA_TYPE, "event_payload": {"id": alert.id}},
                **({"thread_ts": thread_ts} if thread_ts else {}),
            },
        )
        return f"{answer.get('channel', channel)}/{thread_ts or answer.get('ts', '')}"

    # ------------------------------------------------------------------------------------- was it sent before?

    def _find(self, alert: Alert, thread: str | None, since: datetime) -> str | None:
        """The thread of a message that an earlier try left, if there is one."""
        try:
            return self._search(alert, thread, since)
        except SlackError as error:
            if error.code not in _UNSEARCHABLE:
                raise
            _log.warning(
                "cannot see whether an alert was posted already; posting it (again)",
                channel=self.name,
                alert=alert.id,
                error=error.code,
            )
            return None

    def _search(self, alert: Alert, thread: str | None, since: datetime) -> str | None:
        oldest = f"{(since - _CLOCKS_DIFFER).timestamp():.6f}"
        if thread is not None:
            channel, _, ts = thread.partition("/")
            asked = {"channel": channel, "ts": ts, "oldest": oldest}
            try:
                posted = any(_carries(message, alert.id) for message in self._pages("conversations.replies", asked))
            except SlackError as error:
                if error.code not in _LOST_THREAD:
                    raise
            else:
                return thread if posted else None
        asked = {"channel": self._channel, "oldest": oldest}
        for message in self._pages("conversations.history", asked):
            if _carries(message, alert.id):
                return f"{self._channel}/{message.get('ts', '')}"
        return None

    def _pages(self, method: str, asked: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        cursor = ""
        for _ in range(_MAX_PAGES):
            more = {"cursor": cursor} if cursor else {}
            answer = self._call(method, {**asked, **more, "limit": _PAGE, "include_all_metadata": True}, form=True)
            yield from answer.get("messages", [])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
            if not cursor:
                return

    # --------------------------------------------------------------------------------------------- one request

    def _call(self, method: str, arguments: dict[str, Any], *, form: bool = False) -> dict[str, Any]:
        # The token is given with each call, so that the client, which others may print, does not hold it.
        headers = {"Authorization": f"Bearer {self._token.reveal()}"}
        params, json = (arguments, None) if form else (None, arguments)
        failure: DeliveryError
        try:
            answer = self._client.api_call(method, headers=headers, params=params, json=json).data
        except SlackApiError as error:
            failure = self._refused(method, error)
        except (SlackClientError, OSError, HTTPException, ValueError) as error:
            failure = self._not_reached(method, error)
        else:
            if isinstance(answer, dict):
                return answer
            failure = DeliveryError(f"{self.name}: {method}: the answer is no JSON object", uncertain=True)
        # Raised out here, so that it has no cause: the causes hold the request, and with it the token.
        raise failure

    def _refused(self, method: str, error: SlackApiError) -> SlackError:
        response = error.response
        status = int(getattr(response, "status_code", 0) or 0)
        data = getattr(response, "data", None)
        code = redact(str(data.get("error", "")), [self._token])[:_MAX_EXCERPT] if isinstance(data, dict) else ""
        rest = _seconds(getattr(response, "headers", {}) or {})
        limited = status == 429 or code in ("ratelimited", "rate_limited")
        # An answer that is not Slack's comes from something in between, and says nothing about the message.
        garbled = status < 400 and not _CODE.fullmatch(code)
        broke_down = status >= 500 or code in _BROKE_DOWN or garbled
        return SlackError(
            f"{self.name}: {method}: HTTP {status}, {code or 'no reason given'}{_advice(code)}",
            code,
            permanent=not (limited or broke_down or status == 408 or code in _TEMPORARY),
            uncertain=broke_down,
            retry_after=rest if limited else None,
        )

    def _not_reached(self, method: str, error: Exception) -> DeliveryError:
        reason = error.reason if isinstance(error, URLError) else error
        # Only these are sure never to have carried the message to the other side.
        certain = isinstance(reason, ConnectionRefusedError | socket.gaierror)
        text = redact(f"{type(reason).__name__}: {reason}", [self._token])[:_MAX_EXCERPT]
        return DeliveryError(f"{self.name}: {method}: {text}", uncertain=not certain)


def _carries(message: Mapping[str, Any], id_: str) -> bool:
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("event_type") != METADATA_TYPE:
        return False
    payload = metadata.get("event_payload")
    return isinstance(payload, dict) and payload.get("id") == id_


def _seconds(headers: Mapping[str, str]) -> timedelta:
    """Slack gives whole seconds; where it gives none, half a minute is polite."""
    value = next((text for name, text in headers.items() if name.lower() == "retry-after"), "")
    return timedelta(seconds=min(int(value), 10**6)) if value.isascii() and value.isdigit() else timedelta(seconds=30)


def _advice(code: str) -> str:
    match code:
        case "channel_not_found" | "not_in_channel":
            return ": check the channel's name and invite the bot to it (/invite)"
        case "invalid_auth" | "not_authed" | "token_revoked" | "token_expired" | "account_inactive":
            return ": check SLACK_BOT_TOKEN"
        case "missing_scope":
            return ": give the bot the scope chat:write"
        case "is_archived":
            return ": the channel is archived; name another"
        case _:
            return ""
