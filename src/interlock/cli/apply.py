"""`interlock apply`: write configs and calendars to the store, through the running server where there is one."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlock.cli.output import JsonOption, counted, plain_console, print_json, problem_rows
from interlock.cli.plan import ConfigPath, Planned, compare_with, load_or_exit, print_changes, read_known
from interlock.cli.store_access import (
    StoreOption,
    Target,
    UrlOption,
    answer_of,
    find_target,
    server,
    through_server,
    writing,
)
from interlock.model.errors import InterlockError

if TYPE_CHECKING:
    import httpx

    from interlock.config.loader import LoadResult
    from interlock.control.context import Control

Removals = list[str]


def apply(
    path: ConfigPath,
    *,
    prune: Annotated[bool, typer.Option("--prune", help="Remove stored pipelines that are not in PATH.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="With --prune: PATH holds no pipeline, and all are to go.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; write nothing.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="R", help="Why; kept in the audit trail.")] = "",
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Write pipeline configs and calendars. If any config has an error, nothing is written, and the exit code is 1.

    Creates the store if there is none (never an environment on AWS). A removed pipeline opens nothing new; what is
    under way ends.

    Example: interlock apply . --prune --reason "orders moved to silver"
    """
    if prune and not path.is_dir():
        message = "with --prune, PATH must be the folder of all pipelines: one file says nothing about the others"
        raise typer.BadParameter(message, param_hint="--prune")
    empty = _nothing(path) if prune else None
    if empty is not None and not allow_empty:
        raise InterlockError(
            f"{path} holds no pipeline, and --prune would remove all: is it the right folder, and is all of it there?"
            " Add --allow-empty if that is meant; nothing was done"
        )
    target = through_server(find_target(store, url))
    loaded = empty or load_or_exit(path, target=target)
    planned = compare_with(loaded, read_known(target, loaded))
    removals = planned.kinds("removed") if prune else []
    if not dry_run:
        write = _write_to_server if target.url is not None else _write_to_store
        write(target, loaded, planned, removals, reason)
    if json:
        print_json(_document(target, loaded, planned, removals, dry_run=dry_run))
    else:
        _print(target, planned, removals, dry_run=dry_run)


def _nothing(path: Path) -> "LoadResult | None":
    """What an empty folder says; None when it is not empty."""
    from interlock.config.folders import find_place
    from interlock.config.loader import LoadResult

    return None if find_place(path).files else LoadResult((), {}, (), 0)


# ------------------------------------------------------------------------------------------------------- writing


def _write_to_store(target: Target, loaded: "LoadResult", planned: Planned, removals: Removals, reason: str) -> None:
    """Calendars first: a config may name one that is new."""
    from interlock.control import catalog

    with writing(target) as control:
        _store_calendars(control, loaded, planned, reason)
        for one in loaded.configs:
            catalog.apply_config(control, one.config, one.document, reason=reason)
        for name in removals:
            catalog.delete_config(control, name, reason=reason or "apply --prune: not in these files")


def _store_calendars(control: "Control", loaded: "LoadResult", planned: Planned, reason: str) -> None:
    from interlock.control import catalog

    changed = {one.name for one in planned.calendars if one.kind != "unchanged"}
    for name, one in loaded.calendars.items():
        if name in changed:
            catalog.apply_calendar(control, one, reason=reason)


def _write_to_server(target: Target, loaded: "LoadResult", planned: Planned, removals: Removals, reason: str) -> None:
    wanted = set(planned.kinds("new", "changed"))
    why = {"reason": reason} if reason else {}
    with server(target) as client:
        _send_calendars(client, target, loaded, planned, reason)
        for one in loaded.configs:
            if one.config.id in wanted:
                _send(client.put, f"pipelines/{one.config.id}", json=one.document, params=why)
        for name in removals:
            _send(client.delete, f"pipelines/{name}", params=why)


def _send(method: "Callable[..., httpx.Response]", path: str, **what: Any) -> None:
    answer_of(method(path, **what))


def _send_calendars(
    client: "httpx.Client", target: Target, loaded: "LoadResult", planned: Planned, reason: str
) -> None:
    """Those that changed; all of them to a server that cannot say which it has."""
    from urllib.parse import quote

    import msgspec

    unchanged = {one.name for one in planned.calendars if one.kind == "unchanged"}
    for name, calendar in loaded.calendars.items():
        if name in unchanged:
            continue
        response = client.put(
            f"calendars/{quote(name, safe='')}",
            json=msgspec.to_builtins(calendar),
            params={"reason": reason} if reason else {},
        )
        if response.status_code not in (404, 405):
            answer_of(response)
        elif target.path is not None:
            # A server of this machine: it follows what is written to its store.
            with writing(target) as control:
                _store_calendars(control, loaded, planned, reason)
            return
        else:
            raise InterlockError(f"{target} takes no calendars: apply on its machine with --store; nothing was written")


# ------------------------------------------------------------------------------------------------------ printing


def _print(target: Target, planned: Planned, removals: Removals, *, dry_run: bool) -> None:
    console = plain_console()
    shown = Planned(
        [one for one in planned.pipelines if one.kind in ("new", "changed")],
        [one for one in planned.calendars if one.kind != "unchanged"],
    )
    print_changes(console, shown, {})
    for name in removals:
        console.print(f"- {name}  removed", style="red")
    done = "would be written to" if dry_run else "applied to"
    counts = [f"{len(planned.kinds(kind))} {kind}" for kind in ("new", "changed", "unchanged")]
    counts += [f"{len(removals)} removed"] if removals else []
    console.print(f"{', '.join(counts)}: {done} {target}", style="green")
    left = [name for name in planned.kinds("removed") if name not in removals]
    if left:
        known = f"{counted(len(left), 'stored pipeline')} not in these files: {', '.join(left)}"
        console.print(f"{known} (remove with --prune)")


def _document(
    target: Target, loaded: "LoadResult", planned: Planned, removals: Removals, *, dry_run: bool
) -> dict[str, object]:
    return {
        "target": str(target),
        "written": not dry_run,
        "new": planned.kinds("new"),
        "changed": planned.kinds("changed"),
        "unchanged": planned.kinds("unchanged"),
        "removed": removals,
        "calendars": [one.name for one in planned.calendars if one.kind != "unchanged"],
        "warnings": problem_rows(loaded.warnings),
    }
