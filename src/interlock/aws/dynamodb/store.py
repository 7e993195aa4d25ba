"""The store port on DynamoDB: four tables, consistent reads, and commits that are transactions.

A lost answer. A commit whose answer got lost is asked again under the same request token, and DynamoDB then answers for
the first one. Only a write that may harmlessly happen twice (unconditional, or on a condition that its own success does
not break) goes by the plain call, which is half the price and does not collide with a transaction on the same item: a
wake-up must not fight with the state machine that stores its token.

Expiry. DynamoDB removes an item up to two days after its `ttl`. Reads and conditions treat it as absent; an update in
place would resurrect its remains, so it is refused by a condition, and done again as a put on the condition that they
are still there.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, assert_never

import msgspec

from interlock.aws.dynamodb import attributes
from interlock.aws.dynamodb.attributes import OWN, PK, Attributes
from interlock.aws.dynamodb.calls import TRIES, ConditionFailedError, Pause
from interlock.aws.dynamodb.expressions import Expression, applied, condition_text, update_condition, update_text
from interlock.aws.dynamodb.items import REGISTRY, expired, item_of, key_of
from interlock.aws.dynamodb.reading import DynamoReader
from interlock.model.config import PipelineConfig
from interlock.model.errors import CommitRefusedError, UnavailableError
from interlock.model.keys import CONFIG, PIPELINE, Table
from interlock.ports.clock import Clock
from interlock.ports.limits import check_commit
from interlock.ports.store import (
    MAX_WRITES,
    Condition,
    Conflict,
    Delete,
    Key,
    Matches,
    Missing,
    Present,
    Put,
    Require,
    Update,
    Write,
)


class DynamoStore(DynamoReader):
    """`ports.store.Store`: what it reads with, and commits."""

    def __init__(
        self,
        client: Any,
        tables: Mapping[Table, str],
        clock: Clock,
        *,
        pause: Pause | None = None,
        refused: Callable[[PipelineConfig], Sequence[str]] = lambda _: (),
        event_ttl: timedelta | None = None,
    ) -> None:
        """`refused`: see the method of that name.

        `event_ttl`: how long this environment keeps events, where that is another time than the controller's own.
        """
        super().__init__(client, tables, clock, pause)
        self._refused = refused
        self._event_ttl = event_ttl

    def refused(self, config: PipelineConfig) -> Sequence[str]:
        """Why the functions of this environment cannot run a config."""
        return self._refused(config)

    def register(self, pipeline: str) -> None:
        """Have the registry agree with the CONFIG item, which somebody else may have written without it."""
        config, entry = (
            Key(Table.CONTROL, PIPELINE + pipeline, CONFIG),
            Key(Table.CONTROL, REGISTRY, PIPELINE + pipeline),
        )
        item, listed = self.get_many([config, entry])
        if item is None and listed is not None:
            self.commit([Delete(entry), Require(config, Missing())])
        elif item is not None and listed is None:
            entered = {name: item[name] for name in ("ttl",) if name in item}
            self.commit([Put(entry, entered), Require(config, Present())])

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """All of the writes, or none and the reason. Nothing to write is no error."""
        if not writes:
            return None
        check_commit(writes)
        _check_names(writes)
        pending = [*(self._kept_for(write) for write in writes), *_registered(writes)]
        if len(pending) > MAX_WRITES:
            raise CommitRefusedError(f"{len(writes)} writes with a CONFIG: at most {MAX_WRITES - 1}, split it")
        remains: dict[int, Attributes] = {}
        for _ in range(TRIES):
            failed = self._attempt(pending, remains)
            expired = {index: old for index, old in failed.items() if self._only_remains(pending[index], old)}
            if len(expired) < len(failed) or not failed:
                broken = tuple(sorted(failed.keys() - expired.keys()))
                return Conflict(broken) if broken else None
            remains |= expired
        raise UnavailableError(f"expired items under {writes[0].key.pk} kept changing during a commit")

    def _kept_for(self, write: Write) -> Write:
        """An event with the time that this environment keeps events for."""
        ours = isinstance(write, Put) and write.key.table is Table.EVENTS and {"type", "ttl"} <= write.item.keys()
        millis = write.key.sk.partition("#")[0]
        if self._event_ttl is None or not ours or not isinstance(write, Put) or not millis.isdigit():
            return write
        until = int(millis) // 1000 + int(self._event_ttl.total_seconds())
        return msgspec.structs.replace(write, item={**write.item, "ttl": until})

    def _only_remains(self, write: Write, old: Attributes) -> bool:
        """Did an update fail only because the remains of an expired item are in its way?"""
        return isinstance(write, Update) and expired(old, self._seconds()) and _holds_of_nothing(write.when)

    def _attempt(self, writes: Sequence[Write], remains: Mapping[int, Attributes]) -> dict[int, Attributes]:
        """Write; which writes' conditions failed, each with the item that was there."""
        requests = [
            self._replacement(write, remains[index]) if index in remains else self._request(write)
            for index, write in enumerate(writes)
        ]
        try:
            if _repeatable(writes) and not remains:
                ((kind, arguments),) = requests
                act = getattr(self._client, {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}[kind])
                self._retried(f"writing {writes[0].key.pk} {writes[0].key.sk}", lambda: act(**arguments))
            else:
                items, token = [{kind: arguments} for kind, arguments in requests], str(uuid.uuid4())
                self._retried(
                    f"committing {len(writes)} writes to {writes[0].key.pk}",
                    lambda: self._client.transact_write_items(TransactItems=items, ClientRequestToken=token),
                )
        except ConditionFailedError as error:
            return error.items
        return {}

    def _replacement(self, write: Write, remains: Attributes) -> tuple[str, dict[str, Any]]:
        """What an update makes of nothing, put in the place of exactly these remains of an expired item."""
        assert isinstance(write, Update)
        expression = Expression(self._seconds())
        same = f"{expression.name('ttl')} = {expression.value(attributes.decode(remains['ttl']))}"
        place = {"TableName": self._tables[write.key.table], "Item": item_of(write.key, applied(write))}
        return "Put", {**place, **expression.parameters(ConditionExpression=same), **_SHOW_OLD}

    def _request(self, write: Write) -> tuple[str, dict[str, Any]]:
        """A write as DynamoDB wants it, with the name of its kind."""
        place = {"TableName": self._tables[write.key.table]}
        expression = Expression(self._seconds())
        match write:
            case Put():
                given = expression.parameters(ConditionExpression=condition_text(expression, write.when))
                return "Put", {**place, "Item": item_of(write.key, write.item), **given, **_SHOW_OLD}
            case Update():
                given = expression.parameters(
                    UpdateExpression=update_text(expression, write),
                    ConditionExpression=update_condition(expression, write.when),
                )
                return "Update", {**place, "Key": key_of(write.key), **given, **_SHOW_OLD}
            case Delete():
                given = expression.parameters(ConditionExpression=condition_text(expression, write.when))
                return "Delete", {**place, "Key": key_of(write.key), **given, **_SHOW_OLD}
            case Require():
                # Matches({}) holds of everything; DynamoDB wants a condition all the same.
                text = condition_text(expression, write.when) or _anything(expression)
                given = expression.parameters(ConditionExpression=text)
                return "ConditionCheck", {**place, "Key": key_of(write.key), **given, **_SHOW_OLD}
        assert_never(write)


_SHOW_OLD: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _check_names(writes: Sequence[Write]) -> None:
    for write in writes:
        named: Mapping[str, Any] = write.item if isinstance(write, Put) else {}
        if isinstance(write, Update):
            named = {**write.set, **write.add, **dict.fromkeys(write.remove)}
        if taken := OWN & named.keys():
            raise CommitRefusedError(
                f"{write.key.pk}/{write.key.sk}: {', '.join(sorted(taken))} is the store's own name"
            )


def _registered(writes: Sequence[Write]) -> Iterator[Write]:
    """The registry follows the CONFIG items, in their commit."""
    for write in writes:
        key = write.key
        if key.table is not Table.CONTROL or key.sk != CONFIG or not key.pk.startswith(PIPELINE):
            continue
        entry = Key(Table.CONTROL, REGISTRY, key.pk)
        if isinstance(write, Put):
            yield Put(entry, {name: write.item[name] for name in ("ttl",) if name in write.item})
        elif isinstance(write, Delete):
            yield Delete(entry)


def _repeatable(writes: Sequence[Write]) -> bool:
    """May this be written twice without harm, if the answer to the first got lost?"""
    if len(writes) != 1 or isinstance(writes[0], Require):
        return False
    write = writes[0]
    return not _broken_by_itself(write, write.when)


def _broken_by_itself(write: Write, condition: Condition) -> bool:
    match condition:
        case None:
            return False
        case Missing():
            return True
        case Present():
            return isinstance(write, Delete)
        case Matches():
            touched = {*write.set, *write.add, *write.remove} if isinstance(write, Update) else None
            return touched is None or bool(touched & condition.attributes.keys())
    assert_never(condition)


def _holds_of_nothing(condition: Condition) -> bool:
    """Would a condition hold if there were no item?"""
    if isinstance(condition, Matches):
        return not condition.present and all(value is None for value in condition.attributes.values())
    return not isinstance(condition, Present)


def _anything(expression: Expression) -> str:
    mark = expression.name(PK)
    return f"attribute_exists({mark}) OR attribute_not_exists({mark})"
