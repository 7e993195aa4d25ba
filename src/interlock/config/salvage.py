"""What is left of a document with errors, so that the rest of it can be checked in the same go.

What does not fit its type is left out where a default takes its place, and otherwise replaced by something that fits.
No such config is ever run. What is found in it passes through `certain`: a finding that rests on a part with errors of
its own says nothing.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from interlock.config.decode import decode, type_info, wrong_for
from interlock.config.problems import Finding, Path

_T = TypeVar("_T", bound=msgspec.Struct)
_ABSENT: Final = object()
# One of these has the form that any text of the model must have.
_TEXTS: Final = ("0.missing", "00:00", "2000-01-01", "1%")


def salvage(document: object, type_: type[_T]) -> _T | None:
    """The value of the parts that are right; None if there is no telling."""
    info = type_info(type_)
    mended = _mended(document, info)
    decoded = decode(_filler(info) if mended is _ABSENT else mended, type_)
    return None if isinstance(decoded, tuple) else decoded


def certain(findings: Iterable[Finding], broken: Iterable[Path]) -> tuple[Finding, ...]:
    """The findings about a salvaged value that hold whatever was meant by the parts that are broken."""
    paths = tuple(broken)
    return tuple(
        one
        for one in findings
        if not any(_inside(one.path, path) or _inside(path, one.path) for path in paths)
        and not any(_inside(path, needed) for needed in one.needs for path in paths)
    )


def _inside(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer


def _mended(value: object, type_: inspect.Type) -> Any:
    """The value without what is wrong with it; _ABSENT if nothing is left."""
    match type_:
        case inspect.Metadata():
            return _mended(value, type_.type)
        case inspect.StructType() if isinstance(value, Mapping):
            return _mended_mapping(value, type_)
        case inspect.ListType() if isinstance(value, list | tuple) and len(value) >= (type_.min_length or 0):
            items = (_mended(item, type_.item_type) for item in value)
            return [_filler(type_.item_type) if item is _ABSENT else item for item in items]
        case inspect.UnionType():
            return _mended_choice(value, type_)
        case _:
            return value if _fits(value, type_) else _ABSENT


def _mended_mapping(value: Mapping[str, object], type_: inspect.StructType) -> dict[str, object]:
    mended: dict[str, object] = {}
    for field in type_.fields:
        name = field.encode_name
        inner = _mended(value[name], field.type) if name in value else _ABSENT
        if inner is not _ABSENT:
            mended[name] = inner
        elif field.required:
            mended[name] = _filler(field.type)
    return mended


def _mended_choice(value: object, type_: inspect.UnionType) -> object:
    if _fits(value, type_):
        return value
    choices = [one for one in type_.types if not isinstance(one, inspect.NoneType)]
    return _mended(value, choices[0]) if len(choices) == 1 else _ABSENT


def _fits(value: object, type_: inspect.Type) -> bool:
    return not list(islice(wrong_for(value, type_), 1))


def _filler(type_: inspect.Type) -> object:
    """Something that fits, where something is required."""
    match type_:
        case inspect.Metadata():
            return _filler(type_.type)
        case inspect.UnionType():
            return _filler(type_.types[0])
        case inspect.StructType():
            return {field.encode_name: _filler(field.type) for field in type_.fields if field.required}
        case inspect.ListType():
            return [_filler(type_.item_type)] * (type_.min_length or 0)
        case inspect.EnumType():
            return next(iter(type_.cls)).value
        case inspect.LiteralType():
            return type_.values[0]
        case inspect.StrType():
            return next((text for text in _TEXTS if re.search(type_.pattern or "", text)), _TEXTS[0])
        case inspect.IntType() | inspect.FloatType():
            return type_.ge or 0
        case inspect.CustomType():
            return "1h"
        case inspect.DictType():
            return {}
        case _:
            return False
