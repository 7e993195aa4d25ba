"""Alerts on AWS: queued in order by the event-sink, sent once by the dispatcher, postponed, given up on."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from interlock.aws.alerts import AlertQueue, alert_routes
from interlock.aws.channels import Channels
from interlock.aws.dispatching import Dispatcher
from interlock.aws.lambdas import alert_dispatcher, event_sink
from interlock.aws.settings import SettingsError, read_settings
from interlock.control.alerts.alert_dispatcher import Delivery
from interlock.model.errors import InvalidValueError, UnavailableError
from interlock.model.events import Event, EventType, Severity
from interlock.ports.channel import Alert, DeliveryError
from tests.aws.installation import VARIABLES, Installation, installation, queue_url
from tests.conformance.manual_clock import START, ManualClock


class Receiver:
    """A channel that takes what it is given, or fails as it is told to."""

    name = "test"

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.maybe: list[datetime | None] = []
        self.failing: Exception | None = None

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> str | None:
        self.maybe.append(maybe_sent)
        if self.failing is not None:
            raise self.failing
        self.sent.append(f"{alert.event.message} in {thread}")
        return "t1"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def here(clock: ManualClock) -> Iterator[Installation]:
    with installation(clock) as found:
        yield found


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def queue(here: Installation) -> AlertQueue:
    return here.controller.alert_queue


@pytest.fixture
def dispatcher(here: Installation, queue: AlertQueue, receiver: Receiver, clock: ManualClock) -> Dispatcher:
    channels = {"test": receiver}
    return Dispatcher("test", queue, here.controller.store, lambda: channels, clock, lambda: 1.0)


def delivery(n: int, pipeline: str = "gold", channel: str = "test") -> Delivery:
    event = Event(
        type=EventType.SLA_BREACH,
        severity=Severity.ERROR,
        pipeline_id=pipeline,
        schedule_id="cron",
        date="2026-03-02",
        message=f"alert {n}",
        timestamp=START,
    )
    return Delivery(channel, Alert(f"{pipeline}/{n:013d}#SLA_BREACH#{n}", event))


def receive(here: Installation, name: str = "alerts.fifo") -> list[dict[str, Any]]:
    """What the mapping gives to the function: every message that is visible now."""
    answer = here.clients("sqs").receive_message(
        QueueUrl=queue_url(name), MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return [
        {
            "messageId": one["MessageId"],
            "receiptHandle": one["ReceiptHandle"],
            "body": one["Body"],
            "attributes": one["Attributes"],
            "eventSource": "aws:sqs",
        }
        for one in answer.get("Messages", [])
    ]


def hidden_for(here: Installation, body: str) -> int:
    """For how many seconds a message of the queue will not be seen."""
    from moto.backends import get_backend
    from moto.core.utils import unix_time_millis

    found: Any = get_backend("sqs")["123456789012"]["us-east-1"].queues["test-interlock-alerts.fifo"]._messages
    (message,) = [one for one in found if one.body == body]
    left: float = message.visible_at - unix_time_millis()
    return round(left / 1000)


def kept(answer: dict[str, Any]) -> list[str]:
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


def test_alerts_of_a_pipeline_on_a_channel_are_a_group_and_each_is_queued_once(
    here: Installation, queue: AlertQueue
) -> None:
    queue.put([delivery(1), delivery(2), delivery(1), delivery(1, channel="other"), delivery(1, pipeline="silver")])
    groups = [record["attributes"]["MessageGroupId"] for record in receive(here)]
    assert len(groups) == 4, "the second of the same alert is dropped"
    assert len(set(groups)) == 3


def test_they_are_sent_in_order_in_the_thread_of_their_run_and_only_once(
    here: Installation, queue: AlertQueue, dispatcher: Dispatcher, receiver: Receiver
) -> None:
    queue.put([delivery(1), delivery(2)])
    records = receive(here)
    assert kept(dispatcher.dispatch(records)) == []
    assert receiver.sent == ["alert 1 in None", "alert 2 in t1"]
    assert kept(dispatcher.dispatch(records)) == [], "the same messages again"
    assert len(receiver.sent) == 2


def test_a_failed_one_waits_and_holds_up_its_own_group_alone(
    here: Installation, queue: AlertQueue, dispatcher: Dispatcher, receiver: Receiver
) -> None:
    queue.put([delivery(1), delivery(2), delivery(3, pipeline="silver")])
    records = receive(here)
    receiver.failing = DeliveryError("down")
    first, second, third = records
    assert kept(dispatcher.dispatch([first])) == [first["messageId"]]
    assert 0 < hidden_for(here, first["body"]) <= 2
    tries = len(receiver.maybe)
    receiver.failing = None
    assert kept(dispatcher.dispatch([third])) == []

    receiver.failing = DeliveryError("down")
    assert kept(dispatcher.dispatch([first, second])) == [first["messageId"], second["messageId"]]
    assert len(receiver.maybe) == tries + 2, "the one behind it was not tried"
    receiver.failing = None
    assert kept(dispatcher.dispatch([first, second])) == []
    assert receiver.sent == ["alert 3 in None", "alert 1 in None", "alert 2 in t1"]


def test_a_receiver_that_asks_for_rest_gets_it_from_all_groups(
    here: Installation, queue: AlertQueue, dispatcher: Dispatcher, receiver: Receiver, clock: ManualClock
) -> None:
    queue.put([delivery(1), delivery(2, pipeline="silver")])
    first, second = receive(here)
    receiver.failing = DeliveryError("slow down", retry_after=timedelta(minutes=10))
    assert len(kept(dispatcher.dispatch([first, second]))) == 2
    assert len(receiver.maybe) == 1
    assert 590 <= hidden_for(here, second["body"]) <= 600
    clock.advance(minutes=10)
    receiver.failing = None
    assert kept(dispatcher.dispatch([first, second])) == []


def test_after_a_day_it_goes_whole_to_the_dead_letter_queue(
    here: Installation, queue: AlertQueue, dispatcher: Dispatcher, receiver: Receiver, clock: ManualClock
) -> None:
    queue.put([delivery(1)])
    (record,) = receive(here)
    receiver.failing = DeliveryError("down")
    dispatcher.dispatch([record])
    clock.advance(hours=24)
    assert kept(dispatcher.dispatch([record])) == []
    (letter,) = receive(here, "alerts-dlq.fifo")
    assert letter["body"] == record["body"]
    assert kept(dispatcher.dispatch([record])) == [], "a message that comes again after it was given up on"
    assert receiver.sent == []


def test_one_given_up_by_a_function_that_died_then_still_becomes_a_dead_letter(
    here: Installation,
    queue: AlertQueue,
    dispatcher: Dispatcher,
    receiver: Receiver,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue.put([delivery(1)])
    (record,) = receive(here)
    receiver.failing = DeliveryError("no such channel", permanent=True)

    def die(*_: object) -> None:
        raise UnavailableError("SQS")

    with monkeypatch.context() as patched:
        patched.setattr(queue, "bury", die)
        for _ in range(4):
            clock.advance(minutes=20)
            assert kept(dispatcher.dispatch([record])) == [record["messageId"]]
    assert receive(here, "alerts-dlq.fifo") == []
    assert kept(dispatcher.dispatch([record])) == []
    assert len(receive(here, "alerts-dlq.fifo")) == 1


@pytest.mark.parametrize("body", ["{", '{"channel": "test"}', None])
def test_a_message_that_is_no_alert_of_ours_is_a_dead_letter_at_once(
    here: Installation, queue: AlertQueue, dispatcher: Dispatcher, body: str | None
) -> None:
    queue.put([delivery(1)])
    (record,) = receive(here)
    text = body if body is not None else record["body"].replace('"environment":"test"', '"environment":"prod"')
    assert kept(dispatcher.dispatch([{**record, "body": text}])) == []
    (letter,) = receive(here, "alerts-dlq.fifo")
    assert letter["body"] == text


# --------------------------------------------------------------------------------------------------- the functions


def event_record(n: int, severity: Severity = Severity.ERROR) -> dict[str, Any]:
    key = {"PK": {"S": "PIPELINE#gold"}, "SK": {"S": f"{n:013d}#SLA_BREACH#{n}"}}
    image = {
        **key,
        "type": {"S": "SLA_BREACH"},
        "severity": {"S": severity.value},
        "pipelineId": {"S": "gold"},
        "message": {"S": f"alert {n}"},
        "timestamp": {"S": "2026-03-02T08:00:00Z"},
    }
    return {
        "eventName": "INSERT",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/test-interlock-events/stream/x",
        "dynamodb": {
            "Keys": key,
            "NewImage": image,
            "SequenceNumber": str(n),
            "ApproximateCreationDateTime": int(START.timestamp()),
        },
    }


def test_the_event_sink_queues_alerts_in_the_order_of_their_events(here: Installation) -> None:
    records = [event_record(3), event_record(1, Severity.INFO), event_record(2)]
    assert event_sink.handle(here.controller, {"Records": records}) == {"batchItemFailures": []}
    bodies = [json.loads(record["body"]) for record in receive(here)]
    assert [body["alert"]["event"]["message"] for body in bodies] == ["alert 2", "alert 3"]
    assert {body["channel"] for body in bodies} == {"console"}


def test_an_alarm_becomes_an_event(here: Installation) -> None:
    alarm = {"alarmName": "dlq-depth", "state": "ALARM", "reason": "3 messages", "previous": "OK"}
    event = {"source": "interlock", "detail-type": "INFRA_ALARM", "time": "2026-03-02T07:00:00Z", "detail": alarm}
    event_sink.handle(here.controller, event)
    (found,) = here.controller.store.events_by_type("INFRA_ALARM", since=0, until=2**42, limit=5)
    assert found.item["detail"]["alarm"] == "dlq-depth"
    assert found.item["timestamp"].startswith("2026-03-02T07:00:00")


@pytest.mark.parametrize(("days", "kept_days"), [("", 90), ("7", 7)])
def test_events_are_kept_as_long_as_the_environment_says(clock: ManualClock, days: str, kept_days: int) -> None:
    with installation(clock, EVENTS_TTL_DAYS=days) as here:
        alarm = {"alarmName": "dlq-depth", "state": "ALARM"}
        event_sink.handle(here.controller, {"detail-type": "INFRA_ALARM", "detail": alarm})
        (found,) = here.controller.store.events_by_type("INFRA_ALARM", since=0, until=2**42, limit=5)
        assert found.item["ttl"] == int(START.timestamp()) + kept_days * 86_400


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"detail-type": "INFRA_ALARM"}, "alarmName"),
        ({"detail-type": "INFRA_ALARM", "detail": {"alarmName": "a", "state": "odd"}}, "odd"),
        ({"what": 1}, "what"),
    ],
)
def test_an_alarm_of_an_unknown_shape_names_itself(here: Installation, event: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        event_sink.handle(here.controller, event)


def test_the_alert_dispatcher_takes_messages_alone(here: Installation) -> None:
    with pytest.raises(InvalidValueError, match="detail"):
        alert_dispatcher.handle(here.controller, {"detail": {}})


def test_the_alert_dispatcher_prints_where_no_channel_is_set_up(
    here: Installation, queue: AlertQueue, capsys: pytest.CaptureFixture[str]
) -> None:
    queue.put([delivery(1, channel="console")])
    assert kept(alert_dispatcher.handle(here.controller, {"Records": receive(here)})) == []
    assert json.loads(capsys.readouterr().err)["message"] == "alert 1"


# ----------------------------------------------------------------------------------------------------- the channels


class Vault:
    """Secrets that were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, name: str) -> str:
        self.asked.append(name)
        return "xoxb-1"


SLACK = '[{"channel": "slack", "slack_channel": "#data"}]'


def channels(vault: Vault, clock: ManualClock, **variables: str) -> Channels:
    return Channels(read_settings({**VARIABLES, **variables}), vault, clock)


def test_the_slack_token_of_secrets_manager_is_looked_up_now_and_then(clock: ManualClock) -> None:
    vault = Vault()
    made = channels(vault, clock, ALERTS=SLACK, SLACK_SECRET_ARN="arn:aws:secretsmanager:us-east-1:1:secret:slack")
    assert list(made()) == ["slack:#data"]
    made()
    assert vault.asked == ["secretsmanager:arn:aws:secretsmanager:us-east-1:1:secret:slack"]
    clock.advance(minutes=5)
    made()
    assert len(vault.asked) == 2


def test_a_token_in_the_environment_needs_no_secret(clock: ManualClock) -> None:
    vault = Vault()
    made = channels(vault, clock, ALERTS=SLACK, SLACK_BOT_TOKEN="xoxb-2", SLACK_SECRET_ARN="arn:x")
    assert list(made()) == ["slack:#data"]
    assert vault.asked == []


def test_without_a_token_the_variable_is_named(clock: ManualClock) -> None:
    with pytest.raises(InvalidValueError, match="SLACK_BOT_TOKEN"):
        channels(Vault(), clock, ALERTS=SLACK)()


def test_wrong_routes_name_the_variable() -> None:
    with pytest.raises(SettingsError, match=r"ALERTS.*slack_channel"):
        alert_routes(read_settings({**VARIABLES, "ALERTS": '[{"channel": "slack"}]'}))
