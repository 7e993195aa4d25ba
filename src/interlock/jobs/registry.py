"""The types of jobs there are, and where their targets are found: a target of ours is one module and one line here.

Nothing is imported before it is needed: checking a config, or running commands, must not load the AWS SDK. What a type
needs and is not installed is known without importing it, and said when a config is loaded.
"""

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

import msgspec

from interlock.extras import AWS, Extra
from interlock.model.config import JobType
from interlock.model.errors import InterlockError, JobStartError
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.job_types import foreign_targets, known_types
from interlock.ports.jobs import JobOutput, JobRequest, JobRunner, JobStarted, JobStatus, JobStop, Recovery


class Registered(msgspec.Struct, frozen=True):
    """Where the target of a type is, and what it cannot do without."""

    where: str
    needs: Extra | None = None


BUILT_IN: Final[Mapping[str, Registered]] = {
    JobType.COMMAND: Registered("interlock.jobs.command.target:TARGET"),
    JobType.HTTP: Registered("interlock.jobs.http.target:TARGET"),
    JobType.AIRFLOW: Registered("interlock.jobs.airflow.target:TARGET"),
    JobType.DATABRICKS: Registered("interlock.jobs.databricks.target:TARGET"),
    JobType.EXTERNAL: Registered("interlock.jobs.external:TARGET"),
    JobType.GLUE: Registered("interlock.jobs.aws.glue:TARGET", AWS),
    JobType.EMR: Registered("interlock.jobs.aws.emr:TARGET", AWS),
    JobType.EMR_SERVERLESS: Registered("interlock.jobs.aws.emr_serverless:TARGET", AWS),
    JobType.STEP_FUNCTION: Registered("interlock.jobs.aws.step_function:TARGET", AWS),
    JobType.LAMBDA: Registered("interlock.jobs.aws.lambda_function:TARGET", AWS),
}


def startable_types() -> list[str]:
    """Every type that has a target, also one whose package is missing."""
    return [name for name in known_types() if name in BUILT_IN or name in foreign_targets()]


def why_unavailable(type_: str) -> str:
    """What keeps this installation from starting jobs of a type, and what to do; "" if nothing is known to."""
    found = BUILT_IN.get(type_)
    if found is None:
        return "" if type_ in foreign_targets() else f"jobs of type {type_} cannot be started by this installation"
    return "" if found.needs is None else found.needs.why_missing(f"jobs of type {type_}")


def load_target(type_: str) -> JobTarget:
    """The target of a type; raises InterlockError with what is missing or wrong."""
    problem = why_unavailable(type_)
    if problem:
        raise InterlockError(problem)
    try:
        found = _imported(type_)
    except Exception as error:
        raise InterlockError(f"the target of jobs of type {type_} cannot be loaded: {error}") from error
    if not isinstance(found, JobTarget):
        raise InterlockError(f"the entry point {type_!r} of interlock.jobs is {found!r}, which is not a JobTarget")
    return found


def _imported(type_: str) -> object:
    if type_ not in BUILT_IN:
        return foreign_targets()[type_].load()
    module, _, name = BUILT_IN[type_].where.partition(":")
    return getattr(import_module(module), name)


def make_runner(type_: str, settings: TargetSettings) -> "LazyRunner":
    """A runner that loads its target when it is first called."""
    return LazyRunner(lambda: load_target(type_).make(settings))


class LazyRunner:
    """A runner that is made by its first call. When it cannot be made, every start is refused with the reason."""

    def __init__(self, make: Callable[[], JobRunner]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: JobRunner | None = None

    def start(self, request: JobRequest) -> JobStarted:
        """As the target does it."""
        return self._runner().start(request)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """As the target does it."""
        return self._runner().recover(request)

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """As the target does it."""
        return self._runner().check(request, job_id)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """As the target does it."""
        return self._runner().stop(request, job_id)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """As the target does it."""
        return self._runner().output(request, job_id, offset=offset)

    def link(self, request: JobRequest, job_id: str) -> str:
        """As the target does it."""
        return self._runner().link(request, job_id)

    def close(self) -> None:
        """Close what was made, if it can be closed."""
        with self._lock:
            made, self._made = self._made, None
        close_runner(made)

    def _runner(self) -> JobRunner:
        with self._lock:
            if self._made is None:
                try:
                    self._made = self._make()
                except JobStartError:
                    raise
                except InterlockError as error:
                    raise JobStartError(str(error), permanent=True) from error
            return self._made


def close_runner(runner: object) -> None:
    """Close a runner that holds something open."""
    close = getattr(runner, "close", None)
    if callable(close):
        close()
