"""Drift: did a post-run sensor move away from what it said when the run completed (SPEC 7)?

Exact arithmetic throughout: a threshold is a promise, and `0.3 - 0.1 > 0.2` must not hold because of binary fractions.
"""

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.decide.event_size import depth
from interlock.decide.values import Number, lookup, number, plain_number, show
from interlock.model.config import PostRun
from interlock.model.errors import InvalidValueError

if TYPE_CHECKING:
    from fractions import Fraction

JsonNumber = int | float | str

_WHOLE_BYTES: Final = 64 * 1024
_WHOLE_DEPTH: Final = 30
_STORED_WHOLE: Final = 10**38
_ROUNDED: Final = Context(prec=100, Emax=1_000_000, Emin=-1_000_000)


class Drift(msgspec.Struct, frozen=True):
    """A change above the threshold. Numbers are as JSON holds them; `change` is signed, `threshold` is in units."""

    key: str
    field: str
    baseline: JsonNumber
    current: JsonNumber
    change: JsonNumber
    threshold: JsonNumber
    reason: str

    def detail(self) -> dict[str, Any]:
        """The detail of the drift events."""
        return {
            "key": self.key,
            "field": self.field,
            "baseline": self.baseline,
            "current": self.current,
            "change": self.change,
            "threshold": self.threshold,
        }


def find_drift(
    post_run: PostRun, rule_key: str, baseline: Mapping[str, Mapping[str, Any]], current: Mapping[str, Any]
) -> Drift | None:
    """The drift of one post-run sensor against its baseline, if there is any.

    Both sides must have the field as a number: zero is a value, absent is not.
    """
    from fractions import Fraction

    field = post_run.drift_field
    before, after = _measure(baseline.get(rule_key, {}), field), _measure(current, field)
    if before is None or after is None:
        return None
    change = Fraction(after) - Fraction(before)
    threshold = _threshold(post_run, before)
    if abs(change) <= threshold:
        return None
    moved, limit = _json_number(change), _json_number(threshold)
    reason = (
        f"{rule_key}: {field} went from {show(before)} to {show(after)}"
        f" ({'+' if change > 0 else ''}{moved}), more than {limit} allowed"
    )
    if isinstance(post_run.drift_threshold, str):
        reason += f" ({post_run.drift_threshold})"
    return Drift(rule_key, field, plain_number(before), plain_number(after), moved, limit, reason)


def lacks_baseline(
    post_run: PostRun, rule_key: str, baseline: Mapping[str, Mapping[str, Any]], current: Mapping[str, Any]
) -> bool:
    """Is there nothing yet to compare this observation with: no sensor at the completion, or one without the field?"""
    before = baseline.get(rule_key)
    if before is None:
        return True
    field = post_run.drift_field
    return _measure(before, field) is None and _measure(current, field) is not None


def remembered(post_run: PostRun, found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is kept of post-run sensors to compare later ones with: all of them or, if that is much, the drift field.

    A run and a baseline are one item each in the store, however many sensors there are, and however large.
    """
    whole = {name: dict(data) for name, data in found.items()}
    if depth(whole) <= _WHOLE_DEPTH and len(msgspec.json.encode(whole)) <= _WHOLE_BYTES:
        return whole
    return {name: _drift_field(post_run.drift_field, data) for name, data in found.items()}


def _drift_field(field: str, data: Mapping[str, Any]) -> dict[str, Any]:
    value = _measure(data, field)
    return {} if value is None else {field: value if _is_short(value) else str(value)}


def _is_short(value: Number) -> bool:
    """Can a store hold it as a number?"""
    return isinstance(value, int) and abs(value) < _STORED_WHOLE


def _measure(data: Mapping[str, Any], field: str) -> Number | None:
    """The drift field as a number, of at most a hundred digits: a text may spell one of any length."""
    value = number(lookup(data, field))
    return _ROUNDED.create_decimal(value) if isinstance(value, Decimal) else value


def _threshold(post_run: PostRun, baseline: Number) -> "Fraction":
    """The change that is still no drift; a percentage is of the size of the baseline, so of zero it is zero."""
    from fractions import Fraction

    given = post_run.drift_threshold
    percent = isinstance(given, str)
    amount = number(given.removesuffix("%") if isinstance(given, str) else given)
    if amount is None or amount < 0:
        raise InvalidValueError(
            f"postRun.driftThreshold: {show(given)} is not a threshold: write a number from 0, or a percentage as 2%"
        )
    return Fraction(amount) * abs(Fraction(baseline)) / 100 if percent else Fraction(amount)


def _json_number(value: "Fraction") -> JsonNumber:
    if value.denominator == 1:
        return plain_number(value.numerator)
    # All that comes in here is decimal, and so are sums and hundredths of it: the division is short. What is longer
    # than the context's precision is rounded, for display alone.
    return plain_number(Decimal(value.numerator) / Decimal(value.denominator))
