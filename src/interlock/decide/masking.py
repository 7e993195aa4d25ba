"""Hiding secrets in text that came from somewhere else: an answer, an error, what a job wrote.

A secret is hidden in every spelling that it is likely to come back in: as it is, percent-encoded in an address, escaped
in JSON; of a secret with several lines (a key file) also each line, since messages are put on one line.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec

HIDDEN: Final = "***"
# A shorter line of a longer secret says nothing, and might be found anywhere.
_SHORTEST_LINE: Final = 8


class Masks:
    """Hides these secrets, whatever their length. None: nothing is hidden."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        # The longest first: of two secrets that begin alike, the longer must not be half hidden.
        self._spellings = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._spellings))) if spellings else None

    def hide(self, text: str) -> str:
        """The text without the secrets."""
        return self._pattern.sub(HIDDEN, text) if self._pattern is not None else text

    def found_in(self, text: str) -> bool:
        """Is any of them in it?"""
        return self._pattern is not None and self._pattern.search(text) is not None

    def unfinished(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret that goes on behind it."""
        longest = 0
        for spelling in self._spellings:
            for length in range(min(len(spelling) - 1, len(text)), longest, -1):
                if text.endswith(spelling[:length]):
                    longest = length
                    break
        return longest


def _spellings(secret: str) -> Iterator[str]:
    for text in (secret, *(line for line in secret.splitlines() if len(line) >= _SHORTEST_LINE)):
        yield text
        yield quote(text, safe="")
        yield quote_plus(text)
        yield msgspec.json.encode(text).decode()[1:-1]
