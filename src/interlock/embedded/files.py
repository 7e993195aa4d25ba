"""Keeps the store in step with a folder of pipelines: what is in the files is what runs.

The files are looked at once a second. A change is applied when the files have stood still for one look more, so that a
file that is just being written is not taken for a broken one. Valid configs are stored; a broken one is reported, and
the version that was stored before goes on. A pipeline goes when its file has been gone for a while, and only if it came
from this folder: what was applied from elsewhere is not this folder's to remove. When it is rather the folder that is
gone, nothing goes (`decide.config_folder`).
"""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from interlock import __version__
from interlock.config.documents import Document
from interlock.config.folders import ARCHETYPES, CALENDARS, Place, config_files, find_place, read_file
from interlock.config.loader import Loaded, LoadResult, load_paths
from interlock.config.problems import Problem
from interlock.control import catalog
from interlock.control import config_files as remembered
from interlock.control.config_files import ConfigFolder, InvalidFile
from interlock.control.context import Control
from interlock.decide.config_folder import Folder, Verdict, judge, settled
from interlock.embedded.audit.actors import folder_of, owner_of
from interlock.embedded.targets import abilities
from interlock.extras import installed
from interlock.logs import get_logger
from interlock.loops import Loop, Loops
from interlock.model.errors import InvalidValueError
from interlock.model.keys import check_id
from interlock.ownership import Trust

EVERY_SECONDS: Final = 1.0
_NAMED: Final = 20

_log = get_logger(__name__)

Stamp = tuple[str, int, int, int, int, int]
Fingerprint = frozenset[Stamp]


class Applied(msgspec.Struct, frozen=True):
    """What one look at the folder led to."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class _Look(msgspec.Struct, frozen=True):
    """What there is to read, and where; `problem`: why the folder itself cannot be read."""

    print: Fingerprint = frozenset()
    folder: str = ""
    pipelines: int = 0
    helpers: frozenset[str] = frozenset()
    problem: str = ""


class FolderWatch:
    """Follows one folder (or file, or project). Drive it with `apply` and `look`, or by `start` and `stop`."""

    def __init__(self, control: Control, folder: Path, trust: Trust | None = None) -> None:
        """`trust`: which files of other users are obeyed; without it none."""
        self._control = control
        self._folder = folder
        self._trust = trust or Trust()
        self._where = remembered.folder_key(str(folder.resolve()))
        self._known = ConfigFolder()
        self._applied: _Look | None = None
        self._seen: Fingerprint | None = None
        self._absent: dict[str, datetime] = {}
        self._helpers_absent: dict[str, datetime] = {}
        # Added when it is followed: a folder may be looked at by hand, too.
        self._loop: Loop | None = None

    # ------------------------------------------------------------------------------------------------- following

    def start(self, loops: Loops | None = None) -> None:
        """Follow on a thread what was applied."""
        self._loop = (loops or Loops()).add("files", self._run, vital=False)
        self._loop.start()

    def stop(self) -> None:
        """Look no more."""
        if self._loop is not None:
            self._loop.stop()

    @property
    def lost(self) -> bool:
        """Is the folder lost?"""
        return bool(self._known.lost)

    def degradations(self) -> list[str]:
        """That the folder is lost, if it is: the controller goes on with what was in force."""
        # Anybody may read this: it names no path.
        return [remembered.LOST] if self.lost else []

    def _run(self) -> None:
        while self._loop is not None and not self._loop.wait(EVERY_SECONDS):
            self.look()

    def look(self) -> Applied | None:
        """Apply a change of the files once they stand still; None when nothing follows."""
        found = self._look()
        still, self._seen = found.print == self._seen, found.print
        if not still or self._awaits_helpers(found):
            return None
        if found != self._applied:
            return self.apply()
        if not settled(self._absent, self._control.now()):
            return None
        present = {name: file for name, file in self._known.pipelines.items() if name not in self._absent}
        return Applied(removed=self._settle(found, present, self._known.calendars))

    def _awaits_helpers(self, found: _Look) -> bool:
        """A calendar or archetype that is being replaced is not there for a moment: its pipelines are not wrong yet."""
        now, before = self._control.now(), self._applied.helpers if self._applied is not None else frozenset()
        gone = before - found.helpers
        self._helpers_absent = {file: self._helpers_absent.get(file, now) for file in gone}
        return bool(gone) and not settled(self._helpers_absent, now)

    def _look(self) -> _Look:
        try:
            place = find_place(self._folder)
            problem = self._missing(place) or self._refused(place)
            beside = [folder for folder in (place.calendars, place.archetypes) if folder is not None]
            helpers = [file for folder in beside for file in config_files(folder)]
        except OSError as error:
            return _Look(problem=f"it cannot be read ({error.strerror or error})")
        files = [] if problem else [*place.files]
        return _Look(
            print=frozenset(_stamp(file) for file in [*files, *helpers]),
            folder=str(place.folder or ""),
            pipelines=len(files),
            helpers=frozenset(map(str, helpers)),
            problem=problem,
        )

    def _missing(self, place: Place) -> str:
        """Why this is not the folder that is meant; "" if it is. A project's `pipelines/` may be gone, too."""
        before = self._known.folder
        if not self._folder.exists():
            return "it does not exist"
        if before and not Path(before).is_dir():
            return f"{_name(before)} is not a folder any more"
        return ""

    def _refused(self, place: Place) -> str:
        """Why what is in the folder is not obeyed; of a single file the loader says it."""
        refusal = self._trust.refusal(place.folder) if place.folder is not None else ""
        return f"it is not obeyed: {refusal}" if refusal else ""

    # -------------------------------------------------------------------------------------------------- applying

    def apply(self, *, starting: bool = False) -> Applied:
        """Store what the files say now."""
        before = self._known = remembered.read_folder(self._control.store, self._where)
        found = self._look()
        # Before the files are read: what is changed meanwhile differs from it, and is read again.
        digest = self._digest(found)
        if starting and self._is_unchanged(digest):
            self._applied, self._seen = found, found.print
            return Applied()
        result = LoadResult((), {}, (), 0) if found.problem else self._load()
        written = self._store(result)
        files = {one.config.id: one.file for one in result.configs}
        kept = {} if found.problem else _kept(before, files, result.errors)
        calendars = self._forget_calendars(result, found)
        removed = self._settle(found, {**kept, **files}, calendars, starting=starting)
        if not found.problem:
            self._report(result)
        elif not self.lost:
            _log.info("there is no folder of pipelines to follow yet", folder=str(self._folder), why=found.problem)
        self._applied, self._seen = found, found.print
        if digest and not result.errors and not self._absent and not self.lost:
            self._remember_files(digest, len(result.warnings))
        if written or removed:
            _log.info(
                "pipelines applied",
                written=first_names(written),
                removed=first_names(removed),
                errors=len(result.errors),
            )
        return Applied(tuple(written), removed, result.problems)

    def _load(self) -> LoadResult:
        return load_paths(
            [self._folder], abilities=abilities(self._control.settings.pools), refusal=self._trust.at_once()
        )

    def _is_unchanged(self, digest: str) -> bool:
        """Are the files those that were applied last, and is what they say in force?"""
        store, known = self._control.store, self._known
        read = remembered.read_files(store, self._where)
        if read is None or not digest or read.digest != digest or known.lost or remembered.invalid_files(store):
            return False
        versions = remembered.versions_in_force(store, known.pipelines)
        if read.in_force != remembered.digest_of(versions):
            return False
        catalog.found_valid(versions)
        advice = f"; `interlock validate {self._folder}` shows the {read.warnings} warnings" if read.warnings else ""
        _log.info(f"no pipeline file has changed{advice}", pipelines=len(known.pipelines))
        return True

    def _remember_files(self, digest: str, warnings: int) -> None:
        store = self._control.store
        in_force = remembered.digest_of(remembered.versions_in_force(store, self._known.pipelines))
        read = remembered.FilesRead(digest=digest, in_force=in_force, warnings=warnings)
        remembered.remember_files(store, self._where, read)

    def _digest(self, found: _Look) -> str:
        """Of all that decides what the files mean; "" when they cannot be read."""
        if found.problem:
            return ""
        able = msgspec.json.encode(abilities(self._control.settings.pools), order="sorted", enc_hook=str)
        extras = " ".join(installed()).encode()  # a package that is gone makes configs invalid
        made = blake2b(b"\0".join((__version__.encode(), extras, able, str(self._folder).encode())))
        seen: set[str] = set()
        try:
            for name, *_, owner, mode in sorted(found.print):
                made.update(f"\0{name}\0{owner}\0{mode}\0".encode())
                made.update(blake2b(Path(name).read_bytes()).digest())
                folder = os.path.dirname(name)
                if folder not in seen:
                    seen.add(folder)
                    made.update(f"\0{self._trust.refusal(Path(folder))}".encode())
        except OSError:
            return ""
        return made.hexdigest()

    def _store(self, result: LoadResult) -> list[str]:
        stored = catalog.calendars(self._control.store)
        for name, calendar in result.calendars.items():
            if stored.get(name) != calendar:
                catalog.apply_calendar(self._by_owner(self._folder), calendar)
        changed: list[str] = []
        for owner, configs in _by_owner(result).items():
            control = self._control.acting(folder_of(owner))
            changed += catalog.apply_configs(control, [(one.config, dict(one.document)) for one in configs])
        return changed

    def _by_owner(self, file: Path) -> Control:
        """What decides and writes for whoever a file or folder belongs to."""
        return self._control.acting(folder_of(owner_of(file)))

    def _forget_calendars(self, result: LoadResult, found: _Look) -> list[str]:
        """The calendars that came from here. One whose file is gone goes once no stored pipeline names it."""
        gone = set(self._known.calendars) - result.calendars.keys()
        if gone and not found.problem and not result.errors:
            for name in sorted(gone - catalog.calendars_in_use(self._control.store)):
                catalog.delete_calendar(self._by_owner(self._folder), name, reason="its file is gone")
                gone.discard(name)
        return sorted({*result.calendars, *gone})

    # --------------------------------------------------------------------------------------------------- absences

    def _settle(
        self, found: _Look, present: dict[str, str], calendars: list[str], *, starting: bool = False
    ) -> tuple[str, ...]:
        """Remove what was absent for long enough, unless it is the folder that is lost; remember how things stand."""
        before = self._known
        verdict = self._judge(found, present, starting=starting)
        for name in verdict.removed:
            file = before.pipelines[name]
            why = "names another pipeline now" if _exists(file) else "is gone"
            catalog.delete_config(self._by_owner(self._folder), name, reason=f"its file {_name(file)} {why}")
            del self._absent[name]
        folder = ConfigFolder(
            folder=before.folder if verdict.lost or found.problem else found.folder,
            pipelines={**{name: before.pipelines[name] for name in self._absent}, **present},
            calendars=calendars,
            lost=verdict.lost,
            lost_since=(before.lost_since or self._control.now()) if verdict.lost else None,
        )
        if folder.lost and not before.lost:
            _log.error("the folder of pipelines is lost: nothing is removed", folder=folder.folder, why=folder.lost)
        remembered.remember(self._control, self._where, folder, before)
        self._known = folder
        return verdict.removed

    def _judge(self, found: _Look, present: dict[str, str], *, starting: bool) -> Verdict:
        """What the absence of pipelines means. Those that somebody removed by name are nobody's any more."""
        now, known = self._control.now(), self._known
        absent = [name for name in known.pipelines if name not in present]
        stored = set(self._control.store.pipelines()) if absent else set()
        self._absent = {name: self._absent.get(name, now) for name in absent if name in stored}
        return judge(
            Folder(
                problem=found.problem,
                files=found.pipelines,
                known=len(present) + len(self._absent),
                absent={name: now - since for name, since in self._absent.items()},
                vanished=sum(not _exists(known.pipelines[name]) for name in self._absent),
                lost=known.lost,
            ),
            starting=starting,
        )

    # ---------------------------------------------------------------------------------------------------- reporting

    def _report(self, result: LoadResult) -> None:
        """An error in an archetype is one of every pipeline that it keeps from running, and not one of a file alone."""
        broken = {file: [str(one) for one in errors] for file, errors in result.rejected.items() if errors}
        reported = {problem for errors in result.rejected.values() for problem in errors}
        for problem in result.errors:
            _log.error("a pipeline file is invalid", problem=str(problem))
            if problem not in reported and problem.file != str(self._folder):
                broken.setdefault(problem.file, []).append(str(problem))
        for file, problems in broken.items():
            remembered.report_invalid(self._control, self._invalid(Path(file), problems))
        for known in remembered.invalid_files(self._control.store):
            if known.file in broken or not Path(known.file).is_relative_to(self._folder.parent):
                continue
            if _exists(known.file):
                remembered.report_valid(self._control, known, self._version(known.pipeline))
            else:
                remembered.forget_invalid(self._control, known)

    def _invalid(self, file: Path, problems: list[str]) -> InvalidFile:
        name = _named_by(file)
        stored = catalog.stored(self._control.store, name)
        # A package that is gone makes what is stored invalid, too.
        in_force = stored if stored is not None and stored.config is not None else None
        return InvalidFile(
            pipeline=name,
            file=str(file),
            errors=problems,
            since=self._control.now(),
            in_force=in_force.version if in_force is not None else "",
            in_force_since=in_force.applied_at if in_force is not None else None,
        )

    def _version(self, pipeline: str) -> str:
        found = catalog.stored(self._control.store, pipeline)
        return found.version if found is not None else ""


def _by_owner(result: LoadResult) -> dict[str, list[Loaded]]:
    """What was loaded, by who owns the files."""
    found: dict[str, list[Loaded]] = {}
    for one in result.configs:
        found.setdefault(owner_of(Path(one.file)), []).append(one)
    return found


def _kept(before: ConfigFolder, files: dict[str, str], errors: Iterable[Problem]) -> dict[str, str]:
    """Pipelines whose file is there but broken, just now: the version that was stored goes on."""
    broken, named = {problem.file for problem in errors}, set(files.values())
    return {
        name: file
        for name, file in before.pipelines.items()
        if name not in files and _exists(file) and (file in broken or file not in named)
    }


def _stamp(file: Path) -> Stamp:
    """Owner and mode decide whether a file is obeyed, and change without its content."""
    try:
        found = file.stat()
    except OSError:
        return str(file), 0, 0, 0, 0, 0
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino, found.st_uid, found.st_mode


def _exists(file: str) -> bool:
    """Is there such a file? A file that cannot be read, or a link that leads nowhere, is not taken for absent."""
    return os.path.lexists(file)


def first_names(names: Sequence[str]) -> list[str]:
    """The names for a line of the log: of many only the first."""
    if len(names) <= _NAMED:
        return list(names)
    return [*names[:_NAMED], f"and {len(names) - _NAMED} more"]


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _named_by(file: Path) -> str:
    """The pipeline that a file is about, as far as a broken file shows it."""
    if file.parent.name in (CALENDARS, ARCHETYPES):
        return remembered.NOBODY
    document = read_file(file)
    inner = document.value.get("pipeline") if isinstance(document, Document) else None
    named = inner.get("id") if isinstance(inner, dict) else None
    for candidate in (named, file.stem):
        try:
            return check_id(candidate) if isinstance(candidate, str) else check_id("")
        except InvalidValueError:
            continue
    return remembered.NOBODY
