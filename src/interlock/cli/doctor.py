"""`interlock doctor`: is everything as it should be, and if not, what to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from interlock.cli.checks import Check
from interlock.cli.output import JsonOption, log_to_stderr, marks, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption, find_target, through_server


def doctor(
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read everything in the store, which takes its time.")] = False,
    json: JsonOption = False,
) -> None:
    """Check configs, store, server, clock, time zones, streams, dead letters, disk, permissions; exits 1 on a problem.

    On AWS: tables, mappings, streams, versions of lifecycle and functions, timers, queues, watchdog, quotas.

    Example: interlock doctor --deep
    """
    log_to_stderr()
    checks = list(_checks(store, url, deep=deep))
    healthy = all(one.ok for one in checks)
    if json:
        print_json({"ok": healthy, "checks": checks})
    else:
        _print(checks)
    if not healthy:
        raise typer.Exit(1)


def _checks(store: str | None, url: str | None, *, deep: bool) -> Iterator[Check]:
    from interlock.cli import diagnosis

    target = find_target(store, url, check=False)
    yield diagnosis.time_zones()
    yield diagnosis.packages(Path.cwd())
    yield from diagnosis.configs(Path.cwd())
    if target.aws is not None:
        from interlock.cli import aws_diagnosis

        yield from aws_diagnosis.checks(target.aws)
        return
    running = through_server(target)
    if target.path is not None:
        yield from diagnosis.store_file(target.path, deep=deep)
    yield from diagnosis.server(running.url, target.path)


def _print(checks: list[Check]) -> None:
    console = plain_console()
    good, bad = marks(console)
    for one in checks:
        sign, style = (good, "green") if one.ok else (bad, "red")
        console.print(f"{sign} {one.name}: {one_line(one.detail)}", style=style)
        if not one.ok and one.advice:
            console.print(f"  -> {one.advice}")
    problems = sum(not one.ok for one in checks)
    console.print("all is well" if not problems else f"{problems} of {len(checks)} checks found a problem")
