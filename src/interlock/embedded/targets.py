"""The systems in which the embedded controller starts jobs: those of the registry, made for this controller.

Commands are made at once: those that an earlier controller started are watched from the start. The others are made when
they are first called. Asking what an installation is able to do loads none of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.config.warnings import Abilities
from interlock.control.pools import COMMANDS
from interlock.jobs.registry import close_runner, make_runner, startable_types, why_unavailable
from interlock.jobs.secrets import SecretRunner, missing_secrets
from interlock.model.config import JobType
from interlock.ports.job_targets import TargetSettings
from interlock.ports.jobs import JobRunner
from interlock.ports.secrets import Secrets
from interlock.probes.registry import missing_probes

if TYPE_CHECKING:
    from interlock.jobs.command.target import CommandRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The runners of one controller, by type. `commands` is None where nothing could outlive the controller."""

    runners: dict[str, JobRunner]
    commands: "CommandRunner | None"

    def close(self) -> None:
        """Close what the runners hold open. Jobs go on."""
        for runner in self.runners.values():
            close_runner(runner)


def make_targets(settings: TargetSettings, secrets: Secrets) -> Targets:
    """A runner for every type of job that there is a target for; each is given its secrets call by call."""
    from interlock.jobs.command.target import make_command_runner

    commands = make_command_runner(settings) if settings.folder is not None else None
    runners: dict[str, JobRunner] = {} if commands is None else {JobType.COMMAND: commands}
    runners |= {name: make_runner(name, settings) for name in startable_types() if name != JobType.COMMAND}
    guarded: dict[str, JobRunner] = {name: SecretRunner(runner, secrets) for name, runner in runners.items()}
    return Targets(runners=guarded, commands=commands)


def abilities(pools: Iterable[str] | None = None) -> Abilities:
    """What an embedded controller of this installation can do of all that a config may ask for.

    `pools`: those of its settings, if these are known.
    """
    types = startable_types()
    missing = {name: problem for name in types if (problem := why_unavailable(name))}
    missing |= missing_secrets()
    sized = None if pools is None else frozenset((*pools, COMMANDS))
    return Abilities(job_types=frozenset(types), missing=missing, missing_probes=missing_probes(), pools=sized)
