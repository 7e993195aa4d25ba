"""The quota of a pipeline's sensors: read seldom while there is room, and for each write when there is none."""

from typing import Any, Final

import pytest

from interlock.control import records, sensor_quotas
from interlock.control.context import Control
from interlock.control.sensor_quotas import SensorQuotas
from interlock.decide.quotas import SensorQuota
from interlock.model.errors import QuotaExceededError
from interlock.model.keys import pipeline_pk
from interlock.model.sensor import SensorUse
from interlock.ports.store import Key, Put
from tests.safety.stage import control_of, pipeline, staged

QUOTA: Final = SensorQuota(sensors=10)


class Counted:
    """Says what it is given, and counts how often it was asked."""

    def __init__(self, kept: int, **more: int) -> None:
        self.use = SensorUse(**({"kept": kept, "expiring": 0, "bytes": 0} | more))
        self.asked: list[str] = []

    def sensors_of(self, pipeline: str) -> SensorUse:
        self.asked.append(pipeline)
        return self.use


@pytest.fixture(name="control")
def fixture_control() -> Control:
    return control_of(staged(pipeline(), until="+1m", steps=[]))


def key(name: str, of: str = "orders") -> Key:
    return records.control_key(pipeline_pk(of), f"SENSOR#{name}")


def check(quotas: SensorQuotas, control: Control, name: str, of: str = "orders", **item: Any) -> None:
    quotas.check(control.store, of, key(name, of), item)


def test_the_count_is_read_once_for_as_many_writes_as_fit(control: Control) -> None:
    usage = Counted(kept=7)
    quotas = SensorQuotas(usage, QUOTA)
    for number in range(3):
        check(quotas, control, f"k{number}")
    assert usage.asked == ["orders"]
    check(quotas, control, "k3")
    assert usage.asked == ["orders"] * 2, "after so many it is read again"


def test_each_pipeline_has_its_own_room(control: Control) -> None:
    usage = Counted(kept=9)
    quotas = SensorQuotas(usage, QUOTA)
    check(quotas, control, "k")
    check(quotas, control, "k", "silver")
    assert usage.asked == ["orders", "silver"]


def test_a_new_sensor_beyond_the_quota_is_refused_and_one_that_is_there_is_not(control: Control) -> None:
    usage = Counted(kept=10)
    quotas = SensorQuotas(usage, QUOTA)
    with pytest.raises(QuotaExceededError, match="pipeline 'orders' may have no more: it has 10 sensors"):
        check(quotas, control, "new")
    control.store.commit([Put(key("old"), {"count": 1})])
    check(quotas, control, "old", count=2)
    check(quotas, control, "hour", ttl=5, count=2)
    assert len(usage.asked) == 3, "without room each write is looked at"


def test_bytes_count_by_what_a_write_adds(control: Control) -> None:
    usage = Counted(kept=1, bytes=1000)
    quotas = SensorQuotas(usage, SensorQuota(sensors=10, bytes=1000))
    control.store.commit([Put(key("old"), {"text": "x" * 100})])
    check(quotas, control, "old", text="y" * 100)
    with pytest.raises(QuotaExceededError, match="its sensors take 1000 bytes"):
        check(quotas, control, "old", text="y" * 101)


def test_what_is_remembered_of_pipelines_is_bounded(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensor_quotas, "_MOST_REMEMBERED", 2)
    usage = Counted(kept=0)
    quotas = SensorQuotas(usage, QUOTA)
    for name in ("a", "b", "a", "c", "a"):
        check(quotas, control, "k", name)
    assert usage.asked == ["a", "b", "c", "a"]
