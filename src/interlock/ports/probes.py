"""What can be asked for an observation. One module of `interlock.probes` for each kind."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import msgspec

from interlock.model.config import ProbeType


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One look. `date` is the period that a dated probe looks for; "" for any other.

    What the controller hands out still has its secrets as `decide.templates.SecretText`; what a kind of probe gets does
    not.
    """

    pipeline: str
    key: str
    type: ProbeType
    config: Mapping[str, Any]
    timeout: timedelta
    date: str = ""


class Prober(Protocol):
    """Whoever looks. Called from worker threads, many at once; a look may take long, and holds no lock meanwhile."""

    def answers(self, pipeline: str, key: str) -> bool:
        """Is there anybody to ask for this probe? If not, it is never due, and nobody waits for it."""
        ...

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The observation now. Raises ProbeError, which tells no secret, also when `timeout` is over.

        The caller does not rely on the timeout being kept.
        """
        ...
