"""The systems in which the embedded controller starts jobs: the one list of them.

A target is a field here. The service has to fill in each, and `validate` warns of every type of job that is none.
It loads no runner, so that checking a config does not load them all.
"""

from dataclasses import dataclass, fields
from typing import Final

from interlock.config.warnings import Abilities
from interlock.model.config import JobType
from interlock.ports.jobs import JobRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The runners of one controller, named as their type is written. None: this controller has none of it."""

    command: JobRunner | None
    http: JobRunner
    external: JobRunner

    def by_type(self) -> dict[JobType, JobRunner]:
        """What the controller starts jobs with."""
        found = {kind: getattr(self, name) for name, kind in _TYPES.items()}
        return {kind: runner for kind, runner in found.items() if runner is not None}


_TYPES: Final = {field.name: JobType(field.name.replace("_", "-")) for field in fields(Targets)}

ABILITIES: Final = Abilities(job_types=frozenset(_TYPES.values()))
