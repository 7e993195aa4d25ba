"""What a change stream owes its handler (SPEC 13), as tests: order, batches, bisection, tries, dead letters."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.model.keys import Table
from interlock.ports.store import Change, Delete, Key, Put, Store

Handler = Callable[[Sequence[Change]], None]
TABLES = (Table.CONTROL, Table.JOBLOG, Table.EVENTS)


class Stream(Protocol):
    """A store whose changes can be delivered, and the changes that were given up on."""

    @property
    def store(self) -> Store: ...

    def deliver(self, handler: Handler, tables: Sequence[Table] = TABLES) -> None:
        """Deliver to this handler, as one and the same consumer, until nothing is left to deliver."""
        ...

    def dead_letters(self) -> list[Change]:
        """The changes that were given up on, oldest first."""
        ...

    def redrive(self) -> None:
        """Have every dead letter delivered again."""
        ...


class Recorder:
    """A handler that remembers its calls, and fails on some records."""

    def __init__(self, poison: Callable[[Change], bool] = lambda _: False) -> None:
        self.calls: list[list[Change]] = []
        self.handled: list[Change] = []
        self.poison = poison

    def __call__(self, changes: Sequence[Change]) -> None:
        self.calls.append(list(changes))
        if any(map(self.poison, changes)):
            raise RuntimeError("poison")
        self.handled += changes

    def numbers(self, pk: str) -> list[int]:
        return [change.item["n"] for change in self.handled if change.pk == pk and change.item is not None]


def number(change: Change) -> int:
    assert change.item is not None
    return int(change.item["n"])


class StreamSuite(ABC):
    """Subclass it as `class TestMine(StreamSuite)`."""

    @abstractmethod
    def open_stream(self) -> AbstractContextManager[Stream]:
        """A new store with an empty stream."""

    @pytest.fixture
    def stream(self) -> Iterator[Stream]:
        with self.open_stream() as stream:
            yield stream

    def test_everything_is_delivered_once_when_nothing_fails(self, stream: Stream) -> None:
        write(stream, "a", range(25))
        recorder = Recorder()
        stream.deliver(recorder)
        assert recorder.numbers("a") == list(range(25))
        write(stream, "a", range(25, 30))
        stream.deliver(recorder)
        assert recorder.numbers("a") == list(range(30))
        assert stream.dead_letters() == []

    def test_removals_and_all_tables_are_told(self, stream: Stream) -> None:
        keys = [Key(table, "a", "s") for table in TABLES]
        stream.store.commit([Put(key, {"n": 1}) for key in keys])
        stream.store.commit([Delete(key) for key in keys])
        recorder = Recorder()
        stream.deliver(recorder)
        for key in keys:
            assert [change.item for change in recorder.handled if change.key == key] == [{"n": 1}, None]

    @pytest.mark.parametrize("wanted", [(Table.EVENTS,), (Table.CONTROL, Table.JOBLOG)])
    def test_only_the_wanted_tables_are_told(self, stream: Stream, wanted: tuple[Table, ...]) -> None:
        stream.store.commit([Put(Key(table, "a", "s"), {"n": 1}) for table in Table])
        recorder = Recorder()
        stream.deliver(recorder, wanted)
        assert {change.table for change in recorder.handled} == set(wanted)

    def test_batches_are_of_ten_at_most(self, stream: Stream) -> None:
        write(stream, "a", range(35))
        recorder = Recorder()
        stream.deliver(recorder)
        assert max(map(len, recorder.calls)) == 10
        assert sum(map(len, recorder.calls)) == 35

    def test_a_poison_record_is_found_tried_three_times_and_kept_whole(self, stream: Stream) -> None:
        write(stream, "a", range(10))
        recorder = Recorder(lambda change: number(change) == 6)
        stream.deliver(recorder)
        assert recorder.numbers("a") == [0, 1, 2, 3, 4, 5, 7, 8, 9]
        assert [number(call[0]) for call in recorder.calls if len(call) == 1].count(6) == 3
        (letter,) = stream.dead_letters()
        assert (letter.key, letter.item) == (Key(Table.CONTROL, "a", "s6"), {"n": 6})

    def test_nothing_overtakes_a_failing_record_of_its_partition(self, stream: Stream) -> None:
        write(stream, "a", range(30))
        failures = Counter[int]()

        def poison(change: Change) -> bool:
            failures[number(change)] += 1
            return number(change) % 7 == 3 and failures[number(change)] < 4

        recorder = Recorder(poison)
        stream.deliver(recorder)
        handled = recorder.numbers("a")
        assert handled == sorted(handled)
        assert sorted(handled + [number(letter) for letter in stream.dead_letters()]) == list(range(30))

    def test_a_record_that_succeeds_at_the_last_try_is_no_dead_letter(self, stream: Stream) -> None:
        write(stream, "a", [1])
        calls: list[int] = []

        def handler(changes: Sequence[Change]) -> None:
            calls.append(len(changes))
            if len(calls) < 3:
                raise RuntimeError("not yet")

        stream.deliver(handler)
        assert calls == [1, 1, 1]
        assert stream.dead_letters() == []

    def test_poison_does_not_keep_other_partitions(self, stream: Stream) -> None:
        for n in range(12):
            stream.store.commit([Put(Key(Table.CONTROL, pk, f"s{n}"), {"n": n}) for pk in "abc"])
        recorder = Recorder(lambda change: change.pk == "b")
        stream.deliver(recorder)
        assert recorder.numbers("a") == recorder.numbers("c") == list(range(12))
        assert [number(letter) for letter in stream.dead_letters()] == list(range(12))

    def test_a_redriven_record_is_delivered_again(self, stream: Stream) -> None:
        write(stream, "a", range(5))
        stream.deliver(Recorder(lambda change: number(change) in (1, 3)))
        assert len(stream.dead_letters()) == 2
        stream.redrive()
        recorder = Recorder()
        stream.deliver(recorder)
        assert recorder.numbers("a") == [1, 3]
        assert stream.dead_letters() == []

    def test_a_redriven_record_that_fails_again_is_a_dead_letter_again(self, stream: Stream) -> None:
        write(stream, "a", [1])
        recorder = Recorder(lambda _: True)
        for _ in range(2):
            stream.deliver(recorder)
            assert [letter.item for letter in stream.dead_letters()] == [{"n": 1}]
            stream.redrive()

    @settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow], max_examples=25)
    @given(
        written=st.lists(st.sampled_from("abc"), max_size=60),
        poisoned=st.sets(st.integers(0, 59), max_size=6),
    )
    def test_each_record_is_handled_in_order_or_is_a_dead_letter(self, written: list[str], poisoned: set[int]) -> None:
        self.play(written, poisoned)

    def play(self, written: list[str], poisoned: set[int]) -> None:
        """Write a record to each of these partitions in turn, and have some of them fail."""
        with self.open_stream() as stream:
            for n, pk in enumerate(written):
                write(stream, pk, [n])
            recorder = Recorder(lambda change: number(change) in poisoned)
            stream.deliver(recorder)
            for partition in "abc":
                mine = [n for n, pk in enumerate(written) if pk == partition]
                assert recorder.numbers(partition) == [n for n in mine if n not in poisoned]
            letters = sorted(number(letter) for letter in stream.dead_letters())
            assert letters == sorted(poisoned & set(range(len(written))))


def write(stream: Stream, pk: str, numbers: Sequence[int]) -> None:
    for n in numbers:
        stream.store.commit([Put(Key(Table.CONTROL, pk, f"s{n}"), {"n": n})])
