"""What is remembered of a probe between two looks."""

from datetime import datetime

import msgspec


class ProbeState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The latest look at what a probe observes. `key` is the sensor that it writes.

    A look whose end is not recorded by `ends_by` died with its controller. `definition` is the digest of the probe as
    it was declared then: a probe that was changed is looked at anew.
    """

    key: str
    version: int
    look: str
    definition: str
    started_at: datetime
    ends_by: datetime
    ended_at: datetime | None = None
    failing: bool = False
    error: str = ""

    def under_way(self, now: datetime) -> bool:
        """Has the look begun, and may it still end?"""
        return self.ended_at is None and now < self.ends_by
