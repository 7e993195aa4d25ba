"""Calls of DynamoDB: made again while the service is in trouble, and told apart from conditions that did not hold."""

import random
from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from interlock.aws import failures
from interlock.aws.dynamodb.attributes import Attributes
from interlock.model.errors import CommitRefusedError

TRIES: Final = 6
_FIRST_PAUSE: Final = 0.05

Pause = Callable[[float], object]


def retried(doing: str, act: Callable[[], Any], pause: Pause) -> Any:
    """A call that is made again, word for word, while the service is in trouble."""
    for turn in range(TRIES):
        try:
            return act()
        except (ClientError, BotoCoreError) as error:
            _raise_condition(error)
            if not _retriable(error):
                raise failures.translated(error, doing) from error
            if turn == TRIES - 1:
                raise failures.passing(error, f"{doing}: tried {TRIES} times") from error
        pause(back_off(turn))
    raise AssertionError("the loop returns or raises")


class ConditionFailedError(Exception):
    """Conditions that did not hold: which writes', and the items that were there."""

    def __init__(self, items: dict[int, Attributes]) -> None:
        super().__init__("condition failed")
        self.items = items


def _raise_condition(error: Exception) -> None:
    """Tell a failed condition from a failure."""
    if not isinstance(error, ClientError):
        return
    code = failures.code_of(error)
    if code == "ConditionalCheckFailedException":
        raise ConditionFailedError({0: error.response.get("Item") or {}}) from error
    if code != "TransactionCanceledException":
        return
    why = failures.reasons(error)
    failed = {i: one.get("Item") or {} for i, one in enumerate(why) if one.get("Code") == "ConditionalCheckFailed"}
    if failed:
        raise ConditionFailedError(failed) from error
    refused = [str(one.get("Message", "")) for one in why if one.get("Code") == "ValidationError"]
    if refused:
        raise CommitRefusedError(f"DynamoDB refuses a commit: {'; '.join(refused)}") from error


def _retriable(error: Exception) -> bool:
    if isinstance(error, ClientError) and failures.code_of(error) == "TransactionCanceledException":
        return failures.throttled(error)
    return failures.may_pass(error)


def back_off(turn: int) -> float:
    """How long to wait before the next try."""
    return _FIRST_PAUSE * 2.0**turn * random.uniform(0.5, 1.5)
