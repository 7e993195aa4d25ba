"""Alerts of an environment, as far as the queues tell: those that wait are counted, those given up on are shown.

A message of a FIFO queue can only be looked at by taking it, which would hold up the alerts behind it. So what waits is
never listed one by one.
"""

from interlock.aws.environment import Environment
from interlock.aws.names import Queue
from interlock.aws.queue_depths import depth


def degradations(environment: Environment) -> list[str]:
    """What is wrong with the alerts, in words."""
    said = []
    given_up = depth(environment, Queue.ALERTS_DLQ)
    if given_up is not None and given_up.total:
        alerts = "1 alert was" if given_up.total == 1 else f"{given_up.total} alerts were"
        said.append(f"{alerts} given up (`interlock dlq list`)")
    return said


def waiting(environment: Environment) -> int:
    """How many alerts are on their way."""
    found = depth(environment, Queue.ALERTS)
    return 0 if found is None else found.total
