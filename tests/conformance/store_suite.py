"""The obligations of `ports.store.Store`, as tests. A backend subclasses StoreSuite and opens itself."""

from itertools import groupby

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from interlock.model.errors import CommitRefusedError
from interlock.model.keys import Table
from interlock.model.times import epoch_millis
from interlock.ports.store import (
    Conflict,
    Delete,
    Item,
    Key,
    Missing,
    Present,
    Put,
    Require,
    Span,
    Store,
    Update,
    Write,
)
from tests.conformance.manual_clock import ManualClock
from tests.conformance.store_backend import PK, key
from tests.conformance.store_commits import CommitTests
from tests.conformance.store_model import COMMITS, PARTITIONS, exactly, model_holds, model_write
from tests.conformance.store_refusals import RefusalTests


class _Named(msgspec.Struct, frozen=True):
    sk: str = ""


class StoreSuite(CommitTests, RefusalTests):
    """Subclass it as `class TestMine(StoreSuite)`."""

    SORT_KEYS = (
        "A",
        "A#",
        "A#1",
        "A#10",
        "A#2",
        "A#\U0010ffff",
        "A#\U0010ffffz",
        "A$",
        "B",
        "a",
        "z",
        "é",
        "\ud7ff",
        "\ue000",
        "🎉",
    )

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        store.commit([Put(key(sk), {"sk": sk}) for sk in self.SORT_KEYS])
        store.commit([Put(key("A#1", pk=PK + "-other"), {}), Put(key("A#1", table=Table.JOBLOG), {})])
        return store

    @pytest.mark.parametrize("prefix", ["", "A", "A#", "A#1", "A#\U0010ffff", "C", "é", "\ud7ff", "\U0010ffff", "🎉"])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_a_prefix_query_is_in_byte_order(self, filled: Store, prefix: str, reverse: bool) -> None:
        expected = sorted((sk for sk in self.SORT_KEYS if sk.startswith(prefix)), key=str.encode, reverse=reverse)
        records = filled.query(Table.CONTROL, PK, prefix, reverse=reverse)
        assert [record.key.sk for record in records] == expected
        assert all(record.item == {"sk": record.key.sk} and record.key.pk == PK for record in records)

    @pytest.mark.parametrize("prefix", ["", "A#"])
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("size", [1, 2, 100])
    def test_paging_gives_every_item_once(self, filled: Store, prefix: str, reverse: bool, size: int) -> None:
        seen: list[str] = []
        after = None
        while page := filled.query(Table.CONTROL, PK, prefix, after=after, limit=size, reverse=reverse):
            assert len(page) <= size
            seen += [record.key.sk for record in page]
            after = seen[-1]
        assert seen == [record.key.sk for record in filled.query(Table.CONTROL, PK, prefix, reverse=reverse)]

    def test_paging_may_start_where_no_item_is(self, filled: Store) -> None:
        assert [record.key.sk for record in filled.query(Table.CONTROL, PK, "A#", after="A#11", limit=1)] == ["A#2"]
        back = filled.query(Table.CONTROL, PK, "A#", after="A#11", limit=1, reverse=True)
        assert [record.key.sk for record in back] == ["A#10"]
        assert filled.query(Table.CONTROL, PK, "A#", after="B") == []
        assert len(filled.query(Table.CONTROL, PK, "A#", after="A")) == 6

    def test_a_query_larger_than_a_page_of_any_backend(self, store: Store) -> None:
        for n in range(4):
            store.commit([Put(key(f"{n}-{m}"), {"text": "x" * 300_000}) for m in range(2)])
        assert [record.key.sk for record in store.query(Table.CONTROL, PK)] == [
            f"{n}-{m}" for n in range(4) for m in range(2)
        ]

    def test_pipelines_are_those_with_a_config(self, store: Store) -> None:
        names = ["b", "a", "B", "a.b", "a-b", "10", "9"]
        store.commit([Put(key("CONFIG", pk=f"PIPELINE#{name}"), {}) for name in names])
        store.commit(
            [
                Put(key("SENSOR#CONFIG", pk="PIPELINE#no-config"), {}),
                Put(key("CONFIG", pk="OTHER#no-pipeline"), {}),
                Put(key("CONFIG", pk="PIPELINE#log", table=Table.JOBLOG), {}),
                Delete(key("CONFIG", pk="PIPELINE#9")),
            ]
        )
        assert store.pipelines() == ["10", "B", "a", "a-b", "a.b", "b"]

    def test_events_by_type_and_time(self, store: Store) -> None:
        stamps = [(1_000, "A", "p"), (2_000, "A", "q"), (2_000, "B", "p"), (3_000, "A", "p"), (10_000, "A", "q")]
        writes = [
            Put(Key(Table.EVENTS, f"PIPELINE#{pipeline}", f"{at:013}#{type_}#x"), {"type": type_, "at": at})
            for at, type_, pipeline in stamps
        ]
        store.commit([*writes, Put(key("CONFIG"), {"type": "A"})])

        def found(since: int, until: int, limit: int = 10) -> list[int]:
            return [record.item["at"] for record in store.events_by_type("A", since=since, until=until, limit=limit)]

        assert found(0, 99_999) == [1_000, 2_000, 3_000, 10_000]
        assert found(2_000, 10_000) == [2_000, 3_000]
        assert found(0, 99_999, limit=2) == [1_000, 2_000]
        assert found(10_001, 99_999) == []
        assert store.events_by_type("C", since=0, until=99_999, limit=10) == []

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("size", [1, 2, 3, 20])
    def test_events_of_a_type_are_paged_either_way(self, store: Store, size: int, reverse: bool) -> None:
        places = [(1_000, "p", "1"), (2_000, "p", "1"), (2_000, "q", "1"), (2_000, "p", "2"), (2_000, "q", "3")]
        places += [(3_000, "q", "1"), (3_000, "p", "9"), (9_000, "p", "1")]
        made = [Key(Table.EVENTS, f"PIPELINE#{name}", f"{at:013}#A#{number}") for at, name, number in places]
        store.commit([Put(key_, {"type": "A"}) for key_ in made])
        inside = sorted((one for one in made if one.sk < "0000000009000"), key=lambda one: (one.sk, one.pk))
        found: list[Key] = []
        after: Key | None = None
        while True:
            page = store.events_by_type("A", since=1_000, until=9_000, limit=size, after=after, reverse=reverse)
            found += [record.key for record in page]
            if len(page) < size:
                break
            after = page[-1].key
        assert found == (inside[::-1] if reverse else inside)

    def test_events_of_another_type_are_a_place_to_go_on_from(self, store: Store) -> None:
        events = [Key(Table.EVENTS, PK, f"0000000001000#{type_}#1") for type_ in "ABC"]
        store.commit([Put(event, {"type": event.sk[14]}) for event in events])

        def found(type_: str, after: Key, *, reverse: bool) -> int:
            return len(store.events_by_type(type_, since=0, until=2_000, limit=9, after=after, reverse=reverse))

        assert [found(type_, events[1], reverse=False) for type_ in "ABC"] == [0, 0, 1]
        assert [found(type_, events[1], reverse=True) for type_ in "ABC"] == [1, 0, 0]
        late = Key(Table.EVENTS, PK, "0000000005000#A#1")
        assert found("A", late, reverse=True) == 1, "a place behind the span leaves the span as it is"
        assert found("A", late, reverse=False) == 0

    def test_deleted_events_are_not_found_by_type(self, store: Store) -> None:
        event = Key(Table.EVENTS, PK, "0000000001000#A#x")
        store.commit([Put(event, {"type": "A"})])
        store.commit([Delete(event)])
        assert store.events_by_type("A", since=0, until=99_999, limit=10) == []

    def test_spans_are_read_in_their_order(self, filled: Store) -> None:
        spans = [Span(PK, "A#", "A$"), Span(PK, "none", "nonf"), Span(PK + "-other", "", "z"), Span(PK, "A#1", "A#2")]
        found = filled.read_spans(Table.CONTROL, spans, _Named)
        assert [[sk for sk, _ in rows] for rows in found] == [
            ["A#", "A#1", "A#10", "A#2", "A#\U0010ffff", "A#\U0010ffffz"],
            [],
            ["A#1"],
            ["A#1", "A#10"],
        ]
        assert found[3] == [("A#1", _Named(sk="A#1")), ("A#10", _Named(sk="A#10"))]
        assert found[2] == [("A#1", _Named())]
        assert filled.read_spans(Table.CONTROL, [], _Named) == []

    def test_the_last_of_a_span(self, filled: Store) -> None:
        spans = [Span(PK, "A#", "A#\U0010ffff", 2), Span(PK, "A#", "A#1", 5), Span(PK, "x", "y", 1)]
        found = filled.read_spans(Table.CONTROL, spans, _Named)
        assert [[sk for sk, _ in rows] for rows in found] == [["A#2", "A#10"], ["A#"], []]

    def test_spans_leave_out_what_has_expired_and_what_is_something_else(
        self, store: Store, clock: ManualClock
    ) -> None:
        soon = epoch_millis(clock.now()) // 1000 + 60
        store.commit([Put(key("S1"), {"ttl": soon}), Put(key("S2"), {"sk": 5}), Put(key("S3"), {"sk": "x", "n": 1})])
        spans = [Span(PK, "S", "T")]
        assert store.read_spans(Table.CONTROL, spans, _Named) == [[("S1", _Named()), ("S3", _Named(sk="x"))]]
        clock.advance(minutes=2)
        assert store.read_spans(Table.CONTROL, spans, _Named) == [[("S3", _Named(sk="x"))]]

    def test_every_write_to_a_table_with_a_stream_is_one_change(self, store: Store, clock: ManualClock) -> None:
        clock.advance(milliseconds=1234)
        tables = [Table.CONTROL, Table.JOBLOG, Table.EVENTS]
        store.commit([Put(key(table=table), {"n": 1}) for table in Table])
        store.commit([Update(key(table=table), add={"n": 1}) for table in Table])
        store.commit([Delete(key(table=table)) for table in Table])
        changes = self.changes(store)
        for table in tables:
            reported = [change for change in changes if change.table is table]
            assert [change.item for change in reported] == [{"n": 1}, {"n": 2}, None]
            assert {change.key for change in reported} == {key(table=table)}
            assert {change.at for change in reported} == {epoch_millis(clock.now())}
        assert {change.table for change in changes} == set(tables)

    def test_a_put_that_changes_nothing_may_be_a_change_and_hides_none(self, store: Store) -> None:
        """DynamoDB's streams leave it out; SQLite's does not."""
        for n in (1, 1, 2, 2, 1):
            store.commit([Put(key(), {"n": n})])
        reported = [change.item for change in self.changes(store)]
        assert [item for item, _ in groupby(reported)] == [{"n": 1}, {"n": 2}, {"n": 1}]

    def test_what_writes_nothing_is_no_change(self, store: Store) -> None:
        store.commit([Put(key(), {"n": 1})])
        store.commit([Put(key("b"), {}), Require(key(), when=Missing())])
        store.commit([Require(key(), when=Present()), Delete(key("absent"))])
        with pytest.raises(CommitRefusedError):
            store.commit([Put(key("c"), {}), Put(key("c"), {})])
        assert [change.sk for change in self.changes(store)] == [key().sk]

    def test_changes_are_in_commit_order_per_item(self, store: Store) -> None:
        for n in range(30):
            store.commit([Put(key(f"S{n % 4}", pk=f"PIPELINE#{pk}"), {"n": n}) for pk in "abc"])
        changes = self.changes(store)
        for pk in "abc":
            for item in range(4):
                where = key(f"S{item}", pk=f"PIPELINE#{pk}")
                reported = [change for change in changes if change.key == where]
                assert [change.item for change in reported] == [{"n": n} for n in range(item, 30, 4)]
                assert [change.seq for change in reported] == sorted({change.seq for change in reported})

    @settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow], max_examples=60)
    @given(commits=COMMITS)
    def test_random_commits_do_what_a_dict_does(self, commits: list[list[Write]]) -> None:
        self.play(commits)

    def play(self, commits: list[list[Write]]) -> None:
        """The store and a dict, side by side; a stream owes the order of the changes of one item."""
        model: dict[Key, Item] = {}
        reported: dict[str, list[tuple[str, Item | None]]] = {}
        with self.open_store(ManualClock()) as store:
            for writes in commits:
                failed = tuple(i for i, write in enumerate(writes) if not model_holds(write.when, model.get(write.key)))
                assert store.commit(writes) == (Conflict(failed) if failed else None)
                for write in writes if not failed else ():
                    model_write(model, reported, write)
            for table in Table:
                for pk in PARTITIONS:
                    mine = {k.sk: item for k, item in model.items() if (k.table, k.pk) == (table, pk)}
                    records = store.query(table, pk)
                    assert [record.key.sk for record in records] == sorted(mine)
                    assert [exactly(record.item) for record in records] == [exactly(mine[sk]) for sk in sorted(mine)]
            changes = self.changes(store)
        for pk in PARTITIONS:
            expected = reported.get(pk, [])
            found = [(f"{c.table}/{c.sk}", c.item) for c in changes if c.pk == pk]
            for name in {name for name, _ in (*expected, *found)}:
                assert [item for one, item in found if one == name] == [item for one, item in expected if one == name]
