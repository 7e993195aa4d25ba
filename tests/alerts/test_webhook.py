"""The webhook channel against a real HTTP server."""

import hmac
import logging
import socket
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256

import httpx
import msgspec
import pytest

from interlock.alerts.secrets import Secret
from interlock.alerts.webhook import WebhookChannel, retry_after
from interlock.model.errors import JobStartError
from interlock.model.events import EventType
from interlock.ports.channel import Alert, DeliveryError
from tests.alerts.alerts import alert, event
from tests.alerts.receivers import HANG_UP, Answer, Hook, running
from tests.conformance.manual_clock import START, ManualClock


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook()
    with running(server):
        yield server


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as client:
        yield client


def failure(channel: WebhookChannel) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        channel.send(alert(), thread=None, maybe_sent=None)
    assert caught.value.__context__ is None
    return caught.value


def plain(hook: Hook, client: httpx.Client) -> WebhookChannel:
    return WebhookChannel("webhook:test", Secret(hook.url), client=client, clock=ManualClock())


def test_an_alert_is_a_structured_cloud_event(hook: Hook, client: httpx.Client) -> None:
    plain(hook, client).send(alert(3, status="waiting", waitingFor=["rows: 5 < 10"]), thread=None, maybe_sent=None)
    (request,) = hook.requests
    assert request.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert msgspec.json.decode(request.body) == {
        "specversion": "1.0",
        "id": "gold/0003",
        "source": "interlock",
        "type": "SLA_BREACH",
        "subject": "gold/cron/2026-03-02",
        "time": "2026-03-02T08:00:03Z",
        "datacontenttype": "application/json",
        "data": {
            "pipelineId": "gold",
            "scheduleId": "cron",
            "date": "2026-03-02",
            "message": "gold has missed its deadline",
            "timestamp": "2026-03-02T08:00:03Z",
            "severity": "error",
            "detail": {"status": "waiting", "waitingFor": ["rows: 5 < 10"]},
        },
    }


def test_the_subject_of_a_pipelines_own_event_is_the_pipeline(hook: Hook, client: httpx.Client) -> None:
    own = Alert("x", event(EventType.CONFIG_INVALID, schedule="", date=""))
    plain(hook, client).send(own, thread=None, maybe_sent=None)
    assert hook.taken[0]["subject"] == "gold"


def test_the_signature_covers_the_time_and_the_body(hook: Hook, client: httpx.Client) -> None:
    channel = WebhookChannel(
        "w", Secret(hook.url), client=client, clock=ManualClock(), signing_key=Secret("s3cr3t"),
        headers={"X-Team": Secret("data")},
    )  # fmt: skip
    channel.send(alert(), thread=None, maybe_sent=None)
    (request,) = hook.requests
    stamp = int(START.timestamp())
    expected = hmac.new(b"s3cr3t", f"{stamp}.".encode() + request.body, sha256).hexdigest()
    assert request.headers["X-Interlock-Signature"] == f"t={stamp},v1={expected}"
    assert request.headers["X-Team"] == "data"


def test_without_a_key_there_is_no_signature(hook: Hook, client: httpx.Client) -> None:
    plain(hook, client).send(alert(), thread=None, maybe_sent=None)
    assert "X-Interlock-Signature" not in hook.requests[0].headers


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_temporary_answers(hook: Hook, client: httpx.Client, status: int) -> None:
    hook.next.append(Answer(status, b"later"))
    error = failure(plain(hook, client))
    assert (error.permanent, error.retry_after) == (False, None)
    assert f"HTTP {status}: later" in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_other_refusals_are_permanent(hook: Hook, client: httpx.Client, status: int) -> None:
    hook.next.append(Answer(status, b"no", {"Retry-After": "5"}))
    error = failure(plain(hook, client))
    assert (error.permanent, error.retry_after) == (True, None)


def test_a_redirect_is_not_followed(hook: Hook, client: httpx.Client) -> None:
    hook.next.append(Answer(307, b"", {"Location": hook.url}))
    error = failure(plain(hook, client))
    assert error.permanent
    assert "name the final address" in str(error)
    assert hook.taken == []


def test_retry_after_is_passed_on(hook: Hook, client: httpx.Client) -> None:
    hook.next.append(Answer(503, b"", {"Retry-After": "120"}))
    assert failure(plain(hook, client)).retry_after == timedelta(minutes=2)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("", None),
        ("7", 7),
        (" 7 ", 7),
        ("-7", None),
        ("soon", None),
        ("Mon, 02 Mar 2026 08:01:00 GMT", 60),
        ("Mon, 02 Mar 2026 07:00:00 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, expected: int | None) -> None:
    assert retry_after(header, START) == (None if expected is None else timedelta(seconds=expected))


def test_hanging_up_is_uncertain(hook: Hook, client: httpx.Client) -> None:
    hook.next.append(HANG_UP)
    error = failure(plain(hook, client))
    assert (error.permanent, error.uncertain) == (False, True)


def test_a_refused_connection_is_temporary_and_certain(hook: Hook, client: httpx.Client) -> None:
    hook.down()
    error = failure(plain(hook, client))
    assert (error.permanent, error.uncertain) == (False, False)


def test_a_receiver_that_never_answers_is_given_up_on(client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = Secret(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        channel = WebhookChannel(
            "w", url, client=client, clock=ManualClock(), timeout=timedelta(milliseconds=200)
        )  # fmt: skip
        error = failure(channel)
    assert (error.permanent, error.uncertain) == (False, True)


@pytest.mark.parametrize("permanent", [True, False])
def test_an_address_that_the_callers_client_forbids_is_not_delivered(permanent: bool) -> None:
    def forbid(_: httpx.Request) -> httpx.Response:
        raise JobStartError("10.0.0.1 is a private address", permanent=permanent)

    with httpx.Client(transport=httpx.MockTransport(forbid)) as client:
        channel = WebhookChannel("w", Secret("http://10.0.0.1/"), client=client, clock=ManualClock())
        error = failure(channel)
    assert "private address" in str(error)
    assert (error.permanent, error.uncertain) == (permanent, False)


def test_an_answer_without_end_is_not_read_to_its_end(hook: Hook, client: httpx.Client) -> None:
    hook.next.append(Answer(500, b"x" * 5_000_000))
    assert len(str(failure(plain(hook, client)))) < 300


def test_an_impossible_address_is_permanent(client: httpx.Client) -> None:
    channel = WebhookChannel("w", Secret("ftp://secret-host/key"), client=client, clock=ManualClock())
    error = failure(channel)
    assert error.permanent
    assert "secret-host" not in str(error)


def test_neither_errors_nor_logs_show_the_address(
    hook: Hook, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    hook.next.extend([Answer(500, f"{hook.url} with key s3cr3t and header h3ader".encode()), Answer(204)])
    channel = WebhookChannel(
        "w",
        Secret(hook.url),
        client=client,
        clock=ManualClock(),
        signing_key=Secret("s3cr3t"),
        headers={"Authorization": Secret("h3ader")},
    )
    with caplog.at_level(logging.DEBUG):
        error = failure(channel)
        channel.send(alert(), thread=None, maybe_sent=None)
    assert "HTTP Request: POST ***" in caplog.text, "httpx does log, so the test can see a leak"
    for secret in (hook.url, "s3cr3t", "h3ader"):
        assert secret not in str(error) + repr(channel) + caplog.text
