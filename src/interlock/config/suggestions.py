"""`did you mean`: the nearest of the names there are."""

from collections.abc import Iterable, Mapping
from typing import Final

from interlock.model.config import Check, JobType

# The comparison takes time quadratic in the length; nobody misspells a name this long.
_LONGEST: Final = 128


# What other tools call it, and people type. None of these is accepted: a config has one spelling.
_CHECKS: Final = {
    Check.EQUALS: ("eq", "==", "=", "===", "is", "equal", "equal_to", "matches"),
    Check.NE: ("!=", "<>", "neq", "not", "not_equal", "not_equals", "isnt"),
    Check.GT: (">", "greater", "greater_than", "above", "over"),
    Check.GTE: (">=", "ge", "min", "minimum", "at_least"),
    Check.LT: ("<", "less", "less_than", "below", "under"),
    Check.LTE: ("<=", "le", "max", "maximum", "at_most"),
    Check.IN: ("one_of", "oneof", "any_of", "contains"),
    Check.EXISTS: ("present", "exist", "not_null", "notnull", "defined"),
    Check.AGE_LT: ("fresh", "freshness", "fresher_than", "newer_than", "younger_than", "max_age"),
    Check.AGE_GT: ("stale", "older_than", "min_age"),
}
_JOB_TYPES: Final = {
    JobType.COMMAND: (
        "shell",
        "sh",
        "bash",
        "script",
        "exec",
        "process",
        "python",
        "cmd",
        "local",
        "dbt",
        "subprocess",
    ),
    JobType.HTTP: ("https", "rest", "webhook", "api", "url", "request"),
    JobType.AIRFLOW: ("dag", "mwaa", "composer"),
    JobType.STEP_FUNCTION: ("sfn", "stepfunctions", "step-functions", "states", "state-machine"),
    JobType.EXTERNAL: ("none", "manual", "noop", "other", "gate"),
}
_SYNONYMS: Final[Mapping[type, Mapping[str, str]]] = {
    Check: {word: check.value for check, words in _CHECKS.items() for word in words},
    JobType: {word: type_.value for type_, words in _JOB_TYPES.items() for word in words},
}


def synonyms_of(kind: type | None) -> Mapping[str, str]:
    """What other tools call the words of an enum, by their word."""
    return _SYNONYMS.get(kind, {}) if kind is not None else {}


def did_you_mean(word: str, choices: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str:
    """`; did you mean maxRetries?`, or nothing when no choice is near."""
    nearest = (synonyms or {}).get(word.strip().casefold()) or closest(word, choices)
    return f"; did you mean {nearest}?" if nearest else ""


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice nearest to a word, whatever its case."""
    if len(word) > _LONGEST:
        return None
    from difflib import get_close_matches  # for a config that is wrong; functions read those that are right

    by_folded = {choice.casefold(): choice for choice in choices}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None
