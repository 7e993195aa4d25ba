"""How many messages are in the queues of an environment, and since when the oldest of them waits."""

from typing import Final

import msgspec

from interlock.aws.names import Queue
from interlock.aws.operations.environment import Environment, is_missing
from interlock.model.errors import AccessError

_WANTED: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Depth(msgspec.Struct, frozen=True):
    """A queue in numbers, which AWS gives approximately. `delayed` are not due yet."""

    waiting: int
    taken: int
    delayed: int

    @property
    def total(self) -> int:
        """All that is in it."""
        return self.waiting + self.taken + self.delayed


def depth(environment: Environment, queue: Queue) -> Depth | None:
    """How full a queue is; None when there is no such queue."""
    url, client = environment.names.queue_url(queue), environment.client("sqs")
    try:
        answer = environment.ask(
            f"looking at the queue {environment.names.queue(queue)} (sqs:GetQueueAttributes)",
            lambda: client.get_queue_attributes(QueueUrl=url, AttributeNames=list(_WANTED)),
        )
    except AccessError as error:
        if is_missing(error):
            return None
        raise
    found = answer.get("Attributes", {})
    return Depth(*(int(found.get(name, 0)) for name in _WANTED))
