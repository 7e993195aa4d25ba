"""Records: the order of events of several processes at one instant, and bounds on what is read at once."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import records
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import StoreError, ThrottledError
from interlock.model.events import CATALOGUE, EVENT_TTL_DAYS, EventType, Severity
from interlock.model.keys import RunKey, Table
from interlock.model.periods import parse_period
from interlock.model.run import JobEvent, JobRecord
from interlock.model.sensor import MAX_SENSOR_BYTES, Sensor
from interlock.model.times import parse_instant
from interlock.ports.store import UNREADABLE, Conflict, Missing, Put, Store, Write
from interlock.simulation.play import play
from tests.journeys.test_journeys import HERE, scenario_of
from tests.safety.interleaving import InterleavingStore
from tests.safety.stage import control_of, pipeline, run_of, staged

SORT_KEY = """
from interlock.control import records
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.times import parse_instant
at = parse_instant("2026-03-02T08:00:00Z")
event = records.event(EventType.INFRA_ALARM, RunKey("_infrastructure", "", ""), at, "m")
print(records.put_event(event).key.sk)
"""


def test_two_processes_never_choose_the_same_sort_key() -> None:
    """Three alarms in three cold functions at one instant are three events."""
    outputs = {
        subprocess.run([sys.executable, "-c", SORT_KEY], check=True, capture_output=True, text=True).stdout
        for _ in range(3)
    }
    assert len(outputs) == 3


def test_the_order_within_a_process_is_kept() -> None:
    at = parse_instant("2026-03-02T08:00:00Z")
    assert at is not None
    event = records.event(EventType.SLA_MET, RunKey("gold", "cron", "2026-03-02"), at, "m")
    sort_keys = [records.put_event(event).key.sk for _ in range(300)]
    assert sort_keys == sorted(sort_keys)


def test_sla_states_of_runs_that_failed_are_not_all_read_at_every_pass() -> None:
    control = control_of(staged(pipeline(), until="2026-03-05T00:00:00Z", steps=[]))
    key = records.run_record(RunKey("orders", "stream", "2026-03-02"), "SLA#")
    for index in range(150):
        date = f"2025-{index // 28 + 1:02d}-{index % 28 + 1:02d}"
        item = {"pipeline": "orders", "schedule": "stream", "date": date, "version": 1, "configVersion": "x"}
        control.store.commit([Put(records.control_key(key.pk, f"SLA#stream#{date}"), item)])
    recent = records.recent_sla(control.store, "orders", "stream")
    assert len(recent) == 100
    assert recent[0].date > recent[-1].date


# -------------------------------------------------------------------------------------------------------------- sensors

NOW: Final = datetime(2026, 3, 5, 12, tzinfo=UTC)
KEY: Final = RunKey("orders", "stream", "2026-03-05")


def test_an_observation_is_stored_with_when_it_came_what_it_says_and_who_wrote_it() -> None:
    item = records.sensor_item({"rows": 1}, NOW, ttl=99, by="ann")
    assert item == {
        "data": {"rows": 1}, "_receivedAt": "2026-03-05T12:00:00Z", "_digest": records.digest({"rows": 1}), "ttl": 99,
        "_by": "ann",
    }  # fmt: skip
    assert set(records.sensor_item({"rows": 1}, NOW)) == {"data", "_receivedAt", "_digest"}
    assert len(records.digest({"rows": 1})) == 16
    assert records.digest({"a": 1, "b": 2}) == records.digest({"b": 2, "a": 1}) != records.digest({"a": 2, "b": 1})


@pytest.mark.parametrize(
    ("item", "data", "received", "ttl"),
    [
        ({"data": {"rows": 1}, "_receivedAt": "2026-03-05T12:00:00Z", "ttl": 99}, {"rows": 1}, NOW, 99),
        ({"rows": 1, "ttl": 99.0, "_by": "ann", "_digest": "x", "_refused": "y"}, {"rows": 1}, None, 99),
        ({"rows": 1, "data": "a text", "ttl": "soon"}, {"rows": 1, "data": "a text"}, None, None),
    ],
    ids=["ours", "flat", "a field called data"],
)
def test_an_observation_is_read_flat_or_nested(
    item: dict[str, Any], data: dict[str, Any], received: datetime | None, ttl: int | None
) -> None:
    found = records.sensor_of("k", item)
    assert (found.key, found.data, found.ttl) == ("k", data, ttl)
    assert found.received_at == (received or datetime(1970, 1, 1, tzinfo=UTC)), "never received, until it is stamped"


def test_two_writes_of_a_sensor_differ_in_when_they_came_or_in_what_they_say() -> None:
    stamps = {
        records.stamp(Sensor("k", {"n": n}, NOW + timedelta(milliseconds=at))) for n, at in ((1, 0), (2, 0), (1, 1))
    }
    assert len(stamps) == 3
    assert records.stamp(Sensor("k", {"n": 1}, NOW)) in stamps


LARGE: Final = {"text": "x" * MAX_SENSOR_BYTES}
FITS: Final = {"t": "x" * (MAX_SENSOR_BYTES - len('{"t":""}'))}


def test_an_observation_that_is_too_large_or_cannot_be_read_counts_as_absent() -> None:
    assert records.unfit({}, FITS) == ""
    assert records.unfit({}, LARGE).endswith(f"bytes is more than the {MAX_SENSOR_BYTES} a sensor may have")
    assert records.unfit({UNREADABLE: "a set"}, {}) == "it holds a set"
    assert records.is_absent("k", None)
    assert records.is_absent("k", {"rows": 1, "_refused": "why"})
    assert records.is_absent("k", {"rows": 1, UNREADABLE: "a set"})
    assert records.is_absent("k", {"data": LARGE}), "nobody has stamped it: it is measured"
    assert not records.is_absent("k", {"data": LARGE, "_receivedAt": "2026-03-05T12:00:00Z"})
    assert not records.is_absent("k", {"data": FITS})
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    for name, item in (("a", {"data": {"n": 1}}), ("b", {"data": LARGE}), ("c", {"n": 1, "_refused": "x"})):
        control.store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk(name)), item)])
    assert set(records.get_sensors(control.store, "orders", ["a", "b", "c", "d"])) == {"a"}


# --------------------------------------------------------------------------------------------------------------- events


def test_an_event_has_its_type_s_severity_unless_another_is_given_and_no_empty_details() -> None:
    event = records.event(EventType.SLA_BREACH, KEY, NOW, "late", deadline="10:00", at=NOW, empty=None, zero=0)
    assert event.severity is CATALOGUE[EventType.SLA_BREACH].severity
    assert event.detail == {"deadline": "10:00", "at": "2026-03-05T12:00:00Z", "zero": 0}
    assert (event.pipeline_id, event.schedule_id, event.date, event.timestamp) == ("orders", "stream", KEY.date, NOW)
    mild = records.event(EventType.SLA_BREACH, KEY, NOW, "late", severity=Severity.INFO)
    assert mild.severity is Severity.INFO
    put = records.put_event(event)
    assert put.item["ttl"] == int(NOW.timestamp()) + EVENT_TTL_DAYS * 86_400
    assert put.key.sk.startswith(f"{int(NOW.timestamp()) * 1000:013d}#SLA_BREACH#")


def test_an_event_is_published_once_and_remembered_for_a_month() -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    event = records.event(EventType.SLA_BREACH, KEY, NOW, "late")
    assert not records.was_alerted(control.store, KEY, "x")
    assert [records.publish_once(control, event, "x") for _ in range(2)] == [True, False]
    assert records.publish_once(control, event, "y")
    assert records.was_alerted(control.store, KEY, "x")
    stored = control.store.query(Table.EVENTS, KEY.pk)
    assert [one.item["type"] for one in stored] == [EventType.SLA_BREACH] * 2
    put = records.once(KEY, "x", NOW)
    assert put.item == {"at": "2026-03-05T12:00:00Z", "ttl": int((NOW + timedelta(days=30)).timestamp())}


@pytest.mark.parametrize(
    ("failed", "published"), [((1,), True), ((0,), False), ((0, 1), False)], ids=["sort key", "said before", "both"]
)
def test_an_event_whose_sort_key_is_taken_is_tried_again_and_one_that_was_published_is_not(
    failed: tuple[int, ...], published: bool
) -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    store = Contended(control.store, failed)
    event = records.event(EventType.SLA_BREACH, KEY, NOW, "late")
    assert records.publish_once(replace(control, store=store), event, "x") is published
    assert records.was_alerted(control.store, KEY, "x") is published


def test_an_event_that_never_finds_a_sort_key_is_an_error() -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    store = Contended(control.store, *[(1,)] * 20)
    event = records.event(EventType.SLA_BREACH, KEY, NOW, "late")
    with pytest.raises(StoreError, match="finds no free sort key in the events table"):
        records.publish_once(replace(control, store=store), event, "x")


class Contended(InterleavingStore):
    """A store whose first commits lose: the writes of these numbers."""

    def __init__(self, store: Store, *failed: tuple[int, ...]) -> None:
        super().__init__(store, lambda _: None)
        self.failed = list(failed)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        return Conflict(self.failed.pop(0)) if self.failed else super().commit(writes)


# ----------------------------------------------------------------------------------------------------------------- runs


def test_the_outcome_is_the_first_end_of_the_latest_attempt() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    control, run = control_of(world), run_of(world)
    lines = [(2, JobEvent.SUCCESS), (1, JobEvent.INFRA_TRIGGER_FAILURE), (1, JobEvent.FAIL), (1, JobEvent.SUCCESS)]
    assert records.outcome_of(control.store, run) is None
    for index, (attempt, event) in enumerate(lines):
        record = JobRecord(
            pipeline="orders", schedule="stream", date=KEY.date, event=event, attempt=attempt, at=world.clock.now()
        )
        control.store.commit([records.put_job(record, f"{index}")])
    outcome = records.outcome_of(control.store, run)
    assert outcome is not None
    assert outcome.event is JobEvent.FAIL


def test_a_record_that_is_none_of_its_kind_names_itself() -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    control.store.commit([Put(records.run_record(KEY, keys.RUN), {"date": 5})])
    with pytest.raises(StoreError, match="control PIPELINE#orders TRIGGER#stream#2026-03-05 is not a Run: "):
        records.get_run(control.store, KEY)


def runs_of(control: Control, *slots: tuple[str, str, int]) -> None:
    """Runs of these schedules and dates, first opened at that minute, as copies of a real one."""
    item = control.store.get(records.run_record(KEY, keys.RUN))
    assert item is not None
    for schedule, date, minute in slots:
        opened = f"2026-03-05T12:{minute:02d}:00Z"
        copy = {**item, "schedule": schedule, "date": date, "firstOpenedAt": opened}
        control.store.commit([Put(records.run_record(RunKey("orders", schedule, date), keys.RUN), copy)])


def test_the_latest_run_of_several_schedules_is_of_the_latest_day_and_opened_last() -> None:
    schedules = [{"id": name, "cron": "0 8 * * *"} for name in ("a", "b", "stream")]
    config = pipeline(schedules=schedules)
    del config["schedule"]
    stored = read_stored(config, {})
    assert isinstance(stored, PipelineConfig)
    control = control_of(staged(pipeline(), until="+30m"))
    assert records.latest_run(control.store, "orders", "a") is None
    runs_of(control, ("a", "2026-03-06", 2), ("b", "2026-03-06", 1), ("b", "2026-03-04", 9))
    latest = records.latest_run_of_all(control.store, stored)
    assert latest is not None
    assert (latest.schedule, latest.date) == ("a", "2026-03-06")
    of_b = records.latest_run(control.store, "orders", "b")
    assert of_b is not None
    assert of_b.date == "2026-03-06"


def test_runs_overlap_with_what_holds_their_period_and_with_its_parts() -> None:
    control = control_of(staged(pipeline(), until="+30m"))
    runs_of(control, ("stream", "2026-03-05T09", 1), ("stream", "2026-03-05T10", 2), ("stream", "2026-03-06", 3))

    def overlapping(date: str) -> list[str]:
        found = records.runs_overlapping(control.store, "orders", "stream", parse_period(date))
        return [run.date for run in found]

    assert overlapping("2026-03-05") == ["2026-03-05", "2026-03-05T09", "2026-03-05T10"]
    assert overlapping("2026-03-05T09") == ["2026-03-05", "2026-03-05T09"]
    assert overlapping("2026-03-07") == []


def test_a_commit_that_keeps_losing_is_given_up_as_a_crowd() -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    lost = Put(records.control_key(KEY.pk, keys.CONFIG), {}, Missing())
    decided: list[None] = []

    def decide() -> tuple[str, list[Put]]:
        decided.append(None)
        return "done", [lost] if len(decided) < 4 else []

    assert records.settle_commit(control, decide) == "done"
    assert len(decided) == 4, "decided again after each commit that was lost"
    with pytest.raises(ThrottledError, match="a commit lost 20 times in a row"):
        records.settle_commit(control, lambda: (None, [lost]))


@pytest.mark.parametrize(
    ("journey", "kinds"),
    [
        ("sla-ready-by", {keys.RUN, keys.SLA}),
        ("sla-promise-follows", {keys.RUN, keys.SLA}),
        ("dry-run-observes", {keys.DRY_RUN}),
        ("postrun-output-comes-after-the-completion", {keys.RUN, keys.BASELINE}),
    ],
)
def test_what_is_compared_by_its_version_counts_up_with_every_change(journey: str, kinds: set[str]) -> None:
    """Two writers who have read the same version must not both win: a version never comes back."""
    world = play(scenario_of(HERE / f"{journey}.yaml")).world
    versions: dict[str, int] = {}
    changed: set[str] = set()
    for pk, sk, text in world.database.read("SELECT pk, sk, item FROM changes ORDER BY seq"):
        kind, name = f"{sk.partition('#')[0]}#", f"{pk} {sk}"
        if text is None or kind not in kinds:
            versions.pop(name, None)
            continue
        version = json.loads(text)["version"]
        assert version == versions.get(name, version - 1) + 1, name
        changed |= {kind} if name in versions else set()
        versions[name] = version
    assert changed == kinds, "each was changed, not only written once"
