"""The types of jobs there are: ours, and those that packages of other people add by an entry point.

The entry point belongs to the group `interlock.jobs`; its name is the `job.type`, its object a `JobTarget`. Apart from
`ports.job_targets`, since whoever reads a config needs the names alone.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from interlock.model.config import JobType

GROUP: Final = "interlock.jobs"


@cache
def foreign_targets() -> Mapping[str, EntryPoint]:
    """The types of jobs that other packages add, by name. A name of ours stays ours."""
    return {found.name: found for found in entry_points(group=GROUP) if found.name not in frozenset(JobType)}


def known_types() -> list[str]:
    """Every type that a config may name."""
    return [*JobType, *sorted(foreign_targets())]
