"""Many spans in one statement, packed into one row.

SQLite's library hands the interpreter to another thread and back for every statement and for every row. A view of
thousands of pipelines that asks for each by itself, row by row, waits thousands of times for whoever is busy meanwhile.
Packed as JSON by SQLite itself, everything is read in one hand-over and decoded in one call.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from interlock.model.keys import Table
from interlock.ports.store import Span

T = TypeVar("T")
Row = tuple[Any, ...]
Read = Callable[[str, Sequence[Any]], list[Row]]

# Spans in one statement: what they hold is in memory three times for a moment, as rows, as text and decoded.
_AT_ONCE: Final = 500
# The number of a span and its items, each by its sort key. The LIMIT makes the order binding.
_PACKED: Final = """
    WITH spans (number, pk, first, behind) AS (VALUES {places})
    SELECT group_concat('[' || number || ',' || (
        SELECT '[' || coalesce(group_concat('[' || json_quote(sk) || ',' || item || ']'), '') || ']'
        FROM (
            SELECT sk, item FROM {table}
            WHERE pk = spans.pk AND sk >= spans.first AND sk < spans.behind AND (ttl IS NULL OR ttl > ?)
            ORDER BY sk {order} LIMIT ?
        )
    ) || ']')
    FROM spans
"""


def read_spans(read: Read, table: Table, spans: Sequence[Span], into: type[T], now: int) -> list[list[tuple[str, T]]]:
    """What the spans hold at `now` (epoch seconds), in their order. An item that is no `into` is left out."""
    found: list[list[tuple[str, T]]] = [[] for _ in spans]
    by_last: dict[int | None, list[int]] = {}
    for index, span in enumerate(spans):
        by_last.setdefault(span.last, []).append(index)
    for last, indexes in by_last.items():
        order, most = ("ASC", -1) if last is None else ("DESC", max(last, 0))
        for begin in range(0, len(indexes), _AT_ONCE):
            part = indexes[begin : begin + _AT_ONCE]
            bounds = [value for one in part for value in (spans[one].pk, spans[one].first, spans[one].end)]
            ((text,),) = read(_packed(table, order, len(part)), (*bounds, now, most))
            for number, rows in _decoded(f"[{text}]", into):
                found[part[number]] = rows
    return found


@lru_cache(maxsize=64)
def _packed(table: Table, order: str, count: int) -> str:
    places = ", ".join(f"({number}, ?, ?, ?)" for number in range(count))
    return _PACKED.format(places=places, table=table.value, order=order)


Numbered = tuple[int, list[tuple[str, T]]]


def _decoded(text: str, into: type[T]) -> list[Numbered[T]]:
    try:
        return _decoder(into).decode(text)
    except msgspec.ValidationError:
        return [(number, list(_valid(rows, into))) for number, rows in _decoder(msgspec.Raw).decode(text)]


def _valid(rows: list[tuple[str, msgspec.Raw]], into: type[T]) -> Iterator[tuple[str, T]]:
    for sk, item in rows:
        # A handler of such an item makes it a dead letter; a query over many items must not fail because of it.
        with suppress(msgspec.ValidationError):
            yield sk, msgspec.json.decode(item, type=into)


def _decoder(into: type[T]) -> "msgspec.json.Decoder[list[Numbered[T]]]":
    kept: msgspec.json.Decoder[list[Numbered[T]]] | None = _decoders.get(into)
    if kept is None:
        rows = list[tuple[int, list[tuple[str, into]]]]  # type: ignore[valid-type]
        kept = _decoders[into] = msgspec.json.Decoder(rows)
    return kept


_decoders: Final[dict[type[Any], Any]] = {}
