"""The SDK: sensors, readiness, runs and events of a server, for programs. `from interlock import Client, AsyncClient`.

It loads msgspec, and httpx once a client is made; nothing of the controller. All it knows is in `core` and `following`,
without any I/O; `sync` and `aio` are the two thin shells that do what those say.
"""

from interlock.client.aio import AsyncClient
from interlock.client.answers import (
    Applied,
    Attempt,
    Calendar,
    Claim,
    DeadLetter,
    Event,
    Explanation,
    JobRecord,
    Pipeline,
    PipelineDetail,
    Readiness,
    Rerun,
    RuleResult,
    Run,
    RunDetail,
    Sensor,
    Sla,
    WatchdogPass,
    Written,
)
from interlock.client.errors import (
    AnswerError,
    ClientError,
    ConnectionFailedError,
    NotClaimedError,
    NotFoundError,
    NotReadyError,
    Problem,
    RefusedError,
    ServerFailedError,
    UnauthorizedError,
    UnreadableAnswerError,
    WithheldError,
)
from interlock.client.requests import Observation
from interlock.client.retries import RetryPolicy
from interlock.client.sync import Client

__all__ = [
    "AnswerError",
    "Applied",
    "AsyncClient",
    "Attempt",
    "Calendar",
    "Claim",
    "Client",
    "ClientError",
    "ConnectionFailedError",
    "DeadLetter",
    "Event",
    "Explanation",
    "JobRecord",
    "NotClaimedError",
    "NotFoundError",
    "NotReadyError",
    "Observation",
    "Pipeline",
    "PipelineDetail",
    "Problem",
    "Readiness",
    "RefusedError",
    "Rerun",
    "RetryPolicy",
    "RuleResult",
    "Run",
    "RunDetail",
    "Sensor",
    "ServerFailedError",
    "Sla",
    "UnauthorizedError",
    "UnreadableAnswerError",
    "WatchdogPass",
    "WithheldError",
    "Written",
]
