"""Keeps the events table in the order of the commits.

An event's sort key begins with the time at which it was made, and ends with a number of its maker's. Both are taken
before the commit; two threads that make an event each may commit them the other way round. Alerts, live followers and
the stream go by the commits: whoever reads the table must find the same order. So an event that would come to lie
before one that is already committed is given a key just behind it. Its own timestamp stays what it was.
"""

from typing import Final

from interlock.model.keys import Table
from interlock.ports.store import Key

# What is further back than that was not overtaken: the clock was set.
_OVERTAKEN_MILLIS: Final = 2000
_DIGITS: Final = 13

_Place = tuple[int, str]


class EventOrder:
    """The place of the latest event. Used by one thread at a time: that which commits."""

    def __init__(self) -> None:
        self._latest: _Place = (0, "")
        self._moved = 0

    def placed(self, key: Key) -> Key:
        """The key under which an event is to be stored; any other item's key is what it is."""
        place = _place_of(key)
        if place is None:
            return key
        millis, number = self._latest
        if place > self._latest or millis - place[0] > _OVERTAKEN_MILLIS:
            self._latest, self._moved = place, 0
            return key
        # Behind the latest one and before any other: longer than its number, which all the others differ from.
        self._moved += 1
        stem = number.partition(".")[0]
        self._latest = (millis, f"{stem}.{self._moved:06x}")
        type_ = key.sk.split("#")[1]
        return Key(key.table, key.pk, f"{millis:0{_DIGITS}d}#{type_}#{self._latest[1]}")


def _place_of(key: Key) -> _Place | None:
    """When an event was made, and its number; None for what is no event."""
    if key.table is not Table.EVENTS:
        return None
    parts = key.sk.split("#")
    digits = parts[0]
    if len(parts) != 3 or len(digits) != _DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits), parts[2]
