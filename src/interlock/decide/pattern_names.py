"""Does an event pattern name what there is? A pattern about an event or field that does not exist never matches.

EventBridge cannot know; for us it is a misspelling, which would be noticed when the alert is missed. Fields are looked
for as deep as the catalogue lists them; where the pattern names its event types, among the fields of these types.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from interlock.decide.event_size import CUT
from interlock.decide.patterns import compile_pattern
from interlock.decide.values import show
from interlock.model.events import CATALOGUE, SOURCE, EventType, Severity

_TYPE: Final = "detail-type"
_TOP: Final = ("source", _TYPE, "detail")
# Of the envelope of an event: `Event.envelope`.
_DETAIL: Final = ("pipelineId", "scheduleId", "date", "message", "timestamp", "severity", "detail")
_WORDS: Final[Mapping[tuple[str, ...], Collection[str]]] = {
    ("source",): (SOURCE,),
    (_TYPE,): tuple(EventType),
    ("detail", "severity"): tuple(Severity),
}


def unknown_names(pattern: Mapping[str, Any]) -> Iterator[str]:
    """What a valid pattern names that no event has, each as a sentence that begins with its path."""
    yield from _unknown(pattern, (), _types(pattern))


def _unknown(pattern: Mapping[str, Any], path: tuple[str, ...], types: Sequence[EventType]) -> Iterator[str]:
    for name, value in pattern.items():
        here = (*path, name)
        if name == "$or":
            for choice in value:
                yield from _unknown(choice, path, _types(choice) if _TYPE in choice else types)
            continue
        known = _fields(path, types)
        if known is not None and name not in known:
            of = f" of {', '.join(types)}" if path == ("detail", "detail") and len(types) <= 3 else ""
            yield f"{'.'.join(here)}: there is no such field{of}{_near(name, known)}"
        elif isinstance(value, Mapping):
            yield from _unknown(value, here, types)
        elif here in _WORDS:
            yield from _unknown_words(value, here, _WORDS[here])


def _fields(path: tuple[str, ...], types: Sequence[EventType]) -> Collection[str] | None:
    """The fields there are below a path; None where nobody lists them."""
    if not path:
        return _TOP
    if path == ("detail",):
        return _DETAIL
    if path == ("detail", "detail"):
        return {CUT, *(field for type_ in types for field in CATALOGUE[type_].fields)}
    return None


def _types(pattern: Mapping[str, Any]) -> list[EventType]:
    """The event types that a pattern lets through; all of them where it names none, or none that exists."""
    values = pattern.get(_TYPE)
    if values is None:
        return list(EventType)
    wanted = compile_pattern({_TYPE: values})
    return [one for one in EventType if wanted({_TYPE: one.value})] or list(EventType)


def _unknown_words(values: Sequence[Any], path: tuple[str, ...], words: Collection[str]) -> Iterator[str]:
    """Each value or operator has to let something through; of `anything-but`, each value has to keep something out."""
    field = ".".join(path)
    for value in values:
        listed = _named(value)
        for word in listed:
            if word not in words:
                what = "an event type" if path == (_TYPE,) else f"one of {', '.join(words)}"
                yield f"{field}: {show(word)} is not {what}{_near(str(word), words)}"
        matching = compile_pattern({"x": [value]})
        if not listed and not any(matching({"x": word}) for word in words):
            yield f"{field}: {show(value)} matches none of those there are"


def _named(value: Any) -> list[Any]:
    """The values that are written out: the value itself, or those of `anything-but`."""
    if not isinstance(value, Mapping):
        return [value]
    excluded = value.get("anything-but")
    if excluded is None or isinstance(excluded, Mapping):
        return []
    return list(excluded) if isinstance(excluded, list | tuple) else [excluded]


def _near(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # for a name that is wrong; functions read those that are right

    folded = {one.casefold(): one for one in known}
    found = get_close_matches(name.casefold(), folded)
    return f"; did you mean {folded[found[0]]}?" if found else ""
