"""One file as a plain document: mappings, lists, text, numbers, booleans, null; and where each of them stands.

Lines are wanted only where something is reported, and cost time and memory: they are read from the same bytes when
somebody asks, and forgotten after that.
"""

from functools import cached_property
from typing import Final

import msgspec

from interlock.config.builder import Builder, Flaw, Unreadable
from interlock.config.json_text import parse_json
from interlock.config.problems import Path, Problem, format_path
from interlock.config.yaml_text import parse_yaml, plain_mapping

MAX_BYTES: Final = 1024 * 1024
SUFFIXES: Final = (".yaml", ".yml", ".json")


class Document(msgspec.Struct, frozen=True, dict=True):
    """A mapping that was read from a file; with flaws, it is good for finding more errors and for nothing else."""

    file: str
    data: bytes
    value: dict[str, object]
    flaws: tuple[Flaw, ...] = ()

    @cached_property
    def lines(self) -> dict[Path, int]:
        """The line of every key and list item."""
        return _build(self.file, _decode(self.data)).lines

    def forget_lines(self) -> None:
        """Free the memory that the lines take."""
        self.__dict__.pop("lines", None)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The flaws, as problems of the file."""
        return tuple(_problem(self.file, flaw) for flaw in self.flaws)

    def place(self, path: Path) -> tuple[int, int | None]:
        """How many steps of a path the document has, and the line of the last of them."""
        lines = self.lines
        for length in range(len(path), -1, -1):
            if path[:length] in lines:
                return length, lines[path[:length]]
        return 0, None


def read_document(file: str, data: bytes) -> Document | tuple[Problem, ...]:
    """The document of a file's bytes, or what keeps it from being read at all."""
    try:
        text = _decode(data)
        plain = None if _is_json(file) else plain_mapping(text)
        if plain is not None:
            return Document(file, data, plain)
        builder = _build(file, text)
    except Unreadable as error:
        return (_problem(file, error.flaw),)
    value, flaws = builder.root, tuple(builder.flaws)
    if value is None and not flaws:
        return (Problem(file, 1, "", "the file is empty"),)
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        message = f"the file holds {kind}, not a mapping of keys such as `pipeline:`"
        return (*(_problem(file, flaw) for flaw in flaws), Problem(file, 1, "", message))
    document = Document(file, data, value, flaws)
    document.__dict__["lines"] = builder.lines
    return document


def _build(file: str, text: str) -> Builder:
    builder = Builder()
    parse = parse_json if _is_json(file) else parse_yaml
    parse(text, builder)
    return builder


def _is_json(file: str) -> bool:
    return file.lower().endswith(".json")


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise Unreadable(Flaw(1, (), f"larger than {MAX_BYTES} bytes: a config is never that large"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; save the file as UTF-8"
        raise Unreadable(Flaw(line, (), message)) from error
    nul = text.find("\0")
    if nul >= 0:
        raise Unreadable(Flaw(text.count("\n", 0, nul) + 1, (), "contains a NUL character: this is not a text file"))
    return text


def _problem(file: str, flaw: Flaw) -> Problem:
    return Problem(file, flaw.line, format_path(flaw.path), flaw.message)
