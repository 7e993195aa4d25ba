"""The world on real time, for a caller in another process: each call of AWS comes through a pipe, one after the other.

Nothing in the world has to be ready for two callers at a time; between the calls happens what is due.
"""

from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any, Final

from botocore.exceptions import ClientError

from interlock.embedded.clock import SystemClock
from tests.aws.world.cloud import Cloud, client
from tests.aws.world.functions import Modules
from tests.aws.world.plan import REGION, PlannedFunction
from tests.aws.world.targets import everything
from tests.jobs.aws.moto_services import played_jobs

JOB: Final = "gold-revenue"
"""The function that the plan allows as a job: it succeeds at once."""
_EVERY: Final = 0.05
_WATCH_EVERY: Final = timedelta(minutes=5)


def play(pipe: Connection) -> None:
    """Answer calls, and between them let happen what is due, until the caller is gone."""
    with played_jobs() as aws, _cloud().running() as cloud:
        aws.function(JOB, lambda event: {"rows": 5})
        watched = _watched(cloud)
        pipe.send(f"aws://{cloud.plan.environment}?region={REGION}")
        while (call := _next_call(pipe)) is not None:
            if call:
                pipe.send(_answered(*call))
                continue
            if cloud.clock.now() - watched >= _WATCH_EVERY:
                watched = _watched(cloud)
            _advance(cloud)


def _cloud() -> Cloud:
    def prepare(modules: Modules, function: PlannedFunction) -> None:
        clients: Any = modules["interlock.aws.clients"]
        clients.make_client = client

    return Cloud(everything({"LOG_LEVEL": "ERROR"}), SystemClock(), prepare)


def _next_call(pipe: Connection) -> Any:
    """What the caller asks for: service, operation and arguments; nothing within a while; None when it is gone."""
    if not pipe.poll(_EVERY):
        return ()
    try:
        return pipe.recv()
    except EOFError:
        return None


def _answered(service: str, operation: str, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """The answer to a call, or the refusal."""
    try:
        answer = client(service)._make_api_call(operation, arguments)
    except ClientError as error:
        return None, error.response
    # A stream does not go through a pipe.
    return {**answer, "Payload": answer["Payload"].read()} if "Payload" in answer else answer, None


def _advance(cloud: Cloud) -> None:
    """Everything that is due, until nothing is."""
    while cloud.pump_timers() + cloud.machine.run_due(cloud.clock.now()) + cloud.pump_streams():
        pass


def _watched(cloud: Cloud) -> datetime:
    """The watchdog passes; when."""
    for rule in cloud.plan.rules:
        if rule.every is not None:
            cloud.bus.fire(rule)
    _advance(cloud)
    return cloud.clock.now()
