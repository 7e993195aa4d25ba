"""Values that must never be seen: tokens, signing keys, addresses that let anybody post."""

import hmac
from collections.abc import Iterable
from typing import Final, NoReturn

HIDDEN: Final = "***"
# A shorter text would be found by chance in innocent words, and hiding those would garble messages.
_SHORTEST_HIDDEN: Final = 4


class Secret:
    """Text that shows itself only when asked by name. It cannot be encoded or pickled by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself; for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not to be stored: pass on where it comes from")


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """The text without these secrets. The longest first: one secret may be part of another."""
    for value in sorted((secret.reveal() for secret in secrets), key=len, reverse=True):
        if len(value) >= _SHORTEST_HIDDEN:
            text = text.replace(value, HIDDEN)
    return text
