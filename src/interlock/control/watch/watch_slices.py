"""A pass of the watchdog in slices: several workers may take one each, and each slice knows when it was last complete.

A pipeline belongs to the slice that its name says, so no worker has to ask another. Two workers with the same slice do
no harm: every act is compare-and-set, every alert is given once.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from zlib import crc32

import msgspec

from interlock.model import keys
from interlock.model.errors import InvalidValueError
from interlock.model.keys import Table
from interlock.model.times import parse_instant
from interlock.ports.store import Key, Store

PIPELINES_PER_SLICE: Final = 500
_MOST: Final = 1000
_RECORD: Final = "WATCHDOG"


class Slice(msgspec.Struct, frozen=True):
    """Slice `number` (from 0) of so many; the only one by default."""

    number: int = 0
    of: int = 1

    def holds(self, pipeline: str) -> bool:
        """Is it this slice that looks at the pipeline?"""
        return self.of == 1 or crc32(pipeline.encode()) % self.of == self.number

    @property
    def key(self) -> Key:
        """Where its last complete pass is kept."""
        sk = _RECORD if self.of == 1 else f"{_RECORD}#{self.of:04d}#{self.number:04d}"
        return Key(Table.CONTROL, keys.CONTROLLER, sk)

    @property
    def payload(self) -> dict[str, int]:
        """As it is given to a worker."""
        return {"slice": self.number, "of": self.of}


WHOLE: Final = Slice()


def slice_of(payload: Mapping[str, Any]) -> Slice:
    """The slice that a worker was given; the whole pass when it was given none."""
    number, of = payload.get("slice", 0), payload.get("of", 1)
    sound = all(isinstance(one, int) and not isinstance(one, bool) for one in (number, of))
    if not sound or not 0 <= number < of <= _MOST:
        raise InvalidValueError(f"there is no slice {number!r} of {of!r}: 0 <= slice < of <= {_MOST}")
    return Slice(number, of)


def slices_for(pipelines: int) -> list[Slice]:
    """The slices of a pass over so many pipelines. Doubled from time to time, so that few records are left behind."""
    of = 1
    while of * PIPELINES_PER_SLICE < pipelines and of < _MOST // 2:
        of *= 2
    return [Slice(number, of) for number in range(of)]


def last_complete(store: Store) -> datetime | None:
    """Since when every slice has been looked at: of the slices of the latest pass, the one that lags most.

    None when no pass was ever complete.
    """
    by_count: dict[int, list[datetime]] = {}
    for record in store.query(Table.CONTROL, keys.CONTROLLER, _RECORD):
        at = parse_instant(record.item.get("completeAt"))
        parts = record.key.sk.split("#")
        if at is not None:
            by_count.setdefault(int(parts[1]) if len(parts) == 3 else 1, []).append(at)
    whole = [min(times) for of, times in by_count.items() if len(times) == of]
    return max(whole, default=None)
