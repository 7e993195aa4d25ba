"""Pipelines as they are stored: which config is in force, which an attempt keeps, and what is reported of either."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from interlock.config.stored import read_stored
from interlock.config.versions import config_version
from interlock.control import catalog, records
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.errors import StoreError
from interlock.model.events import Event, EventType
from interlock.model.keys import Table
from interlock.model.periods import parse_period
from interlock.ports.store import Delete, Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, settle, staged

WHERE: Final = records.control_key(KEY.pk, keys.CONFIG)
START: Final = datetime(2026, 3, 5, tzinfo=UTC)
INVALID: Final = {"pipeline": {"id": "orders"}, "schedule": {"cron": "every day"}}


def world(until: str = "+1m", **parts: Any) -> FaultyWorld:
    return staged(pipeline(**parts), until=until, steps=[])


def config_of(document: dict[str, Any]) -> PipelineConfig:
    found = read_stored(document, {})
    assert isinstance(found, PipelineConfig), found
    return found


def apply(control: Control, **parts: Any) -> bool:
    document = pipeline(**parts)
    return catalog.apply_config(control, config_of(document), document)


def events(of: FaultyWorld, *types: EventType) -> list[Event]:
    of._pump()
    return [event for event in of.events if event.type in types]


# --------------------------------------------------------------------------------------------------------- as stored


def test_a_pipeline_that_is_not_there_is_none() -> None:
    store = control_of(world()).store
    for read in (catalog.stored, catalog.current, catalog.in_force, catalog.stored_since):
        assert read(store, "gone") is None


def test_applying_stores_the_version_once_and_keeps_when_it_first_came() -> None:
    stage = world()
    control = control_of(stage)
    first = catalog.stored(control.store, "orders")
    assert first is not None
    assert catalog.first_applied(control.store, first) == first.applied_at == START
    assert not apply(control)
    assert apply(control, after=[{"pipeline": "silver"}])
    second = catalog.stored(control.store, "orders")
    assert second is not None
    assert catalog.first_applied(control.store, second) == START
    assert second.applied_at == START + timedelta(minutes=1)
    assert catalog.stored_since(control.store, "orders") == (second, START)
    assert catalog.first_applied_of_all(control.store, [second]) == [START]
    assert second.version == config_version(pipeline(after=[{"pipeline": "silver"}])) != first.version
    assert catalog.opened_with(control.store, "orders", first.version).after == []
    links = control.store.query(Table.CONTROL, keys.pipeline_pk("silver"), keys.DOWNSTREAM)
    assert [record.item["downstream"] for record in links] == ["orders"]
    in_force = catalog.in_force(control.store, "orders")
    assert in_force is not None
    assert (in_force.version, in_force.document) == (second.version, second.document)


def test_the_first_application_is_the_earliest_that_is_known_also_from_an_item_of_an_earlier_version() -> None:
    control = control_of(world())
    for kept, first in (("2026-03-01T00:00:00Z", datetime(2026, 3, 1, tzinfo=UTC)), ("2026-03-09T00:00:00Z", START)):
        control.store.commit([Put(WHERE, {"document": pipeline(), "firstAppliedAt": kept})])
        found = catalog.stored(control.store, "orders")
        assert found is not None
        assert catalog.first_applied(control.store, found) == first


def test_a_config_under_another_name_is_none() -> None:
    control = control_of(world())
    control.store.commit([Put(WHERE, {"document": pipeline(pipeline={"id": "silver"}), "version": "x"})])
    found = catalog.stored(control.store, "orders")
    assert found is not None
    assert (found.config, found.errors) == (None, ("pipeline.id is 'silver', but it is stored as 'orders'",))
    assert catalog.in_force(control.store, "orders") is None


@pytest.mark.parametrize("wrap", ["document", "config", "text", "item"])
def test_what_a_deployment_tool_wrote_is_read_in_each_of_its_forms(wrap: str) -> None:
    control, document = control_of(world()), pipeline()
    text = msgspec.json.encode(document).decode()
    item: dict[str, dict[str, Any]] = {
        "document": {"document": document},
        "config": {"config": document},
        "text": {"document": text},
    }
    control.store.commit([Put(WHERE, item.get(wrap, document))])
    assert catalog.current(control.store, "orders") == config_of(document)


@pytest.mark.parametrize("raw", ["{", "[]", 5])
def test_what_cannot_be_read_is_invalid_and_said_to_be(raw: Any) -> None:
    control = control_of(world())
    control.store.commit([Put(WHERE, {"document": raw})])
    found = catalog.stored(control.store, "orders")
    assert found is not None
    assert found.config is None
    assert found.errors


def test_an_attempt_keeps_the_config_that_it_was_opened_with() -> None:
    stage = staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="+15m")
    control, run = control_of(stage), run_of(stage)
    before = catalog.current(control.store, "orders")
    apply(control)
    now = catalog.current(control.store, "orders")
    assert now is not None
    assert now != before
    assert catalog.judged_by(control.store, now, run) == before
    assert catalog.judged_by(control.store, now, None) == now
    later(stage, hours=3)
    assert catalog.judged_by(control.store, now, run_of(stage)) == now, "no attempt is under way"


def test_a_version_that_is_not_there_or_not_valid_is_an_error_of_the_store() -> None:
    control = control_of(world())
    with pytest.raises(StoreError, match="orders: config version nope is not in the store"):
        catalog.opened_with(control.store, "orders", "nope")
    broken = records.control_key(KEY.pk, f"{keys.CONFIG_VERSION}broken")
    control.store.commit([Put(broken, {"document": INVALID})])
    with pytest.raises(StoreError, match="config version broken is invalid: "):
        catalog.opened_with(control.store, "orders", "broken")


def test_the_versions_in_use_are_those_of_attempts_that_may_wait() -> None:
    stage = staged(pipeline(), until="+15m")
    control = control_of(stage)
    opened = run_of(stage).config_version
    apply(control, after=[{"pipeline": "silver"}])
    current = catalog.in_force(control.store, "orders")
    assert current is not None
    assert set(catalog.in_use(control.store, "orders", current)) == {opened, current.version}
    assert set(catalog.in_use(control.store, "orders", None)) == {opened}


def test_that_a_version_is_in_use_is_written_about_once_a_day() -> None:
    control = control_of(world())
    until = START + timedelta(hours=1)
    (put,) = catalog.in_use_writes(control.store, "orders", "v1", until)
    control.store.commit([put])
    assert catalog.in_use_writes(control.store, "orders", "v1", until + timedelta(hours=24)) == []
    assert len(catalog.in_use_writes(control.store, "orders", "v1", until + timedelta(hours=24, seconds=1))) == 1
    assert isinstance(put, Put)
    assert put.item["ttl"] == int((until + timedelta(days=1)).timestamp())


# ------------------------------------------------------------------------------------------------------------ brakes


def test_a_brake_says_why_and_holds_only_for_the_config_it_saw() -> None:
    control = control_of(world())
    free = catalog.brake(control.store, "orders")
    assert free.reason is None
    assert control.store.commit([free.unchanged]) is None
    apply(control, dryRun=True)
    assert control.store.commit([free.unchanged]) is not None
    dry = catalog.brake(control.store, "orders")
    assert dry.reason == "orders is a dry run"
    control.store.commit([Delete(WHERE)])
    assert control.store.commit([dry.unchanged]) is not None
    gone = catalog.brake(control.store, "orders")
    assert gone.reason == "orders was deleted"
    assert control.store.commit([gone.unchanged]) is None


def test_an_invalid_config_is_a_brake_only_if_it_asks_for_a_dry_run() -> None:
    control = control_of(world())
    control.store.commit([Put(WHERE, {"document": INVALID})])
    seen = catalog.brake(control.store, "orders")
    assert seen.reason is None
    control.store.commit([Put(WHERE, {"document": INVALID | {"dryRun": True}})])
    assert catalog.brake(control.store, "orders").reason == "orders is a dry run"
    assert control.store.commit([seen.unchanged]) is not None, "compared as a whole: it has no version"


# --------------------------------------------------------------------------------------------------------- calendars


def test_a_calendar_that_is_named_must_be_there() -> None:
    stage = world()
    control = control_of(stage)
    document = pipeline(schedule={"cron": "0 8 * * *", "exclude": {"calendar": "us"}})
    control.store.commit([Put(WHERE, {"document": document, "version": "1"})])
    found = catalog.stored(control.store, "orders")
    assert found is not None
    assert found.config is None
    assert "us" in " ".join(found.errors)
    control.store.commit([catalog.put_calendar(Calendar(name="us", dates=["2026-07-03"]))])
    config = catalog.current(control.store, "orders")
    assert config is not None
    (schedule,) = config.all_schedules
    assert catalog.calendars_in_use(control.store) == {"us"}
    assert list(catalog.calendars_for(control.store, schedule)) == ["us"]
    assert catalog.calendar_reason(control.store, schedule, parse_period("2026-07-03")) is not None
    assert catalog.calendar_reason(control.store, schedule, parse_period("2026-07-04")) is None


def test_calendars_are_read_only_where_some_are_named() -> None:
    control = control_of(world())
    control.store.commit([catalog.put_calendar(Calendar(name="us"))])
    config = catalog.current(control.store, "orders")
    assert config is not None
    assert catalog.calendars_for(control.store, config.all_schedules[0]) == {}
    assert list(catalog.calendars(control.store)) == ["us"]
    assert catalog.calendars_in_use(control.store) == set()


def test_an_attempt_keeps_a_config_whose_calendar_was_removed() -> None:
    control = control_of(world())
    document = pipeline(schedule={"cron": "0 8 * * *", "exclude": {"calendar": "us"}})
    version = records.control_key(KEY.pk, keys.CONFIG_VERSION + config_version(document))
    control.store.commit([Put(version, {"document": document})])
    assert catalog.opened_with(control.store, "orders", config_version(document)).id == "orders"


# ----------------------------------------------------------------------------------------------- invalid and removed


def test_an_invalid_config_is_reported_once_per_version_and_its_mending_too() -> None:
    stage = world()
    control = control_of(stage)
    for document in (INVALID, INVALID, INVALID | {"job": {}}):
        control.store.commit([Put(WHERE, {"document": document})])
        settle(stage)
    assert len(events(stage, EventType.CONFIG_INVALID)) == 2
    (first, _) = events(stage, EventType.CONFIG_INVALID)
    assert first.detail["configVersion"] == config_version(INVALID)
    assert first.detail["errors"]
    control.store.commit([Put(WHERE, {"document": pipeline()})])
    for _ in range(2):
        settle(stage)
    (restored,) = events(stage, EventType.CONFIG_RESTORED)
    assert restored.detail["configVersion"] == config_version(pipeline())


def test_a_direct_write_is_completed_with_its_first_time_its_version_and_its_links() -> None:
    stage = world()
    control = control_of(stage)
    document = pipeline(after=[{"pipeline": "silver"}])
    control.store.commit([Put(WHERE, {"document": document})])
    settle(stage)
    found = catalog.stored(control.store, "orders")
    assert found is not None
    assert catalog.first_applied(control.store, found) == START, "it was known before"
    assert catalog.opened_with(control.store, "orders", found.version).after[0].pipeline == "silver"
    assert len(control.store.query(Table.CONTROL, keys.pipeline_pk("silver"), keys.DOWNSTREAM)) == 1


def test_a_removal_is_reported_with_who_and_why_and_only_once() -> None:
    stage = world()
    control = control_of(stage)
    assert catalog.delete_config(control, "orders", reason="not used", by="ana")
    assert not catalog.delete_config(control, "orders")
    (removed,) = events(stage, EventType.PIPELINE_REMOVED)
    assert removed.message == "orders was removed: not used; what is under way ends"
    assert removed.detail == {"reason": "not used", "removedBy": "ana"}
    settle(stage)
    assert catalog.retired(control.store) == [], "nothing of it is under way"


def test_a_removed_pipeline_with_a_run_under_way_is_remembered_until_that_ends() -> None:
    stage = staged(pipeline(), until="+12m")
    control = control_of(stage)
    catalog.delete_config(control, "orders")
    settle(stage)
    assert catalog.retired(control.store) == ["orders"]
    catalog.forget_retired(control, "orders")
    assert catalog.retired(control.store) == ["orders"], "its job runs"
    later(stage, minutes=20)
    assert catalog.retired(control.store) == []
    catalog.forget_retired(control, "orders")


# ------------------------------------------------------------------------------------------------------------- since


def test_nothing_is_missed_before_the_controller_started_and_the_pipeline_was_applied() -> None:
    stage = world("+30m")
    control = control_of(stage)
    assert catalog.first_started(control) == catalog.controller_started(control.store) == START
    assert catalog.watched_since(control.store, "orders") == START
    document = pipeline(pipeline={"id": "late"})
    catalog.apply_config(control, config_of(document), document)
    assert catalog.watched_since(control.store, "late") == START + timedelta(minutes=30)
    where = records.control_key(keys.CONTROLLER, keys.CONTROLLER)
    control.store.commit([Delete(where)])
    assert catalog.controller_started(control.store) is None
    assert catalog.watched_since(control.store, "orders") == START
    assert catalog.first_started(control) == START + timedelta(minutes=30)
    assert catalog.controller_started(control.store) == START + timedelta(minutes=30)


# --------------------------------------------------------------------------------------------------- many at once


def many(count: int, **parts: Any) -> list[tuple[PipelineConfig, dict[str, Any]]]:
    documents = [pipeline(**{**parts, "pipeline": {"id": f"p{number:03d}"}}) for number in range(count)]
    return [(config_of(document), document) for document in documents]


def test_many_configs_are_stored_in_few_commits_as_each_would_be_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    control = control_of(world())
    commits: list[int] = []
    commit = control.store.commit

    def counted(writes: Any) -> Any:
        commits.append(len(writes))
        return commit(writes)

    monkeypatch.setattr(control.store, "commit", counted)
    names = [f"p{number:03d}" for number in range(100)]
    assert catalog.apply_configs(control, many(100)) == names
    assert len(commits) <= 6
    found = catalog.stored(control.store, "p042")
    assert found is not None
    assert found.config is not None
    assert catalog.first_applied(control.store, found) == control.now()
    assert catalog.opened_with(control.store, "p042", found.version) == found.config
    assert catalog.apply_configs(control, many(100)) == []
    changed = many(100)[:99] + many(100, dryRun=True)[99:]
    assert catalog.apply_configs(control, changed) == ["p099"]


def test_who_applies_at_the_same_time_does_not_keep_the_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    control = control_of(world())
    commit = control.store.commit
    config, document = many(4, dryRun=True)[2]

    def commit_later(writes: Any) -> Any:
        monkeypatch.setattr(control.store, "commit", commit)
        catalog.apply_config(control, config, document)  # between the reading and the writing
        return commit(writes)

    monkeypatch.setattr(control.store, "commit", commit_later)
    assert catalog.apply_configs(control, many(4)) == ["p000", "p001", "p002", "p003"]
    versions = {name: found.version for name in ("p001", "p002") if (found := catalog.stored(control.store, name))}
    assert versions == {one.id: config_version(written) for one, written in many(4)[1:3]}


def test_many_pipelines_are_read_at_once_as_each_would_be_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    control = control_of(world())
    for name in ("p000", "p001", "p002"):
        document = pipeline(pipeline={"id": name}, schedule={"cron": "0 8 * * *", "exclude": {"calendar": "us"}})
        where = records.control_key(keys.pipeline_pk(name), keys.CONFIG)
        control.store.commit([Put(where, {"document": document})])
    broken = records.control_key(keys.pipeline_pk("p001"), keys.CONFIG)
    control.store.commit([catalog.put_calendar(Calendar(name="us")), Put(broken, {"document": INVALID})])
    names = ["p002", "gone", "p001", "orders", "p000"]
    alone = [one for name in names if (one := catalog.stored(control.store, name)) is not None]
    asked: list[str] = []
    query = control.store.query

    def counted(table: Table, pk: str, *rest: Any, **given: Any) -> Any:
        asked.append(pk)
        return query(table, pk, *rest, **given)

    monkeypatch.setattr(control.store, "query", counted)
    found = catalog.stored_many(control.store, names)
    assert found == alone
    assert [one.pipeline for one in found if one.config is None] == ["p001"]
    assert asked == [keys.CALENDARS]  # once, for all that name one
