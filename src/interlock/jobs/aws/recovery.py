"""A start whose answer got lost, searched for among the latest runs of a job by our run id."""

from collections.abc import Iterable
from typing import Final

from interlock.ports.jobs import JobStarted, Recovery

SEARCHED: Final = 1000


def found_among(latest: Iterable[tuple[str, bool]]) -> JobStarted | Recovery:
    """Our job among these, the latest first. Behind a thousand others it is not looked for."""
    for seen, (job_id, ours) in enumerate(latest):
        if ours:
            return JobStarted(job_id=job_id)
        if seen >= SEARCHED:
            return Recovery.UNDECIDABLE
    return Recovery.START_AGAIN
