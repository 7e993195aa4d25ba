"""The count of sensors, kept by triggers, is what a scan would find."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.control.sensor_quotas import SensorQuotas
from interlock.decide.quotas import SensorQuota
from interlock.embedded.sqlite.connection import _STEPS
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.sensor_usage import SqliteSensorUsage
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import QuotaExceededError
from interlock.model.keys import Table, pipeline_pk, sensor_sk
from interlock.model.sensor import SensorUse
from interlock.ports.store import Delete, Item, Key, Put
from interlock.simulation.clock import VirtualClock

START = datetime(2026, 3, 2, tzinfo=UTC)
_SCAN = (
    "SELECT coalesce(sum(ttl IS NULL), 0), coalesce(sum(ttl IS NOT NULL), 0),"
    " coalesce(sum(length(CAST(item AS BLOB))), 0) FROM control WHERE pk = ? AND sk >= 'SENSOR#' AND sk < 'SENSOR$'"
)


def scanned(database: Database, pipeline: str) -> SensorUse:
    return SensorUse(*database.read(_SCAN, (pipeline_pk(pipeline),))[0])


def where(pipeline: str, key: str) -> Key:
    return Key(Table.CONTROL, pipeline_pk(pipeline), sensor_sk(key))


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None, clock=VirtualClock(START)) as found:
        yield found


_WRITES = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "sweep"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["x", "y", "z#20260303"]),
        st.one_of(st.none(), st.integers(1, 3)),
        st.text(max_size=20),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(_WRITES)
def test_the_count_is_what_a_scan_finds(writes: list[tuple[str, str, str, int | None, str]]) -> None:
    clock = VirtualClock(START)
    with Database.open(None, clock=clock) as database:
        store, usage = SqliteStore(database, clock), SqliteSensorUsage(database)
        for what, pipeline, key, hours, text in writes:
            if what == "put":
                ttl = {} if hours is None else {"ttl": int((clock.now() + timedelta(hours=hours)).timestamp())}
                other = Put(Key(Table.CONTROL, pipeline_pk(pipeline), "CONFIG"), {"x": text})
                store.commit([Put(where(pipeline, key), {"data": {"text": text}, **ttl}), other])
            elif what == "delete":
                store.commit([Delete(where(pipeline, key))])
            else:
                clock.move_to(clock.now() + timedelta(hours=2))
                store.sweep()
            for one in ("a", "b"):
                assert usage.sensors_of(one) == scanned(database, one)


def test_sensors_of_an_older_store_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock(START)
    with monkeypatch.context() as patch:
        patch.setattr("interlock.embedded.sqlite.connection._STEPS", _STEPS[: _STEPS.index("sensor_use.sql")])
        with Database.open(tmp_path / "old.db", clock=clock) as old:
            store = SqliteStore(old, clock)
            store.commit([Put(where("a", f"k{number}"), {"data": {"n": number}}) for number in range(5)])
    with Database.open(tmp_path / "old.db", clock=clock) as database:
        assert SqliteSensorUsage(database).sensors_of("a") == scanned(database, "a")
        assert scanned(database, "a").kept == 5


class _Counted:
    def __init__(self, database: Database) -> None:
        self._usage = SqliteSensorUsage(database)
        self.asked = 0

    def sensors_of(self, pipeline: str) -> SensorUse:
        self.asked += 1
        return self._usage.sensors_of(pipeline)


def test_far_below_the_quota_nobody_counts(database: Database) -> None:
    store, usage = SqliteStore(database, VirtualClock(START)), _Counted(database)
    quotas = SensorQuotas(usage, SensorQuota(sensors=20))

    def write(key: str) -> None:
        item: Item = {"data": {}}
        quotas.check(store, "a", where("a", key), item)
        store.commit([Put(where("a", key), item)])

    for number in range(20):
        write(f"k{number}")
    assert usage.asked == 1
    write("k3")
    with pytest.raises(QuotaExceededError, match="'a' may have no more: it has 20 sensors"):
        write("k20")
    store.commit([Delete(where("a", "k0"))])
    write("k20")
