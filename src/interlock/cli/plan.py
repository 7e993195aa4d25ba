"""`interlock plan`: what applying configs would change, and when each pipeline starts next and must be done."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from interlock.cli.output import JsonOption, counted, plain_console, print_json, problem_rows
from interlock.cli.store_access import (
    StoreOption,
    Target,
    UrlOption,
    answer_of,
    exists,
    find_target,
    reading,
    server,
)
from interlock.cli.validate import local_abilities

if TYPE_CHECKING:
    import httpx
    from rich.console import Console

    from interlock.config.loader import Loaded, LoadResult
    from interlock.config.origins import Origin
    from interlock.decide.plan import Change, KeyChange, NextRun

ConfigPath = Annotated[
    Path, typer.Argument(metavar="PATH", exists=True, help="A project, a folder of pipelines, or one file.")
]

_SIGNS: Final = {"new": "+", "changed": "~", "unchanged": "=", "removed": "-"}
_COLOURS: Final = {"new": "green", "changed": "yellow", "unchanged": "", "removed": "red"}
_PAGE: Final = 200
_WIDEST: Final = 60


class Known(msgspec.Struct, frozen=True):
    """What is stored: versions and documents of pipelines, calendars. `calendars` is None when nobody can tell."""

    versions: dict[str, str] = {}
    documents: dict[str, Any] = {}
    calendars: dict[str, Any] | None = {}
    masked: bool = False
    """The documents come from a server, which hides what may be a secret."""


class Planned(msgspec.Struct, frozen=True):
    """Everything that applying would do. A removal is only done with --prune."""

    pipelines: "list[Change]"
    calendars: "list[Change]"

    def kinds(self, *kinds: str) -> list[str]:
        """The pipelines that become one of these."""
        return [one.name for one in self.pipelines if one.kind in kinds]


def plan(
    path: ConfigPath,
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the changed values of your files, secrets included.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what `apply` would change, and the next start, warning and breach of each pipeline. Writes nothing.

    Works without a store: then everything is new. Exits 1 if a config has errors.

    Example: interlock plan pipelines/
    """
    from interlock.decide.plan import next_runs
    from interlock.embedded.clock import SystemClock

    target = find_target(store, url)
    loaded = load_or_exit(path, lambda found: _in_force(target, found), target=target)
    planned = compare_with(loaded, read_known(target, loaded), show_values=show_values)
    now = SystemClock().now()
    upcoming = {one.config.id: next_runs(one.config, loaded.calendars, now) for one in loaded.configs}
    merged = {one.config.id: one for one in loaded.configs if one.archetype}
    if json:
        print_json(_document(target, loaded, planned, upcoming, merged))
        return
    console = plain_console()
    console.print(_headline(target))
    # Of many pipelines those that change; of one file the config is what people came to see.
    single = len(loaded.configs) == 1
    shown = set(planned.kinds("new", "changed", *(["unchanged"] if single else [])))
    print_changes(console, planned, upcoming, {name: one for name, one in merged.items() if name in shown})
    console.print(_summary(planned))


def load_or_exit(
    path: Path, more: Callable[["LoadResult"], list[str]] | None = None, *, target: Target | None = None
) -> "LoadResult":
    """Read and check the configs; the errors, if any, are all printed and end the command before it does anything.

    What does not run at the target is an error, too. `more` says what else there is to say of a result with errors.
    """
    from interlock.config.loader import load_paths
    from interlock.config.problems import Severity

    aws = None if target is None else target.aws
    loaded = load_paths([path], abilities=local_abilities(path, pools=aws is None))
    if aws is not None:
        from interlock.cli.aws_refusals import with_refusals

        loaded = with_refusals(aws, loaded)
    errors = plain_console(err=True)
    for problem in loaded.problems:
        errors.print(str(problem), style="red" if problem.severity is Severity.ERROR else "yellow")
    if loaded.errors:
        for line in more(loaded) if more is not None else ():
            errors.print(line, style="yellow")
        errors.print(f"{counted(len(loaded.errors), 'error')}: nothing was done", style="bold red")
        raise typer.Exit(1)
    return loaded


def _in_force(target: Target, loaded: "LoadResult") -> list[str]:
    """Of each pipeline whose file has errors: what is in force instead."""
    if not loaded.invalid or not exists(target):
        return []
    versions = read_known(target, loaded).versions
    return [
        f"{name}: version {versions[name]} stays in force"
        if name in versions
        else f"{name}: no version is in force, nothing of it is run"
        for name in loaded.invalid
    ]


# ------------------------------------------------------------------------------------------------- what is there


def read_known(target: Target, loaded: "LoadResult") -> Known:
    """What the store or server has; nothing when there is no store yet. Of a server only what differs is fetched."""
    from interlock.control import catalog

    if not exists(target):
        return Known()
    if not target.stored:
        with server(target) as client:
            return _ask(client, {one.config.id: one.version for one in loaded.configs})
    with reading(target) as reader:
        found = [catalog.stored(reader.store, name) for name in reader.store.pipelines()]
        calendars = catalog.calendars(reader.store)
    return Known(
        {one.pipeline: one.version for one in found if one is not None},
        {one.pipeline: one.document for one in found if one is not None},
        {name: msgspec.to_builtins(calendar) for name, calendar in calendars.items()},
    )


def _ask(client: "httpx.Client", ours: Mapping[str, str]) -> Known:
    versions = {str(one["id"]): str(one["version"]) for one in _pages(client, "pipelines")}
    differ = [name for name, version in versions.items() if ours.get(name, version) != version]
    documents = {name: answer_of(client.get(f"pipelines/{name}")).get("document", {}) for name in differ}
    response = client.get("calendars")
    if response.status_code in (404, 405):
        return Known(versions, documents, None, masked=True)
    calendars = {str(one["name"]): one for one in answer_of(response).get("items", [])}
    return Known(versions, documents, calendars, masked=True)


def _pages(client: "httpx.Client", path: str) -> Iterator[dict[str, Any]]:
    after: str | None = None
    while True:
        asked = {"limit": str(_PAGE)} | ({"cursor": after} if after else {})
        page = answer_of(client.get(path, params=asked))
        yield from page.get("items", [])
        after = page.get("next")
        if not after:
            return


def compare_with(loaded: "LoadResult", known: Known, *, show_values: bool = False) -> Planned:
    """What applying would change. Versions decide; values are shown as people may see them.

    `show_values`: those of our own files as they are.
    """
    from interlock.decide.plan import Change, ChangeKind, compare

    documents = {one.config.id: one.document for one in loaded.configs}
    versions = {one.config.id: one.version for one in loaded.configs}
    changes: list[Change] = []
    for change in compare(known.versions, versions):
        if change.kind is ChangeKind.CHANGED:
            keys = _changed_keys(known, change.name, documents[change.name], show_values=show_values)
            change = msgspec.structs.replace(change, keys=tuple(keys))
        changes.append(change)
    if known.calendars is None:
        return Planned(changes, [])
    calendars = {name: msgspec.to_builtins(calendar) for name, calendar in loaded.calendars.items()}
    # Nobody asks for a calendar to go: what names it would stop.
    kept = [one for one in compare(known.calendars, calendars) if one.kind is not ChangeKind.REMOVED]
    return Planned(changes, kept)


def _changed_keys(known: Known, name: str, ours: Any, *, show_values: bool) -> "Iterator[KeyChange]":
    """What differs. Of a server's documents nobody can tell whether a hidden value does."""
    from interlock.decide.plan import differences
    from interlock.decide.shown_configs import without_secrets

    theirs = known.documents.get(name, {})
    for key in differences(theirs, without_secrets(ours) if known.masked else ours):
        old, new = (one if one is msgspec.UNSET else without_secrets(one, key.path) for one in (key.old, key.new))
        if show_values and key.new is not msgspec.UNSET:
            new = key.new
        yield msgspec.structs.replace(key, old=old, new=new)


# ------------------------------------------------------------------------------------------------------ printing


def _headline(target: Target) -> str:
    if not exists(target):
        return f"no store at {target} ({target.origin}): everything is new"
    return f"against {target} ({target.origin})"


def print_changes(
    console: "Console",
    planned: Planned,
    upcoming: "Mapping[str, list[NextRun]]",
    merged: "Mapping[str, Loaded] | None" = None,
) -> None:
    """Each pipeline and calendar with what becomes of it; of those in `merged` also what their config is made of."""
    for one in planned.calendars:
        _print_change(console, one, "calendar ")
    for one in planned.pipelines:
        _print_change(console, one, "")
        for next_ in upcoming.get(one.name, []):
            several = len(upcoming[one.name]) > 1
            for line in _times(next_, several=several):
                console.print(f"    {line}")
        if merged and one.name in merged:
            for line in _origins(merged[one.name]):
                console.print(f"    {line}")


def _print_change(console: "Console", change: "Change", what: str) -> None:
    word = "would be removed with --prune" if change.kind == "removed" else change.kind.value
    console.print(f"{_SIGNS[change.kind]} {what}{change.name}  {word}", style=_COLOURS[change.kind])
    for key in change.keys:
        console.print(f"    {_key_change(key)}", style=_COLOURS[change.kind])
    if change.kind == "changed" and not change.keys:
        console.print("    a value that is not shown")


def _key_change(key: "KeyChange") -> str:
    from interlock.decide.masking import HIDDEN
    from interlock.decide.values import show

    if key.old == key.new == HIDDEN:
        return f"{key.path}: changed, and not shown"
    if key.old is msgspec.UNSET:
        return f"{key.path}: added {show(key.new)}"
    if key.new is msgspec.UNSET:
        return f"{key.path}: removed {show(key.old)}"
    return f"{key.path}: {show(key.old)} -> {show(key.new)}"


def _origins(loaded: "Loaded") -> Iterator[str]:
    """A merged config: every value, and the file and line it comes from."""
    from interlock.decide.values import show

    found = _values(loaded)
    texts = [f"{one.path}: {show(one.value)}" for one in found]
    width = max((len(text) for text in texts if len(text) <= _WIDEST), default=0)
    yield f"config, merged with {loaded.archetype}:"
    for one, text in zip(found, texts, strict=True):
        instead = f", in place of {one.over}" if one.over else ""
        yield f"  {text:<{width}}  {one.place}{instead}"


def _values(loaded: "Loaded") -> "list[Origin]":
    """The values of a config with their places, as people may see them."""
    from interlock.decide.shown_configs import without_secrets

    return [msgspec.structs.replace(one, value=without_secrets(one.value, one.path)) for one in loaded.origins()]


def _times(next_: "NextRun", *, several: bool) -> Iterator[str]:
    schedule = f" ({next_.schedule})" if several else ""
    period = f", for {next_.date}" if next_.date and next_.start_at else ""
    start = f"{instant(next_.start_at, next_.timezone)}{period}" if next_.start_at else f"on {next_.opens}"
    yield f"{f'next start{schedule}:':<13} {start}"
    about = "" if next_.start_at or not next_.date else f", for {next_.date}"
    if next_.ready_by_at is not None:
        yield f"ready by:     {instant(next_.ready_by_at, next_.timezone)}{about}"
    if next_.warning_at is not None:
        yield f"SLA warning:  {instant(next_.warning_at, next_.timezone)}{about}"
    if next_.breach_at is not None:
        yield f"SLA breach:   {instant(next_.breach_at, next_.timezone)}{about}"
    yield from (f"note: {note}" for note in next_.notes)


def instant(at: datetime, timezone: str) -> str:
    """An instant in the schedule's zone and in UTC."""
    from interlock.model.times import zone

    utc = f"{at.astimezone(UTC):%Y-%m-%d %H:%M}Z"
    if timezone == "UTC":
        return utc
    local = at.astimezone(zone(timezone))
    return f"{local:%Y-%m-%d %H:%M} {local:%Z} ({utc})"


def _summary(planned: Planned) -> str:
    parts = [f"{len(planned.kinds(kind))} {kind}" for kind in ("new", "changed", "unchanged")]
    removed = len(planned.kinds("removed"))
    return ", ".join([*parts, *([f"{removed} not in these files"] if removed else [])])


def _document(
    target: Target,
    loaded: "LoadResult",
    planned: Planned,
    upcoming: "Mapping[str, list[NextRun]]",
    merged: "Mapping[str, Loaded]",
) -> dict[str, object]:
    return {
        "target": str(target),
        "calendars": planned.calendars,
        "pipelines": [
            {"id": one.name, "kind": one.kind, "changes": one.keys, "next": upcoming.get(one.name, [])}
            | _merged_document(merged.get(one.name))
            for one in planned.pipelines
        ],
        "warnings": problem_rows(loaded.warnings),
    }


def _merged_document(loaded: "Loaded | None") -> dict[str, object]:
    return {} if loaded is None else {"archetype": loaded.archetype, "config": _values(loaded)}
