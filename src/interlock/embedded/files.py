"""Keeps the store in step with a folder of pipelines: what is in the files is what runs.

The files are looked at once a second. A change is applied when the files have stood still for one look more, so that a
file that is just being written is not taken for a broken one. Valid configs are stored; a broken one is reported
(CONFIG_INVALID, once per content) and the version that was stored before goes on. A pipeline goes when its file goes,
and only if it came from this folder: what was applied from elsewhere is not this folder's to remove.
"""

import threading
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
import structlog

from interlock.config.documents import Document
from interlock.config.folders import config_files, find_place, read_file
from interlock.config.loader import LoadResult, load_paths
from interlock.config.problems import Problem
from interlock.control import catalog, records
from interlock.control.context import Control
from interlock.embedded.targets import abilities
from interlock.model import keys
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, check_id
from interlock.ports.store import Delete, Put

EVERY_SECONDS: Final = 1.0
_FOLDER: Final = "FOLDER#"
# The partition of events about files that name no pipeline.
_NOBODY: Final = "_files"

_log = structlog.get_logger(__name__)

Fingerprint = frozenset[tuple[str, int, int, int]]


class Origin(msgspec.Struct, frozen=True):
    """What came from a folder: the file of each pipeline, and the names of calendars."""

    pipelines: dict[str, str] = {}
    calendars: list[str] = []


class Applied(msgspec.Struct, frozen=True):
    """What one look at the folder led to."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class FolderWatch:
    """Follows one folder (or file, or project). Drive it with `apply` and `look`, or by `start` and `stop`."""

    def __init__(self, control: Control, folder: Path) -> None:
        self._control = control
        self._folder = folder
        self._where = records.control_key(
            keys.CONTROLLER, f"{_FOLDER}{sha256(str(folder.resolve()).encode()).hexdigest()}"
        )
        self._applied: Fingerprint | None = None
        self._seen: Fingerprint | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------------------------------------- following

    def start(self) -> Applied:
        """Apply what is there, then follow it on a thread."""
        applied = self.apply()
        self._thread = threading.Thread(target=self._run, name="interlock-files", daemon=True)
        self._thread.start()
        return applied

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_SECONDS):
            try:
                self.look()
            except (InterlockError, OSError) as error:
                _log.error("the pipeline files could not be followed; trying again", error=str(error))

    def look(self) -> Applied | None:
        """Apply a change of the files once they stand still; None when there is nothing to apply."""
        now = self._fingerprint()
        still, self._seen = now == self._seen, now
        if now == self._applied or not still:
            return None
        return self.apply()

    def _fingerprint(self) -> Fingerprint:
        place = find_place(self._folder)
        files = [*place.files]
        for beside in (place.calendars, place.archetypes):
            files += config_files(beside) if beside is not None else ()
        return frozenset(_stamp(file) for file in files)

    # -------------------------------------------------------------------------------------------------- applying

    def apply(self) -> Applied:
        """Store what the files say now."""
        try:
            print_ = self._fingerprint()
        except OSError as error:
            # A folder that is gone for a moment (a mount, a checkout) does not take its pipelines with it.
            problem = Problem(str(self._folder), None, "", f"cannot be read: {error.strerror or error}")
            _log.error("the pipeline files cannot be read", problem=str(problem))
            return Applied(problems=(problem,))
        result = load_paths([self._folder], abilities=abilities())
        before = self._origin()
        self._put_calendars(result)
        written = [one.config.id for one in result.configs if self._put(one.config.id, result)]
        files = {one.config.id: one.file for one in result.configs}
        kept = self._kept(before, files, result.errors)
        removed = [name for name in before.pipelines if name not in files and name not in kept]
        for name in removed:
            catalog.delete_config(self._control, name)
        gone = sorted(set(before.calendars) - result.calendars.keys()) if not result.errors else []
        for name in gone:
            self._control.store.commit([Delete(records.control_key(keys.CALENDARS, name))])
        self._remember(Origin({**kept, **files}, sorted({*result.calendars, *before.calendars} - {*gone})), before)
        self._report(result)
        self._applied = self._seen = print_
        if written or removed:
            _log.info("pipelines applied", written=written, removed=removed, errors=len(result.errors))
        return Applied(tuple(written), tuple(removed), result.problems)

    def _put(self, name: str, result: LoadResult) -> bool:
        loaded = next(one for one in result.configs if one.config.id == name)
        return catalog.apply_config(self._control, loaded.config, dict(loaded.document))

    def _put_calendars(self, result: LoadResult) -> None:
        stored = catalog.calendars(self._control.store)
        for name, calendar in result.calendars.items():
            if stored.get(name) != calendar:
                self._control.store.commit([catalog.put_calendar(calendar)])

    def _kept(self, before: Origin, files: Mapping[str, str], errors: Iterable[Problem]) -> dict[str, str]:
        """Pipelines whose file is there but broken, just now: the version that was stored goes on."""
        broken = {problem.file for problem in errors}
        return {
            name: file
            for name, file in before.pipelines.items()
            if name not in files and Path(file).exists() and (file in broken or file not in files.values())
        }

    # -------------------------------------------------------------------------------------------------- remembering

    def _origin(self) -> Origin:
        return records.get(self._control.store, self._where, Origin) or Origin()

    def _remember(self, origin: Origin, before: Origin) -> None:
        if origin != before:
            self._control.store.commit([Put(self._where, records.plain(origin))])

    # ---------------------------------------------------------------------------------------------------- reporting

    def _report(self, result: LoadResult) -> None:
        broken: dict[str, list[str]] = {}
        for problem in result.errors:
            _log.error("a pipeline file is invalid", problem=str(problem))
            broken.setdefault(problem.file, []).append(str(problem))
        for file, problems in broken.items():
            self._tell_invalid(Path(file), problems)

    def _tell_invalid(self, file: Path, problems: list[str]) -> None:
        name = _named_by(file)
        content = sha256("\n".join(problems).encode("utf-8", "replace")).hexdigest()[:16]
        event = records.event(
            EventType.CONFIG_INVALID,
            RunKey(name, "", ""),
            self._control.now(),
            f"{file.name} is invalid and is not run: {'; '.join(problems)}"[:4000],
            errors=problems[:100],
            configVersion=content,
        )
        records.publish_once(self._control, event, f"CONFIG_INVALID-{content}")


def _stamp(file: Path) -> tuple[str, int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return str(file), 0, 0, 0
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino


def _named_by(file: Path) -> str:
    """The pipeline that a file is about, as far as can be told of one that is broken."""
    document = read_file(file)
    inner = document.value.get("pipeline") if isinstance(document, Document) else None
    named = inner.get("id") if isinstance(inner, dict) else None
    for candidate in (named, file.stem):
        try:
            return check_id(candidate) if isinstance(candidate, str) else check_id("")
        except InvalidValueError:
            continue
    return _NOBODY
