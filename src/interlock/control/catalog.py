"""Pipelines as they are stored: the current config of each, the versions that attempts were opened with, calendars.

Items are read fresh each time and parsed once per version, so that a config change takes effect at once and an attempt
under way keeps the version it was opened with.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache, lru_cache, partial
from typing import Any, Final

import msgspec

from interlock.config.versions import config_version
from interlock.control.auditing import note
from interlock.control.context import Control
from interlock.control.records import control_key, digest, event, plain, put_event, settle_commit
from interlock.decide import expected
from interlock.model import keys
from interlock.model.audit import AuditAction
from interlock.model.config import Calendar, PipelineConfig, Schedule
from interlock.model.errors import CommitRefusedError, StoreError
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period
from interlock.model.run import Run
from interlock.model.times import format_instant, parse_instant
from interlock.ports.store import Delete, Item, Key, Matches, Missing, Present, Put, Require, Span, Store, Write

_READ_AT_ONCE: Final = 500
# Each config has a few, and a store may add one of its own to each.
_WRITES_AT_ONCE: Final = 60


class Stored(msgspec.Struct, frozen=True):
    """A pipeline as the store has it: a config, or the errors that make it none.

    `first_applied_before`: from an item of an earlier version, which kept it there; ask `first_applied`.
    """

    pipeline: str
    version: str
    config: PipelineConfig | None
    errors: tuple[str, ...]
    document: dict[str, Any]
    first_applied_before: datetime | None = None
    applied_at: datetime | None = None


def stored(store: Store, pipeline: str) -> Stored | None:
    """The stored pipeline, valid or not; None when there is none."""
    item = store.get(control_key(keys.pipeline_pk(pipeline), keys.CONFIG))
    return None if item is None else stored_as(store, pipeline, item)


def stored_many(store: Store, pipelines: Sequence[str]) -> list[Stored]:
    """Those of these pipelines that are stored, valid or not: one read of all, and one of the calendars."""
    spans = [Span(keys.pipeline_pk(one), keys.CONFIG, keys.CONFIG + "\0") for one in pipelines]
    found = store.read_spans(Table.CONTROL, spans, dict[str, Any])
    calendar_names = cache(partial(_calendar_names, store))
    return [
        stored_as(store, pipeline, rows[0][1], calendar_names)
        for pipeline, rows in zip(pipelines, found, strict=True)
        if rows
    ]


def stored_as(
    store: Store, pipeline: str, item: Item, calendar_names: Callable[[], frozenset[str]] | None = None
) -> Stored:
    """The pipeline of a CONFIG item that was read already. `calendar_names`: where they are read once for many."""
    document = _document(item)
    encoded = msgspec.json.encode(document)
    version = _version(encoded)
    config, errors = _checked(store, (pipeline, version), encoded, calendar_names or partial(_calendar_names, store))
    if config is not None and config.id != pipeline:
        errors = (f"pipeline.id is {config.id!r}, but it is stored as {pipeline!r}",)
        config = None
    first, latest = parse_instant(item.get("firstAppliedAt")), parse_instant(item.get("appliedAt"))
    return Stored(pipeline, version, config, errors, document, first, latest)


def first_applied(store: Store, found: Stored) -> datetime | None:
    """When a pipeline was first applied; None before its config was routed.

    Kept apart from the CONFIG item, which belongs to whoever deploys the pipeline: a tool that compares it with what it
    wrote would find it changed forever.
    """
    return _earlier(found, (store.get(_applied_key(found.pipeline)) or {}).get("firstAppliedAt"))


def stored_since(store: Store, pipeline: str) -> tuple[Stored, datetime | None] | None:
    """A stored pipeline and when it was first applied, in one read."""
    key = control_key(keys.pipeline_pk(pipeline), keys.CONFIG)
    item, applied = store.get_many([key, _applied_key(pipeline)])
    if item is None:
        return None
    found = stored_as(store, pipeline, item)
    return found, _earlier(found, (applied or {}).get("firstAppliedAt"))


def first_applied_of_all(store: Store, found: Sequence[Stored]) -> list[datetime | None]:
    """When each of these was first applied."""
    where = [_applied_key(one.pipeline) for one in found]
    rows = store.read_spans(Table.CONTROL, [Span(key.pk, key.sk, key.sk + "\0") for key in where], _Applied)
    return [
        _earlier(one, items[0][1].first_applied_at if items else None) for one, items in zip(found, rows, strict=True)
    ]


class _Applied(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The item that says when a pipeline was first applied."""

    first_applied_at: str | int | float | None = None


def _earlier(found: Stored, applied: object) -> datetime | None:
    known = (parse_instant(applied), found.first_applied_before)
    return min((at for at in known if at is not None), default=None)


def _applied_key(pipeline: str) -> Key:
    return control_key(keys.pipeline_pk(pipeline), keys.APPLIED)


def _first_applied_write(pipeline: str, at: datetime) -> Put:
    return Put(_applied_key(pipeline), {"firstAppliedAt": format_instant(at)}, Missing())


@lru_cache(maxsize=20_000)
def _version(encoded: bytes) -> str:
    return config_version(msgspec.json.decode(encoded))


def current(store: Store, pipeline: str) -> PipelineConfig | None:
    """The current config, None when there is none or it is invalid."""
    found = stored(store, pipeline)
    return found.config if found else None


class InForce(msgspec.Struct, frozen=True):
    """A valid config as it is stored now: what a new attempt is opened with."""

    config: PipelineConfig
    version: str
    document: dict[str, Any]


def in_force(store: Store, pipeline: str) -> InForce | None:
    """The current config with its version, None when there is none or it is invalid."""
    found = stored(store, pipeline)
    if found is None or found.config is None:
        return None
    return InForce(found.config, found.version, found.document)


class Brake(msgspec.Struct, frozen=True):
    """Why nothing of a pipeline may be started now, None when it may.

    `unchanged`: part of a commit that must not happen if the config is another one by then.
    """

    reason: str | None
    unchanged: Require


def brake(store: Store, pipeline: str) -> Brake:
    """Is the pipeline a dry run, or deleted? An invalid config is a brake only if it asks for a dry run."""
    key = control_key(keys.pipeline_pk(pipeline), keys.CONFIG)
    item = store.get(key)
    if item is None:
        return Brake(f"{pipeline} was deleted", Require(key, Missing()))
    dry = _document(item).get("dryRun") is True
    # Ours has a version. What a deployment tool wrote has none, and is compared as a whole.
    named = ("version",) if "version" in item else ("document", "config", "dryRun")
    same = Matches({name: item.get(name) for name in named}, present=True)
    return Brake(f"{pipeline} is a dry run" if dry else None, Require(key, same))


def version_of(pipeline: PipelineConfig, document: dict[str, Any]) -> Put:
    """The write that keeps a version for the attempts opened with it."""
    return Put(_version_key(pipeline.id, config_version(document)), {"document": document})


def opened_with(store: Store, pipeline: str, version: str) -> PipelineConfig:
    """The config an attempt was opened with. A calendar or package that was removed since does not undo it."""
    kept = _kept.get((pipeline, version))
    if kept is not None:
        return kept
    item = store.get(_version_key(pipeline, version))
    if item is None:
        raise StoreError(f"{pipeline}: config version {version} is not in the store")
    document, errors = item["document"], tuple[str, ...]()
    # What its hash vouches for was checked when the attempt was opened: nothing that changed since undoes it.
    same = config_version(document) == version
    config, still_valid = _parse_checked(document) if same else (None, False)
    if config is None:
        config, errors = _parse(msgspec.json.encode(document), None)
    if config is None:
        raise StoreError(f"{pipeline}: config version {version} is invalid: {'; '.join(errors)}")
    if still_valid:
        _keep(pipeline, version, config)
    return config


_IN_USE_AHEAD: Final = timedelta(days=1)


def in_use_writes(store: Store, pipeline: str, version: str, until: datetime) -> list[Write]:
    """Remember that an attempt is opened with a version, and may wait until then; at most about once a day.

    Who looks for the attempts that wait for a sensor asks the versions first: there are few, however many attempts.
    """
    key = control_key(keys.pipeline_pk(pipeline), keys.IN_USE + version)
    known = parse_instant((store.get(key) or {}).get("until"))
    if known is not None and known >= until:
        return []
    ahead = until + _IN_USE_AHEAD
    return [Put(key, {"until": format_instant(ahead), "ttl": int(ahead.timestamp())})]


def in_use(store: Store, pipeline: str, current: InForce | None) -> dict[str, PipelineConfig]:
    """By version: the config in force, and those that attempts under way may have been opened with."""
    configs = {} if current is None else {current.version: current.config}
    for record in store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.IN_USE):
        version = record.key.sk[len(keys.IN_USE) :]
        if version not in configs:
            configs[version] = opened_with(store, pipeline, version)
    return configs


def judged_by(store: Store, current: PipelineConfig, run: Run | None) -> PipelineConfig:
    """The config that the rules of a run are judged by: its attempt's while one is under way, else the current one."""
    return opened_with(store, run.pipeline, run.config_version) if run is not None and run.active else current


# A version is the hash of its document, so what it means never changes, in whatever store it lies.
_kept: Final[dict[tuple[str, str], PipelineConfig]] = {}
_MOST_KEPT: Final = 20_000


# Found valid by a check that nothing has changed since: of these only the form is read.
_valid: Final[set[tuple[str, str]]] = set()


def found_valid(versions: Mapping[str, str]) -> None:
    """These versions, by pipeline, were checked before, by this version of Interlock."""
    if len(_valid) + len(versions) > _MOST_KEPT:
        _valid.clear()
    _valid.update(versions.items())


def _keep(pipeline: str, version: str, config: PipelineConfig) -> None:
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[pipeline, version] = config


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


Parsed = tuple[PipelineConfig | None, tuple[str, ...]]


def _checked(store: Store, of: tuple[str, str], encoded: bytes, calendar_names: Callable[[], frozenset[str]]) -> Parsed:
    """The config, or all its errors. The calendars are looked up only for one that names some."""
    errors: tuple[str, ...] = ()
    config = _kept.get(of)
    if config is None and of in _valid:
        before, still_valid = _parse_checked(msgspec.json.decode(encoded))
        if before is not None and still_valid:
            config = before
            _keep(*of, config)
    if config is None:
        config, errors = _parse(encoded, None)
        if config is not None and config.id == of[0]:
            _keep(*of, config)
    named = {name for schedule in config.all_schedules for name in named_calendars(schedule)} if config else set()
    if config is None or named:
        known = calendar_names()
        if config is None or not named <= known:
            config, errors = _parse(encoded, known)
    if config is not None and (reasons := tuple(store.refused(config))):
        return None, reasons
    return config, errors


def named_calendars(schedule: Schedule) -> list[str]:
    """The calendars that a schedule names."""
    named = [part.calendar for part in (schedule.exclude, schedule.include) if part is not None]
    return [name for name in named if name is not None]


class _EveryCalendar(dict[str, Calendar]):
    """Stands for the calendars where their existence is not the question."""

    def __contains__(self, name: object) -> bool:
        return True


@lru_cache(maxsize=20_000)
def _parse(encoded: bytes, calendar_names: frozenset[str] | None) -> Parsed:
    """`calendar_names`: those there are; None takes every name for one."""
    # Loaded by the first config: a function that meets none, or knows its versions, starts sooner.
    from interlock.config.stored import read_stored

    named: dict[str, Calendar] = _EveryCalendar()
    if calendar_names is not None:
        named = {name: Calendar(name=name) for name in calendar_names}
    result = read_stored(msgspec.json.decode(encoded), named)
    if isinstance(result, PipelineConfig):
        return result, ()
    return None, tuple(f"{one.path}: {one.message}" if one.path else one.message for one in result)


def _parse_checked(document: dict[str, Any]) -> tuple[PipelineConfig | None, bool]:
    """A config that was found valid before, and whether the zones and holidays that it names are still known."""
    from interlock.config.schedules import knows_times
    from interlock.config.stored import read_checked

    config = read_checked(document)
    return config, config is not None and knows_times(config)


# ---------------------------------------------------------------------------------------------------- calendars


def _calendar_names(store: Store) -> frozenset[str]:
    return frozenset(record.key.sk for record in store.query(Table.CONTROL, keys.CALENDARS))


def calendars_in_use(store: Store) -> set[str]:
    """The calendars that stored pipelines name."""
    configs = (found.config for name in store.pipelines() if (found := stored(store, name)) is not None)
    schedules = [one for config in configs if config is not None for one in config.all_schedules]
    return {name for schedule in schedules for name in named_calendars(schedule)}


def calendars(store: Store) -> dict[str, Calendar]:
    """Every named calendar."""
    found = store.query(Table.CONTROL, keys.CALENDARS)
    return {record.key.sk: msgspec.convert(record.item, Calendar) for record in found}


def calendars_for(store: Store, schedule: Schedule) -> dict[str, Calendar]:
    """The named calendars, where a schedule names any; most do not, and then nothing is read."""
    return calendars(store) if named_calendars(schedule) else {}


def calendar_reason(store: Store, schedule: Schedule, period: Period) -> str | None:
    """Why the calendar withholds the run of a period, whoever asks for it: a cron by its tick's day, others by date."""
    return expected.calendar_reason(schedule, calendars_for(store, schedule), period)


def put_calendar(calendar: Calendar) -> Put:
    """The write that stores a named calendar."""
    return Put(control_key(keys.CALENDARS, calendar.name), _calendar_item(calendar))


def _calendar_item(calendar: Calendar) -> Item:
    return plain(calendar) | {"name": calendar.name}


def apply_calendar(control: Control, calendar: Calendar, *, reason: str = "") -> bool:
    """Store a named calendar; False when it was there already. `reason`: for the audit trail."""
    key, item = control_key(keys.CALENDARS, calendar.name), _calendar_item(calendar)

    def decide() -> tuple[bool, list[Write]]:
        before = control.store.get(key)
        if before == item:
            return False, []
        made = note(
            control,
            AuditAction.CALENDAR_APPLIED,
            subject=calendar.name,
            reason=reason,
            before=None if before is None else {"digest": digest(before)},
            after={"digest": digest(item)},
        )
        return True, [Put(key, item, Missing() if before is None else Matches(before, present=True), made)]

    return settle_commit(control, decide)


def delete_calendar(control: Control, name: str, *, reason: str = "") -> bool:
    """Forget a named calendar; False when there is none."""
    key = control_key(keys.CALENDARS, name)

    def decide() -> tuple[bool, list[Write]]:
        before = control.store.get(key)
        if before is None:
            return False, []
        shown = {"digest": digest(before)}
        made = note(control, AuditAction.CALENDAR_DELETED, subject=name, reason=reason, before=shown)
        return True, [Delete(key, Matches(before, present=True), made)]

    return settle_commit(control, decide)


# -------------------------------------------------------------------------------------------------------- apply


def apply_config(control: Control, config: PipelineConfig, document: dict[str, Any], *, reason: str = "") -> bool:
    """Store a valid config; False when it was there already. `reason`: for the audit trail."""
    version = config_version(document)
    for _ in range(10):
        before, applied = control.store.get_many([_config_key(config.id), _applied_key(config.id)])
        if before is not None and before.get("version") == version:
            return False
        if control.store.commit(_apply_writes(control, config, document, version, before, applied, reason)) is None:
            return True
    raise StoreError(f"{config.id}: the config keeps changing under the apply; try again")


def apply_configs(control: Control, configs: Sequence[tuple[PipelineConfig, dict[str, Any]]]) -> list[str]:
    """Store valid configs, many in a commit; the ids of those that were not there already."""
    changed: list[str] = []
    for start in range(0, len(configs), _READ_AT_ONCE):
        some = configs[start : start + _READ_AT_ONCE]
        wanted = [key for config, _ in some for key in (_config_key(config.id), _applied_key(config.id))]
        found = control.store.get_many(wanted)
        batch: list[tuple[PipelineConfig, dict[str, Any]]] = []
        writes: list[Write] = []
        for (config, document), before, applied in zip(some, found[::2], found[1::2], strict=True):
            version = config_version(document)
            if before is not None and before.get("version") == version:
                continue
            changed.append(config.id)
            _keep(config.id, version, config)  # it was just read from the same document
            mine = _apply_writes(control, config, document, version, before, applied)
            taken = {write.key for write in writes}
            if len(writes) + len(mine) > _WRITES_AT_ONCE or any(write.key in taken for write in mine):
                _commit_configs(control, batch, writes)
                batch, writes = [], []
            batch.append((config, document))
            writes += mine
        _commit_configs(control, batch, writes)
    return changed


def _commit_configs(
    control: Control, batch: Sequence[tuple[PipelineConfig, dict[str, Any]]], writes: Sequence[Write]
) -> None:
    """Together if that can be, otherwise one by one: somebody else may be applying, or it is too much at once."""
    with suppress(CommitRefusedError):
        if control.store.commit(writes) is None:
            return
    for config, document in batch:
        apply_config(control, config, document)


def _apply_writes(
    control: Control,
    config: PipelineConfig,
    document: dict[str, Any],
    version: str,
    before: Item | None,
    applied: Item | None,
    reason: str = "",
) -> list[Write]:
    now = control.now()
    item: Item = {"document": document, "version": version, "appliedAt": format_instant(now)}
    when = Missing() if before is None else Matches({"version": before.get("version")})
    made = note(
        control,
        AuditAction.PIPELINE_APPLIED,
        config.id,
        reason=reason,
        before=None if before is None else _shown_version(before),
        after={"version": version},
    )
    put = Put(_config_key(config.id), item, when, made)
    writes: list[Write] = [put, version_of(config, document), *link_writes(config)]
    if applied is None:
        # An item of an earlier version kept it itself, and is replaced now.
        first = parse_instant((before or {}).get("firstAppliedAt")) or now
        writes.append(_first_applied_write(config.id, first))
    return writes


def _shown_version(item: Item) -> dict[str, str]:
    """The version of a CONFIG item; of one that a deployment tool wrote, it is made from its document."""
    return {"version": str(item.get("version") or config_version(_document(item)))}


def _config_key(pipeline: str) -> Key:
    return control_key(keys.pipeline_pk(pipeline), keys.CONFIG)


def link_writes(config: PipelineConfig) -> list[Write]:
    """Links from each upstream to this pipeline; a link is a hint that is checked when it is followed."""
    return [
        Put(control_key(keys.pipeline_pk(entry.pipeline), keys.DOWNSTREAM + config.id), {"downstream": config.id})
        for entry in {entry.pipeline: entry for entry in config.after}.values()
    ]


def read_ahead(store: Store, pipeline: str, written: Item | None) -> None:
    """Read at once what follows from a CONFIG item that was written, where a store keeps its answers."""
    version = (written or {}).get("version")
    kept = [_version_key(pipeline, version)] if isinstance(version, str) else []
    invalid = control_key(keys.pipeline_pk(pipeline), keys.INVALID)
    store.get_many([_config_key(pipeline), _applied_key(pipeline), invalid, *kept])


def config_changed(control: Control, pipeline: str) -> None:
    """A CONFIG item was written: report an invalid one (once per version), complete what a direct write left out."""
    found = stored(control.store, pipeline)
    if found is None:
        _retire(control, pipeline)
        return
    now = control.now()
    _report_state(control, pipeline)
    if first_applied(control.store, found) is None:
        control.store.commit([_first_applied_write(pipeline, now)])
    if found.config is not None and control.store.get(_version_key(pipeline, found.version)) is None:
        control.store.commit([version_of(found.config, found.document), *link_writes(found.config)])


def _report_state(control: Control, pipeline: str) -> None:
    """Publish that a stored config is invalid, or that it no longer is: each once, with the record that says so."""
    where = control_key(keys.pipeline_pk(pipeline), keys.INVALID)

    def decide() -> tuple[None, list[Write]]:
        found, reported = stored(control.store, pipeline), control.store.get(where)
        if found is None or (found.config is not None and reported is None):
            return None, []
        if found.config is not None:
            return None, [Delete(where, Present()), put_event(_restored(found, control.now()))]
        if reported is not None and reported.get("version") == found.version:
            return None, []
        when = Missing() if reported is None else Matches({"version": reported.get("version")})
        return None, [Put(where, {"version": found.version}, when), put_event(_invalid(found, control.now()))]

    settle_commit(control, decide)


def report_installation(control: Control, installation: str) -> list[Stored]:
    """Once for each change of the installation: publish which stored configs it makes invalid, or valid again.

    Those that are invalid. An update may bring stricter checks, or lack a package that a config needs: such a pipeline
    opens nothing, and somebody has to hear of it.
    """
    key = control_key(keys.CONTROLLER, keys.INSTALLATION)
    if control.store.get(key) == {"installation": installation}:
        return []
    names = control.store.pipelines()
    for pipeline in names:
        _report_state(control, pipeline)
    control.store.commit([Put(key, {"installation": installation})])
    return [one for one in stored_many(control.store, names) if one.config is None]


def _invalid(found: Stored, now: datetime) -> Event:
    return event(
        EventType.CONFIG_INVALID,
        RunKey(found.pipeline, "", ""),
        now,
        f"the config of {found.pipeline} in the store is invalid and is not run; attempts under way keep the version"
        f" they were opened with: {'; '.join(found.errors)}",
        errors=list(found.errors),
        configVersion=found.version,
    )


def _restored(found: Stored, now: datetime) -> Event:
    message = f"the config of {found.pipeline} is valid again: version {found.version} is in force"
    return event(EventType.CONFIG_RESTORED, RunKey(found.pipeline, "", ""), now, message, configVersion=found.version)


def delete_config(control: Control, pipeline: str, *, reason: str = "", by: str = "") -> bool:
    """Forget a pipeline: it opens nothing new, what is under way ends. False when there is none."""
    key = control_key(keys.pipeline_pk(pipeline), keys.CONFIG)

    def decide() -> tuple[bool, list[Write]]:
        before = control.store.get(key)
        if before is None:
            return False, []
        removed = event(
            EventType.PIPELINE_REMOVED,
            RunKey(pipeline, "", ""),
            control.now(),
            f"{pipeline} was removed{f': {reason}' if reason else ''}; what is under way ends",
            reason=reason or None,
            removedBy=by or None,
        )
        made = note(control, AuditAction.PIPELINE_DELETED, pipeline, reason=reason, before=_shown_version(before))
        when = Matches({"version": before.get("version")}, present=True)
        return True, [Delete(key, when, made), Delete(_applied_key(pipeline)), put_event(removed)]

    return settle_commit(control, decide)


def _retire(control: Control, pipeline: str) -> None:
    """Remember a deleted pipeline that has runs under way: the watchdog still sees to it that they end."""
    if control.store.get(_applied_key(pipeline)) is not None:
        # Removed past our own API: applied again, it is a new one.
        gone = Require(control_key(keys.pipeline_pk(pipeline), keys.CONFIG), Missing())
        control.store.commit([Delete(_applied_key(pipeline)), gone])
    if control.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.ACTIVE, limit=1):
        control.store.commit([Put(control_key(keys.CONTROLLER, keys.RETIRED + pipeline), {"pipeline": pipeline})])


def retired(store: Store) -> list[str]:
    """The deleted pipelines that had runs under way."""
    return [found.key.sk[len(keys.RETIRED) :] for found in store.query(Table.CONTROL, keys.CONTROLLER, keys.RETIRED)]


def forget_retired(control: Control, pipeline: str) -> None:
    """The last run of a deleted pipeline has ended."""
    if not control.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.ACTIVE, limit=1):
        where = control_key(keys.CONTROLLER, keys.RETIRED + pipeline)
        if control.store.get(where) is not None:
            control.store.commit([Delete(where)])


def watched_since(store: Store, pipeline: str) -> datetime | None:
    """The later of the controller's first start and the pipeline's first application: nothing is missed before."""
    started = controller_started(store)
    found = stored(store, pipeline)
    applied = first_applied(store, found) if found is not None else None
    return max((one for one in (started, applied) if one is not None), default=None)


def controller_started(store: Store) -> datetime | None:
    """When this store first saw a controller; None when it never did."""
    controller = store.get(control_key(keys.CONTROLLER, keys.CONTROLLER)) or {}
    return parse_instant(controller.get("firstStartedAt"))


def first_started(control: Control) -> datetime:
    """When this controller's store first saw a controller; remembered at the first call."""
    key = control_key(keys.CONTROLLER, keys.CONTROLLER)
    item = control.store.get(key)
    if item is None:
        control.store.commit([Put(key, {"firstStartedAt": format_instant(control.now())}, Missing())])
        item = control.store.get(key) or {}
    return parse_instant(item.get("firstStartedAt")) or control.now()
