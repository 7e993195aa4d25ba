"""What the commands read and write, through a running server (the SDK's Client) or a store.

A command is written once, against this. Which of the two it is, is decided as `store_access` says: a store that a
running server has open is written through that server, and read directly. An environment on AWS is always served.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from interlock.cli.store_access import Target, find_target, through_server

if TYPE_CHECKING:
    from interlock.client.answers import (
        AuditRecord,
        Cancelled,
        Claim,
        Controller,
        DeadLetter,
        Delivery,
        Event,
        JobOutput,
        JobRecord,
        Pipeline,
        PipelineDetail,
        Readiness,
        Rerun,
        Run,
        RunDetail,
        Sensor,
        WatchdogPass,
        Written,
    )


class Backend(Protocol):
    """The methods of the SDK that the commands use; they are documented there (`interlock.client.core`)."""

    def write_sensor(self, pipeline: str, key: str, data: Mapping[str, Any], *, ttl: int | None = None) -> "Written":
        """Write an observation; durable when this returns."""
        ...

    def read_sensor(self, pipeline: str, key: str) -> "Sensor":
        """The latest observation of a key."""
        ...

    def read_sensors(self, pipeline: str, *, limit: int | None = None) -> "list[Sensor]":
        """The sensors of a pipeline, by key."""
        ...

    def delete_sensor(self, pipeline: str, key: str) -> None:
        """Forget the observation of a key; an error when there is none."""
        ...

    def pipelines(self, *, limit: int | None = None) -> "list[Pipeline]":
        """Every pipeline, by id, with its latest run."""
        ...

    def pipeline(self, pipeline: str) -> "PipelineDetail":
        """One pipeline, with its document."""
        ...

    def readiness(self, pipeline: str, date: str | None = None, *, schedule: str | None = None) -> "Readiness":
        """The rules as they stand for a run."""
        ...

    def runs(self, pipeline: str, *, schedule: str | None = None, limit: int | None = 50) -> "list[Run]":
        """The runs of a pipeline, the latest date first."""
        ...

    def run(self, pipeline: str, date: str, *, schedule: str | None = None) -> "RunDetail":
        """One run with everything that hangs on it."""
        ...

    def rerun(
        self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = "", force: bool = False
    ) -> "Rerun":
        """Ask for another attempt of a run."""
        ...

    def claim(
        self, pipeline: str, date: str | None = None, *, schedule: str | None = None, claim_id: str | None = None
    ) -> "Claim":
        """Take the job of an external run; NotClaimedError when it is not the caller's."""
        ...

    def cancel(self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = "") -> "Cancelled":
        """End a waiting attempt, or have a running job stopped."""
        ...

    def job_output(
        self, pipeline: str, date: str, *, schedule: str | None = None, attempt: int | None = None, offset: int = 0
    ) -> "JobOutput":
        """What a job wrote."""
        ...

    def report_job(
        self,
        pipeline: str,
        date: str,
        result: str,
        *,
        schedule: str | None = None,
        attempt: int | None = None,
        run_id: str = "",
        category: str | None = None,
        error: str = "",
    ) -> "JobRecord":
        """Report how a job ended."""
        ...

    def events(
        self,
        *,
        follow: bool = False,
        pipeline: str | None = None,
        type: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        limit: int | None = 100,
    ) -> "Iterator[Event]":
        """The latest events, oldest first; with `follow` those to come."""
        ...

    def controller(self) -> "Controller":
        """How the controller stands."""
        ...

    def run_watchdog(self) -> "WatchdogPass":
        """One pass of the watchdog, now."""
        ...

    def alerts(
        self, *, state: str | None = None, channel: str | None = None, limit: int | None = 100
    ) -> "list[Delivery]":
        """Alerts on their way to people, the latest first."""
        ...

    def audit(
        self,
        *,
        pipeline: str | None = None,
        actor: str | None = None,
        action: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = 100,
    ) -> "list[AuditRecord]":
        """Who changed what, the latest first."""
        ...

    def dead_letters(self, *, limit: int | None = 100) -> "list[DeadLetter]":
        """What was given up on, in the order it came."""
        ...

    def redrive(self, ids: Sequence[int] | None = None) -> int:
        """Have these dead letters (None: all) done again; how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class Connected:
    """A backend, what it is, and whether a controller is there that acts on what is written."""

    backend: Backend
    target: Target
    served: bool


NOT_SERVED: Final = "no controller runs on this store: nothing follows from it until `interlock serve` is started"


@contextmanager
def connected(store: str | None, url: str | None, *, writing: bool = False) -> Iterator[Connected]:
    """The backend that is meant. Never creates a store: one that is not there is an error that says so."""
    target = find_target(store, url)
    if target.aws is not None:
        from interlock.cli import aws_backend

        with aws_backend.opened(target.aws) as environment:
            yield Connected(environment, target, served=True)
        return
    running = through_server(target)
    if target.path is None or (writing and running.url is not None):
        from interlock.client import Client, RetryPolicy

        # A person waits, and can say it again.
        with Client(running.url, retry=RetryPolicy(retries=1)) as client:
            yield Connected(client, running, served=True)
        return
    from interlock.cli.store_backend import opened
    from interlock.control.context import Auditing

    with opened(target.path, writing=writing, auditing=Auditing(sensors=target.audit_sensors)) as backend:
        yield Connected(backend, target, served=running.url is not None)
