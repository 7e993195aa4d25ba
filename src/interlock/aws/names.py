"""Every name of an environment on AWS. All follow from the environment, the region and the account.

The Terraform module gives the same names.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from interlock.model.errors import InvalidValueError
from interlock.model.keys import Table

ENVIRONMENT_PATTERN: Final = r"[a-z][a-z0-9-]{0,29}[a-z0-9]"
_ENVIRONMENT: Final = re.compile(ENVIRONMENT_PATTERN)


class Function(StrEnum):
    """The six functions."""

    STREAM_ROUTER = "stream-router"
    ORCHESTRATOR = "orchestrator"
    SLA_MONITOR = "sla-monitor"
    WATCHDOG = "watchdog"
    EVENT_SINK = "event-sink"
    ALERT_DISPATCHER = "alert-dispatcher"


class Queue(StrEnum):
    """The queues, by what follows the prefix in their names."""

    TIMERS = "timers"
    SLA_TIMERS = "sla-timers"
    ALERTS = "alerts.fifo"
    TIMERS_DLQ = "timers-dlq"
    SLA_TIMERS_DLQ = "sla-timers-dlq"
    ALERTS_DLQ = "alerts-dlq.fifo"
    CONTROL_DLQ = "control-dlq"
    JOBLOG_DLQ = "joblog-dlq"
    EVENTS_DLQ = "events-dlq"
    SCHEDULER_DLQ = "scheduler-dlq"


class Names(msgspec.Struct, frozen=True):
    """The names of one environment."""

    environment: str
    region: str
    account: str

    @property
    def prefix(self) -> str:
        """What the name of everything begins with."""
        return f"{self.environment}-interlock"

    @property
    def partition(self) -> str:
        """The part of AWS that the region belongs to."""
        if self.region.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if self.region.startswith("us-gov-") else "aws"

    @property
    def tables(self) -> dict[Table, str]:
        """The four tables."""
        return {table: f"{self.prefix}-{table}" for table in Table}

    def table_arn(self, table: Table) -> str:
        """The ARN of a table."""
        return self._arn("dynamodb", f"table/{self.tables[table]}")

    def function(self, function: Function) -> str:
        """The name of a function."""
        return f"{self.prefix}-{function}"

    def function_arn(self, function: Function) -> str:
        """The ARN of a function."""
        return self._arn("lambda", f"function:{self.function(function)}")

    @property
    def state_machine(self) -> str:
        """The name of the state machine."""
        return f"{self.prefix}-pipeline"

    @property
    def state_machine_arn(self) -> str:
        """The ARN of the state machine."""
        return self._arn("states", f"stateMachine:{self.state_machine}")

    @property
    def bus(self) -> str:
        """The name of the event bus."""
        return f"{self.prefix}-events"

    @property
    def timer_group(self) -> str:
        """The Scheduler group of the timers."""
        return f"{self.prefix}-timers"

    @property
    def scheduler_role_arn(self) -> str:
        """The role by which Scheduler puts timers into their queues."""
        return f"arn:{self.partition}:iam::{self.account}:role/{self.prefix}-scheduler"

    def queue(self, queue: Queue) -> str:
        """The name of a queue."""
        return f"{self.prefix}-{queue}"

    def queue_arn(self, queue: Queue) -> str:
        """The ARN of a queue."""
        return self._arn("sqs", self.queue(queue))

    def queue_url(self, queue: Queue) -> str:
        """The address of a queue."""
        suffix = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"
        return f"https://sqs.{self.region}.{suffix}/{self.account}/{self.queue(queue)}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that the functions are given, as far as they are names."""
        queues = {
            "TIMER_QUEUE": Queue.TIMERS,
            "SLA_TIMER_QUEUE": Queue.SLA_TIMERS,
            "ALERT_QUEUE": Queue.ALERTS,
            "ALERT_DLQ": Queue.ALERTS_DLQ,
            "CONTROL_DLQ": Queue.CONTROL_DLQ,
            "JOBLOG_DLQ": Queue.JOBLOG_DLQ,
            "EVENTS_DLQ": Queue.EVENTS_DLQ,
        }
        return {
            "INTERLOCK_ENVIRONMENT": self.environment,
            **{f"{table.name}_TABLE": name for table, name in self.tables.items()},
            "STATE_MACHINE_ARN": self.state_machine_arn,
            "EVENT_BUS_NAME": self.bus,
            **{f"{name}_URL": self.queue_url(queue) for name, queue in queues.items()},
            "TIMER_QUEUE_ARN": self.queue_arn(Queue.TIMERS),
            "SLA_TIMER_QUEUE_ARN": self.queue_arn(Queue.SLA_TIMERS),
            "SCHEDULER_GROUP": self.timer_group,
            "SCHEDULER_ROLE_ARN": self.scheduler_role_arn,
            "SCHEDULER_DLQ_ARN": self.queue_arn(Queue.SCHEDULER_DLQ),
        }

    def _arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def check_environment(text: str) -> str:
    """The environment's name itself, or a clear error."""
    if not _ENVIRONMENT.fullmatch(text):
        raise InvalidValueError(
            f"{text!r} is not the name of an environment: use lower-case letters, digits and '-',"
            " starting with a letter, 2 to 31 characters"
        )
    return text
