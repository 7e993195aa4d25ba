"""A command given as one text is split into words, and no shell ever reads it.

`echo a | tee f` would run `echo` with the words `a`, `|`, `tee`, `f`, and succeed. So a text with unquoted shell syntax
is refused; what stands in quotes, or in a list, is meant as it is.
"""

import re
import shlex
from typing import Final

# What only a shell acts on. A line break ends a command there; here it would be a space like any other.
_SYNTAX: Final = re.compile(r"\|\|?|&&|&(?=\s|$)|>>?|<|;|\*|\$\(|`|\n")
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)


def wrong_text(command: str) -> str | None:
    """Why a command's text cannot be run as it is; None if it can."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"cannot be split into words ({str(error).lower()}): give a list, such as [python, etl.py]"
    if not words:
        return "names no program"
    found = _SYNTAX.search(_QUOTED.sub("_", command.strip()))
    if found is None:
        return None
    syntax = "a line break" if found[0] == "\n" else found[0]
    return (
        f"{syntax} is for a shell, and there is none: {words[0]} would be given it as text."
        f" Write a list if that is meant: {_flow(words)};"
        f" or ask for a shell: {_flow(['sh', '-c', ' '.join(command.split())])}"
    )


def _flow(words: list[str]) -> str:
    """A list as YAML has it on one line."""
    return f"[{', '.join(_scalar(word) for word in words)}]"


def _scalar(word: str) -> str:
    if re.fullmatch(r"[A-Za-z./][\w./-]*|-[a-z]|\.\.\.", word):
        return word
    return "'" + word.replace("'", "''") + "'"
