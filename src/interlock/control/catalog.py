"""Pipelines as they are stored: the current config of each, the versions that attempts were opened with, calendars.

Items are read fresh each time and parsed once per version, so that a config change takes effect at once and an attempt
under way keeps the version it was opened with.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from interlock.config.stored import config_version, read_stored
from interlock.control.context import Control
from interlock.control.records import control_key, event, plain, publish_once
from interlock.model import keys
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.errors import StoreError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.times import format_instant, parse_instant
from interlock.ports.store import Delete, Item, Key, Matches, Missing, Present, Put, Store, Update, Write


class Stored(msgspec.Struct, frozen=True):
    """A pipeline as the store has it: a config, or the errors that make it none."""

    pipeline: str
    version: str
    config: PipelineConfig | None
    errors: tuple[str, ...]
    document: dict[str, Any]
    first_applied_at: datetime | None


def stored(store: Store, pipeline: str) -> Stored | None:
    """The stored pipeline, valid or not; None when there is none."""
    item = store.get(control_key(keys.pipeline_pk(pipeline), keys.CONFIG))
    if item is None:
        return None
    document = _document(item)
    version = config_version(document)
    config, errors = _parse(msgspec.json.encode(document), _calendar_names(store))
    if config is not None and config.id != pipeline:
        errors = (f"pipeline.id is {config.id!r}, but it is stored as {pipeline!r}",)
        config = None
    return Stored(pipeline, version, config, errors, document, parse_instant(item.get("firstAppliedAt")))


def current(store: Store, pipeline: str) -> PipelineConfig | None:
    """The current config, None when there is none or it is invalid."""
    found = stored(store, pipeline)
    return found.config if found else None


def version_of(pipeline: PipelineConfig, document: dict[str, Any]) -> Put:
    """The write that keeps a version for the attempts opened with it."""
    return Put(_version_key(pipeline.id, config_version(document)), {"document": document})


def opened_with(store: Store, pipeline: str, version: str) -> PipelineConfig:
    """The config an attempt was opened with."""
    item = store.get(_version_key(pipeline, version))
    if item is None:
        raise StoreError(f"{pipeline}: config version {version} is not in the store")
    config, errors = _parse(msgspec.json.encode(item["document"]), _calendar_names(store))
    if config is None:
        raise StoreError(f"{pipeline}: config version {version} is invalid: {'; '.join(errors)}")
    return config


def _version_key(pipeline: str, version: str) -> Key:
    return control_key(keys.pipeline_pk(pipeline), keys.CONFIG_VERSION + version)


def _document(item: Item) -> dict[str, Any]:
    """The document in a CONFIG item: ours, or one that a deployment tool wrote as text or as the item itself."""
    raw = item.get("document", item.get("config", item))
    if isinstance(raw, str):
        try:
            raw = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            raw = {"_unreadable": raw[:200]}
    return raw if isinstance(raw, dict) else {"_unreadable": repr(raw)[:200]}


@lru_cache(maxsize=20_000)
def _parse(encoded: bytes, calendar_names: frozenset[str]) -> tuple[PipelineConfig | None, tuple[str, ...]]:
    named = {name: Calendar(name=name) for name in calendar_names}
    result = read_stored(msgspec.json.decode(encoded), named)
    if isinstance(result, PipelineConfig):
        return result, ()
    return None, tuple(f"{one.path}: {one.message}" if one.path else one.message for one in result)


# ---------------------------------------------------------------------------------------------------- calendars


def _calendar_names(store: Store) -> frozenset[str]:
    return frozenset(record.key.sk for record in store.query(Table.CONTROL, keys.CALENDARS))


def calendars(store: Store) -> dict[str, Calendar]:
    """Every named calendar."""
    found = store.query(Table.CONTROL, keys.CALENDARS)
    return {record.key.sk: msgspec.convert(record.item, Calendar) for record in found}


def put_calendar(calendar: Calendar) -> Put:
    """The write that stores a named calendar."""
    return Put(control_key(keys.CALENDARS, calendar.name), plain(calendar) | {"name": calendar.name})


# -------------------------------------------------------------------------------------------------------- apply


def apply_config(control: Control, config: PipelineConfig, document: dict[str, Any]) -> bool:
    """Store a valid config; False when it was there already."""
    key = control_key(keys.pipeline_pk(config.id), keys.CONFIG)
    version = config_version(document)
    for _ in range(10):
        before = control.store.get(key)
        if before is not None and before.get("version") == version:
            return False
        now = format_instant(control.now())
        item: Item = {"document": document, "version": version, "appliedAt": now}
        item["firstAppliedAt"] = (before or {}).get("firstAppliedAt") or now
        when = Missing() if before is None else Matches({"version": before.get("version")})
        writes: list[Write] = [Put(key, item, when), version_of(config, document), *link_writes(config)]
        if control.store.commit(writes) is None:
            return True
    raise StoreError(f"{config.id}: the config keeps changing under the apply; try again")


def link_writes(config: PipelineConfig) -> list[Write]:
    """Links from each upstream to this pipeline; a link is a hint that is checked when it is followed."""
    return [
        Put(control_key(keys.pipeline_pk(entry.pipeline), keys.DOWNSTREAM + config.id), {"downstream": config.id})
        for entry in {entry.pipeline: entry for entry in config.after}.values()
    ]


def downstreams(store: Store, pipeline: str) -> list[PipelineConfig]:
    """The pipelines that run after this one."""
    found = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.DOWNSTREAM)
    configs = (current(store, record.key.sk[len(keys.DOWNSTREAM) :]) for record in found)
    return [c for c in configs if c is not None and any(entry.pipeline == pipeline for entry in c.after)]


def config_changed(control: Control, pipeline: str) -> None:
    """A CONFIG item was written: report an invalid one (once per version), complete what a direct write left out."""
    found = stored(control.store, pipeline)
    if found is None:
        return
    now = control.now()
    if found.config is None:
        slot = RunKey(pipeline, "", "")
        told = event(
            EventType.CONFIG_INVALID,
            slot,
            now,
            f"the config of {pipeline} is invalid and is not run: {'; '.join(found.errors)}",
            errors=list(found.errors),
            configVersion=found.version,
        )
        publish_once(control, told, f"CONFIG_INVALID-{found.version}")
    key = control_key(keys.pipeline_pk(pipeline), keys.CONFIG)
    if found.first_applied_at is None:
        control.store.commit([Update(key, set={"firstAppliedAt": format_instant(now)}, when=Present())])
    if found.config is not None and control.store.get(_version_key(pipeline, found.version)) is None:
        control.store.commit([version_of(found.config, found.document), *link_writes(found.config)])


def delete_config(control: Control, pipeline: str) -> bool:
    """Forget a pipeline: it opens nothing new, what is under way ends."""
    return control.store.commit([Delete(control_key(keys.pipeline_pk(pipeline), keys.CONFIG), Present())]) is None


def first_started(control: Control) -> datetime:
    """When this controller's store first saw a controller; remembered at the first call."""
    key = control_key(keys.CONTROLLER, keys.CONTROLLER)
    item = control.store.get(key)
    if item is None:
        control.store.commit([Put(key, {"firstStartedAt": format_instant(control.now())}, Missing())])
        item = control.store.get(key) or {}
    return parse_instant(item.get("firstStartedAt")) or control.now()
