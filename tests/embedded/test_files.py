"""A folder that is followed: what its changes, its absences and its loss lead to. Real files, a real store."""

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from interlock.config import folders, loader, schedules, semantics, stored
from interlock.config.documents import Document
from interlock.config.problems import Finding, Problem
from interlock.control import catalog, config_files
from interlock.control.records import control_key
from interlock.control.views import controller_view, event_views
from interlock.control.views.event_views import EventView, Wanted
from interlock.embedded import files
from interlock.embedded.engine import Engine
from interlock.embedded.files import Applied, FolderWatch, first_names
from interlock.embedded.sqlite.database import Database
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.durations import parse_duration
from interlock.model.events import EventType
from interlock.ports.store import Put
from tests.conformance.manual_clock import ManualClock

PIPELINE = """\
pipeline: {{id: {id}}}
schedule: {{cron: "0 8 * * *", exclude: {{calendar: holidays}}}}
validation: {{rules: [{{key: k, check: exists}}]}}
job: {{type: external}}
"""


class Project:
    """A folder, a store and a watch on both; time stands still until it is moved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipelines = folder / "pipelines"
        self.calendar = folder / "calendars" / "holidays.yaml"
        self.clock = ManualClock()
        self.database = Database.open(folder / "interlock.db", clock=self.clock)
        self.engine = Engine(self.database, self.clock, {}, new_id=lambda: "id")
        self.pipelines.mkdir()
        self.calendar.parent.mkdir()
        self.calendar.write_text("name: holidays\ndates: ['2026-12-25']\n")
        self.restart()

    def restart(self) -> None:
        self.watch = FolderWatch(self.engine.control, self.pipelines)

    def write(self, *names: str) -> None:
        for name in names:
            (self.pipelines / f"{name}.yaml").write_text(PIPELINE.format(id=name))

    def remove(self, *names: str) -> None:
        for name in names:
            (self.pipelines / f"{name}.yaml").unlink()

    def begin(self) -> Applied:
        """As a controller that starts, without its thread."""
        return self.watch.apply(starting=True)

    def look(self, seconds: float = 2) -> list[Applied]:
        """The looks of so many seconds."""
        found = []
        for _ in range(int(seconds)):
            self.clock.advance(seconds=1)
            found.append(self.watch.look())
        return [one for one in found if one is not None]

    def stored(self) -> list[str]:
        return list(self.engine.store.pipelines())

    def events(self, *types: EventType) -> list[EventView]:
        page = event_views.page(self.engine.store, Wanted(types=types), self.clock.now(), limit=1000)
        return page.items[::-1]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.database.close()


def names(count: int) -> list[str]:
    return [f"p{index:02d}" for index in range(count)]


# ------------------------------------------------------------------------------------------------------ removal


def test_a_file_counts_as_removed_after_ten_seconds(project: Project) -> None:
    project.write("a", "b")
    project.begin()
    project.remove("a")
    assert project.look(10) == [Applied()]
    assert project.stored() == ["a", "b"]
    assert [one.removed for one in project.look(3)] == [("a",)]
    assert project.stored() == ["b"]
    (seen,) = project.events(EventType.PIPELINE_REMOVED)
    assert seen.pipeline_id == "a"
    assert seen.message == "a was removed: its file a.yaml is gone; what is under way ends"


def test_a_file_that_is_replaced_was_never_removed(project: Project) -> None:
    project.write("a", "b")
    project.begin()
    project.remove("a")
    project.look(8)
    project.write("a")
    project.look(20)
    assert project.stored() == ["a", "b"]
    assert project.events(EventType.PIPELINE_REMOVED, EventType.CONFIG_FOLDER_LOST) == []


def test_a_removal_that_a_restart_interrupted_is_made_up_for(project: Project) -> None:
    project.write("a", "b")
    project.begin()
    project.remove("a")
    project.look(5)
    project.restart()
    assert project.begin().removed == ()
    project.look(12)
    assert project.stored() == ["b"]


def test_a_file_that_names_another_pipeline_removes_the_first(project: Project) -> None:
    project.write("a")
    project.begin()
    (project.pipelines / "a.yaml").write_text(PIPELINE.format(id="b"))
    project.look(15)
    assert project.stored() == ["b"]
    (seen,) = project.events(EventType.PIPELINE_REMOVED)
    assert "its file a.yaml names another pipeline now" in seen.message


def test_a_renamed_file_removes_nothing(project: Project) -> None:
    project.write("a", "b")
    project.begin()
    (project.pipelines / "a.yaml").rename(project.pipelines / "z.yaml")
    project.look(15)
    assert project.stored() == ["a", "b"]
    assert project.events(EventType.PIPELINE_REMOVED) == []


# --------------------------------------------------------------------------------------------- the folder is lost


@pytest.mark.parametrize("how", ["empty", "gone", "a file", "no mount"])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("count", [1, 3, 12])
def test_a_lost_folder_removes_nothing(project: Project, how: str, restarted: bool, count: int) -> None:
    project.write(*names(count))
    project.begin()
    if how == "no mount":
        project.pipelines.rename(project.folder / "elsewhere")
        project.pipelines.mkdir()
    else:
        shutil.rmtree(project.pipelines)
        if how == "empty":
            project.pipelines.mkdir()
        elif how == "a file":
            project.pipelines.write_text("")
    if restarted:
        project.restart()
        project.begin()
    project.look(60)
    assert project.stored() == names(count)
    assert project.watch.lost
    assert project.watch.degradations() == ["the folder of pipelines is lost: what came from it stays in force"]
    (seen,) = project.events(EventType.CONFIG_FOLDER_LOST)
    assert seen.severity == "error"
    assert f"The {count} that came from it stay in force" in seen.message
    (folder,) = controller_view.config_state(project.engine.store).folders
    assert (folder.pipelines, bool(folder.lost)) == (count, True)


def test_most_of_many_files_vanish_at_once(project: Project) -> None:
    project.write(*names(12))
    project.begin()
    project.remove(*names(7))
    project.look(30)
    assert project.stored() == names(12)
    (seen,) = project.events(EventType.CONFIG_FOLDER_LOST)
    assert "7 of its 12 pipelines vanished at once" in seen.message
    # What is left is followed all the same.
    project.write("new")
    project.look(3)
    assert "new" in project.stored()


def test_half_of_many_and_most_of_few_are_removals(project: Project) -> None:
    project.write(*names(12))
    project.begin()
    project.remove(*names(6))
    project.look(15)
    assert len(project.stored()) == 6
    project.remove(*names(11)[6:])
    project.look(15)
    assert project.stored() == ["p11"]
    assert len(project.events(EventType.PIPELINE_REMOVED)) == 11
    assert project.events(EventType.CONFIG_FOLDER_LOST) == []


def test_a_folder_that_is_empty_for_a_moment_is_not_lost(project: Project) -> None:
    project.write(*names(3))
    project.begin()
    project.remove(*names(3))
    project.look(5)
    project.write(*names(3))
    project.look(20)
    assert project.events(EventType.CONFIG_FOLDER_LOST) == []


def test_when_the_files_return_all_is_well_again(project: Project) -> None:
    project.write(*names(3))
    project.begin()
    project.remove(*names(3))
    project.look(15)
    project.write(*names(2))
    project.look(15)
    # Two of three are back; the third may be meant, or not: nothing is removed while anything is missing.
    assert project.watch.lost
    assert project.stored() == names(3)
    project.write("p02")
    project.look(3)
    assert project.watch.degradations() == []
    (seen,) = project.events(EventType.CONFIG_RESTORED)
    assert "is back" in seen.message
    project.remove("p02")
    project.look(15)
    assert project.stored() == names(2)


def test_what_is_removed_by_name_is_no_longer_missed(project: Project) -> None:
    """As `apply --prune` does it."""
    project.write(*names(3))
    project.begin()
    project.remove(*names(3))
    project.look(15)
    for name in names(3):
        catalog.delete_config(project.engine.control, name, reason="apply --prune")
    project.look(3)
    assert not project.watch.lost
    assert project.watch.degradations() == []
    assert controller_view.config_state(project.engine.store).folders[0].lost == ""


def test_a_folder_that_never_had_a_pipeline_is_not_lost(project: Project) -> None:
    project.begin()
    shutil.rmtree(project.pipelines)
    project.look(30)
    assert not project.watch.lost
    project.pipelines.mkdir()
    project.write("a")
    project.look(3)
    assert project.stored() == ["a"]


def test_a_project_whose_folder_of_pipelines_is_gone(project: Project) -> None:
    """`serve --pipelines .`: without its pipelines/ the project's other files are no pipelines."""
    project.write("a", "b")
    (project.folder / "compose.yaml").write_text("services: {}\n")
    project.watch = FolderWatch(project.engine.control, project.folder)
    project.begin()
    project.pipelines.rename(project.folder / "elsewhere")
    project.look(30)
    assert project.stored() == ["a", "b"]
    assert project.watch.lost
    assert config_files.invalid_files(project.engine.store) == []


# ----------------------------------------------------------------------------------------------- calendars


def test_a_calendar_that_is_named_outlives_its_file(project: Project) -> None:
    project.write("a")
    project.begin()
    project.calendar.unlink()
    project.look(30)
    assert list(catalog.calendars(project.engine.store)) == ["holidays"]
    # Its pipelines' files are invalid now, and say so; what is in force goes on.
    (invalid,) = config_files.invalid_files(project.engine.store)
    assert "there is no calendar" in invalid.errors[0]
    assert invalid.in_force
    (project.pipelines / "a.yaml").write_text(PIPELINE.format(id="a").replace(", exclude: {calendar: holidays}", ""))
    project.look(3)
    assert catalog.calendars(project.engine.store) == {}


def test_a_calendar_that_is_replaced_makes_nothing_invalid(project: Project) -> None:
    project.write("a")
    project.begin()
    text = project.calendar.read_text()
    project.calendar.unlink()
    project.look(8)
    project.calendar.write_text(text)
    project.look(20)
    assert project.events(EventType.CONFIG_INVALID) == []


# ----------------------------------------------------------------------------------------------- invalid files


def test_an_invalid_file_says_what_is_in_force_instead(project: Project) -> None:
    project.write("a")
    project.begin()
    version = catalog.stored(project.engine.store, "a").version  # type: ignore[union-attr]
    (project.pipelines / "a.yaml").write_text("pipeline: {id: a}\njobb: {}\n")
    (project.pipelines / "b.yaml").write_text("pipeline: {id: b}\n")
    project.look(3)
    seen = {one.pipeline_id: one for one in project.events(EventType.CONFIG_INVALID)}
    assert seen["a"].message.startswith(
        f"a.yaml is invalid: version {version}, applied 2026-03-02T08:00:00Z, stays in force: "
    )
    assert seen["a"].detail["inForce"] == version
    assert seen["b"].message.startswith("b.yaml is invalid and is not run: no earlier version of it is in force: ")
    assert "inForce" not in seen["b"].detail
    assert [one.pipeline for one in config_files.invalid_files(project.engine.store)] == ["a", "b"]


def test_it_is_told_when_it_is_mended_and_when_it_breaks_again(project: Project) -> None:
    project.write("a")
    project.begin()
    for _ in range(2):
        (project.pipelines / "a.yaml").write_text("pipeline: {id: a}\n")
        project.look(3)
        project.restart()
        project.begin()  # a restart tells nothing anew
        project.look(3)
        project.write("a")
        project.look(3)
    seen = project.events(EventType.CONFIG_INVALID, EventType.CONFIG_RESTORED)
    assert [one.type for one in seen] == ["CONFIG_INVALID", "CONFIG_RESTORED"] * 2
    assert seen[1].message.startswith("a.yaml is valid again: version ")
    assert config_files.invalid_files(project.engine.store) == []


def test_a_file_that_cannot_be_read_is_invalid_and_not_removed(project: Project) -> None:
    project.write("a", "b")
    project.begin()
    project.remove("a")
    (project.pipelines / "a.yaml").symlink_to(project.folder / "nowhere")
    project.look(30)
    assert project.stored() == ["a", "b"]
    (invalid,) = config_files.invalid_files(project.engine.store)
    assert (invalid.pipeline, invalid.in_force != "") == ("a", True)


def test_an_invalid_file_that_goes_is_forgotten(project: Project) -> None:
    project.write("a")
    (project.pipelines / "b.yaml").write_text("pipeline: {id: b}\n")
    project.begin()
    project.remove("b")
    project.look(3)
    assert config_files.invalid_files(project.engine.store) == []
    assert project.events(EventType.CONFIG_RESTORED) == []


# ---------------------------------------------------------------------------------------------------- archetypes

ARCHETYPE = 'schedule: {cron: "0 8 * * *"}\nvalidation: {rules: [{key: k, check: exists}]}\njob: {type: external}\n'


@pytest.fixture
def shared(project: Project) -> Path:
    """Two pipelines of an archetype, and one without."""
    archetype = project.folder / "archetypes" / "nightly.yaml"
    archetype.parent.mkdir()
    archetype.write_text(ARCHETYPE)
    for name in "ab":
        (project.pipelines / f"{name}.yaml").write_text(f"pipeline: {{id: {name}}}\narchetype: nightly\n")
    project.write("c")
    project.begin()
    return archetype


def test_a_change_of_an_archetype_changes_its_pipelines(project: Project, shared: Path) -> None:
    shared.write_text(ARCHETYPE.replace("0 8", "0 9"))
    assert [one.written for one in project.look()] == [("a", "b")]
    stored = catalog.stored(project.engine.store, "a")
    assert stored is not None
    assert stored.document["schedule"] == {"cron": "0 9 * * *"}


def test_an_error_in_an_archetype_is_one_of_each_pipeline_that_names_it(project: Project, shared: Path) -> None:
    shared.write_text(ARCHETYPE.replace("external", "external, maxRetries: 11"))
    project.look()
    invalid = config_files.invalid_files(project.engine.store)
    assert [(one.pipeline, Path(one.file).name) for one in invalid] == [("a", "a.yaml"), ("b", "b.yaml")]
    assert all("archetypes/nightly.yaml:3 job.maxRetries: 11 is not in 0..10" in one.errors[0] for one in invalid)
    assert all(one.in_force for one in invalid)
    assert [one.pipeline_id for one in project.events(EventType.CONFIG_INVALID)] == ["a", "b"]
    shared.write_text(ARCHETYPE)
    project.look()
    assert config_files.invalid_files(project.engine.store) == []
    assert [one.pipeline_id for one in project.events(EventType.CONFIG_RESTORED)] == ["a", "b"]
    assert project.stored() == ["a", "b", "c"]


def test_an_archetype_that_cannot_be_read_is_nobodys_pipeline(project: Project, shared: Path) -> None:
    shared.write_text("job: [\n")
    project.look()
    seen = {one.pipeline_id for one in project.events(EventType.CONFIG_INVALID)}
    assert seen == {"a", "b", config_files.NOBODY}
    assert project.stored() == ["a", "b", "c"]


def test_an_archetype_that_is_replaced_makes_nothing_invalid(project: Project, shared: Path) -> None:
    shared.unlink()
    project.look(5)
    shared.write_text(ARCHETYPE)
    project.look(15)
    assert project.events(EventType.CONFIG_INVALID) == []


def test_pipelines_that_wait_for_one_another_are_all_invalid(project: Project) -> None:
    for name, other in ("ab", "ba"):
        text = (
            f"pipeline: {{id: {name}}}\nafter: [{{pipeline: {other}, require: same-period}}]\njob: {{type: external}}\n"
        )
        (project.pipelines / f"{name}.yaml").write_text(text)
    project.begin()
    assert [one.pipeline for one in config_files.invalid_files(project.engine.store)] == ["a", "b"]


# ----------------------------------------------------------------------------------------------------- restarts


@pytest.fixture
def reads(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are parsed from now on."""
    found: list[str] = []
    read = folders.read_file

    def counted(path: Path) -> Document | tuple[Problem, ...]:
        found.append(path.stem)
        return read(path)

    monkeypatch.setattr(loader, "read_file", counted)
    project.write("a", "b")
    project.begin()
    found.clear()
    return found


def test_a_restart_in_which_no_file_has_changed_reads_none(project: Project, reads: list[str]) -> None:
    project.restart()
    assert project.begin() == Applied()
    assert reads == []
    project.write("c")
    project.look()
    assert project.stored() == ["a", "b", "c"], "it is followed as ever"


@pytest.fixture
def checks(project: Project, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pipelines whose stored configs are checked from now on, by a process that knows none of them."""
    found: list[str] = []
    find = semantics.find_errors

    def counted(config: PipelineConfig, calendars: Collection[str]) -> tuple[Finding, ...]:
        found.append(config.id)
        return find(config, calendars)

    monkeypatch.setattr(stored, "find_errors", counted)
    catalog._kept.clear()
    catalog._valid.clear()
    catalog._parse.cache_clear()
    project.restart()
    return found


def test_a_restart_in_which_no_file_has_changed_checks_no_config_again(project: Project, checks: list[str]) -> None:
    project.begin()
    project.engine.prepare()
    assert checks == []
    assert project.engine.calendar.next_at() is not None
    assert catalog.current(project.engine.store, "a") is not None


@pytest.mark.parametrize("changed", ["document", "zone"])
def test_what_cannot_be_relied_on_is_checked_again(
    project: Project, checks: list[str], monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    project.begin()
    if changed == "zone":
        monkeypatch.setattr(schedules, "zone", lambda name: parse_duration("no such zone"))
    else:
        # By hand, past the version that stands beside it.
        item = project.engine.store.get(control_key(keys.pipeline_pk("a"), keys.CONFIG))
        assert item is not None
        wrong = {**item["document"], "schedule": {"cron": "never"}}
        project.engine.store.commit([Put(control_key(keys.pipeline_pk("a"), keys.CONFIG), {**item, "document": wrong})])
    project.engine.prepare()
    assert "a" in checks
    assert catalog.current(project.engine.store, "a") is None


@pytest.mark.parametrize(
    "change",
    [
        "content",
        "new file",
        "removed file",
        "calendar",
        "mode",
        "other version in force",
        "removed by name",
        "lost",
        "package",
    ],
)
def test_a_restart_reads_the_files_when_anything_differs(
    project: Project, reads: list[str], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, kept = project.pipelines / "a.yaml", project.folder / "elsewhere"
    match change:
        case "content":
            file.write_text(file.read_text().replace("0 8", "0 9"))
        case "new file":
            project.write("c")
        case "removed file":
            project.remove("b")
        case "calendar":
            project.calendar.write_text("name: holidays\ndates: ['2026-12-26']\n")
        case "mode":
            file.chmod(0o666)
        case "other version in force":
            item = catalog.stored(project.engine.store, "a")
            assert item is not None
            assert item.config is not None
            catalog.apply_config(project.engine.control, item.config, {**item.document, "dryRun": False})
        case "package":
            monkeypatch.setattr(files, "installed", lambda: ("aws",))
        case "removed by name":
            catalog.delete_config(project.engine.control, "a", reason="test")
        case "lost":
            shutil.move(project.pipelines, kept)
            project.look(12)
            shutil.move(kept, project.pipelines)
    reads.clear()
    project.restart()
    project.begin()
    assert {"a", "b"} & set(reads)


def test_a_broken_file_is_read_again_until_it_is_mended(project: Project, reads: list[str]) -> None:
    good = (project.pipelines / "a.yaml").read_text()
    (project.pipelines / "a.yaml").write_text("pipeline: {id: a}\n")
    project.restart()
    assert project.begin().problems
    project.restart()
    assert project.begin().problems, "an error is reported at each start"
    (project.pipelines / "a.yaml").write_text(good)
    project.restart()
    project.begin()
    assert config_files.invalid_files(project.engine.store) == []
    reads.clear()
    project.restart()
    project.begin()
    assert reads == []


def test_a_folder_may_hold_more_pipelines_than_an_item_can(project: Project) -> None:
    """An item holds 400 KB, and ten thousand names with their files are more."""
    key = config_files.folder_key("/somewhere")
    many = {
        f"pipeline-{number:05d}": f"/data/a-long-folder-name/pipelines/pipeline-{number:05d}.yaml"
        for number in range(10_000)
    }
    before = config_files.ConfigFolder()
    full = config_files.ConfigFolder(folder="/data", pipelines=many)
    config_files.remember(project.engine.control, key, full, before)
    assert config_files.read_folder(project.engine.store, key) == full
    fewer = config_files.ConfigFolder(folder="/data", pipelines=dict(list(many.items())[:700]))
    config_files.remember(project.engine.control, key, fewer, full)
    assert config_files.read_folder(project.engine.store, key) == fewer
    config_files.remember(project.engine.control, key, full, fewer)
    assert full in config_files.folders(project.engine.store)


def test_a_folder_that_an_earlier_version_remembered_is_known(project: Project) -> None:
    key = config_files.folder_key("/somewhere")
    item = {"folder": "/data", "pipelines": {"a": "/data/a.yaml"}, "calendars": ["holidays"], "lost": ""}
    project.engine.store.commit([Put(key, item)])
    known = config_files.read_folder(project.engine.store, key)
    assert known.pipelines == {"a": "/data/a.yaml"}
    changed = config_files.ConfigFolder(folder="/data", pipelines=known.pipelines, calendars=[])
    config_files.remember(project.engine.control, key, changed, known)
    assert config_files.read_folder(project.engine.store, key) == changed


def test_a_line_of_the_log_names_a_few_of_many() -> None:
    names = [f"p{number}" for number in range(5_000)]
    assert first_names(names[:20]) == names[:20]
    assert first_names(names) == [*names[:20], "and 4980 more"]
