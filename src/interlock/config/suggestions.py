"""`did you mean`: the nearest of the names there are."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

# The comparison takes time quadratic in the length; nobody misspells a name this long.
_LONGEST: Final = 128


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`; did you mean maxRetries?`, or nothing when no choice is near."""
    nearest = closest(word, choices)
    return f"; did you mean {nearest}?" if nearest else ""


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice nearest to a word, whatever its case."""
    if len(word) > _LONGEST:
        return None
    by_folded = {choice.casefold(): choice for choice in choices}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None
