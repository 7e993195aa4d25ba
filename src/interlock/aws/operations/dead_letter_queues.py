"""Dead letters of an environment: those of the streams, of the timers and of the alerts, in seven queues.

A queue is read by receiving: a message that was received is hidden from others for a moment, and shown again when it
has been looked at. A FIFO queue gives at most ten messages of a group before those are gone, so that a long list of
alerts of one pipeline shows its beginning; redriving goes on until there are none left.

Redriving. A timer or an alert goes back into the queue that it came from. A record of a stream is handed to the
function that failed on it, which tries it as it would any other; what fails again is a dead letter again. A message is
deleted after that has worked, never before.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.aws.dead_letters import Letter, read_letter
from interlock.aws.names import Function, Queue
from interlock.aws.operations.environment import Environment, is_missing
from interlock.aws.operations.invoking import call_function
from interlock.aws.operations.queue_depths import depth
from interlock.control.alerts.delivery_records import StoredLedger
from interlock.model.errors import AccessError, InterlockError, InvalidValueError
from interlock.model.keys import Table
from interlock.ports.clock import Clock
from interlock.ports.store import Store

_HIDDEN_SECONDS: Final = 300
_AT_ONCE: Final = 1000
_BATCH: Final = 10
_RECEIVES: Final = 5
"""How often a timer is tried before it is a dead letter; the module sets the same."""
_LONGEST_ERROR: Final = 500
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class LetterKind(StrEnum):
    """What it was that failed."""

    CHANGE = "change"
    TIMER = "timer"
    DELIVERY = "delivery"
    EVENT = "event"


class AwsLetter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message of a dead-letter queue. `id` follows from the queue and the id that the queue gave it."""

    id: int
    kind: LetterKind
    source: str
    record: dict[str, Any]
    error: str
    tries: int
    first_at: datetime
    last_at: datetime


_STREAMS: Final = {
    Queue.CONTROL_DLQ: (Table.CONTROL, Function.STREAM_ROUTER),
    Queue.JOBLOG_DLQ: (Table.JOBLOG, Function.STREAM_ROUTER),
    Queue.EVENTS_DLQ: (Table.EVENTS, Function.EVENT_SINK),
}
_TIMERS: Final = {
    Queue.TIMERS_DLQ: (Queue.TIMERS, Function.STREAM_ROUTER),
    Queue.SLA_TIMERS_DLQ: (Queue.SLA_TIMERS, Function.SLA_MONITOR),
}
QUEUES: Final = (*_STREAMS, *_TIMERS, Queue.SCHEDULER_DLQ, Queue.ALERTS_DLQ)
"""Every queue of dead letters."""

_Message = Mapping[str, Any]
_Messages = list[_Message]


class DeadLetterQueues:
    """The dead letters of an environment."""

    def __init__(self, environment: Environment, store: Store, clock: Clock) -> None:
        self._environment = environment
        self._names = environment.names
        self._store = store
        self._clock = clock

    def list(self, limit: int) -> "list[AwsLetter]":
        """The oldest first, so many at most; nothing is taken away."""
        found: list[AwsLetter] = []
        for queue in QUEUES:
            with self._held(queue, limit) as messages:
                found += [letter_of(queue, one) for one in messages]
        return sorted(found, key=lambda one: (one.last_at, one.id))[:limit]

    def redrive(self, ids: Sequence[int] | None = None) -> int:
        """Have these (None: all) done again; how many there were. An error names those that could not be."""
        wanted = None if ids is None else set(ids)
        done: set[int] = set()
        failed: dict[int, InterlockError] = {}
        for queue in QUEUES:
            self._redrive_queue(queue, wanted, done, failed)
        if failed:
            first = next(iter(failed))
            raise InterlockError(
                f"{len(failed)} of {len(failed) + len(done)} dead letters could not be redriven and are kept:"
                f" {first}: {failed[first]}"
            )
        missing = sorted((wanted or set()) - done)
        if missing:
            raise InvalidValueError(f"there is no dead letter {missing[0]}: `interlock dlq list` shows those there are")
        return len(done)

    def _redrive_queue(
        self, queue: Queue, wanted: Collection[int] | None, done: set[int], failed: dict[int, InterlockError]
    ) -> None:
        """All of a queue are taken before the first is redriven: one that fails again must not come round forever."""
        while True:
            with self._held(queue, _AT_ONCE) as messages:
                taken = len(messages)
                for message in list(messages):
                    id_ = letter_id(queue, message)
                    if wanted is not None and id_ not in wanted:
                        continue
                    try:
                        self._again(queue, message)
                    except AccessError:
                        raise
                    except InterlockError as error:
                        failed[id_] = error
                        continue
                    self._delete(queue, message)
                    messages.remove(message)
                    done.add(id_)
                left = bool(messages)
            # A FIFO queue gives more of a group when the first of it are gone; any other was emptied, or was too long.
            if not taken or left or not (queue.endswith(".fifo") or taken >= _AT_ONCE):
                return

    # -------------------------------------------------------------------------------------------- doing it again

    def _again(self, queue: Queue, message: _Message) -> None:
        if queue in _STREAMS:
            self._route_again(queue, message)
        elif queue is Queue.ALERTS_DLQ:
            self._alert_again(message)
        elif queue is Queue.SCHEDULER_DLQ:
            self._send(_queue_of_timer(message["Body"]), message["Body"])
        else:
            self._send(_TIMERS[queue][0], message["Body"])

    def _route_again(self, queue: Queue, message: _Message) -> None:
        """Hand a record to the function that failed on it, and see that it took it."""
        _, function = _STREAMS[queue]
        letter = _stream_letter(message["Body"])
        if letter is None:
            event = _event_of(message["Body"])
            if event is None:
                raise InterlockError(
                    "it has no record, only where one was in the stream: `interlock aws replay` routes what is there"
                )
            call_function(self._environment, function, event)
            return
        if letter.record is None:
            raise InterlockError("its record was too large to be kept: `interlock aws replay` routes what is there")
        said = call_function(self._environment, function, {"Records": [letter.record]})
        if isinstance(said, Mapping) and said.get("batchItemFailures"):
            raise InterlockError(f"the {function} did not take it: a service is down, its log says which")

    def _alert_again(self, message: _Message) -> None:
        """Queue an alert again, with a day of its own; one that was sent meanwhile is done."""
        body = _json(message["Body"])
        alert, channel = body.get("alert"), body.get("channel")
        id_ = alert.get("id") if isinstance(alert, Mapping) else None
        if not isinstance(id_, str) or not isinstance(channel, str):
            raise InterlockError("it is no alert of this controller")
        queued = _millis(message.get("Attributes", {}).get("SentTimestamp"))
        if StoredLedger(self._store, channel, id_, queued).revive(self._clock.now()):
            self._send(Queue.ALERTS, message["Body"], **_fifo(message))

    def _send(self, queue: Queue, body: str, **more: str) -> None:
        url = self._names.queue_url(queue)
        client = self._environment.client("sqs")
        self._environment.ask(
            f"sending to the queue {self._names.queue(queue)} (sqs:SendMessage)",
            lambda: client.send_message(QueueUrl=url, MessageBody=body, **more),
        )

    # ------------------------------------------------------------------------------------------------- receiving

    @contextmanager
    def _held(self, queue: Queue, limit: int) -> Iterator[_Messages]:
        """Messages of a queue, hidden from others meanwhile; those still in the list at the end are shown again.

        At least `limit`, if there are so many. A queue that is not there has none.
        """
        held: _Messages = []
        try:
            for batch in self._received(queue):
                held += batch
                if len(held) >= limit:
                    break
            yield held
        finally:
            self._show_again(queue, held)

    def _received(self, queue: Queue) -> Iterator[_Messages]:
        """Batches of the messages that are not hidden, each once.

        Waiting a second asks all servers of a queue, not a sample of them; where the queue says that there is nothing
        more, that is not needed.
        """
        url, client = self._names.queue_url(queue), self._environment.client("sqs")
        expected = depth(self._environment, queue)
        seen: set[str] = set()
        while expected is not None:
            wait = 1 if len(seen) < expected.waiting else 0
            answer = self._asked(
                queue,
                "sqs:ReceiveMessage",
                lambda: client.receive_message(
                    QueueUrl=url,
                    MaxNumberOfMessages=_BATCH,
                    VisibilityTimeout=_HIDDEN_SECONDS,
                    WaitTimeSeconds=wait,  # noqa: B023 - called at once
                    AttributeNames=["All"],
                    MessageAttributeNames=["All"],
                ),
            )
            fresh = [one for one in (answer or {}).get("Messages", []) if one["MessageId"] not in seen]
            if not fresh:
                return
            seen.update(one["MessageId"] for one in fresh)
            yield fresh

    def _show_again(self, queue: Queue, messages: Sequence[_Message]) -> None:
        url, client = self._names.queue_url(queue), self._environment.client("sqs")
        for first in range(0, len(messages), _BATCH):
            entries = [
                {"Id": str(at), "ReceiptHandle": one["ReceiptHandle"], "VisibilityTimeout": 0}
                for at, one in enumerate(messages[first : first + _BATCH])
            ]
            self._asked(
                queue,
                "sqs:ChangeMessageVisibility",
                lambda: client.change_message_visibility_batch(QueueUrl=url, Entries=entries),  # noqa: B023 - called at once
            )

    def _delete(self, queue: Queue, message: _Message) -> None:
        url, client = self._names.queue_url(queue), self._environment.client("sqs")
        handle = message["ReceiptHandle"]
        self._asked(queue, "sqs:DeleteMessage", lambda: client.delete_message(QueueUrl=url, ReceiptHandle=handle))

    def _asked(self, queue: Queue, right: str, act: Callable[[], Any]) -> Any:
        try:
            return self._environment.ask(f"reading the queue {self._names.queue(queue)} ({right})", act)
        except AccessError as error:
            if is_missing(error):
                return None
            raise


# --------------------------------------------------------------------------------------------- what a message says


def letter_id(queue: Queue, message: _Message) -> int:
    """The id that people use; the same message always has the same."""
    return int.from_bytes(sha256(f"{queue}\x00{message['MessageId']}".encode()).digest()[:6])


def letter_of(queue: Queue, message: _Message) -> AwsLetter:
    """A message as a dead letter."""
    sent = _millis(message.get("Attributes", {}).get("SentTimestamp"))
    letter = _stream_letter(message["Body"]) if queue in _STREAMS else None
    if letter is not None:
        return AwsLetter(
            id=letter_id(queue, message),
            kind=LetterKind.CHANGE,
            source=letter.function or _STREAMS[queue][1].value,
            record=_change_record(letter),
            error=letter.error[:_LONGEST_ERROR],
            tries=letter.tries,
            first_at=letter.first_at,
            last_at=letter.last_at,
        )
    kind, source = _kind_of(queue, message)
    return AwsLetter(
        id=letter_id(queue, message),
        kind=kind,
        source=source,
        record=_json(message["Body"]),
        error=_error_of(queue, message)[:_LONGEST_ERROR],
        tries=_tries(queue, message),
        first_at=sent,
        last_at=sent,
    )


def _change_record(letter: Letter) -> dict[str, Any]:
    """The record, with its key where the list looks for it."""
    record = letter.record or {}
    key = record.get("dynamodb", {}).get("Keys") or letter.keys or {}
    named = {name.lower(): key[name]["S"] for name in ("PK", "SK") if isinstance(key.get(name), Mapping)}
    return {"table": letter.table, **named, **({"record": letter.record} if letter.record is not None else {})}


def _kind_of(queue: Queue, message: _Message) -> tuple[LetterKind, str]:
    if queue in _TIMERS:
        return LetterKind.TIMER, _TIMERS[queue][1].value
    if queue is Queue.SCHEDULER_DLQ:
        return LetterKind.TIMER, "scheduler"
    if queue is Queue.ALERTS_DLQ:
        return LetterKind.DELIVERY, str(_json(message["Body"]).get("channel", Function.ALERT_DISPATCHER.value))
    raw = LetterKind.EVENT if _event_of(message["Body"]) is not None else LetterKind.CHANGE
    return raw, _STREAMS[queue][1].value


def _error_of(queue: Queue, message: _Message) -> str:
    """Who put it there says why, where anybody does."""
    attributes = {name: one.get("StringValue", "") for name, one in message.get("MessageAttributes", {}).items()}
    reasons = [
        attributes.get(name, "") for name in ("ERROR_CODE", "ERROR_MESSAGE", "ErrorCode", "ErrorMessage", "error")
    ]
    body = _json(message["Body"])
    context = body.get("requestContext")
    if isinstance(context, Mapping):  # the event source mapping's own message
        reasons.append(f"{context.get('condition', '')} by {context.get('functionArn', '')}")
    reasons.append(str(body.get("error", "")))
    words = [" ".join(one.split()) for one in reasons if one.strip()]
    return ": ".join(dict.fromkeys(words)) or f"see the log of the {_kind_of(queue, message)[1]}"


def _tries(queue: Queue, message: _Message) -> int:
    """How often it was tried, where the message says so; a queue counts receipts, these readings among them."""
    attributes = {name: one.get("StringValue", "") for name, one in message.get("MessageAttributes", {}).items()}
    count = (
        attributes.get("RETRY_ATTEMPTS")
        or _json(message["Body"]).get("tries")
        or (_RECEIVES if queue in _TIMERS else 1)
    )
    return int(count) if str(count).isdigit() else 1


def _stream_letter(body: str) -> Letter | None:
    try:
        return read_letter(body)
    except InvalidValueError:
        return None


def _event_of(body: str) -> dict[str, Any] | None:
    """The event of EventBridge that a message is, or has in it; None when it is none."""
    document = _json(body)
    inner = document.get("requestPayload")  # of an on-failure destination
    for found in (document, inner):
        if isinstance(found, dict) and "detail-type" in found:
            return found
    return None


def _queue_of_timer(body: str) -> Queue:
    kind = _json(body).get("kind")
    if kind is None:
        raise InterlockError("it is no timer of this controller")
    return Queue.SLA_TIMERS if kind == "sla" else Queue.TIMERS


def _fifo(message: _Message) -> dict[str, str]:
    """The group stays; the id that repeats are dropped by is new, or the queue would drop this as one."""
    attributes = message.get("Attributes", {})
    again = sha256(message["MessageId"].encode()).hexdigest()[:16]
    return {
        "MessageGroupId": str(attributes.get("MessageGroupId", "redriven")),
        "MessageDeduplicationId": f"{str(attributes.get('MessageDeduplicationId', ''))[:100]}-{again}",
    }


def _json(body: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        found = None
    return found if isinstance(found, dict) else {"body": body[:100_000]}


def _millis(text: Any) -> datetime:
    return datetime.fromtimestamp(int(text) / 1000, UTC) if str(text).isdigit() else _EPOCH
