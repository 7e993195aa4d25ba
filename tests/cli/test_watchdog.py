"""`interlock watchdog`: one pass now, and what it found."""

from datetime import timedelta
from pathlib import Path

import pytest

from interlock.cli.store_access import Target, writing
from interlock.model.times import format_instant
from interlock.ports.store import Update
from tests.api.running import Process, pipeline
from tests.cli.stage import plain, served

Capsys = pytest.CaptureFixture[str]


def test_nothing_found(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "watched")
    assert stage.good("watchdog") == "all eight checks made, nothing new found\n"
    assert stage.json("watchdog") == {"failedChecks": [], "events": []}


def test_a_missed_schedule_is_found_once(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("gold", schedule={"cron": "0 * * * *"}))
    _pretend_it_began_yesterday(tmp_path / "plain.db")
    outcome = stage.run("watchdog")
    assert outcome.code == 1
    assert "SCHEDULE_MISSED" in outcome.out
    assert stage.good("watchdog") == "all eight checks made, nothing new found\n"


def _pretend_it_began_yesterday(path: Path) -> None:
    """No alert is given for what lies before the first start, or the first apply."""
    from interlock.control import catalog
    from interlock.control.records import control_key
    from interlock.model import keys

    with writing(Target("a test", path=path)) as control:
        began = catalog.first_started(control)
        yesterday = format_instant(began - timedelta(days=1))
        [started] = [
            record for record in control.store.query(keys.Table.CONTROL, keys.CONTROLLER) if record.key.sk != "WATCHDOG"
        ]
        [name] = [name for name, value in started.item.items() if value == format_instant(began)]
        control.store.commit(
            [
                Update(started.key, set={name: yesterday}),
                Update(control_key("PIPELINE#gold", keys.CONFIG), set={"firstAppliedAt": yesterday}),
            ]
        )
