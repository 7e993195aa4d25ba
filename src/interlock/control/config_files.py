"""What the store remembers of the folders and files that configs come from, for those who show it and after a restart.

A record per folder that is followed: which pipelines came from which file, and whether the folder is lost. A record per
file that is invalid: what is wrong with it, and which version is in force instead. Events are committed with them.
"""

from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.control import records
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.times import format_instant
from interlock.ports.store import Delete, Key, Put, Store

# The partition of events about files that are no pipeline's.
NOBODY: Final = "_files"
LOST: Final = "the folder of pipelines is lost: what came from it stays in force"
_FOLDER: Final = "FOLDER#"
_INVALID: Final = "INVALID_FILE#"
_MAX_ERRORS: Final = 100
_MAX_MESSAGE: Final = 4000


class ConfigFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is followed. `pipelines`: the file of each; `lost`: why what it lacks is not removed, or ""."""

    folder: str = ""
    pipelines: dict[str, str] = {}
    calendars: list[str] = []
    lost: str = ""
    lost_since: datetime | None = None


class InvalidFile(msgspec.Struct, frozen=True, kw_only=True):
    """A config file that cannot be used. `in_force`: the version that goes on, "" when nothing does."""

    pipeline: str
    file: str
    errors: list[str]
    since: datetime
    in_force: str = ""
    in_force_since: datetime | None = None

    def verdict(self) -> str:
        """What it means, in a sentence."""
        if not self.in_force:
            return "is invalid and is not run: no earlier version of it is in force"
        since = f", applied {format_instant(self.in_force_since)}," if self.in_force_since is not None else ""
        return f"is invalid: version {self.in_force}{since} stays in force"


def folder_key(path: str) -> Key:
    """Where the record of a folder lies; `path` is absolute."""
    return records.control_key(keys.CONTROLLER, f"{_FOLDER}{_digest(path)}")


def folders(store: Store) -> list[ConfigFolder]:
    """Every folder that a controller of this store has followed."""
    found = store.query(Table.CONTROL, keys.CONTROLLER, _FOLDER)
    return [records.convert(one.item, ConfigFolder, one.key) for one in found]


def degradations(store: Store) -> list[str]:
    """In words, without a path: what a controller works in spite of."""
    return [LOST for one in folders(store) if one.lost]


def file_of(store: Store, pipeline: str) -> str | None:
    """The file that a pipeline came from; None when it was applied otherwise."""
    return next((one.pipelines[pipeline] for one in folders(store) if pipeline in one.pipelines), None)


def invalid_files(store: Store) -> list[InvalidFile]:
    """The files that are invalid now, by name."""
    found = store.query(Table.CONTROL, keys.CONTROLLER, _INVALID)
    files = (records.convert(one.item, InvalidFile, one.key) for one in found)
    return sorted(files, key=lambda one: one.file)


# --------------------------------------------------------------------------------------------------- invalid files


def report_invalid(control: Control, found: InvalidFile) -> None:
    """Remember an invalid file, and publish it; nothing when the same is known already."""
    key = _invalid_key(found.file)
    before = records.get(control.store, key, InvalidFile)
    if before is not None and (before.errors, before.in_force) == (found.errors, found.in_force):
        return
    name = found.file.rpartition("/")[2]
    event = records.event(
        EventType.CONFIG_INVALID,
        RunKey(found.pipeline, "", ""),
        control.now(),
        f"{name} {found.verdict()}: {'; '.join(found.errors)}"[:_MAX_MESSAGE],
        errors=found.errors[:_MAX_ERRORS],
        file=name,
        configVersion=_digest("\n".join(found.errors)),
        inForce=found.in_force or None,
    )
    known = msgspec.structs.replace(found, errors=found.errors[:_MAX_ERRORS])
    control.store.commit([Put(key, records.plain(known)), *records.put_events(event)])


def report_valid(control: Control, before: InvalidFile, version: str) -> None:
    """A file that was invalid is in order again."""
    name = before.file.rpartition("/")[2]
    in_force = f": version {version} is in force" if version else ""
    detail = {"file": name, "configVersion": version or None}
    event = _restored(control, before.pipeline, f"{name} is valid again{in_force}", detail)
    control.store.commit([Delete(_invalid_key(before.file)), *records.put_events(event)])


def forget_invalid(control: Control, before: InvalidFile) -> None:
    """An invalid file is gone."""
    control.store.commit([Delete(_invalid_key(before.file))])


def _invalid_key(file: str) -> Key:
    return records.control_key(keys.CONTROLLER, f"{_INVALID}{_digest(file)}")


# ----------------------------------------------------------------------------------------------------- lost folders


def remember(control: Control, key: Key, folder: ConfigFolder, before: ConfigFolder) -> None:
    """Store what is known of a folder, with the event of its loss or return."""
    if folder == before:
        return
    events = []
    if folder.lost and not before.lost:
        events.append(_lost(control, folder))
    elif before.lost and not folder.lost:
        message = f"the folder of pipelines {folder.folder} is back: it is followed again"
        events.append(_restored(control, NOBODY, message, {"folder": folder.folder}))
    control.store.commit([Put(key, records.plain(folder)), *records.put_events(*events)])


def _lost(control: Control, folder: ConfigFolder) -> Event:
    count = len(folder.pipelines)
    return records.event(
        EventType.CONFIG_FOLDER_LOST,
        RunKey(NOBODY, "", ""),
        control.now(),
        f"the folder of pipelines {folder.folder} is lost: {folder.lost}. The {count} that came from it stay in force;"
        " bring the files back, or remove pipelines by name with `interlock apply --prune`",
        folder=folder.folder,
        reason=folder.lost,
        pipelines=count,
    )


def _restored(control: Control, pipeline: str, message: str, detail: dict[str, Any]) -> Event:
    return records.event(EventType.CONFIG_RESTORED, RunKey(pipeline, "", ""), control.now(), message, **detail)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()
