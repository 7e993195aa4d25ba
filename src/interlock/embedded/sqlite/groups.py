"""The works of a group in one transaction: one that fails is undone alone, and the others do not notice.

Savepoints would do that, and cost two statements per work; every statement is a hand-over of the interpreter to another
thread and back. Hardly any work fails, so a group is first done without. Only when one failed is all of it undone and
done again, with a savepoint each: a work must therefore bear to be done twice.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlock.embedded.sqlite.item_cache import items_of
from interlock.embedded.sqlite.writer import AnyRequest, Work
from interlock.logs import get_logger
from interlock.model.errors import StoreError

_log = get_logger(__name__)


class Outcome(NamedTuple):
    """What a work returned or raised."""

    value: Any
    error: BaseException | None


def do_group(
    connection: sqlite3.Connection, requests: Sequence[AnyRequest], riders: Mapping[str, Work[object]]
) -> list[Outcome]:
    """The outcomes, in order. Within a transaction, that is still open afterwards."""
    try:
        for rider in riders.values():
            rider(connection)
        return [_unguarded(connection, request.work) for request in requests]
    except BaseException:  # noqa: BLE001  which of them it was, and what it raises, is found one by one
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        if (items := items_of(connection)) is not None:
            items.doubt()
    for name, rider in riders.items():
        if (error := _guarded(connection, rider).error) is not None:
            _log.error("deferred work failed", name=name, error=str(error))
    return [_guarded(connection, request.work) for request in requests]


def _unguarded(connection: sqlite3.Connection, work: Work[Any]) -> Outcome:
    items = items_of(connection)
    if items is not None:
        items.begin_work()
    value = work(connection)
    if items is not None:
        items.end_work()
    # On some errors SQLite itself ends the transaction: whatever came then would be committed by itself.
    if not connection.in_transaction:
        raise StoreError("the transaction ended in the middle of its work")
    return Outcome(value, None)


def _guarded(connection: sqlite3.Connection, work: Work[Any]) -> Outcome:
    connection.execute("SAVEPOINT work")
    try:
        value = work(connection)
    except BaseException as error:
        # On some errors (a full disk) SQLite itself undoes the whole transaction, and with it the others' work.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        return Outcome(None, error)
    connection.execute("RELEASE work")
    return Outcome(value, None)
