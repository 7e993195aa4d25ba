"""What people see of folders, of files that cannot be used, and of removed pipelines that have yet to end."""

from datetime import UTC, datetime
from typing import Final

import pytest

from interlock.control import catalog, config_files, records
from interlock.control.config_files import ConfigFolder, InvalidFile
from interlock.control.views.controller_view import FunctionView, Workload, config_state
from interlock.model import keys
from interlock.model.run import RunStatus
from interlock.ports.store import Delete
from tests.safety.stage import KEY, control_of, pipeline, settle, staged

SINCE: Final = datetime(2026, 3, 4, 6, tzinfo=UTC)


def test_a_store_without_folders_has_nothing_to_show() -> None:
    state = config_state(control_of(staged(pipeline(), until="+1m", steps=[])).store, ["the disk is full"])
    assert (state.folders, state.invalid_files, state.removed) == ([], [], [])
    assert state.degraded == ["the disk is full"]


def test_folders_and_invalid_files_are_shown_with_what_they_mean() -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    folder = ConfigFolder(folder="/p", pipelines={"a": "a.yaml"}, lost="it is not there", lost_since=SINCE)
    config_files.remember(control, config_files.folder_key("/p"), folder, ConfigFolder())
    bad = InvalidFile(pipeline="b", file="/p/b.yaml", errors=["line 1: no"], since=SINCE, in_force="v1")
    config_files.report_invalid(control, bad)
    state = config_state(control.store)
    (shown,) = state.folders
    assert (shown.folder, shown.pipelines, shown.lost, shown.lost_since) == ("/p", 1, "it is not there", SINCE)
    (file,) = state.invalid_files
    assert (file.pipeline, file.file, file.errors, file.since, file.in_force) == (
        "b", "/p/b.yaml", ["line 1: no"], SINCE, "v1",
    )  # fmt: skip
    assert file.verdict == "is invalid: version v1 stays in force"


def test_a_removed_pipeline_is_shown_while_its_run_is_under_way_and_no_longer_when_it_is_back() -> None:
    world = staged(pipeline(), until="+12m")
    control = control_of(world)
    found = catalog.stored(control.store, "orders")
    assert found is not None
    assert found.config is not None
    catalog.delete_config(control, "orders")
    settle(world)
    (removed,) = config_state(control.store).removed
    assert removed.pipeline == "orders"
    assert [(run.date, run.status) for run in removed.runs] == [("2026-03-05", RunStatus.RUNNING)]
    catalog.apply_config(control, found.config, found.document)
    assert config_state(control.store).removed == []


def test_a_removed_pipeline_whose_runs_have_ended_is_not_shown() -> None:
    world = staged(pipeline(), until="+30m")
    catalog.delete_config(control_of(world), "orders")
    settle(world)
    assert config_state(control_of(world).store).removed == []


def test_a_removed_pipeline_whose_run_has_vanished_is_not_shown() -> None:
    world = staged(pipeline(), until="+12m")
    control = control_of(world)
    catalog.delete_config(control, "orders")
    settle(world)
    control.store.commit([Delete(records.run_record(KEY, keys.RUN))])
    assert config_state(control.store).removed == []


@pytest.mark.parametrize(
    ("name", "reads"),
    [("stream-router", True), ("event-sink", True), ("alert-dispatcher", True), ("watchdog", False)],
)
def test_the_functions_that_read_changes_are_known(name: str, reads: bool) -> None:
    assert FunctionView(name=name, lag=0).reads_stream is reads


def test_nothing_waits_unless_it_is_said() -> None:
    work = Workload(functions=[])
    assert (work.timers, work.executions_waiting, work.failing_channels, work.alerts_given_up) == (0, 0, 0, 0)
