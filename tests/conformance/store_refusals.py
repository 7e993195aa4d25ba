"""What every backend refuses (`ports.limits`)."""

import math
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from interlock.model.errors import CommitRefusedError
from interlock.model.keys import Table
from interlock.ports.store import (
    MAX_ITEM_BYTES,
    MAX_WRITES,
    Delete,
    Item,
    Key,
    Matches,
    Missing,
    Put,
    Require,
    Store,
    Update,
    Write,
)
from tests.conformance.store_backend import PK, StoreBackend, key


class RefusalTests(StoreBackend):
    """CommitRefusedError, and nothing is written."""

    def test_the_largest_commit_is_taken_and_a_larger_one_refused(self, store: Store) -> None:
        writes = [Put(key(f"{n:03}"), {"n": n}) for n in range(MAX_WRITES + 1)]
        with pytest.raises(CommitRefusedError, match=str(MAX_WRITES)):
            store.commit(writes)
        assert store.query(Table.CONTROL, PK) == []
        assert store.commit(writes[:MAX_WRITES]) is None
        assert len(store.query(Table.CONTROL, PK)) == MAX_WRITES

    @pytest.mark.parametrize("second", [Put(key(), {}), Update(key()), Delete(key()), Require(key(), when=Missing())])
    def test_a_key_twice_is_refused(self, store: Store, second: Write) -> None:
        with pytest.raises(CommitRefusedError, match="SENSOR#a"):
            store.commit([Put(key(), {}), second])
        assert store.get(key()) is None

    def test_an_item_that_is_too_large_is_refused(self, store: Store) -> None:
        text = "x" * (MAX_ITEM_BYTES - 10)
        assert store.commit([Put(key(), {"a": text})]) is None
        assert store.get(key()) == {"a": text}
        for write in (Put(key("b"), {"a": text + "0123456789"}), Update(key(), set={"b": "y" * 30_000})):
            with pytest.raises(CommitRefusedError, match=r"(?i)size|bytes"):
                store.commit([write])
        assert store.get(key()) == {"a": text}

    def test_a_commit_that_is_too_large_in_all_is_refused(self, store: Store) -> None:
        with pytest.raises(CommitRefusedError, match="split"):
            store.commit([Put(key(f"{n}"), {"a": "x" * 380_000}) for n in range(11)])
        assert store.query(Table.CONTROL, PK) == []

    @pytest.mark.parametrize(
        "bad",
        [
            Key(Table.CONTROL, "", "a"),
            Key(Table.CONTROL, "a", ""),
            Key(Table.CONTROL, "p" * 2049, "a"),
            Key(Table.CONTROL, "a", "ü" * 513),
            Key(Table.CONTROL, "a", "\ud800"),
        ],
    )
    def test_a_key_no_backend_can_hold_is_refused(self, store: Store, bad: Key) -> None:
        with pytest.raises(CommitRefusedError, match="key"):
            store.commit([Put(bad, {})])

    @pytest.mark.parametrize(
        "value",
        [
            math.nan,
            math.inf,
            -math.inf,
            1e126,
            1e-131,
            10**38,
            -(10**38),
            datetime(2026, 3, 2, tzinfo=UTC),
            b"bytes",
            {1, 2},
            Decimal(1),
            {5: "key is no text"},
            "\ud800",
            pytest.param(object(), id="object"),  # the repr of an object differs from process to process
        ],
        ids=repr,
    )
    def test_what_is_not_json_is_refused_wherever_it_hides(self, store: Store, value: object) -> None:
        items: list[Item] = [{"v": value}, {"v": {"deep": [1, value]}}]
        for item in items:
            for write in (Put(key(), item), Update(key(), set=item)):
                with pytest.raises(CommitRefusedError, match="SENSOR#a"):
                    store.commit([Put(key("b"), {}), write])
        assert store.get_many([key(), key("b")]) == [None, None]

    @pytest.mark.parametrize(
        "write",
        [
            Update(key(), set={"a": 1}, add={"a": 1}),
            Update(key(), set={"a": 1}, remove=("a",)),
            Update(key(), remove=("a", "a")),
            Update(key(), add={"a": True}),
            Update(key(), add={"a": 10**38}),
            Put(key(), {"": 1}),
            Require(key(), when=None),
            Put(key(), {}, when=Matches({"a": math.nan})),
        ],
        ids=repr,
    )
    def test_other_writes_no_backend_takes(self, store: Store, write: Write) -> None:
        with pytest.raises(CommitRefusedError, match="SENSOR#a"):
            store.commit([write])
        assert store.get(key()) is None

    def test_what_is_nested_too_deep_is_refused(self, store: Store) -> None:
        deep: Item = {}
        for _ in range(31):
            deep = {"d": deep}
        assert store.commit([Put(key(), deep)]) is None
        assert store.get(key()) == deep
        with pytest.raises(CommitRefusedError, match="nested"):
            store.commit([Put(key(), {"d": deep})])

    def test_sizes_are_counted_as_dynamodb_counts_them(self, store: Store) -> None:
        """A list of small numbers: two bytes each as JSON, three in DynamoDB."""
        numbers = [1] * 10_000
        text = "x" * (MAX_ITEM_BYTES - 30_000 - 5)
        assert store.commit([Put(key(), {"t": text, "n": numbers})]) is None
        with pytest.raises(CommitRefusedError, match=str(MAX_ITEM_BYTES)):
            store.commit([Put(key(), {"t": text, "n": [*numbers, 1]})])
        assert store.get(key()) == {"t": text, "n": numbers}

    def test_a_sum_that_is_too_large_is_refused(self, store: Store) -> None:
        store.commit([Put(key(), {"n": 10**38 - 1})])
        with pytest.raises(CommitRefusedError, match="38"):
            store.commit([Update(key(), add={"n": 2})])  # 39 significant digits
        assert store.get(key()) == {"n": 10**38 - 1}
