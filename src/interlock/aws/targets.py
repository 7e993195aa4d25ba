"""The systems in which a function starts jobs: every built-in target but `command`, which needs its own machine."""

from collections.abc import Mapping
from typing import Final

from interlock.aws.settings import AwsSettings
from interlock.jobs.registry import BUILT_IN, make_runner
from interlock.jobs.secrets import SecretRunner
from interlock.model.config import JobType
from interlock.ports.clock import Clock
from interlock.ports.job_targets import TargetSettings
from interlock.ports.jobs import JobRunner
from interlock.ports.secrets import Secrets

TYPES: Final = tuple(name for name in BUILT_IN if name != JobType.COMMAND)


def make_runners(settings: AwsSettings, clock: Clock, secrets: Secrets) -> Mapping[str, JobRunner]:
    """A runner for each type; it is given its secrets call by call, and loads its target when it is first called."""
    given = TargetSettings(clock=clock, environment=settings.variables, allow_private=settings.allow_private)
    return {name: SecretRunner(make_runner(name, given), secrets) for name in TYPES}
