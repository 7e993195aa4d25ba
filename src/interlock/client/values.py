"""What a program hands over, as JSON: numbers stay numbers, and what JSON cannot say is refused, never changed.

msgspec writes NaN and Infinity as null: a row count that could not be computed would arrive as one that is absent.
"""

import math
from typing import Any

import msgspec

from interlock.client.errors import ClientError


def encoded(body: object) -> bytes:
    """The JSON text of a request's body; ClientError names what it cannot hold, and where."""
    try:
        plain = msgspec.to_builtins(body, enc_hook=_plain)
        _check_finite(plain, "")
        return msgspec.json.encode(plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ClientError(f"this cannot be sent as JSON: {error}") from error


def _plain(value: object) -> Any:
    """A scalar of numpy (or of a library that follows it) as Python's own; anything else is not JSON."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        found: Any = item()
        again = type(found) is type(value)  # what numpy gives of a longdouble
        return float(found) if again else found
    raise TypeError(f"{type(value).__name__} is not a JSON value: {value!r}"[:200])


def _check_finite(value: object, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ClientError(f"{path or 'the value'} is {value}, which is not a JSON number: leave it out, or send null")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_finite(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_finite(inner, f"{path}[{index}]")
