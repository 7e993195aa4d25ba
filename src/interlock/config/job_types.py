"""Which types of jobs a config may name: ours, and those that installed packages add."""

from collections.abc import Iterator, Mapping

from interlock.config.problems import Finding
from interlock.config.suggestions import did_you_mean
from interlock.decide.values import show
from interlock.model.config import JobType
from interlock.ports.job_targets import GROUP, known_types


def check_type(type_: str) -> Iterator[Finding]:
    """A type that is neither ours nor installed is an error: nobody could ever start the job."""
    if type_ in frozenset(JobType):
        return
    known = known_types()
    if type_ not in known:
        hint = did_you_mean(type_, known) or f"; a package adds a type by an entry point of the group {GROUP}"
        yield Finding(("job", "type"), f"{show(type_)} is not one of {', '.join(known)}{hint}")


def check_type_of(document: Mapping[str, object]) -> Iterator[Finding]:
    """The same, of a document that has other errors."""
    job = document.get("job")
    type_ = job.get("type") if isinstance(job, Mapping) else None
    if isinstance(type_, str):
        yield from check_type(type_)
