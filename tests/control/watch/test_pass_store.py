"""What the watchdog has read it does not read again; a commit forgets it. And a quiet pipeline costs eight reads."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import pytest

from interlock.control import catalog, records
from interlock.control.context import Settings
from interlock.control.watch import watchdog
from interlock.control.watch.pass_store import PassStore
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import Table
from interlock.model.run import Marker
from interlock.ports.jobs import JobState
from interlock.ports.store import Conflict, Item, Key, Missing, Put, Record, Span, Store, Write
from tests.conformance.wrapped_store import WrappedStore
from tests.control.test_rare_events import START, Installation, Target

T = TypeVar("T")
PK: Final = "PIPELINE#orders"


class CountedStore(WrappedStore):
    """A store that counts its reads: a call each, however many keys it is given; of spans each."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.reads: Counter[str] = Counter()
        self.commits = 0

    def get(self, key: Key) -> Item | None:
        self.reads[key.pk] += 1
        return super().get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        self.reads[keys[0].pk] += 1
        return super().get_many(keys)

    def query(self, table: Table, pk: str, prefix: str = "", **given: Any) -> list[Record]:
        self.reads[pk] += 1
        return super().query(table, pk, prefix, **given)

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        self.reads.update(span.pk for span in spans)
        return super().read_spans(table, spans, into)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        self.commits += 1
        return super().commit(writes)


@pytest.fixture
def installation() -> Installation:
    return Installation(Target(state=JobState.SUCCEEDED))


def at(sk: str) -> Key:
    return Key(Table.CONTROL, PK, sk)


def test_a_record_is_read_once_and_again_after_a_commit(installation: Installation) -> None:
    counted = CountedStore(installation.engine.store)
    store = PassStore(counted)
    for _ in range(3):
        assert store.get(at("X")) is None
        assert store.query(Table.CONTROL, PK, "S#") == []
    assert counted.reads[PK] == 2
    assert store.commit([Put(at("X"), {"n": 1}, Missing())]) is None
    assert store.get(at("X")) == {"n": 1}
    assert store.commit([Put(at("X"), {"n": 2}, Missing())]) is not None
    installation.engine.store.commit([Put(at("X"), {"n": 3})])
    assert store.get(at("X")) == {"n": 3}, "who lost a commit reads again"


def test_of_the_pipeline_before_everything_is_read_again_and_of_the_controller_nothing(
    installation: Installation,
) -> None:
    installation.apply()
    store = CountedStore(installation.engine.store)
    seen = PassStore(store)
    for _ in range(2):
        for pk in (PK, keys.CONTROLLER):
            seen.query(Table.CONTROL, pk)
        seen.next_pipeline()
    assert store.reads == {PK: 2, keys.CONTROLLER: 1}


def test_what_a_query_has_proved_absent_is_not_asked_for(installation: Installation) -> None:
    installation.engine.store.commit([Put(at(f"S#{n}"), {"n": n}) for n in range(1, 6)])
    counted = CountedStore(installation.engine.store)
    store = PassStore(counted)
    newest = store.query(Table.CONTROL, PK, "S#", reverse=True, limit=3)
    assert [record.item["n"] for record in newest] == [5, 4, 3]
    assert [store.get(at(f"S#{n}")) for n in (3, 4, 7)] == [{"n": 3}, {"n": 4}, None]
    assert counted.reads[PK] == 1
    assert store.get(at("S#2")) == {"n": 2}
    assert store.get_many([at("S#1"), at("S#9"), at("T")]) == [{"n": 1}, None, None]
    assert counted.reads[PK] == 3
    store.query(Table.CONTROL, PK, "S#", after="S#2")
    store.next_pipeline()
    assert store.get(at("S#3")) == {"n": 3}
    assert counted.reads[PK] == 5


KINDS: Final[dict[str, dict[str, Any]]] = {
    "daily cron": {},
    "daily cron with an SLA": {"sla": {"deadline": "10:00", "expectedDuration": "30m"}},
    "quarter-hourly cron": {"schedule": {"cron": "*/15 * * * *"}, "sla": {"deadline": ":50"}},
    "sensor-driven": {
        "schedule": {"trigger": {"key": "export", "check": "exists", "deadline": "09:30"}, "time": "08:00"},
        "sla": {"deadline": "10:00", "expectedDuration": "30m", "maxDuration": "4h"},
        "postRun": {"rules": [{"key": "out", "check": "exists"}]},
    },
    "cascaded": {"schedule": {"cron": "0 8 * * *"}, "after": [{"pipeline": "up"}], "sla": {"deadline": "10:00"}},
    "everything": {
        "schedule": {"cron": "0 * * * *", "trigger": {"key": "export", "check": "exists", "deadline": ":30"}},
        "sla": {"deadline": ":50", "expectedDuration": "5m"},
        "after": [{"pipeline": "up"}],
        "postRun": {"rules": [{"key": "out", "check": "exists"}]},
    },
}


@pytest.mark.parametrize("ticks_are_timers", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_pipeline_costs_at_most_eight_reads(kind: str, ticks_are_timers: bool) -> None:
    target = Target(state=JobState.SUCCEEDED)
    installation = Installation(target, Settings(tick_timers=ticks_are_timers))
    installation.apply(**KINDS[kind])
    for n in range(10):
        installation.sensor(f"export#2026-02-{10 + n}", rows=1)
    marker = Marker(upstream="up", date="2026-03-02", completed_at=START, attempt=1, upstream_schedule="cron")
    installation.put(keys.marker_sk("cron", "2026-03-02", "up", "cron"), records.plain(marker))
    installation.go_to("08:00:30")
    installation.sensor("export", rows=1)
    for clock_time in ("08:10:00", "09:06:00", "09:11:00"):
        installation.go_to(clock_time)
        assert installation.engine.watch() == []
        installation.settle()
    installation.go_to("09:14:00")
    counted = CountedStore(installation.engine.store)
    assert watchdog.run(replace(installation.engine.control, store=counted)) == []
    assert counted.reads[PK] <= 8
    assert counted.commits == 1, "that the pass was complete, and nothing else"


def test_what_a_runtime_cannot_run_is_refused_through_it_as_well() -> None:
    installation = Installation(Target(state=JobState.SUCCEEDED))
    installation.apply()
    store = installation.engine.store
    ours = catalog.current(store, "orders")
    assert ours is not None
    assert PassStore(store).refused(ours) == ()

    class Choosy(CountedStore):
        def refused(self, config: PipelineConfig) -> list[str]:
            return [f"{config.id} cannot be run here"]

    found = catalog.stored(PassStore(Choosy(store)), "orders")
    assert found is not None
    assert (found.config, found.errors) == (None, ("orders cannot be run here",))
