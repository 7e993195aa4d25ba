"""`interlock init`: a small project that validates, simulates and runs, without any cloud, at any hour of any day."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from interlock.cli.output import plain_console
from interlock.model.errors import InterlockError

_SETTINGS: Final = """\
# Settings of this project, read by every `interlock` command in this folder and below it.
# --store and --url, and INTERLOCK_STORE and INTERLOCK_URL in the environment, win over this file.

store = "sqlite:///interlock.db"
pipelines = "pipelines"
"""

_ORDERS: Final = """\
# Opened by a sensor: the first write of `orders-file` that says "ready" opens the run of its day.
# The job starts the moment all rules pass, and not before.
pipeline:
  id: orders
  owner: you
  description: Appends a line to out/orders.log when the day's orders are complete

schedule:
  timezone: UTC
  trigger: {key: orders-file, check: equals, field: status, value: ready}
  evaluation: {window: 3h, interval: 1m}
  exclude: {calendar: closed-days}

sla: {deadline: "23:59", dayOffset: 0, expectedDuration: 5m}

validation:
  rules:
    - {key: orders-file, check: equals, field: status, value: ready}
    - {key: orders-count, check: gte, field: count, value: 100}

job:
  type: command
  config:
    command: [sh, jobs/append.sh, orders, "${DATE}", "attempt ${ATTEMPT}"]
    timeout: 1m
  maxRetries: 2        # after a failure that may pass by itself: exit code 75, a signal, the timeout
  maxCodeRetries: 1    # after any other exit code
"""

_REPORT: Final = """\
# Runs after `orders`: when the orders of a day are done, the report of that day opens.
pipeline:
  id: report
  owner: you
  description: Appends a line to out/report.log after the orders of the same day

after: [{pipeline: orders, require: same-period}]

sla: {deadline: "23:59", dayOffset: 0, expectedDuration: 5m}

validation:
  rules:
    - {key: "upstream:orders", check: equals, field: status, value: COMPLETED}

job:
  type: command
  config:
    command: [sh, jobs/append.sh, report, "${DATE}", "attempt ${ATTEMPT}"]
    timeout: 1m
  maxRetries: 2        # after a failure that may pass by itself: exit code 75, a signal, the timeout
  maxCodeRetries: 1    # after any other exit code
"""

_CALENDAR: Final = """\
# A named calendar: pipelines name it in `schedule.exclude.calendar` or `schedule.include.calendar`.
name: closed-days
description: Days on which nothing is opened
dates: ["2020-01-01"]
# days: [saturday, sunday]
"""

_JOB: Final = """\
#!/bin/sh
# What the example pipelines start: one line into out/, so that you can see that it ran.
set -eu
mkdir -p out
echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $1 of $2, $3" >> "out/$1.log"
"""

_SCENARIO: Final = """\
# A day in virtual time. `interlock simulate scenarios/` plays it and compares it with what is expected.
name: orders wait for their count, the report follows
start: "2026-03-02T09:00:00Z"
until: "2026-03-02T12:00:00Z"
pipelines:
  - file: ../pipelines/orders.yaml
  - file: ../pipelines/report.yaml
jobs:
  orders:
    - {after: 2m, result: fail, category: TRANSIENT, error: the disk was busy}
    - {after: 2m, result: success}
steps:
  - {at: "+10m", sensor: orders/orders-file, data: {status: ready}}
  - {at: "+20m", sensor: orders/orders-count, data: {count: 12}}
  - {at: "+30m", sensor: orders/orders-count, data: {count: 250}}
expect:
  events:
    - {type: TRIGGER_STARTED, pipeline: orders, date: "2026-03-02", at: "+10m"}
    - {type: VALIDATION_PASSED, pipeline: orders, at: "+30m"}
    - {type: JOB_FAILED, pipeline: orders}
    - {type: JOB_COMPLETED, pipeline: orders}
    - {type: TRIGGER_STARTED, pipeline: report, date: "2026-03-02"}
    - {type: JOB_COMPLETED, pipeline: report}
  never: [{type: SLA_BREACH}]
  runs:
    - {pipeline: orders, date: "2026-03-02", status: COMPLETED, attempt: 2}
    - {pipeline: report, date: "2026-03-02", status: COMPLETED, attempt: 1}
"""

_README: Final = """\
# An Interlock project

- `pipelines/` two pipelines: `orders` is opened by a sensor, `report` runs after it
- `calendars/` days on which nothing is opened
- `scenarios/` days in virtual time, for tests and CI
- `jobs/` what the pipelines start
- `interlock.toml` where the store is

## Five commands to try

```console
$ interlock validate .              # every error and warning, with file and line
$ interlock simulate scenarios/     # a morning in virtual time
$ interlock plan .                  # what would change, and when each pipeline starts and must be done
$ interlock serve                   # the controller; leave it running, and open another terminal here
$ interlock why orders              # why it ran, or why it has not
```

While `serve` runs, say that the file is there, ask why nothing started, then say how many orders it holds:

```console
$ interlock sensor set orders orders-file status=ready
$ interlock why orders
$ interlock sensor set orders orders-count count=250
$ cat out/orders.log out/report.log
```

Next: change `value: 100` in `pipelines/orders.yaml`, and see which hazards the configs leave open: `interlock stpa .`
"""

_IGNORED: Final = """\
interlock.db*
out/
"""

PROJECT: Final[dict[str, str]] = {
    "interlock.toml": _SETTINGS,
    "pipelines/orders.yaml": _ORDERS,
    "pipelines/report.yaml": _REPORT,
    "calendars/closed-days.yaml": _CALENDAR,
    "scenarios/first.yaml": _SCENARIO,
    "jobs/append.sh": _JOB,
    "README.md": _README,
    ".gitignore": _IGNORED,
}


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where; default: here.", file_okay=False)] = Path(),
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Make a project to start from: two pipelines, a calendar, a scenario. Works without any cloud, at any hour.

    Example: interlock init my-pipelines
    """
    taken = [name for name in PROJECT if (folder / name).exists() or (folder / name).is_symlink()]
    if taken and not force:
        names = ", ".join(str(folder / name) for name in taken)
        raise InterlockError(f"nothing was written, these are there already: {names}; overwrite them with --force")
    _write(folder)
    console = plain_console()
    for name in PROJECT:
        console.print(f"wrote {folder / name}")
    here = "" if folder == Path() else f"cd {folder} && "
    console.print(f"next: {here}interlock simulate scenarios/   (then see {folder / 'README.md'})", style="green")


def _write(folder: Path) -> None:
    """All files, or none: they are written beside their places first, and moved there when all have been written."""
    made: list[Path] = []
    drafts: dict[Path, Path] = {}
    try:
        for name, text in PROJECT.items():
            target = folder / name
            made += _make_folders(target.parent)
            draft = target.with_name(f".{target.name}.{os.getpid()}")
            drafts[draft] = target
            draft.write_text(text, encoding="utf-8")
        for draft, target in drafts.items():
            draft.replace(target)
    except OSError as error:
        for draft in drafts:
            draft.unlink(missing_ok=True)
        for created in reversed(made):
            with suppress(OSError):
                created.rmdir()
        raise InterlockError(f"{error.filename}: cannot be written: {error.strerror}; nothing was written") from error


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; which of them are new."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return list(reversed(missing))
