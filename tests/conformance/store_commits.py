"""What a commit does: items, updates, conditions, expiry."""

import json

import pytest

from interlock.model.errors import CommitRefusedError
from interlock.model.keys import Table
from interlock.ports.store import (
    Condition,
    Conflict,
    Delete,
    Item,
    Key,
    Matches,
    Missing,
    Present,
    Put,
    Require,
    Store,
    Update,
    Write,
)
from tests.conformance.manual_clock import ManualClock
from tests.conformance.store_backend import PK, SECONDS, StoreBackend, key
from tests.conformance.store_model import exactly


class CommitTests(StoreBackend):
    """Reading back what was written."""

    def test_nothing_is_there_at_first(self, store: Store) -> None:
        assert store.get(key()) is None
        assert store.query(Table.CONTROL, PK) == []
        assert store.pipelines() == []
        assert store.events_by_type("JOB_COMPLETED", since=0, until=2**50, limit=10) == []

    @pytest.mark.parametrize("table", list(Table))
    def test_a_put_item_is_read_back_from_its_table_only(self, store: Store, table: Table) -> None:
        assert store.commit([Put(key(table=table), {"status": "ready"})]) is None
        assert store.get(key(table=table)) == {"status": "ready"}
        assert [other for other in Table if store.get(key(table=other)) is not None] == [table]

    @pytest.mark.parametrize(
        "item",
        [
            {},
            {"text": "", "zero": 0, "no": False, "null": None},
            {"nested": {"null": None, "list": [1, None, {"deep": [[]]}], "empty": {}}},
            {"big": 10**38 - 1, "small": -(10**38) + 1, "beyond_float": 2**53 + 1},
            {"fraction": 0.1, "tiny": 1e-100, "huge": 1e100, "negative": -2.5},
            {"snow ☃ #.$": 'grüße 🎉 \u0000 \n " \\'},
            {"key": "not the key", "type": 5, "item": {"item": 1}},
        ],
    )
    def test_an_item_comes_back_as_it_was(self, store: Store, item: Item) -> None:
        store.commit([Put(key(), item)])
        assert exactly(store.get(key())) == exactly(item)

    def test_a_whole_number_comes_back_as_an_integer(self, store: Store) -> None:
        written = {"one": 1.0, "many": 1e22, "zero": -0.0, "part": 1.5, "list": [2.0, {"n": 3.0}]}
        store.commit([Put(key(), written), Update(key("b"), set=written)])
        expected = '{"one": 1, "many": 10000000000000000000000, "zero": 0, "part": 1.5, "list": [2, {"n": 3}]}'
        assert [json.dumps(item) for item in store.get_many([key(), key("b")])] == [expected] * 2

    def test_a_put_replaces_the_whole_item(self, store: Store) -> None:
        store.commit([Put(key(), {"a": 1, "b": 2})])
        store.commit([Put(key(), {"b": 3})])
        assert store.get(key()) == {"b": 3}

    def test_what_was_read_is_a_copy(self, store: Store) -> None:
        store.commit([Put(key(), {"inner": {"n": 1}})])
        (store.get(key()) or {})["inner"]["n"] = 2
        assert store.get(key()) == {"inner": {"n": 1}}

    def test_get_many_answers_in_the_order_asked(self, store: Store) -> None:
        store.commit([Put(key("a"), {"n": 1}), Put(key("b"), {"n": 2}), Put(key("a", table=Table.RERUN), {"n": 3})])
        wanted = [key("b"), key("none"), key("a", table=Table.RERUN), key("a"), key("b")]
        assert store.get_many(wanted) == [{"n": 2}, None, {"n": 3}, {"n": 1}, {"n": 2}]
        assert store.get_many([]) == []

    def test_a_delete_removes_and_of_an_absent_item_is_no_error(self, store: Store) -> None:
        store.commit([Put(key(), {})])
        assert store.commit([Delete(key()), Delete(key("absent"))]) is None
        assert store.get(key()) is None

    def test_an_update_sets_adds_and_removes(self, store: Store) -> None:
        store.commit([Put(key(), {"keep": 1, "count": 5, "gone": True, "status": "old"})])
        store.commit(
            [Update(key(), set={"status": "new", "map": {"x": None}}, add={"count": -2}, remove=("gone", "no"))]
        )
        assert store.get(key()) == {"keep": 1, "count": 3, "status": "new", "map": {"x": None}}

    def test_an_update_creates_and_counts_from_zero(self, store: Store) -> None:
        store.commit([Update(key(), set={"a": 1}, add={"wakeSeq": 1}, remove=("b",))])
        store.commit([Update(key(), add={"wakeSeq": 1})])
        assert store.get(key()) == {"a": 1, "wakeSeq": 2}

    def test_an_update_without_changes_creates_an_empty_item(self, store: Store) -> None:
        store.commit([Update(key())])
        assert store.get(key()) == {}

    def test_a_null_that_is_set_is_kept(self, store: Store) -> None:
        store.commit([Update(key(), set={"a": None})])
        assert store.get(key()) == {"a": None}

    @pytest.mark.parametrize("number", ["5", True, None, [], {}])
    def test_adding_to_what_is_no_number_is_refused(self, store: Store, number: object) -> None:
        store.commit([Put(key(), {"n": number})])
        with pytest.raises(CommitRefusedError, match="n"):
            store.commit([Put(key("other"), {}), Update(key(), add={"n": 1})])
        assert store.get(key()) == {"n": number}
        assert store.get(key("other")) is None

    @pytest.mark.parametrize(
        ("item", "condition", "holds"),
        [
            (None, None, True),
            ({}, None, True),
            (None, Missing(), True),
            ({}, Missing(), False),
            (None, Present(), False),
            ({}, Present(), True),
            ({"v": 1}, Matches({"v": 1}), True),
            ({"v": 1}, Matches({"v": 1.0}), True),
            ({"v": 1}, Matches({"v": 2}), False),
            ({"v": 1}, Matches({"v": "1"}), False),
            ({"v": 1}, Matches({"v": True}), False),
            ({"v": True}, Matches({"v": 1}), False),
            ({"v": False}, Matches({"v": None}), False),
            ({"v": ""}, Matches({"v": None}), False),
            ({"v": 2**53}, Matches({"v": 2**53 + 1}), False),
            ({"v": 10**37}, Matches({"v": 10**37}), True),
            ({"v": 1, "w": 2}, Matches({"v": 1, "w": 2}), True),
            ({"v": 1, "w": 2}, Matches({"v": 1, "w": 3}), False),
            ({"v": 1}, Matches({"v": 1, "w": None}), True),
            ({"v": None}, Matches({"v": None}), True),
            ({"v": None}, Matches({"v": 1}), False),
            ({"v": 1}, Matches({"w": 1}), False),
            ({"v": {"a": [1, True]}}, Matches({"v": {"a": [1, True]}}), True),
            ({"v": {"a": [1, True]}}, Matches({"v": {"a": [1, 1]}}), False),
            ({"v": {"a": 1}}, Matches({"v": {"a": 1, "b": None}}), False),
            ({"v": [1, 2]}, Matches({"v": [2, 1]}), False),
            ({"v": 1}, Matches({}), True),
            (None, Matches({}), True),
            (None, Matches({"v": None}), True),
            (None, Matches({"v": 0}), False),
            (None, Matches({"v": None}, present=True), False),
            ({}, Matches({"v": None}, present=True), True),
            ({"v": 1}, Matches({"v": None}, present=True), False),
        ],
    )
    def test_conditions(self, store: Store, item: Item | None, condition: Condition, holds: bool) -> None:
        target = key()
        attempts: list[Write] = [Put(target, {"new": 1}, when=condition), Delete(target, when=condition)]
        attempts.append(Update(target, set={"new": 1}, when=condition))
        if condition is not None:
            attempts.append(Require(target, when=condition))
        for attempt in attempts:
            store.commit([Delete(target) if item is None else Put(target, item)])
            assert store.commit([attempt]) == (None if holds else Conflict((0,)))
            if not holds or isinstance(attempt, Require):
                assert exactly(store.get(target)) == exactly(item)

    def test_a_conflict_names_every_failed_write_and_nothing_is_written(self, store: Store) -> None:
        store.commit([Put(key("there"), {"n": 1})])
        writes: list[Write] = [
            Put(key("a"), {}),
            Put(key("there"), {"n": 2}, when=Missing()),
            Update(key("b"), add={"n": 1}, when=Present()),
            Delete(key("c")),
            Require(key("d"), when=Matches({"n": 1})),
        ]
        assert store.commit(writes) == Conflict((1, 2, 4))
        assert [record.key.sk for record in store.query(Table.CONTROL, PK)] == ["there"]
        assert store.get(key("there")) == {"n": 1}

    def test_conditions_are_judged_on_the_state_before_the_commit(self, store: Store) -> None:
        assert store.commit([Put(key("a"), {}), Require(key("b"), when=Missing())]) is None
        assert store.commit([Delete(key("a")), Put(key("b"), {}, when=Missing())]) is None
        assert store.commit([Require(key("a"), when=Missing()), Require(key("b"), when=Present())]) is None

    def test_a_commit_may_span_tables_and_partitions(self, store: Store) -> None:
        keys = [key(table=table, pk=f"PIPELINE#{name}") for table in Table for name in "ab"]
        assert store.commit([Put(one, {"n": 1}, when=Missing()) for one in keys]) is None
        assert store.get_many(keys) == [{"n": 1}] * 8

    def test_a_commit_of_nothing_is_no_error(self, store: Store) -> None:
        assert store.commit([]) is None

    def test_an_expired_item_is_absent_to_every_read(self, store: Store, clock: ManualClock) -> None:
        config = key("CONFIG")
        event = Key(Table.EVENTS, PK, f"{SECONDS * 1000}#SLA_MET#1")
        store.commit([Put(config, {"ttl": SECONDS + 10}), Put(event, {"type": "SLA_MET", "ttl": SECONDS + 10})])
        for present, seconds in ((True, 9), (False, 1)):
            clock.advance(seconds=seconds)
            assert (store.get(config) is not None) is present
            assert (store.get_many([config]) != [None]) is present
            assert bool(store.query(Table.CONTROL, PK)) is present
            assert bool(store.pipelines()) is present
            found = store.events_by_type("SLA_MET", since=0, until=2**50, limit=9)
            assert bool(found) is present

    def test_an_expired_item_is_absent_to_every_condition(self, store: Store, clock: ManualClock) -> None:
        store.commit([Put(key(), {"n": 5, "ttl": SECONDS + 1})])
        clock.advance(seconds=1)
        held = (Missing(), Matches({"n": None}), Matches({"ttl": None}))
        failed = (Present(), Matches({"n": 5}))
        assert [store.commit([Require(key(), when=one)]) for one in held] == [None] * 3
        assert [store.commit([Require(key(), when=one)]) for one in failed] == [Conflict((0,))] * 2
        assert store.commit([Put(key(), {"n": 6}, when=Missing())]) is None
        assert store.get(key()) == {"n": 6}

    def test_an_update_of_an_expired_item_starts_from_nothing(self, store: Store, clock: ManualClock) -> None:
        store.commit([Put(key(), {"n": 5, "old": True, "ttl": SECONDS + 1})])
        clock.advance(seconds=1)
        store.commit([Update(key(), add={"n": 1})])
        assert store.get(key()) == {"n": 1}

    def test_expired_items_do_not_use_up_the_limit_of_a_query(self, store: Store, clock: ManualClock) -> None:
        store.commit([Put(key(f"{n}"), {"ttl": SECONDS + (1 if n < 5 else 9)}) for n in range(8)])
        clock.advance(seconds=2)
        assert [record.key.sk for record in store.query(Table.CONTROL, PK, limit=2)] == ["5", "6"]

    @pytest.mark.parametrize("ttl", [None, "1", True, [1], 10**30])
    def test_a_ttl_that_is_no_time_in_the_past_does_not_expire(self, store: Store, ttl: object) -> None:
        store.commit([Put(key(), {"ttl": ttl})])
        assert store.get(key()) == {"ttl": ttl}

    def test_taking_the_ttl_away_keeps_the_item(self, store: Store, clock: ManualClock) -> None:
        store.commit([Put(key(), {"n": 1, "ttl": SECONDS + 1})])
        store.commit([Update(key(), remove=("ttl",))])
        clock.advance(days=9)
        assert store.get(key()) == {"n": 1}
