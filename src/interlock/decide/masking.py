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
_TEMPLATE: Final = re.compile(r"(\$\{[^}]*\})+")


# What stands between `://` and `@`, and what follows `=` in a query; in any text, since a command may carry a URL too.
_USER: Final = re.compile(r"(?<=://)([^/?#@\s]+)(?=@)")
_QUERY: Final = re.compile(r"(?<=://)[^\s?#]*\?[^\s#]*")
_QUERY_VALUE: Final = re.compile(r"(?<==)[^&\s]+")


def hide_in_addresses(text: str) -> str:
    """Text without the passwords and query values of the URLs in it; templates (`${...}`) stay: they are no secret."""
    if "://" not in text:
        return text
    shown = _USER.sub(lambda found: _hidden_user(found[0]), text)
    return _QUERY.sub(lambda found: _hidden_query(found[0]), shown)


def holds_hidden(text: str) -> bool:
    """Is a text, or a part of the URL in it, hidden?"""
    return text == HIDDEN or ("://" in text and any(f"{mark}{HIDDEN}" in text for mark in ("://", ":", "=")))


def _hidden_user(text: str) -> str:
    """With a password the name says who it is; alone it may be a token."""
    name, mark, password = text.partition(":")
    return f"{name}{mark}{_hidden_value(password)}" if mark else _hidden_value(text)


def _hidden_query(text: str) -> str:
    address, mark, query = text.partition("?")
    return f"{address}{mark}{_QUERY_VALUE.sub(lambda found: _hidden_value(found[0]), query)}"


def _hidden_value(text: str) -> str:
    return text if not text or _TEMPLATE.fullmatch(text) else HIDDEN


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
        """How many characters at the end of a text may be the beginning of a secret that goes on behind it.

        A secret that lies across the beginning of these belongs to them: else half of it would be shown.
        """
        longest = 0
        for spelling in self._spellings:
            for length in range(min(len(spelling) - 1, len(text)), longest, -1):
                if text.endswith(spelling[:length]):
                    longest = length
                    break
        whole = self._pattern.finditer(text) if self._pattern is not None else ()
        return max([longest, *(len(text) - one.start() for one in whole if one.end() > len(text) - longest)])


def _spellings(secret: str) -> Iterator[str]:
    for text in (secret, *(line for line in secret.splitlines() if len(line) >= _SHORTEST_LINE)):
        yield text
        yield quote(text, safe="")
        yield quote_plus(text)
        yield msgspec.json.encode(text).decode()[1:-1]
