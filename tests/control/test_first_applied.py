"""When a pipeline was first applied is kept apart from its CONFIG item, which belongs to whoever deploys it."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from interlock.control import catalog
from interlock.control.records import control_key
from interlock.model import keys
from interlock.ports.store import Delete, Put
from tests.control.test_rare_events import DOCUMENT, START, Installation, Target

CONFIG = control_key("PIPELINE#orders", keys.CONFIG)
APPLIED = control_key("PIPELINE#orders", keys.APPLIED)


@pytest.fixture
def installation() -> Installation:
    return Installation(Target())


def first(installation: Installation) -> Any:
    found = catalog.stored(installation.engine.store, "orders")
    assert found is not None
    return catalog.first_applied(installation.engine.store, found)


def test_what_a_deployment_tool_wrote_stays_as_it_wrote_it(installation: Installation) -> None:
    written = {"document": msgspec.json.encode(DOCUMENT).decode(), "version": "v1"}
    installation.put(keys.CONFIG, written)
    installation.go_to("08:30:00")
    assert installation.engine.watch() == []
    installation.settle()
    assert installation.engine.store.get(CONFIG) == written, "the tool would see a drift forever"
    assert first(installation) == START


def test_applying_another_version_keeps_it(installation: Installation) -> None:
    installation.apply()
    installation.go_to("08:30:00")
    installation.apply(schedule={"cron": "0 9 * * *"})
    assert first(installation) == START


def test_an_item_of_an_earlier_version_is_read_and_carried_over(installation: Installation) -> None:
    before = "2026-01-05T08:00:00Z"
    installation.put(keys.CONFIG, {"document": DOCUMENT, "version": "v0", "firstAppliedAt": before})
    assert installation.engine.store.get(APPLIED) is None
    assert first(installation).isoformat() == "2026-01-05T08:00:00+00:00"
    installation.apply(schedule={"cron": "0 9 * * *"})
    assert installation.engine.store.get(APPLIED) == {"firstAppliedAt": before}
    assert "firstAppliedAt" not in (installation.engine.store.get(CONFIG) or {})
    assert first(installation).isoformat() == "2026-01-05T08:00:00+00:00"


@pytest.mark.parametrize("by_us", [True, False])
def test_a_pipeline_that_was_removed_and_applied_again_is_a_new_one(installation: Installation, by_us: bool) -> None:
    installation.apply()
    if by_us:
        catalog.delete_config(installation.engine.control, "orders")
    else:
        installation.engine.store.commit([Delete(CONFIG)])
    installation.settle()
    assert installation.engine.store.get(APPLIED) is None
    installation.clock.move_to(START + timedelta(hours=2))
    installation.engine.store.commit([Put(CONFIG, {"document": DOCUMENT})])
    installation.settle()
    assert first(installation) == START + timedelta(hours=2)
