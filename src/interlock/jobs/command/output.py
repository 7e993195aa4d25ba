"""What a command wrote, as its wrapper keeps it: all of it, or, beyond the limit, its beginning and its end.

The middle that was left out is a hole in the file, so that offsets stay what they were; a reader is given a line in its
place. Where the disk cannot make holes the file is made shorter instead, and there is no place for such a line.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from interlock.jobs.command.wrapper import CUT, OUTPUT
from interlock.ports.job_targets import DEFAULT_OUTPUT_LIMIT

_MEBIBYTE: Final = 1024 * 1024


class OutputKept(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept of what commands write: of each, how long, and of all together. In bytes."""

    limit: int = DEFAULT_OUTPUT_LIMIT
    age: timedelta = timedelta(days=30)
    total: int = 4 * 1024 * _MEBIBYTE


class Cut(msgspec.Struct, frozen=True):
    """What was left out: the bytes of the file from `start` to `end`, or (both the same) what stood there before."""

    start: int
    end: int
    dropped: int


class Piece(msgspec.Struct, frozen=True):
    """Some of the output, and the offset to go on from."""

    data: bytes
    next_offset: int


class CommandOutput:
    """The output of one run's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def warning(self) -> str:
        """That some of it is missing, in words; "" when it is whole."""
        cut = self._cut()
        if cut is None:
            return ""
        kept = _size(self._folder / OUTPUT) - (cut.end - cut.start)
        left_out, whole = cut.dropped / _MEBIBYTE, (kept + cut.dropped) / _MEBIBYTE
        return f"it wrote {whole:.1f} MiB: the beginning and the end are kept, {left_out:.1f} MiB were left out"

    def read(self, offset: int, limit: int) -> Piece:
        """At most `limit` bytes, from `offset` on; in the place of what was left out, a line that says so."""
        cut = self._cut()
        if cut is not None and cut.start <= offset < cut.end:
            return Piece(f"\n[... {cut.end - offset} bytes were left out here ...]\n".encode(), cut.end)
        if cut is not None and offset < cut.start < cut.end:
            limit = min(limit, cut.start - offset)
        data = self._bytes(offset, limit)
        return Piece(data, offset + len(data))

    def tail(self, limit: int) -> str:
        """The last `limit` bytes as text, from the start of a line where there is one."""
        cut, size = self._cut(), _size(self._folder / OUTPUT)
        first = 0 if cut is None else cut.end
        # One byte more tells whether the cut happens to fall between two lines.
        start = max(first, size - limit - 1)
        data = self._bytes(start, limit + 1)
        if size - start > limit:
            partial, newline, rest = data.partition(b"\n")
            data = rest if newline and rest else partial[1:]
        return data.decode(errors="replace")

    def _bytes(self, offset: int, limit: int) -> bytes:
        try:
            with (self._folder / OUTPUT).open("rb") as file:
                file.seek(offset)
                return file.read(limit)
        except FileNotFoundError:
            return b""

    def _cut(self) -> Cut | None:
        try:
            return msgspec.json.decode((self._folder / CUT).read_bytes(), type=Cut)
        except (FileNotFoundError, msgspec.DecodeError):
            return None


def _size(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return 0
