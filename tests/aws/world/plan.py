"""What is deployed, as plain data: the seam between the Terraform plan and the world that is built from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from interlock.model.keys import Table

REGION: Final = "us-east-1"
ACCOUNT: Final = "123456789012"


def arn(service: str, rest: str) -> str:
    """An ARN in the account and region of the world."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}"


def queue_url(name: str) -> str:
    """The address of a queue, as moto makes it."""
    return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """A table: keys `PK` and `SK` unless it says otherwise. `stream`: its view type, None without a stream."""

    name: str
    stream: str | None
    ttl_attribute: str | None
    hash_key: str = "PK"
    range_key: str = "SK"
    indexes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By name: hash and range key."""

    @property
    def arn(self) -> str:
        """The table's ARN."""
        return arn("dynamodb", f"table/{self.name}")


@dataclass(frozen=True, slots=True)
class PlannedFunction:
    """A Lambda function."""

    name: str
    handler: str
    environment: Mapping[str, str]
    role: str
    timeout: timedelta = timedelta(seconds=60)
    traced: bool = False
    network: tuple[str, ...] = ()
    """The subnets and security groups that it joins."""

    @property
    def arn(self) -> str:
        """The function's ARN."""
        return arn("lambda", f"function:{self.name}")


@dataclass(frozen=True, slots=True)
class PlannedMapping:
    """An event source mapping, of a stream or a queue (`source`: the table's or the queue's name)."""

    function: str
    source: str
    stream: bool
    batch_size: int
    filters: tuple[Mapping[str, Any], ...] = ()
    bisect: bool = False
    parallel: int = 1
    reports_failures: bool = False
    max_age: timedelta | None = None
    max_retries: int | None = None
    on_failure: str | None = None
    """The name of the queue of what was given up."""


@dataclass(frozen=True, slots=True)
class PlannedQueue:
    """A queue. `dead_letters`: the name of the queue that gets what was received too often."""

    name: str
    fifo: bool = False
    visibility: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=4)
    dead_letters: str | None = None
    max_receives: int = 0

    @property
    def arn(self) -> str:
        """The queue's ARN."""
        return arn("sqs", self.name)


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """Where a rule sends what it matches. `paths` and `template`: its input transformer."""

    arn: str
    input: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    template: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedRule:
    """An EventBridge rule: a pattern on a bus, or a rate."""

    name: str
    bus: str
    targets: tuple[PlannedTarget, ...]
    pattern: Mapping[str, Any] | None = None
    every: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """The state machine, its definition with all placeholders filled."""

    name: str
    definition: str
    role: str

    @property
    def arn(self) -> str:
        """The machine's ARN."""
        return arn("states", f"stateMachine:{self.name}")


Statement = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is deployed for one environment."""

    environment: str
    tables: Mapping[Table, PlannedTable]
    functions: tuple[PlannedFunction, ...]
    mappings: tuple[PlannedMapping, ...]
    queues: tuple[PlannedQueue, ...]
    rules: tuple[PlannedRule, ...]
    machine: PlannedMachine
    buses: tuple[str, ...]
    schedule_groups: tuple[str, ...]
    policies: Mapping[str, tuple[Statement, ...]] = field(default_factory=dict)
    """By role: the statements of all policies it has."""
    key: str | None = None
    """The KMS key with which everything is encrypted."""

    def has_function(self, name: str) -> bool:
        """Is there a function of that name or ARN?"""
        return any(name in (one.name, one.arn) for one in self.functions)

    def function(self, name: str) -> PlannedFunction:
        """The function of that name or ARN."""
        return next(one for one in self.functions if name in (one.name, one.arn))
