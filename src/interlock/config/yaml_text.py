"""YAML text to a plain document, by the YAML 1.2 core: `NO`, `10:00` and `2026-03-31` are the text they look like.

Only `true`, `false`, `null`, `~`, integers and floats are anything else (docs/adr/0006). Works on the parser's
events, not on its nodes: libyaml composes nodes by recursion, and a deep document would overflow the C stack.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.scanner import ScannerError

from interlock.config.builder import MAX_DEPTH, MAX_VALUES, Builder, Flaw, Unreadable, fits_json

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may have been built without libyaml
_CONSTANTS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAY_BE_NUMBER: Final = frozenset("0123456789+-.")
_INT: Final = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE: Final = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
# Python refuses to read longer integers, and one beyond 64 bits is refused anyway.
_MAX_DIGITS: Final = 400
# No text has more than two values for each of its characters, so these cannot hold too many.
_SHORT: Final = MAX_VALUES // 4
_TAG: Final = "tag:yaml.org,2002:"
_TAGGED: Final[dict[str, type | tuple[type, ...]]] = {
    "int": int,
    "float": (float, int),
    "bool": bool,
    "null": type(None),
}


def parse_yaml(text: str, builder: Builder) -> None:
    """Feed the one document of a text to the builder; Unreadable when there is not exactly one."""
    try:
        loader = LOADER(text)
        try:
            _feed_all(loader.get_event, builder)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_tab_flaw(error, text) or _syntax_flaw(error)) from error
    except yaml.YAMLError as error:
        raise Unreadable(Flaw(_line_of(error, text), (), f"not YAML: {_reason(error)}")) from error
    except (ValueError, OverflowError) as error:  # the pure Python scanner meets `\UFFFFFFFF` with chr()
        raise Unreadable(Flaw(1, (), f"not YAML: {error}")) from error


def _feed_all(next_event: Callable[[], Any], builder: Builder) -> None:
    # The innermost loop of a load: types are compared, not asked for, the most frequent first.
    documents = 0
    while (kind := type(event := next_event())) is not StreamEndEvent:
        line = event.start_mark.line + 1
        if kind is ScalarEvent:
            _feed_scalar(event, line, builder)
        elif kind is MappingStartEvent:
            _check_tag(event, "map", line, builder)
            builder.open({}, line, event.anchor)
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            builder.close()
        elif kind is SequenceStartEvent:
            _check_tag(event, "seq", line, builder)
            builder.open([], line, event.anchor)
        elif kind is AliasEvent:
            builder.alias(event.anchor, line)
        elif kind is DocumentStartEvent:
            documents += 1
            if documents > 1:
                raise Unreadable(Flaw(line, (), "a second document begins here: put each in a file of its own"))


class _NotPlainError(Exception):
    """A document with something in it that the builder has to judge."""


def plain_mapping(text: str) -> dict[str, object] | None:
    """The mapping of a text that has neither flaws nor anchors, tags and merges; None: ask `parse_yaml`.

    Almost every file is such a text, and is never asked where its values stand: without that, reading takes half as
    long. Whatever is wrong is left for the builder to say, which meets it again.
    """
    if len(text) > _SHORT:
        return None
    try:
        loader = LOADER(text)
        try:
            return _plain_root(loader.get_event)
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, OverflowError, _NotPlainError):
        return None


def _plain_root(next_event: Callable[[], Any]) -> dict[str, object]:
    documents: list[object] = []
    holder: Any = documents
    key: str | None = None
    outer: list[tuple[Any, str | None]] = []
    value: Any
    while (kind := type(event := next_event())) is not StreamEndEvent:
        if kind is ScalarEvent:
            value = _plain_value(event)
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            holder, key = outer.pop()
            continue
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            value = _plain_container(event, len(outer))
        elif kind is AliasEvent:
            raise _NotPlainError
        else:
            continue
        if type(holder) is list:
            holder.append(value)
        elif key is None:
            key = _plain_key(value, holder)
            continue
        else:
            holder[key], key = value, None
        if kind is not ScalarEvent:
            outer.append((holder, key))
            holder, key = value, None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise _NotPlainError
    return documents[0]


def _plain_value(event: ScalarEvent) -> object:
    if event.tag is not None or event.anchor is not None:
        raise _NotPlainError
    value = plain_scalar(event.value) if event.implicit[0] else event.value
    if (type(value) is not str or not value.isascii()) and not fits_json(value):
        raise _NotPlainError
    return value


def _plain_container(event: MappingStartEvent | SequenceStartEvent, depth: int) -> dict[str, object] | list[object]:
    if event.tag is not None or event.anchor is not None or depth >= MAX_DEPTH:
        raise _NotPlainError
    return {} if type(event) is MappingStartEvent else []


def _plain_key(value: object, holder: dict[str, object]) -> str:
    if type(value) is not str or value == "<<" or value in holder:
        raise _NotPlainError
    return value


def _feed_scalar(event: ScalarEvent, line: int, builder: Builder) -> None:
    text: str = event.value
    if event.implicit[0] and event.tag is None:
        if text == "<<" and builder.awaits_key:
            builder.merge_key(line)
            return
        value = plain_scalar(text)
    elif event.tag is None or event.tag in ("!", _TAG + "str"):
        value = text
    else:
        value = _tagged_scalar(event.tag, text, line, builder)
    builder.scalar(value, line, event.anchor)


def plain_scalar(text: str) -> object:
    """What an unquoted scalar means."""
    if text[:1] in _MAY_BE_NUMBER and len(text) <= _MAX_DIGITS:
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return int(text, 0) if _OTHER_BASE.fullmatch(text) else text
    return _CONSTANTS.get(text, text)


def _tagged_scalar(tag: str, text: str, line: int, builder: Builder) -> object:
    expected = _TAGGED.get(tag.removeprefix(_TAG)) if tag.startswith(_TAG) else None
    value = plain_scalar(text)
    if expected is None:
        builder.flaw(line, f"the tag {_shown(tag)} is not read here: remove it")
    elif not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        builder.flaw(line, f"{text!r} is not what its tag {_shown(tag)} says: correct one of them")
    return value


def _check_tag(event: MappingStartEvent | SequenceStartEvent, kind: str, line: int, builder: Builder) -> None:
    if event.tag not in (None, "!", _TAG + kind):
        builder.flaw(line, f"the tag {_shown(event.tag)} is not read here: remove it")


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _tab_flaw(error: yaml.MarkedYAMLError, text: str) -> Flaw | None:
    """The scanner says `found character that cannot start any token`, which few people understand."""
    if not isinstance(error, ScannerError) or error.problem_mark is None:
        return None
    number = error.problem_mark.line
    line = text.split("\n")[number] if number <= text.count("\n") else ""
    if "\t" not in line[: len(line) - len(line.lstrip())]:
        return None
    return Flaw(number + 1, (), "not YAML: this line is indented with a tab: YAML wants spaces")


def _syntax_flaw(error: yaml.MarkedYAMLError) -> Flaw:
    mark, begun = error.problem_mark, error.context_mark
    line = mark.line + 1 if mark else 1
    context = error.context or ""
    if context and begun and begun.line + 1 != line:
        context += f" that begins on line {begun.line + 1}"
    message = ", ".join(part for part in (context, error.problem) if part)
    return Flaw(line, (), f"not YAML: {message}")


def _line_of(error: yaml.YAMLError, text: str) -> int:
    position = getattr(error, "position", 0)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 1


def _reason(error: yaml.YAMLError) -> str:
    reason = getattr(error, "reason", None) or str(error)
    character = getattr(error, "character", None)
    return f"{reason} (U+{character:04X})" if isinstance(character, int) else str(reason)
