"""Builds a plain document from the parts a parser meets, and keeps it harmless while it grows.

Both parsers (YAML, JSON) drive this one builder, so that they refuse the same things: duplicate keys, keys that are not
text, numbers that JSON cannot carry, nesting and aliases that would expand without end. It works on an explicit stack:
no document, however deep, can exhaust the interpreter's. Flaws that leave the rest readable are collected; `Unreadable`
ends the reading.
"""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from interlock.config.problems import Path
from interlock.decide.values import show
from interlock.model.errors import InterlockError

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


class Flaw(msgspec.Struct, frozen=True):
    """What is wrong with the text of a document, and on which line."""

    line: int
    path: Path
    message: str


class Unreadable(InterlockError):  # noqa: N818 - it ends a reading, the flaw in it is the error
    """A flaw after which the rest of the document cannot be read."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.message)
        self.flaw = flaw


class _Merge:
    """Stands for the key `<<` until its value is known."""


MERGE: Final = _Merge()


class _Frame:
    """A mapping or list under construction."""

    __slots__ = ("anchor", "key", "key_line", "line", "lines", "merges", "path", "start", "value")

    def __init__(self, value: dict[str, object] | list[object], path: Path, line: int, start: int) -> None:
        self.value = value
        self.path = path
        self.line = line
        self.start = start
        self.anchor: str | None = None
        self.key: str | _Merge | None = None
        self.key_line = line
        self.lines: dict[str, int] = {}
        self.merges: list[tuple[int, Mapping[str, object]]] = []


def fits_json(value: object) -> bool:
    """Can JSON, and so every store, carry this scalar?"""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or _SMALLEST <= value <= _LARGEST


class Builder:
    """One document. Feed it `scalar`, `open`, `close` and `alias`; read `root`, `flaws` and `lines`."""

    def __init__(self) -> None:
        self.root: object = None
        self.flaws: list[Flaw] = []
        self.lines: dict[Path, int] = {}
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._open_anchors: set[str] = set()
        self._count = 0

    @property
    def awaits_key(self) -> bool:
        """Is the next value a key of a mapping?"""
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None

    def scalar(self, value: object, line: int, anchor: str | None = None) -> None:
        """A value that is neither mapping nor list; or, where one is awaited, a key."""
        self._count += 1
        if self._count > MAX_VALUES:
            self._spend(0, line)
        if type(value) is not str or not value.isascii():
            value = self._checked(value, line)
        if anchor is not None:
            self._anchors[anchor] = (value, 1)
        self._attach(value, line)

    def open(self, value: dict[str, object] | list[object], line: int, anchor: str | None = None) -> None:
        """A mapping or list begins."""
        self._spend(1, line)
        if len(self._stack) >= MAX_DEPTH:
            raise Unreadable(Flaw(line, (), f"nested deeper than {MAX_DEPTH} levels: a config is never that deep"))
        if self.awaits_key:
            raise Unreadable(Flaw(line, self._stack[-1].path, "a list or mapping cannot be a key: use plain text"))
        path = self._here()
        if not self._stack or isinstance(self._stack[-1].value, list):
            self.lines[path] = line  # a value of a mapping stands where its key does
        frame = _Frame(value, path, line, self._count)
        if anchor is not None:
            frame.anchor = anchor
            self._open_anchors.add(anchor)
        self._stack.append(frame)

    def close(self) -> None:
        """The innermost mapping or list ends."""
        frame = self._stack.pop()
        for line, mapping in frame.merges:
            self._merge(frame, mapping, line)
        if frame.anchor is not None:
            self._open_anchors.discard(frame.anchor)
            self._anchors[frame.anchor] = (frame.value, self._count - frame.start + 1)
        self._attach(frame.value, frame.line)

    def alias(self, name: str, line: int) -> None:
        """A value that was given before, under an anchor."""
        if name in self._open_anchors:
            raise Unreadable(
                Flaw(line, self._here(), f"alias *{name} stands inside its own anchor: it would never end")
            )
        if name not in self._anchors:
            raise Unreadable(Flaw(line, self._here(), f"alias *{name} has no anchor &{name} before it"))
        value, size = self._anchors[name]
        self._spend(size, line)
        self._attach(value, line)

    def merge_key(self, line: int) -> None:
        """The key `<<`: the mapping that follows gives what this one does not say itself."""
        self._stack[-1].key = MERGE
        self._stack[-1].key_line = line

    def flaw(self, line: int, message: str) -> None:
        """Something wrong with the value that comes next; the rest can still be read."""
        self.flaws.append(Flaw(line, self._here(), message))

    def _here(self) -> Path:
        """The path of the value that comes next."""
        if not self._stack:
            return ()
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            return (*frame.path, len(frame.value))
        return (*frame.path, frame.key) if isinstance(frame.key, str) else frame.path

    def _spend(self, values: int, line: int) -> None:
        self._count += values
        if self._count > MAX_VALUES:
            message = f"holds more than {MAX_VALUES} values once its aliases are expanded: a config is never that large"
            raise Unreadable(Flaw(line, (), message))

    def _checked(self, value: object, line: int) -> object:
        """The value, or null with a flaw where JSON, and so every store, could not carry it."""
        if fits_json(value):
            return value
        if isinstance(value, str):
            self.flaw(line, "text contains half of a surrogate pair, which is not a character")
        elif isinstance(value, float):
            self.flaw(line, f"{value} is not a number that JSON has: quote it if it is text")
        else:
            self.flaw(line, "a whole number beyond 64 bits: quote it, rules compare numeric text exactly")
        return None

    def _attach(self, value: object, line: int) -> None:
        if not self._stack:
            self.root = value
            return
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            self.lines[(*frame.path, len(frame.value))] = line
            frame.value.append(value)
        elif frame.key is None:
            self._take_key(frame, value, line)
        elif isinstance(frame.key, str):
            frame.value[frame.key] = value
            frame.key = None
        else:
            self._take_merge(frame, value)
            frame.key = None

    def _take_key(self, frame: _Frame, key: object, line: int) -> None:
        if not isinstance(key, str):
            shown = show(key)
            self.flaws.append(Flaw(line, (*frame.path, shown), "this key is not text: quote it"))
            key = shown
        first = frame.lines.get(key)
        if first is not None:
            self.flaws.append(
                Flaw(line, (*frame.path, key), f"given twice: first on line {first}, again on line {line}")
            )
        else:
            frame.lines[key] = line
            self.lines[(*frame.path, key)] = line
        frame.key = key
        frame.key_line = line

    def _take_merge(self, frame: _Frame, value: object) -> None:
        for mapping in value if isinstance(value, list) else [value]:
            if isinstance(mapping, dict):
                frame.merges.append((frame.key_line, mapping))
            else:
                self.flaws.append(Flaw(frame.key_line, (*frame.path, "<<"), "merges a mapping, or a list of them"))

    def _merge(self, frame: _Frame, mapping: Mapping[str, object], line: int) -> None:
        self._spend(len(mapping), line)
        assert isinstance(frame.value, dict)
        for key, value in mapping.items():
            if key not in frame.value:
                frame.value[key] = value
                self.lines[(*frame.path, key)] = line
