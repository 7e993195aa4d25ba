"""What the store remembers of the folders and files that configs come from, for those who show it and after a restart.

A record per folder that is followed: which pipelines came from which file, and whether the folder is lost. A record per
file that is invalid: what is wrong with it, and which version is in force instead. Events are committed with them.
"""

from collections.abc import Iterable, Mapping
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
from interlock.ports.store import Delete, Key, Put, Span, Store, Write

# The partition of events about files that are no pipeline's.
NOBODY: Final = "_files"
LOST: Final = "the folder of pipelines is lost: what came from it stays in force"
_FOLDER: Final = "FOLDER#"
# The pipelines of a folder are more than an item may hold: they lie beside its record, in parts.
_PART: Final = "FOLDER_PART#"
_IN_A_PART: Final = 500
_READ: Final = "FOLDER_READ#"
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


class FilesRead(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a folder as they were last applied, all of them valid: while nothing differs, nothing is to be read.

    `digest` is of the files, `in_force` of the versions that the store had afterwards.
    """

    digest: str
    in_force: str
    warnings: int = 0


class _Head(ConfigFolder, frozen=True, kw_only=True):
    """The record of a folder. An earlier version of Interlock kept all its pipelines here, and counted no parts."""

    parts: int = 0


class _Versioned(msgspec.Struct, frozen=True):
    version: str = ""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    pipelines: dict[str, str]


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
    return [_whole(store, one.key, records.convert(one.item, _Head, one.key)) for one in found]


def read_folder(store: Store, key: Key) -> ConfigFolder:
    """What is known of a folder; of one that nobody has followed yet, nothing."""
    head = records.get(store, key, _Head)
    return ConfigFolder() if head is None else _whole(store, key, head)


def _whole(store: Store, key: Key, head: _Head) -> ConfigFolder:
    parts = [records.get(store, _part_key(key, number), _Part) for number in range(head.parts)]
    pipelines = {name: file for part in parts if part is not None for name, file in part.pipelines.items()}
    return ConfigFolder(
        folder=head.folder,
        pipelines={**head.pipelines, **pipelines},
        calendars=head.calendars,
        lost=head.lost,
        lost_since=head.lost_since,
    )


def read_files(store: Store, folder: Key) -> FilesRead | None:
    """What was read of a folder's files, if all was well."""
    return records.get(store, _read_key(folder), FilesRead)


def remember_files(store: Store, folder: Key, read: FilesRead) -> None:
    """All files of a folder were valid and are in force."""
    if read_files(store, folder) != read:
        store.commit([Put(_read_key(folder), records.plain(read))])


def versions_in_force(store: Store, pipelines: Iterable[str]) -> dict[str, str]:
    """The versions of these pipelines, in order; "" for one that is not stored."""
    names = sorted(pipelines)
    spans = [Span(keys.pipeline_pk(name), keys.CONFIG, keys.CONFIG + "\0") for name in names]
    found = store.read_spans(Table.CONTROL, spans, _Versioned)
    return {name: rows[0][1].version if rows else "" for name, rows in zip(names, found, strict=True)}


def digest_of(versions: Mapping[str, str]) -> str:
    """What tells these versions from others."""
    return _digest(repr(list(versions.items())))


def _read_key(folder: Key) -> Key:
    return records.control_key(keys.CONTROLLER, f"{_READ}{folder.sk[len(_FOLDER) :]}")


def _part_key(key: Key, number: int) -> Key:
    return records.control_key(keys.CONTROLLER, f"{_PART}{key.sk[len(_FOLDER) :]}#{number:04d}")


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
    head = records.get(control.store, key, _Head)
    known = _in_parts(before.pipelines)[: head.parts] if head is not None else []
    control.store.commit([*_folder_writes(key, folder, known), *records.put_events(*events)])


def _folder_writes(key: Key, folder: ConfigFolder, known: list[dict[str, str]]) -> list[Write]:
    """The record, and those of its parts that are not known yet."""
    parts = _in_parts(folder.pipelines)
    fields = {name: getattr(folder, name) for name in folder.__struct_fields__ if name != "pipelines"}
    writes: list[Write] = [Put(key, records.plain(_Head(**fields, parts=len(parts))))]
    for number, part in enumerate(parts):
        if number >= len(known) or known[number] != part:
            writes.append(Put(_part_key(key, number), records.plain(_Part(pipelines=part))))
    return writes


def _in_parts(pipelines: dict[str, str]) -> list[dict[str, str]]:
    names = sorted(pipelines)
    return [
        {name: pipelines[name] for name in names[first : first + _IN_A_PART]}
        for first in range(0, len(names), _IN_A_PART)
    ]


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
