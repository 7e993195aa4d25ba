"""What the rules of a waiting attempt came to, one after the other: since when each stands as it does, and before.

Kept as one text in the attempt's `ACTIVE#` record and written with the token of its wait, so that it costs no commit of
its own. Only changes of verdict are kept, at most `MOST` of a rule; a text that grows too long forgets the oldest.
When the attempt is decided, the events that say so carry the history with the results.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from interlock.decide.checks import RuleChange, RuleResult

MOST: Final = 20
_LONGEST: Final = 16_000
_FEW: Final = 4


class Verdicts(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line for people, and the changes of each rule, in the order of the rules."""

    summary: str = ""
    rules: tuple[tuple[RuleChange, ...], ...] = ()


def read_verdicts(text: str) -> Verdicts:
    """The verdicts of a stored text; none when there is none, or it is something else."""
    try:
        return msgspec.json.decode(text, type=Verdicts)
    except msgspec.DecodeError:
        return Verdicts()


def remember(before: Verdicts, results: Sequence[RuleResult], summary: str, now: datetime) -> Verdicts:
    """The verdicts with those of an evaluation added. Other rules than before begin anew."""
    known = before.rules if len(before.rules) == len(results) else ((),) * len(results)
    return Verdicts(summary, tuple(_added(one, result, now) for one, result in zip(known, results, strict=True)))


def _added(known: tuple[RuleChange, ...], result: RuleResult, now: datetime) -> tuple[RuleChange, ...]:
    if known and known[-1].passed is result.passed:
        return known
    return (*known, RuleChange(at=now, passed=result.passed, actual=result.actual))[-MOST:]


def write_verdicts(verdicts: Verdicts) -> str:
    """The text to store."""
    text = msgspec.json.encode(verdicts)
    if len(text) > _LONGEST:
        text = msgspec.json.encode(Verdicts(verdicts.summary, tuple(one[-_FEW:] for one in verdicts.rules)))
    if len(text) > _LONGEST:
        text = msgspec.json.encode(Verdicts(verdicts.summary))
    return text.decode()


def with_history(results: Sequence[RuleResult], verdicts: Verdicts) -> list[RuleResult]:
    """The results with since when each stands as it does, and what it came to before."""
    if len(verdicts.rules) != len(results):
        return list(results)
    return [
        msgspec.structs.replace(result, since=changes[-1].at, history=changes) if changes else result
        for result, changes in zip(results, verdicts.rules, strict=True)
    ]
