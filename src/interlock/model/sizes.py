"""Amounts of data as people write them: `64MiB`, `1.5GB`, `4 GiB`, `500 kB`, or a number of bytes."""

import re
from fractions import Fraction
from typing import Final

from interlock.model.errors import InvalidValueError

_BYTES: Final = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for ending, base in (("b", 1000), ("ib", 1024))
}
_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]{0,3})", re.ASCII)


def parse_size(text: str) -> int:
    """Read an amount of data, in bytes; raise InvalidValueError with the accepted forms otherwise."""
    found = _SIZE.fullmatch(text.strip())
    unit = _BYTES.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise InvalidValueError(f"{text!r} is not an amount of data: write '64MiB', '1.5GB' or a number of bytes")
    return int(Fraction(found[1]) * unit)
