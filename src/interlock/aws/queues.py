"""Messages of the timer queues: each is received by itself, and those that failed are reported one by one.

A queue brings a failed message again, and after its third receipt puts it whole into its dead-letter queue.
"""

from collections.abc import Callable, Mapping
from typing import Any

from interlock.aws.controller import Controller
from interlock.logs import get_logger
from interlock.ports.timers import Timer

_log = get_logger(__name__)


def receive_timers(controller: Controller, event: Mapping[str, Any], fire: Callable[[Timer], object]) -> dict[str, Any]:
    """Fire the timers of the messages that still matter; what the queue is to be answered."""
    failed: list[dict[str, str]] = []
    for record in event["Records"]:
        try:
            controller.timers.receive(str(record["body"]), fire)
        except Exception as error:  # noqa: BLE001 - the queue brings it again, then keeps it as a dead letter
            _log.error("timer-failed", message=record.get("messageId"), error=f"{type(error).__name__}: {error}")
            failed.append({"itemIdentifier": str(record.get("messageId", ""))})
    return {"batchItemFailures": failed}
