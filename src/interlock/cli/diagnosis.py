"""The checks of `interlock doctor`, each a small question with an answer and, for a bad one, what to do."""

import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interlock.cli.checks import Check
from interlock.cli.output import counted
from interlock.cli.trusting import find_toml
from interlock.cli.wording import length, moment, now
from interlock.model.errors import InterlockError

if TYPE_CHECKING:
    import httpx

    from interlock.cli.store_backend import StoreBackend
    from interlock.client.answers import Controller
    from interlock.ports.store import Store

_LITTLE_SPACE: Final = 512 * 1024 * 1024
_LAG_LIMIT: Final = 1000
_SKEW_LIMIT: Final = timedelta(seconds=30)
_WATCHDOG_LIMIT: Final = timedelta(minutes=30)
_ZONES: Final = ("Europe/Berlin", "America/New_York", "Asia/Kolkata")
_SECONDS: Final = 5.0
_CONSUMERS: Final = "SELECT name, checkpoint FROM consumers ORDER BY name"


def time_zones() -> Check:
    """Is there time-zone data?"""
    from interlock.model.times import zone

    try:
        for name in _ZONES:
            zone(name)
    except InterlockError as error:
        return Check(name="time zones", ok=False, detail=str(error), advice="install the package tzdata")
    return Check(name="time zones", ok=True, detail="IANA data found")


def packages(folder: Path) -> Check:
    """Which extras are installed, and do the settings ask for another? What a pipeline asks for, `configs` says."""
    from interlock.api.settings import check_packages, load_project
    from interlock.extras import EXTRAS, installed

    here = installed()
    missing = [one.name for one in EXTRAS if one.name not in here]
    detail = f"extras installed: {', '.join(here) or 'none'}"
    detail += f"; not installed: {', '.join(missing)}" if missing else ""
    try:
        check_packages(load_project(find_toml(folder), folder))
    except InterlockError as error:
        if "pip install" in str(error):
            return Check(name="packages", ok=False, detail=str(error), advice="install it, and start the server again")
    return Check(name="packages", ok=True, detail=detail)


def configs(folder: Path) -> Iterator[Check]:
    """Is the project that this folder belongs to valid?"""
    from interlock.api.settings import load_project
    from interlock.config.loader import load_paths

    toml = None
    try:
        toml = find_toml(folder)
        project = load_project(toml, folder)
    except InterlockError as error:
        yield Check(name="settings", ok=False, detail=str(error), advice=f"mend {toml or 'it'}")
        return
    if toml is not None:
        yield Check(name="settings", ok=True, detail=str(toml))
    pipelines = project.pipelines or project.folder / "pipelines"
    if not pipelines.is_dir():
        if project.pipelines is not None:
            advice = f"create it, or mend `pipelines` in {toml}"
            yield Check(name="configs", ok=False, detail=f"there is no folder {pipelines}", advice=advice)
        return
    found = load_paths([pipelines])
    counts = f"{counted(found.pipelines, 'pipeline')} in {pipelines}"
    if found.errors:
        detail = f"{counts}, {counted(len(found.errors), 'error')}: {found.errors[0]}"
        yield Check(name="configs", ok=False, detail=detail, advice=f"`interlock validate {pipelines}` lists them all")
    else:
        yield Check(name="configs", ok=True, detail=counts)


# ------------------------------------------------------------------------------------------------------- the store


def store_file(path: Path, *, deep: bool) -> Iterator[Check]:
    """Is the file there, sound, writable by us alone, and is there room for more?"""
    from interlock.cli.store_backend import opened

    try:
        with opened(path, writing=False) as backend:
            yield _integrity(backend, path, deep=deep)
            yield _whole(path)
            yield _writable(path)
            yield _permissions(path)
            yield _space(path)
            yield _audit(path, deep=deep)
            yield from _contents(backend)
    except InterlockError as error:
        yield Check(
            name="store", ok=False, detail=str(error), advice="`interlock serve` creates it, --store names another"
        )


def _integrity(backend: "StoreBackend", path: Path, *, deep: bool) -> Check:
    found = _inspected(path) if deep else _quickly_checked(backend)
    if not found:
        size = path.stat().st_size / 1024 / 1024
        sound = "sound, every record can be read" if deep else "sound as far as a quick look tells"
        return Check(name="store", ok=True, detail=f"{path}, {size:.1f} MiB, {sound}")
    advice = "stop the server and `interlock restore` a backup, or save what can be saved: `sqlite3 FILE .recover`"
    return Check(name="store", ok=False, detail=f"{path} is damaged: {'; '.join(found)}", advice=advice)


def _quickly_checked(backend: "StoreBackend") -> list[str]:
    said = [str(row[0]) for row in backend.database.read("PRAGMA quick_check(3)")]
    return [] if said == ["ok"] else said


def _inspected(path: Path) -> list[str]:
    import sqlite3

    from interlock.embedded.sqlite.connection import connect
    from interlock.embedded.sqlite.inspection import inspect

    connection = connect(path, mode="ro")
    try:
        return inspect(connection)
    except sqlite3.Error as error:
        return [str(error)]
    finally:
        connection.close()


def _whole(path: Path) -> Check:
    """Is what was written last still there?"""
    from interlock.embedded.sqlite.connection import connect, latest_change
    from interlock.embedded.sqlite.store_mark import StoreMark
    from interlock.model.errors import StoreBehindError

    connection = connect(path, mode="ro")
    try:
        StoreMark(path).check(lambda: latest_change(connection))
    except StoreBehindError as error:
        return Check(name="latest writes", ok=False, detail=str(error), advice="see above")
    finally:
        connection.close()
    return Check(name="latest writes", ok=True, detail="present")


def _writable(path: Path) -> Check:
    # SQLite makes files beside the store: the folder must be writable too.
    closed = [str(one) for one in (path, path.parent) if not os.access(one, os.W_OK)]
    if not closed:
        return Check(name="writable", ok=True, detail="file and folder may be written")
    advice = "run as the user of the server, or change the owner"
    return Check(name="writable", ok=False, detail=f"{' and '.join(closed)} may not be written", advice=advice)


def _permissions(path: Path) -> Check:
    """Store, log, lock and outputs are the owner's alone."""
    from interlock.embedded.sqlite.private_files import exposed

    found = exposed(path)
    if found:
        detail = f"others may read or write {', '.join(f'{one} ({mode:o})' for one, mode in found)}"
        advice = f"chmod go= {' '.join(str(one) for one, _ in found)}"
        return Check(name="permissions", ok=False, detail=detail, advice=advice)
    return Check(name="permissions", ok=True, detail="nobody else may read or write it")


def _space(path: Path) -> Check:
    free = shutil.disk_usage(path.parent).free
    detail = f"{free / 1024**3:.1f} GiB free"
    if free < _LITTLE_SPACE:
        return Check(name="disk", ok=False, detail=detail, advice="make room: a full disk stops every write")
    return Check(name="disk", ok=True, detail=detail)


def _audit(path: Path, *, deep: bool) -> Check:
    """Is the audit trail whole? The latest day alone, unless everything is to be read."""
    from interlock.embedded.audit.verify import snapshot, verify

    with snapshot(path) as connection:
        verdict = verify(connection, latest_only=not deep)
    if verdict.problems:
        detail = f"it was changed: {verdict.problems[0]}"
        advice = "`interlock audit verify` says all of it; a backup from before, and the server's log, say more"
        return Check(name="audit trail", ok=False, detail=detail, advice=advice)
    looked = f"{counted(verdict.records, 'record')} of {'all days' if deep else 'the latest day'}"
    return Check(name="audit trail", ok=True, detail=f"whole, {looked} looked at")


def _tokens(backend: "StoreBackend") -> Iterator[Check]:
    """Does a token that is in use expire soon, or has one expired lately?"""
    from interlock.embedded.access.tokens import EXPIRES_SOON, Tokens

    at = now()
    for one in Tokens(backend.database).list():
        if one.revoked_at is not None or one.expires_at is None or abs(one.expires_at - at) > EXPIRES_SOON:
            continue
        when = "expired" if one.expires_at <= at else "expires"
        detail = f"{one.name!r} {when} on {one.expires_at:%Y-%m-%d}"
        advice = f"interlock token rotate '{one.name}' --expires 365d, or interlock token revoke '{one.name}'"
        yield Check(name="tokens", ok=False, detail=detail, advice=advice)


def _contents(backend: "StoreBackend") -> Iterator[Check]:
    yield _lag(backend)
    yield dead_letters(len(backend.dead_letters(limit=1000)))
    yield invalid_configs([one.id for one in backend.pipelines() if not one.valid])
    yield from _folders(backend.controller())
    yield from _alerts(backend)
    yield from _tokens(backend)
    yield _future(backend)
    yield from watched(backend.store, "start `interlock serve`, or look at its log")


def _lag(backend: "StoreBackend") -> Check:
    head = backend.database.head()
    behind = {name: head - int(at) for name, at in backend.database.read(_CONSUMERS)}
    late = [f"{name} is {lag} changes behind" for name, lag in behind.items() if lag > _LAG_LIMIT]
    if late:
        advice = "is `interlock serve` running? Its log says what holds it up"
        return Check(name="streams", ok=False, detail="; ".join(late), advice=advice)
    return Check(name="streams", ok=True, detail=f"{counted(len(behind), 'consumer')}, none far behind")


def dead_letters(count: int) -> Check:
    """Was anything given up on?"""
    if not count:
        return Check(name="dead letters", ok=True, detail="none")
    advice = "`interlock dlq list` shows them, `interlock dlq redrive --all` has them done again"
    return Check(name="dead letters", ok=False, detail=counted(count, "dead letter"), advice=advice)


def invalid_configs(names: list[str]) -> Check:
    """Is every stored config valid?"""
    if not names:
        return Check(name="stored configs", ok=True, detail="all valid")
    detail = f"invalid and not run: {', '.join(names)}"
    return Check(name="stored configs", ok=False, detail=detail, advice="apply mended configs: `interlock apply PATH`")


def _folders(controller: "Controller") -> Iterator[Check]:
    """Are the pipelines' files where they were, and can they be read?"""
    for one in controller.folders:
        if one.lost:
            detail = f"{one.folder} is lost since {moment(one.lost_since)}: {one.lost}"
            advice = "bring the files back, or `interlock apply PATH --prune` if they are meant to be gone"
            yield Check(name="pipeline folder", ok=False, detail=detail, advice=advice)
        else:
            detail = f"{one.folder}, {counted(one.pipelines, 'pipeline')} in force"
            yield Check(name="pipeline folder", ok=True, detail=detail)
    for file in controller.invalid_files:
        name = file.file.rpartition("/")[2]
        detail = f"{name} {file.verdict}: {file.errors[0] if file.errors else ''}"
        yield Check(name="config file", ok=False, detail=detail, advice="mend it; `interlock validate` says all of it")


def _alerts(backend: "StoreBackend") -> Iterator[Check]:
    """Do people hear of anything?"""
    from interlock.embedded.alerts.delivery_views import counts, failing_channels

    failing = failing_channels(backend.database)
    for one in failing:
        tried = "1 try" if one.tries == 1 else f"{one.tries} tries"
        detail = f"{one.channel} fails since {moment(one.since)}, {tried}: {one.error}"
        advice = f"mend it; `interlock alerts test {one.channel}` tries it; what waits is tried for a day"
        yield Check(name="alerts", ok=False, detail=detail, advice=advice)
    if not failing:
        waiting = counted(counts(backend.database).waiting, "alert")
        yield Check(name="alerts", ok=True, detail=f"no channel fails, {waiting} on the way")


def _future(backend: "StoreBackend") -> Check:
    """The clock was set back, or another machine's is ahead."""
    latest = next(iter(backend.events(limit=1)), None)
    ahead = timedelta(0) if latest is None else latest.timestamp - now()
    if ahead > _SKEW_LIMIT:
        detail = f"the latest event is {length(ahead)} in the future"
        return Check(name="clock", ok=False, detail=detail, advice="set the clock of this machine: is NTP running?")
    return Check(name="clock", ok=True, detail=moment(now()))


def watched(store: "Store", advice: str) -> Iterator[Check]:
    """When did the watchdog last make a whole pass? Says nothing of a store that no controller ever ran on."""
    from interlock.control.watch.watch_slices import last_complete

    at = last_complete(store)
    if at is None:
        return
    ago = now() - at
    detail = f"last whole pass {length(ago)} ago"
    if ago > _WATCHDOG_LIMIT:
        yield Check(name="watchdog", ok=False, detail=detail, advice=advice)
    else:
        yield Check(name="watchdog", ok=True, detail=detail)


# ------------------------------------------------------------------------------------------------------ the server


def server(url: str | None, path: Path | None) -> Iterator[Check]:
    """Does a controller run, does it do its work, do its clock and ours agree?"""
    import httpx

    from interlock.client.settings import on_this_machine
    from interlock.client.trust import verification

    if url is None:
        detail = f"none runs on {path}"
        yield Check(name="server", ok=False, detail=detail, advice="start it with `interlock serve`")
        return
    try:
        direct = on_this_machine(url)
        response = httpx.get(f"{url}/readyz", timeout=_SECONDS, trust_env=not direct, verify=verification(url))
    except httpx.HTTPError as error:
        detail = f"{url} does not answer: {str(error) or type(error).__name__}"
        yield Check(name="server", ok=False, detail=detail, advice="start it with `interlock serve`, or mend --url")
        return
    yield from _ready(url, response)
    if path is None:
        yield _skew(response)
        yield from _access(url)


def _ready(url: str, response: "httpx.Response") -> Iterator[Check]:
    try:
        said = response.json()
        ready, problems = bool(said["ready"]), [str(one) for one in said["problems"]]
        degraded = [str(one) for one in said["degraded"]]
    except (ValueError, KeyError, TypeError):
        detail = f"{url} answers HTTP {response.status_code}, but not as an Interlock server does"
        yield Check(name="server", ok=False, detail=detail, advice="is --url right?")
        return
    if ready:
        yield Check(name="server", ok=True, detail=f"{url} is running and ready")
    else:
        yield Check(name="server", ok=False, detail=f"{url}: {'; '.join(problems)}", advice="look at the server's log")
    for one in degraded:
        yield Check(name="degraded", ok=False, detail=one, advice="it works nevertheless; the server's log says more")


def _skew(response: "httpx.Response") -> Check:
    from email.utils import parsedate_to_datetime

    try:
        theirs: datetime | None = parsedate_to_datetime(response.headers.get("date", ""))
    except (TypeError, ValueError):
        theirs = None
    if theirs is None:
        return Check(name="clock", ok=True, detail="the server does not say what time it has")
    apart = abs(now() - theirs)
    detail = f"the server's clock and this one are {length(apart)} apart"
    if apart > _SKEW_LIMIT:
        return Check(name="clock", ok=False, detail=detail, advice="set the clocks: is NTP running on both?")
    return Check(name="clock", ok=True, detail=detail)


def _access(url: str) -> Iterator[Check]:
    """What can be seen of the store through the server: needs a token that may read."""
    from interlock.client import Client, NotFoundError, UnauthorizedError

    try:
        with Client(url) as client:
            yield invalid_configs([one.id for one in client.pipelines() if not one.valid])
            yield dead_letters(len(client.dead_letters(limit=1000)))
            yield from _folders(client.controller())
    except NotFoundError:
        return  # an older server, which does not say how it stands
    except UnauthorizedError as error:
        yield Check(name="access", ok=False, detail=str(error), advice="set INTERLOCK_TOKEN")
    except InterlockError as error:
        yield Check(name="access", ok=False, detail=str(error), advice="look at the server's log")
