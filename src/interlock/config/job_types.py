"""Which types of jobs a config may name: ours, and those that installed packages add."""

from collections.abc import Iterator

import msgspec

from interlock.config.problems import Finding
from interlock.config.suggestions import did_you_mean, synonyms_of
from interlock.decide.values import show
from interlock.model.config import JobType
from interlock.model.errors import InterlockError
from interlock.model.job_configs import JOB_CONFIGS
from interlock.ports.job_types import GROUP, foreign_targets, known_types


def check_type(type_: str) -> Iterator[Finding]:
    """A type that is neither ours nor installed is an error: nobody could ever start the job."""
    if type_ in frozenset(JobType):
        return
    known = known_types()
    if type_ not in known:
        hint = (
            did_you_mean(type_, known, synonyms_of(JobType))
            or f"; a package adds a type by an entry point of the group {GROUP}"
        )
        yield Finding(("job", "type"), f"{show(type_)} is not one of {', '.join(known)}{hint}")


def config_type(type_: str) -> type[msgspec.Struct] | None:
    """What `job.config` of a type must be; None where nobody says so."""
    if type_ in JOB_CONFIGS:
        return JOB_CONFIGS[type_]
    from interlock.ports.job_targets import JobTarget  # for types of other people alone

    found = foreign_targets().get(type_)
    try:
        target = found.load() if found is not None else None
    except Exception as error:
        raise InterlockError(f"the package that adds jobs of type {type_} cannot be loaded: {error}") from error
    return target.config if isinstance(target, JobTarget) else None
