"""One environment on moto: the tables of `dynamo`, the queues, the Scheduler group, and a controller on a set clock."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from interlock.aws.clients import Clients
from interlock.aws.controller import Controller
from interlock.aws.settings import read_settings
from interlock.ports.clock import Clock
from tests.aws.dynamo import REGION, TABLES, dynamo, session

ENVIRONMENT: Final = "test"
ACCOUNT: Final = "123456789012"
MACHINE: Final = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:test-interlock-pipeline"
GROUP: Final = "test-interlock-timers"
BUS: Final = "test-interlock-events"
QUEUES: Final = ("timers", "sla-timers", "control-dlq", "joblog-dlq", "events-dlq", "scheduler-dlq")
FIFO: Final = ("alerts.fifo", "alerts-dlq.fifo")


def queue_url(name: str) -> str:
    """The address of a queue of this environment."""
    return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{ENVIRONMENT}-interlock-{name}"


def queue_arn(name: str) -> str:
    """Its ARN."""
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{ENVIRONMENT}-interlock-{name}"


VARIABLES: Final = {
    "INTERLOCK_ENVIRONMENT": ENVIRONMENT,
    **{f"{table.name}_TABLE": name for table, name in TABLES.items()},
    "STATE_MACHINE_ARN": MACHINE,
    "EVENT_BUS_NAME": BUS,
    "TIMER_QUEUE_URL": queue_url("timers"),
    "TIMER_QUEUE_ARN": queue_arn("timers"),
    "SLA_TIMER_QUEUE_URL": queue_url("sla-timers"),
    "SLA_TIMER_QUEUE_ARN": queue_arn("sla-timers"),
    "SCHEDULER_GROUP": GROUP,
    "SCHEDULER_ROLE_ARN": f"arn:aws:iam::{ACCOUNT}:role/test-interlock-scheduler",
    "SCHEDULER_DLQ_ARN": queue_arn("scheduler-dlq"),
    "ALERT_QUEUE_URL": queue_url("alerts.fifo"),
    "ALERT_DLQ_URL": queue_url("alerts-dlq.fifo"),
    "CONTROL_DLQ_URL": queue_url("control-dlq"),
    "JOBLOG_DLQ_URL": queue_url("joblog-dlq"),
    "EVENTS_DLQ_URL": queue_url("events-dlq"),
}


@dataclass
class Installation:
    """A controller, and the clients that look at what it did."""

    controller: Controller
    clients: Clients

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """Take every message out of a queue, delayed ones too, in the order they were sent: their bodies."""
        from moto.backends import get_backend

        backend = get_backend("sqs")[ACCOUNT][REGION].queues[f"{ENVIRONMENT}-interlock-{queue}"]
        bodies = [json.loads(message.body) for message in backend._messages]
        backend._messages.clear()
        return bodies

    def delays(self, queue: str) -> list[int]:
        """The delay of each message that waits in a queue, in seconds."""
        from moto.backends import get_backend

        backend = get_backend("sqs")[ACCOUNT][REGION].queues[f"{ENVIRONMENT}-interlock-{queue}"]
        waiting: list[Any] = backend._messages
        return [max(0, round((one.delayed_until - one.sent_timestamp) / 1000)) for one in waiting]


@contextmanager
def installation(clock: Clock, **variables: str) -> Iterator[Installation]:
    """An empty environment; `variables` are set besides, or instead."""
    with dynamo(clock) as tables:
        clients = Clients(lambda service: tables if service == "dynamodb" else session().client(service))
        create_services(clients)
        settings = read_settings({**VARIABLES, **variables})
        yield Installation(Controller(settings, clients, clock), clients)


def create_services(clients: Clients) -> None:
    """The queues, the Scheduler group and the bus, as the Terraform module makes them."""
    for name in QUEUES:
        clients("sqs").create_queue(QueueName=f"{ENVIRONMENT}-interlock-{name}")
    for name in FIFO:
        attributes = {"FifoQueue": "true"}
        clients("sqs").create_queue(QueueName=f"{ENVIRONMENT}-interlock-{name}", Attributes=attributes)
    clients("scheduler").create_schedule_group(Name=GROUP)
    clients("events").create_event_bus(Name=BUS)
