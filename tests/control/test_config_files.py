"""What is remembered of folders and files that configs come from, and which events tell of their loss and return."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from interlock.control import catalog, config_files
from interlock.control.config_files import ConfigFolder, FilesRead, InvalidFile
from interlock.model.events import Event, EventType
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import control_of, pipeline, staged

SINCE: Final = datetime(2026, 3, 4, 6, tzinfo=UTC)
BAD: Final = InvalidFile(
    pipeline="gold", file="/etc/interlock/pipelines/gold.yaml", errors=["line 3: no such zone"], since=SINCE
)
FOLDER: Final = ConfigFolder(folder="/etc/interlock", pipelines={"gold": "gold.yaml", "silver": "silver.yaml"})


def world() -> FaultyWorld:
    return staged(pipeline(), until="+1m", steps=[])


def events(of: FaultyWorld) -> list[Event]:
    """Those of configs, in order."""
    of._pump()
    wanted = (EventType.CONFIG_INVALID, EventType.CONFIG_RESTORED, EventType.CONFIG_FOLDER_LOST)
    return [one for one in of.events if one.type in wanted]


def test_the_verdict_says_whether_an_earlier_version_goes_on_and_since_when() -> None:
    assert BAD.verdict() == "is invalid and is not run: no earlier version of it is in force"
    assert replace(BAD, in_force="v1").verdict() == "is invalid: version v1 stays in force"
    applied = replace(BAD, in_force="v1", in_force_since=SINCE)
    assert applied.verdict() == "is invalid: version v1, applied 2026-03-04T06:00:00Z, stays in force"


def test_an_invalid_file_is_reported_once_and_again_when_it_says_something_else() -> None:
    stage = world()
    control = control_of(stage)
    for _ in range(2):
        config_files.report_invalid(control, BAD)
    (first,) = events(stage)
    assert first.type is EventType.CONFIG_INVALID
    assert first.message == (
        "gold.yaml is invalid and is not run: no earlier version of it is in force: line 3: no such zone"
    )
    assert (first.pipeline_id, first.detail["file"], first.detail["errors"]) == ("gold", "gold.yaml", BAD.errors)
    assert "inForce" not in first.detail
    config_files.report_invalid(control, replace(BAD, errors=["line 4: no such key"]))
    config_files.report_invalid(control, replace(BAD, errors=["line 4: no such key"], in_force="v1"))
    assert [one.detail.get("inForce") for one in events(stage)] == [None, None, "v1"]
    assert config_files.invalid_files(control.store)[0].in_force == "v1"


def test_very_many_errors_are_cut_in_the_event_and_in_the_record() -> None:
    stage = world()
    many = replace(BAD, errors=[f"line {index}: " + "x" * 90 for index in range(150)])
    config_files.report_invalid(control_of(stage), many)
    (event,) = events(stage)
    assert (len(event.detail["errors"]), len(event.message)) == (100, 4000)
    assert len(config_files.invalid_files(control_of(stage).store)[0].errors) == 100


def test_a_file_that_is_valid_again_says_so_and_one_that_is_gone_says_nothing() -> None:
    stage = world()
    control = control_of(stage)
    other = replace(BAD, pipeline="silver", file="/etc/interlock/pipelines/a-silver.yaml")
    for one in (BAD, other):
        config_files.report_invalid(control, one)
    assert [one.pipeline for one in config_files.invalid_files(control.store)] == ["silver", "gold"], "by file"
    config_files.report_valid(control, BAD, "v2")
    config_files.forget_invalid(control, other)
    assert config_files.invalid_files(control.store) == []
    restored = events(stage)[-1]
    assert restored.type is EventType.CONFIG_RESTORED
    assert (restored.message, restored.detail) == (
        "gold.yaml is valid again: version v2 is in force",
        {"file": "gold.yaml", "configVersion": "v2"},
    )
    assert len(events(stage)) == 3
    config_files.report_valid(control, BAD, "")
    assert events(stage)[-1].message == "gold.yaml is valid again"


def test_a_folder_tells_of_its_loss_and_of_its_return_once_each() -> None:
    stage = world()
    control = control_of(stage)
    key = config_files.folder_key("/etc/interlock")
    before = ConfigFolder()

    def remember(**changes: Any) -> None:
        nonlocal before
        after = replace(FOLDER, **changes)
        config_files.remember(control, key, after, before)
        before = after

    remember()
    assert (config_files.folders(control.store), config_files.degradations(control.store)) == ([FOLDER], [])
    remember(lost="it is not there", lost_since=SINCE)
    remember(lost="it holds no pipeline", lost_since=SINCE)
    assert config_files.degradations(control.store) == [config_files.LOST]
    remember()
    remember()
    lost, back = events(stage)
    assert (lost.type, back.type) == (EventType.CONFIG_FOLDER_LOST, EventType.CONFIG_RESTORED)
    assert lost.detail == {"folder": "/etc/interlock", "reason": "it is not there", "pipelines": 2}
    assert "is back: it is followed again" in back.message
    assert (lost.pipeline_id, back.pipeline_id) == (config_files.NOBODY, config_files.NOBODY)
    assert {(one.schedule_id, one.date) for one in (lost, back)} == {("", "")}


def test_the_file_of_a_pipeline_is_known_and_that_of_another_is_not() -> None:
    stage = world()
    control = control_of(stage)
    for path in ("/a", "/b"):
        folder = ConfigFolder(folder=path, pipelines={f"of{path[1]}": f"{path}/x.yaml"})
        config_files.remember(control, config_files.folder_key(path), folder, ConfigFolder())
    assert len(config_files.folders(control.store)) == 2
    assert config_files.file_of(control.store, "ofb") == "/b/x.yaml"
    assert config_files.file_of(control.store, "gold") is None


def changed_parts(of: FaultyWorld, since: int) -> list[str]:
    """The records of folders that were written since a position of the changes."""
    found = of.database.read("SELECT sk FROM changes WHERE seq > ? AND sk LIKE 'FOLDER%' ORDER BY sk", (since,))
    return [sk.partition("#")[0] for (sk,) in found]


def test_a_folder_of_very_many_pipelines_is_remembered_whole_and_only_what_changed_is_written_again() -> None:
    stage = world()
    control, key = control_of(stage), config_files.folder_key("/etc/interlock")
    many = ConfigFolder(
        folder="/etc/interlock", pipelines={f"p{number:04d}": f"{number}.yaml" for number in range(1001)}
    )
    assert config_files.read_folder(control.store, key) == ConfigFolder()
    head = stage.database.head()
    config_files.remember(control, key, many, ConfigFolder())
    assert changed_parts(stage, head) == ["FOLDER", "FOLDER_PART", "FOLDER_PART", "FOLDER_PART"]
    assert config_files.read_folder(control.store, key) == many
    moved = replace(many, pipelines=many.pipelines | {"p0700": "moved.yaml"})
    head = stage.database.head()
    config_files.remember(control, key, moved, many)
    assert changed_parts(stage, head) == ["FOLDER", "FOLDER_PART"]
    assert config_files.folders(control.store) == [moved]
    head = stage.database.head()
    config_files.remember(control, key, moved, moved)
    assert changed_parts(stage, head) == []
    few = replace(many, pipelines={"p0001": "1.yaml"})
    config_files.remember(control, key, few, moved)
    assert config_files.read_folder(control.store, key) == few


def test_a_folder_that_an_earlier_version_remembered_in_one_record_is_read_and_kept() -> None:
    stage = world()
    control, key = control_of(stage), config_files.folder_key("/etc/interlock")
    control.store.commit([Put(key, {"folder": FOLDER.folder, "pipelines": FOLDER.pipelines})])
    assert config_files.read_folder(control.store, key) == FOLDER
    lost = replace(FOLDER, lost="it is not there", lost_since=SINCE)
    config_files.remember(control, key, lost, FOLDER)
    assert config_files.read_folder(control.store, key) == lost


def test_what_was_read_of_a_folder_is_remembered_of_that_folder_and_written_once() -> None:
    stage = world()
    store, key = control_of(stage).store, config_files.folder_key("/etc/interlock")
    assert config_files.read_files(store, key) is None
    read = FilesRead(digest="d", in_force="v", warnings=2)
    config_files.remember_files(store, key, read)
    head = stage.database.head()
    config_files.remember_files(store, key, read)
    assert (stage.database.head(), config_files.read_files(store, key)) == (head, read)
    assert config_files.read_files(store, config_files.folder_key("/elsewhere")) is None
    config_files.remember_files(store, key, replace(read, in_force="w"))
    assert config_files.read_files(store, key) == replace(read, in_force="w")


def test_the_versions_in_force_are_told_apart_and_one_that_is_not_stored_has_none() -> None:
    stage = world()
    store = control_of(stage).store
    stored = catalog.stored(store, "orders")
    assert stored is not None
    found = config_files.versions_in_force(store, ["unknown", "orders"])
    assert list(found.items()) == [("orders", stored.version), ("unknown", "")]
    assert config_files.digest_of(found) == config_files.digest_of(dict(found))
    assert config_files.digest_of(found) != config_files.digest_of(found | {"unknown": "v1"})
