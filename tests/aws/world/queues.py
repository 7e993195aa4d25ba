"""SQS of the world: moto's, on virtual time, with the planned queues."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from unittest import mock

from moto.sqs import models as moto_sqs
from moto.sqs.models import sqs_backends

from interlock.ports.clock import Clock
from tests.aws.world.calls import Call
from tests.aws.world.plan import ACCOUNT, REGION, Plan, PlannedQueue

# SQS Developer Guide, "Message quotas": a delay of at most 15 minutes, 1 MiB; a FIFO queue delays as a whole only.
_MAX_DELAY: Final = 900
_MAX_BYTES: Final = 1024 * 1024


class Queues:
    """Answers the calls to SQS; moto does, after a check."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock

    @contextmanager
    def installed(self, client: Any) -> Iterator[None]:
        """Make the queues, on virtual time."""

        def seconds(*_: Any) -> float:
            return self._clock.now().timestamp()

        def millis(*_: Any) -> float:
            return self._clock.now().timestamp() * 1000

        with mock.patch.object(moto_sqs, "unix_time", seconds), mock.patch.object(moto_sqs, "unix_time_millis", millis):
            # The queues of dead letters first: the others name them.
            for queue in sorted(self._plan.queues, key=lambda one: one.dead_letters is not None):
                client.create_queue(QueueName=queue.name, Attributes=_attributes(queue, self._plan))
            yield

    def next_at(self) -> datetime | None:
        """When the next message of a queue that somebody reads becomes visible."""
        now = self._clock.now().timestamp() * 1000
        read = [one.source for one in self._plan.mappings if not one.stream]
        due = [
            max(message.visible_at, message.delayed_until)
            for name in read
            for message in sqs_backends[ACCOUNT][REGION].queues[name]._messages
        ]
        later = [at for at in due if at > now]
        return datetime.fromtimestamp(min(later) / 1000, UTC) if later else None

    def has_visible(self, name: str) -> bool:
        """Would a receive bring anything?"""
        return any(message.visible for message in sqs_backends[ACCOUNT][REGION].queues[name].messages)

    def depth(self, name: str) -> int:
        """How many messages are in a queue, visible or not."""
        return len(sqs_backends[ACCOUNT][REGION].queues[name]._messages)

    def bodies(self, name: str) -> list[str]:
        """The messages of a queue, without receiving them."""
        return [str(message.body) for message in sqs_backends[ACCOUNT][REGION].queues[name]._messages]

    def drop(self, name: str, pick: int) -> bool:
        """Lose the `pick`-th message of a queue; False when it has none."""
        messages = sqs_backends[ACCOUNT][REGION].queues[name]._messages
        if not messages:
            return False
        del messages[pick % len(messages)]
        return True

    def __call__(self, call: Call) -> Any:
        """One call."""
        entries = call.arguments.get("Entries", [call.arguments])
        fifo = str(call.arguments.get("QueueUrl", "")).endswith(".fifo")
        if call.operation in ("SendMessage", "SendMessageBatch"):
            for entry in entries:
                self._check(call, entry, fifo=fifo)
        return call.forward()

    def _check(self, call: Call, entry: dict[str, Any], *, fifo: bool) -> None:
        delay = entry.get("DelaySeconds", 0)
        if not 0 <= delay <= _MAX_DELAY:
            raise call.error("InvalidParameterValue", f"Value {delay} for parameter DelaySeconds is invalid")
        if fifo and "DelaySeconds" in entry:
            raise call.error("InvalidParameterValue", "DelaySeconds is not valid for a message of a FIFO queue")
        if fifo and not entry.get("MessageGroupId"):
            raise call.error("MissingParameter", "The request must contain the parameter MessageGroupId.")
        if len(entry["MessageBody"].encode()) > _MAX_BYTES:
            raise call.error("InvalidParameterValue", "One or more parameters are invalid: the message is too long")


def _attributes(queue: PlannedQueue, plan: Plan) -> dict[str, str]:
    attributes = {
        "VisibilityTimeout": str(int(queue.visibility.total_seconds())),
        "MessageRetentionPeriod": str(int(queue.retention.total_seconds())),
    }
    if queue.fifo:
        attributes["FifoQueue"] = "true"
    if queue.dead_letters is not None:
        target = next(one for one in plan.queues if one.name == queue.dead_letters)
        redrive = {"deadLetterTargetArn": target.arn, "maxReceiveCount": queue.max_receives}
        attributes["RedrivePolicy"] = json.dumps(redrive)
    return attributes
