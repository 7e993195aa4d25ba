"""Looks at everything in a store's file: the pages, and then every record, whether it can be read as what it is.

SQLite keeps no check sums of its pages. What it finds wrong with them is damage; that it finds nothing does not mean
that a value was not changed in place, so the values are read as well.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from interlock.model import keys
from interlock.model.events import Event
from interlock.model.keys import Table
from interlock.model.run import Active, JobRecord, RerunRecord, Run, SlaState

_MOST_FINDINGS: Final = 20
_OBJECT: Final = dict[str, Any]
# What an item is, by its table and how its sort key begins; of any other it is only known that it is an object.
_TYPES: Final[Mapping[Table, Mapping[str, type]]] = {
    Table.CONTROL: {keys.RUN: Run, keys.ACTIVE: Active, keys.SLA: SlaState},
    Table.JOBLOG: {keys.JOB: JobRecord},
    Table.RERUN: {keys.RERUN: RerunRecord},
}
# Other columns that hold JSON, with what tells a row from others.
_JSON: Final = (
    ("changes", "seq", "item"),
    ("timers", "name", "payload"),
    ("executions", "name", "data"),
    ("deliveries", "event", "item"),
    ("dead_letters", "id", "record"),
)


def inspect(connection: sqlite3.Connection) -> list[str]:
    """What is wrong, the first of it: pages, then records. Reads everything; takes as long as that takes."""
    found = inspect_pages(connection)
    return found or _first(inspect_records(connection))


def inspect_pages(connection: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the pages and indexes."""
    said = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST_FINDINGS})")]
    return [] if said == ["ok"] else said


def inspect_records(connection: sqlite3.Connection) -> Iterator[str]:
    """The records that cannot be read as what they are. A store of an older version has fewer tables."""
    there = tables(connection)
    for table in (one for one in Table if one in there):
        for pk, sk, item in connection.execute(f"SELECT pk, sk, item FROM {table}"):
            yield from _wrong(f"{table} {pk} {sk}", item, _type_of(table, pk, sk))
    for name, key, column in (one for one in _JSON if one[0] in there):
        rows = connection.execute(f"SELECT {key}, {column} FROM {name} WHERE {column} IS NOT NULL")
        for ref, text in rows:
            yield from _wrong(f"{name} {ref}", text, Any)


def tables(connection: sqlite3.Connection) -> frozenset[str]:
    """The names of the tables there are."""
    return frozenset(row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def _first(findings: Iterator[str]) -> list[str]:
    found: list[str] = []
    for one in findings:
        if len(found) == _MOST_FINDINGS:
            return [*found, "and more"]
        found.append(one)
    return found


def _type_of(table: Table, pk: str, sk: str) -> Any:
    if table is Table.EVENTS:
        return Event if pk.startswith(keys.PIPELINE) and sk[:1].isdigit() else _OBJECT
    return next((type_ for prefix, type_ in _TYPES[table].items() if sk.startswith(prefix)), _OBJECT)


def _wrong(where: str, text: str, type_: Any) -> Iterator[str]:
    try:
        msgspec.json.decode(text, type=type_)
    except (msgspec.MsgspecError, ValueError) as error:
        yield f"{where}: cannot be read: {error}"
