"""JSON text to a plain document, with lines and duplicate keys, which `json.loads` alone does not tell of.

`json.loads` decides what is JSON; after that a token is a token, and a regular expression finds them all.
"""

import json
import re
from typing import Final

from interlock.config.builder import Builder, Flaw, Unreadable

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\]:,"]+|\n')
_MAX_DIGITS: Final = 400  # as in yaml_text


def parse_json(text: str, builder: Builder) -> None:
    """Feed a JSON text to the builder."""
    _check_syntax(text)
    line = 1
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n":
            line += 1
        elif token in "{[":
            builder.open({} if token == "{" else [], line)
        elif token in "}]":
            builder.close()
        else:
            builder.scalar(_scalar(token), line)


def _check_syntax(text: str) -> None:
    try:
        # Numbers stay text: here they are only looked at for their form.
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise Unreadable(Flaw(error.lineno, (), f"not JSON: {error.msg} (column {error.colno})")) from error
    except RecursionError as error:
        raise Unreadable(Flaw(1, (), "nested far too deep: a config is never that deep")) from error


def _scalar(token: str) -> object:
    if token[0] != '"' and len(token) > _MAX_DIGITS:
        return 2**65  # too long for any number here; the builder says so
    value: object = json.loads(token)
    return value
