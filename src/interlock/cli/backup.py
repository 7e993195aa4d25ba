"""`interlock backup` and `interlock restore`: copies of the store, checked. They need the store's file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.output import JsonOption, counted, log_to_stderr, plain_console, print_json
from interlock.cli.store_access import StoreOption, find_target

if TYPE_CHECKING:
    from interlock.embedded.sqlite.backup import Manifest

_MEBIBYTE = 1024 * 1024


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; in a folder, the time gives the name.")],
    *,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Copy the store while it is used, check the copy, and write down what it is (FILE.manifest.json).

    Example: interlock backup /var/backups/interlock/
    """
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.sqlite.backup import back_up

    log_to_stderr()
    now = SystemClock().now()
    source = _path(store)
    target = file / f"{source.stem}-{now:%Y%m%dT%H%M%SZ}.db" if file.is_dir() else file
    made = back_up(source, target, now)
    _record_backup(source, target, made)
    if json:
        print_json({"file": str(target), "manifest": made})
        return
    size = f"{made.bytes / _MEBIBYTE:.1f} MiB"
    console = plain_console()
    console.print(f"{target}: {size}, up to change {made.change}, {counted(made.rows['events'], 'event')}, checked")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup that `interlock backup` made.")],
    *,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Put a backup in the place of the store, after checking it. Refused while a controller runs on the store.

    The store that was there is kept under another name.

    Example: interlock restore backups/interlock-20260302T030000Z.db
    """
    from interlock.embedded.clock import SystemClock
    from interlock.embedded.sqlite.backup import restore as put_back

    log_to_stderr()
    done = put_back(file, _path(store), SystemClock().now())
    if json:
        replaced = None if done.replaced is None else str(done.replaced)
        print_json({"store": str(done.store), "change": done.change, "manifest": done.manifest, "replaced": replaced})
        return
    console = plain_console()
    console.print(f"{done.store}: restored, up to change {done.change}")
    if done.manifest is None:
        console.print("there was no manifest beside the backup: it was checked, but not compared", style="yellow")
    else:
        console.print(
            f"made {done.manifest.created_at:%Y-%m-%d %H:%M:%SZ} by Interlock {done.manifest.interlock_version}"
        )
    if done.replaced is not None:
        console.print(f"the store that was there is now {done.replaced}")
    console.print("what happened since is not known to it: look at `interlock status` before `interlock serve`")


def _record_backup(source: Path, target: Path, made: "Manifest") -> None:
    """Who took a copy of everything is on the record; of a store that this user may only read, it cannot be."""
    from interlock.embedded.audit.actors import this_user
    from interlock.embedded.audit.trail import record_in
    from interlock.embedded.clock import SystemClock
    from interlock.model.audit import AuditAction, AuditNote
    from interlock.model.errors import StoreError

    note = AuditNote(
        action=AuditAction.STORE_BACKED_UP,
        actor=this_user(),
        subject=str(target.absolute()),
        after={"sha256": made.sha256, "change": made.change},
    )
    try:
        record_in(source, note, SystemClock())
    except StoreError as error:
        typer.echo(f"Warning: the backup is not in the audit trail: {error}", err=True)


def _path(store: str | None) -> Path:
    target = find_target(store)
    if target.aws is not None:
        raise typer.BadParameter(f"{target}: on AWS the tables are backed up by DynamoDB (point-in-time recovery)")
    if target.path is None:
        raise typer.BadParameter(
            f"{target} ({target.origin}) is a server: run this where its store is, and name that with --store"
        )
    return target.path
