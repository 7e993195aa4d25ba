"""A type of job: how its config is read and its runner made. Packages of other people add types (`ports.job_types`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from interlock.loops import Loops
from interlock.model.keys import RunKey
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobRequest, JobRunner

DEFAULT_OUTPUT_LIMIT: Final = 64 * 1024 * 1024


def _unheard(_key: RunKey, _attempt: int) -> None:
    return None


def _no_callback(_request: JobRequest) -> str:
    return ""


class RunAs(msgspec.Struct, frozen=True, kw_only=True):
    """A user of this machine as whom commands run, with all of the user's groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings:
    """What an installation gives to its targets."""

    clock: Clock
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The controller's environment."""
    allow_private: bool | tuple[str, ...] = False
    """Which private addresses may be called: `interlock.jobs.addresses.AddressPolicy`."""
    folder: Path | None = None
    """Where a target may keep what has to outlive the controller; None: nowhere."""
    working_folder: Path | None = None
    """What relative paths of a config are relative to."""
    output_limit: int = DEFAULT_OUTPUT_LIMIT
    """How many bytes a target keeps of what a job wrote, if it keeps that itself; 0: all of it."""
    run_as: RunAs | None = None
    """As whom commands run; None: as the controller's own user."""
    ended: Callable[[RunKey, int], None] = _unheard
    """Tell that the job of an attempt is over: `check` is called at once, not at the next poll."""
    callback_url: Callable[[JobRequest], str] = _no_callback
    """A signed address at which the job of this request may report its end, once; "" when there is none."""
    loops: Loops = field(default_factory=Loops, repr=False)
    """Where a target adds its threads: one that fails is started again, and the controller's health names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTarget:
    """A type of job. A runner that holds something open has a `close()`."""

    make: Callable[[TargetSettings], JobRunner]
    config: type[msgspec.Struct] | None = None
    """What `job.config` must be; checked when a config is loaded. None: whatever it is."""
