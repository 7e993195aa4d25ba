"""Late data: does a trigger payload differ from the one its run was started with, in a way that matters (SPEC 7)?

Producers stamp each write with the time and an identifier of their own; a run must not be repeated for those. They are
told apart by how they are named or, for times, by what they say.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from interlock.decide.values import cut, same
from interlock.model.times import parse_instant

MOST_NAMED: Final = 100
_IGNORED_NAMES: Final = frozenset({"timestamp", "id", "uuid"})
_IGNORED_ENDINGS: Final = ("At", "_at", "Id", "_id")


def significant_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """The dotted paths whose values differ, sorted within each object; times and identifiers do not count.

    Null is the same as absent. A list that grew or shrank is one change, of the list. Beyond a hundred, `...` stands
    for the rest; a long path is cut.
    """
    found = tuple(islice(_changes_of_objects("", old, new), MOST_NAMED + 1))
    more = ("...",) if len(found) > MOST_NAMED else ()
    return (*map(cut, found[:MOST_NAMED]), *more)


def _changes_of_objects(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if not _ignored(name):
            yield from _changes(f"{path}.{name}" if path else name, old.get(name), new.get(name))


def _ignored(name: str) -> bool:
    return name in _IGNORED_NAMES or name.endswith(_IGNORED_ENDINGS)


def _changes(path: str, old: object, new: object) -> Iterator[str]:
    before, after = _as_object(old), _as_object(new)
    if before is not None and after is not None:
        yield from _changes_of_objects(path, before, after)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        yield from _changes_of_lists(path, old, new)
    elif not (same(old, new) or _is_time(old) or _is_time(new)):
        yield path


def _as_object(value: object) -> Mapping[str, Any] | None:
    """Nothing is an object without fields: one that appears or goes is the sum of its fields, times not counted."""
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else None


def _changes_of_lists(path: str, old: Sequence[object], new: Sequence[object]) -> Iterator[str]:
    if len(old) != len(new):
        yield path
        return
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        yield from _changes(f"{path}.{index}", before, after)


def _is_time(value: object) -> bool:
    return isinstance(value, str) and parse_instant(value) is not None
