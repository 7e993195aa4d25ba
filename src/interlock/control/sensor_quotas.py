"""The quota of a pipeline's sensors, checked before a write is committed.

Most pipelines are far below it. So the count is read once for as many writes as fit whatever they are, and only near
the quota for each. Writes that are under way at the same time may exceed it by their number.
"""

import threading
from typing import Final

from interlock.decide import quotas
from interlock.decide.quotas import SensorQuota
from interlock.model.errors import QuotaExceededError
from interlock.ports.limits import encode_item
from interlock.ports.store import Item, Key, Store
from interlock.ports.usage import SensorUsage

_MOST_REMEMBERED: Final = 10_000


class SensorQuotas:
    """The quotas of all pipelines of a store."""

    def __init__(self, usage: SensorUsage, quota: SensorQuota) -> None:
        self._usage = usage
        self._quota = quota
        self._lock = threading.Lock()
        self._room: dict[str, int] = {}

    def check(self, store: Store, pipeline: str, key: Key, item: Item) -> None:
        """Raise QuotaExceededError for a write that is not to be made."""
        if self._fits(pipeline):
            return
        use = self._usage.sensors_of(pipeline)
        room = quotas.room(use, self._quota)
        if room:
            self._remember(pipeline, room)
            return
        replaced = store.get(key)
        refusal = quotas.refusal(
            use,
            self._quota,
            expiring=item.get("ttl") is not None,
            size=_size(key, item),
            replaced=None if replaced is None else _size(key, replaced),
        )
        if refusal:
            raise QuotaExceededError(f"pipeline {pipeline!r} may have no more: {refusal}")

    def _fits(self, pipeline: str) -> bool:
        with self._lock:
            left = self._room.get(pipeline, 0)
            if left:
                self._room[pipeline] = left - 1
            return left > 0

    def _remember(self, pipeline: str, room: int) -> None:
        with self._lock:
            if len(self._room) >= _MOST_REMEMBERED:
                self._room.clear()
            self._room[pipeline] = room - 1


def _size(key: Key, item: Item) -> int:
    return len(encode_item(key, item).encode())
