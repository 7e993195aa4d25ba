"""Records: the order of events of several processes at one instant, and bounds on what is read at once."""

import subprocess
import sys

from interlock.control import records
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.times import parse_instant
from interlock.ports.store import Put
from tests.safety.stage import control_of, pipeline, staged

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
