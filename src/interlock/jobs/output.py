"""Pieces of a text that a target gives as a whole."""

from typing import Final

from interlock.ports.jobs import OUTPUT_LIMIT, JobOutput

_LONGEST_CHARACTER: Final = 4


def piece_of(text: str, offset: int, *, ended: bool, link: str = "") -> JobOutput:
    """The piece from `offset` on, in bytes, of all that there is by now; `ended`: nothing will be added to it."""
    data = text.encode()
    piece = data[offset : offset + OUTPUT_LIMIT]
    if offset + len(piece) < len(data):
        # Not in the middle of a character: back to where one begins.
        cut = next(n for n in range(_LONGEST_CHARACTER) if _begins(data[offset + len(piece) - n]))
        piece = piece[: len(piece) - cut]
    end = offset + len(piece)
    return JobOutput(
        text=piece.decode(errors="replace"), next_offset=end, complete=ended and end >= len(data), link=link
    )


def _begins(byte: int) -> bool:
    return byte & 0xC0 != 0x80
