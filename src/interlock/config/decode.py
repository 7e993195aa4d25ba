"""A document as a value of the model, or every reason why it is none.

The decoder stops at the first error, and says little. So it is only asked whether all is well, which it almost always
is; if not, the same types are walked by hand, and everything is reported. The types are the one schema of both: the
tests hold that the walk finds something exactly when the decoder does.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final, TypeVar

import msgspec
from msgspec import inspect

from interlock.config.foreign_keys import example_of, write_instead
from interlock.config.problems import Finding, Path
from interlock.config.suggestions import did_you_mean, synonyms_of
from interlock.decide.values import read_duration, show
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import InvalidValueError

# Nobody reads more, and a hostile document may have a hundred thousand.
MAX_FINDINGS: Final = 200
_CONTAINERS: Final = (inspect.UnionType, inspect.StructType, inspect.ListType, inspect.DictType)
_T = TypeVar("_T", bound=msgspec.Struct)


def decode(document: object, type_: type[_T]) -> _T | tuple[Finding, ...]:
    """The value of that type, or everything that is wrong with the document."""
    try:
        return msgspec.convert(document, type_, dec_hook=_dec_hook)
    except msgspec.ValidationError as error:
        found = tuple(find_wrong(document, type_, ()))
        # The walk knows every type the model uses; were one added to the model alone, this keeps it from passing.
        return found or (Finding((), str(error)),)


class Template(str):
    """Text that stands in place of any text, number, boolean or duration, since it is filled in later."""

    __slots__ = ()


def find_wrong(value: object, type_: type, path: Path) -> Iterator[Finding]:
    """Everything wrong with a value that is to be of that type. Values of the class Template are whatever is wanted."""
    return islice(_wrong(value, type_info(type_), path), MAX_FINDINGS)


def wrong_for(value: object, type_: inspect.Type) -> Iterator[Finding]:
    """Everything wrong with a value for a type of the model."""
    return _wrong(value, type_, ())


def encode_duration(value: object) -> str:
    """The reverse, for those who write configs."""
    if isinstance(value, Duration):
        return format_duration(value)
    raise NotImplementedError(f"a {type(value).__name__} has no place in a config")


def _dec_hook(type_: type, value: object) -> object:
    if type_ is Duration:
        return read_duration(value)
    raise NotImplementedError(f"the model uses {type_.__name__}, which the decoder does not know")


@lru_cache(maxsize=32)
def type_info(type_: type) -> inspect.Type:
    """A type of the model, as the walk reads it."""
    return inspect.type_info(type_)


def _wrong(value: object, type_: inspect.Type, path: Path, meant: str = "") -> Iterator[Finding]:
    """Everything wrong with a value; `meant` says in words what its form should be."""
    match type_:
        case inspect.Metadata():
            yield from _wrong(value, type_.type, path, str((type_.extra or {}).get("form", meant)))
        case _ if isinstance(value, Template) and not isinstance(type_, _CONTAINERS):
            return
        case inspect.UnionType():
            yield from _wrong_choice(value, type_, path)
        case inspect.StructType():
            yield from _wrong_mapping(value, type_, path)
        case inspect.ListType():
            yield from _wrong_list(value, type_, path)
        case inspect.DictType() if isinstance(value, Mapping):
            yield from _wrong_entries(value, type_, path)
        case inspect.StrType() if isinstance(value, str):
            yield from _wrong_text(value, type_, path, meant)
        case inspect.IntType() | inspect.FloatType() if _fits(value, type_):
            yield from _wrong_number(value, type_, path)
        case inspect.EnumType():
            yield from _wrong_word(value, [str(member.value) for member in type_.cls], path, type_.cls)
        case inspect.LiteralType():
            yield from _wrong_word(value, [str(word) for word in type_.values], path)
        case inspect.CustomType():
            yield from _wrong_duration(value, path)
        case _ if not _fits(value, type_):
            yield Finding(path, f"{_mismatch(value, _wanted(type_))}{_yaml_hint(value, type_)}")


def _wrong_entries(value: Mapping[object, object], type_: inspect.DictType, path: Path) -> Iterator[Finding]:
    for key, inner in value.items():
        yield from _wrong(inner, type_.value_type, (*path, str(key)))


def _wrong_mapping(value: object, type_: inspect.StructType, path: Path) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        foreign = write_instead(path[:-1], str(path[-1]), value) if path else None
        yield Finding(path, foreign or _mismatch(value, "a mapping"))
        return
    if type_.tag_field is not None and value.get(type_.tag_field) != type_.tag:
        yield Finding((*path, type_.tag_field), f"is not {type_.tag}")
    fields = {field.encode_name: field for field in type_.fields}
    for key in value:
        if key not in fields and key != type_.tag_field:
            foreign = write_instead(path, str(key), value[key])
            near = f"; {foreign}" if foreign else did_you_mean(str(key), fields.keys() - value.keys())
            yield Finding((*path, str(key)), f"unknown key{near}")
    for name, field in fields.items():
        if name in value:
            yield from _wrong(value[name], field.type, (*path, name))
        elif field.required:
            example = example_of(path, name)
            yield Finding((*path, name), f"is missing: write {example}" if example else "is missing", needs=(path,))


def _wrong_list(value: object, type_: inspect.ListType, path: Path) -> Iterator[Finding]:
    if not isinstance(value, list | tuple):
        yield Finding(path, _mismatch(value, "a list"))
        return
    if type_.min_length and len(value) < type_.min_length:
        yield Finding(path, "must not be empty")
    for index, item in enumerate(value):
        yield from _wrong(item, type_.item_type, (*path, index))


def _wrong_choice(value: object, type_: inspect.UnionType, path: Path) -> Iterator[Finding]:
    if any(not list(islice(_wrong(value, one, path), 1)) for one in type_.types):
        return
    tagged = [one for one in type_.types if isinstance(one, inspect.StructType) and one.tag_field is not None]
    if len(tagged) > 1 and isinstance(value, Mapping):
        yield from _wrong_tagged(value, tagged, path)
        return
    near = [one for one in type_.types if _fits(value, one)]
    optional = [one for one in type_.types if not isinstance(one, inspect.NoneType)]
    if near or len(optional) == 1:
        yield from _wrong(value, (near or optional)[0], path)
    else:
        wanted = list(dict.fromkeys(_wanted(one) for one in optional))
        listed = " or ".join([", ".join(wanted[:-1]), wanted[-1]]) if len(wanted) > 1 else wanted[0]
        yield Finding(path, _mismatch(value, listed))


def _wrong_tagged(value: Mapping[str, object], types: list[inspect.StructType], path: Path) -> Iterator[Finding]:
    """A mapping that says itself, in one of its keys, which of several it is."""
    name = types[0].tag_field or ""
    by_tag = {str(one.tag): one for one in types}
    tag = value.get(name)
    if isinstance(tag, str) and tag in by_tag:
        yield from _wrong_mapping(value, by_tag[tag], path)
    elif name in value:
        yield from _wrong_word(tag, list(by_tag), (*path, name))
    else:
        yield Finding((*path, name), f"is missing: write {' or '.join(by_tag)}", needs=(path,))


def _wrong_text(value: str, type_: inspect.StrType, path: Path, meant: str) -> Iterator[Finding]:
    if type_.min_length and len(value) < type_.min_length:
        yield Finding(path, "must not be empty")
    elif type_.pattern and not re.search(type_.pattern, value):
        yield Finding(path, f"{show(value)} is not of the form {meant or type_.pattern}")


def _wrong_number(value: object, type_: inspect.IntType | inspect.FloatType, path: Path) -> Iterator[Finding]:
    assert isinstance(value, int | float)
    low, high = type_.ge, type_.le
    # Negated, so that NaN is within nothing.
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        bounds = f"{low} or more" if high is None else f"in {low}..{high}"
        yield Finding(path, f"{show(value)} is not {bounds}")


def _wrong_word(value: object, words: list[str], path: Path, kind: type | None = None) -> Iterator[Finding]:
    if not isinstance(value, str) or value not in words:
        near = did_you_mean(value, words, synonyms_of(kind)) if isinstance(value, str) else ""
        yield Finding(path, f"{show(value)} is not one of {', '.join(words)}{near}")


def _wrong_duration(value: object, path: Path) -> Iterator[Finding]:
    try:
        read_duration(value)
    except InvalidValueError as error:
        yield Finding(path, str(error))


def _fits(value: object, type_: inspect.Type) -> bool:
    """Is it the right kind of thing, whatever its value?"""
    match type_:
        case inspect.Metadata():
            return _fits(value, type_.type)
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, Mapping)
        case inspect.ListType():
            return isinstance(value, list | tuple)
        case inspect.AnyType():
            return True
        case inspect.StrType() | inspect.CustomType() | inspect.EnumType() | inspect.LiteralType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case _:
            return True


def _wanted(type_: inspect.Type) -> str:
    match type_:
        case inspect.Metadata():
            return _wanted(type_.type)
        case inspect.StructType() | inspect.DictType():
            return "a mapping"
        case inspect.ListType():
            return "a list"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case _:
            return "text"


def _mismatch(value: object, wanted: str) -> str:
    if value is None:
        return f"has no value; give it {wanted}, or remove the key"
    if isinstance(value, float) and wanted == "a whole number":
        return f"{show(value)} is not a whole number"
    return f"{show(value)} is {_kind(value)}, not {wanted}"


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return "text" if isinstance(value, str) else "a number"


def _yaml_hint(value: object, type_: inspect.Type) -> str:
    """`yes` was a boolean in YAML 1.1, and a number without quotes is no text; people write both."""
    if isinstance(type_, inspect.BoolType) and isinstance(value, str):
        word = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(value.lower())
        return f"; write {word}" if word else ""
    if isinstance(type_, inspect.StrType) and isinstance(value, int | float):
        return "; quote it"
    return ""
