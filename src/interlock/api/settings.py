"""`interlock.toml` as `interlock serve` reads it: all errors at once. Paths are relative to the file.

store = "sqlite:///interlock.db"
pipelines = "pipelines"
host = "127.0.0.1"
port = 8765
public_url = "https://interlock.example.com"            # behind a proxy: where people see the page
watchdog_interval = "5m"

trusted_proxies = ["10.0.0.5"]                          # see `api.transport`

[tls]                                                  # see `api.transport`
cert = "tls/interlock.crt"
key = "tls/interlock.key"

[oidc]                                                 # see `api.oidc_settings`

[jobs]
allow_private_addresses = ["etl.corp", "10.0.0.0/8"]   # or true
secrets = "secrets"                                    # the folder of ${file:NAME}
run_as = "etl"                                         # commands run as this user; needs root
output_limit = "64MiB"                                 # kept of what a command writes; "0" is all
output_age = "30d"                                     # and for how long
output_total = "4GiB"                                  # and of all of them together

[pools]
warehouse = 4                                          # at most so many jobs with `pool: warehouse` at once
commands = 32                                          # the pool of commands that name none

[limits]                                               # see `api.limits`
streams_per_token = 50

[audit]                                                # see `api.audit_settings`
sensors = true

[[alerts]]
channel = "console"
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.api import audit_settings, oidc_settings
from interlock.api import limits as limit_settings
from interlock.api import transport as transport_settings
from interlock.api.limits import Limits
from interlock.api.oidc_settings import Oidc
from interlock.api.transport import Transport
from interlock.config.alert_routes import AlertRoute, parse_alert_routes
from interlock.config.problems import Finding, format_path
from interlock.config.settings_packages import find_missing_packages
from interlock.config.suggestions import did_you_mean
from interlock.control.context import Auditing
from interlock.jobs.command.output import OutputKept
from interlock.model.durations import parse_duration
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.sizes import parse_size

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8765
DEFAULT_STORE: Final = "sqlite:///interlock.db"
DEFAULT_WATCHDOG: Final = timedelta(minutes=5)
_SQLITE: Final = "sqlite:///"
_PLAIN_KEYS: Final = ("store", "url", "ca_file", "pipelines", "host", "port", "public_url", "watchdog_interval")
_TRANSPORT_KEYS: Final = (transport_settings.PROXIES, transport_settings.TABLE)
_TABLES: Final = (oidc_settings.TABLE, "jobs", "pools", limit_settings.TABLE, audit_settings.TABLE, "alerts")
_KEYS: Final = (*_PLAIN_KEYS, *_TRANSPORT_KEYS, *_TABLES)
_JOB_KEYS: Final = ("allow_private_addresses", "secrets", "run_as", "output_limit", "output_age", "output_total")
_PUBLIC: Final = re.compile(r"https?://[^/\s@?#]+/?")
_SHORTEST_WATCHDOG: Final = timedelta(seconds=1)
_LONGEST_WATCHDOG: Final = timedelta(days=1)


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one installation; what the file does not say is None or the default."""

    folder: Path
    file: Path | None = None
    store: str | None = None
    pipelines: Path | None = None
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    public_url: str = ""
    transport: Transport = Transport()
    oidc: Oidc | None = None
    watchdog_interval: timedelta = DEFAULT_WATCHDOG
    allow_private_addresses: bool | tuple[str, ...] = False
    secrets: Path | None = None
    run_as: str = ""
    output: OutputKept = OutputKept()
    pools: dict[str, int] = {}
    limits: Limits = Limits()
    audit: Auditing = Auditing()
    alerts: tuple[AlertRoute, ...] = ()


def load_project(file: Path | None, folder: Path) -> Project:
    """The settings of a file; without one, the defaults, relative to the folder."""
    if file is None:
        return Project(folder=folder)
    try:
        plain = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InterlockError(f"{file}: cannot be read: {error}") from error
    findings = list(_problems(plain))
    routes = parse_alert_routes(plain.get("alerts", []))
    findings += [one for one in routes if isinstance(one, Finding)]
    if findings:
        problems = "; ".join(f"{format_path(one.path)}: {one.message}" for one in findings)
        raise InterlockError(f"{file}: {problems}")
    return _project(file, plain, tuple(one for one in routes if isinstance(one, AlertRoute)))


def check_packages(project: Project) -> None:
    """Raise unless what the settings ask for is installed; before anything is started or written."""
    if project.file is None:
        return
    text = project.file.read_text(encoding="utf-8")
    missing = [str(one) for one in find_missing_packages(project.file, text, tomllib.loads(text))]
    if missing:
        raise InterlockError("; ".join(missing))


def _project(file: Path, plain: Mapping[str, Any], alerts: tuple[AlertRoute, ...]) -> Project:
    folder = file.parent
    jobs = plain.get("jobs", {})
    allowed = jobs.get("allow_private_addresses", False)
    return Project(
        folder=folder,
        file=file,
        store=plain.get("store"),
        pipelines=folder / plain["pipelines"] if "pipelines" in plain else None,
        host=plain.get("host", DEFAULT_HOST),
        port=plain.get("port", DEFAULT_PORT),
        public_url=plain.get("public_url", ""),
        transport=transport_settings.transport(plain, folder),
        oidc=oidc_settings.oidc(plain, folder),
        watchdog_interval=watchdog_interval(plain.get("watchdog_interval", "5m")),
        allow_private_addresses=allowed if isinstance(allowed, bool) else tuple(allowed),
        secrets=folder / jobs["secrets"] if "secrets" in jobs else None,
        run_as=jobs.get("run_as", ""),
        output=_output(jobs),
        pools=plain.get("pools", {}),
        limits=limit_settings.limits(plain.get(limit_settings.TABLE, {})),
        audit=audit_settings.auditing(plain.get(audit_settings.TABLE, {})),
        alerts=alerts,
    )


def _problems(plain: Mapping[str, Any]) -> Iterator[Finding]:
    for name in plain:
        if name not in _KEYS:
            yield Finding((name,), f"is not a setting{did_you_mean(name, _KEYS)}")
    for name in ("store", "url", "ca_file", "pipelines", "host"):
        if name in plain and not (isinstance(plain[name], str) and plain[name]):
            yield Finding((name,), f"{plain[name]!r} is not text: write it in quotes")
    port = plain.get("port", DEFAULT_PORT)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        yield Finding(("port",), f"{port!r} is not a port: 0 to 65535")
    public = plain.get("public_url", "https://localhost")
    if not (isinstance(public, str) and _PUBLIC.fullmatch(public)):
        yield Finding(("public_url",), f"{public!r} is not the address of a page: write https://interlock.example.com")
    try:
        watchdog_interval(plain.get("watchdog_interval", "5m"))
    except InvalidValueError as error:
        yield Finding(("watchdog_interval",), str(error))
    yield from _job_problems(plain.get("jobs", {}))
    yield from _pool_problems(plain.get("pools", {}))
    yield from transport_settings.problems(plain)
    yield from oidc_settings.problems(plain)
    yield from limit_settings.problems(plain.get(limit_settings.TABLE, {}))
    yield from audit_settings.problems(plain.get(audit_settings.TABLE, {}))


def _pool_problems(pools: object) -> Iterator[Finding]:
    if not isinstance(pools, dict):
        yield Finding(("pools",), "is not a table: write [pools]")
        return
    for name, size in pools.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 10_000:
            yield Finding(("pools", name), f"{size!r} is not a number of jobs: 1 to 10000")


def _job_problems(jobs: object) -> Iterator[Finding]:
    if not isinstance(jobs, dict):
        yield Finding(("jobs",), "is not a table: write [jobs]")
        return
    for name, value in jobs.items():
        if name not in _JOB_KEYS:
            yield Finding(("jobs", name), f"is not a setting{did_you_mean(name, _JOB_KEYS)}")
        elif name.startswith("output_"):
            yield from _output_problems(name, value)
        elif name in ("secrets", "run_as"):
            if not isinstance(value, str) or not value:
                what = "a folder" if name == "secrets" else "the name of a user"
                yield Finding(("jobs", name), f"{value!r} is not {what}: write it in quotes")
        elif not isinstance(value, bool) and not (isinstance(value, list) and all(isinstance(x, str) for x in value)):
            yield Finding(("jobs", name), "is neither true nor a list of hosts and networks in quotes")


def _output_problems(name: str, value: object) -> Iterator[Finding]:
    try:
        _output({name: value})
    except InvalidValueError as error:
        yield Finding(("jobs", name), str(error))


def _output(jobs: Mapping[str, Any]) -> OutputKept:
    for name in ("output_limit", "output_age", "output_total"):
        if name in jobs and not isinstance(jobs[name], str):
            raise InvalidValueError(f"{jobs[name]!r} is not text: write it in quotes, with its unit")
    default = OutputKept()
    return OutputKept(
        limit=parse_size(jobs["output_limit"]) if "output_limit" in jobs else default.limit,
        age=parse_duration(jobs["output_age"]) if "output_age" in jobs else default.age,
        total=parse_size(jobs["output_total"]) if "output_total" in jobs else default.total,
    )


def watchdog_interval(text: object) -> timedelta:
    """How often the watchdog runs."""
    if not isinstance(text, str):
        raise InvalidValueError(f"{text!r} is not a duration: write '5m', in quotes")
    found = parse_duration(text)
    if not _SHORTEST_WATCHDOG <= found <= _LONGEST_WATCHDOG:
        raise InvalidValueError(f"{text!r} is not between 1s and 1d")
    return found


def store_path(address: str, folder: Path) -> Path:
    """The file of `sqlite:///interlock.db` (relative to the folder) or `sqlite:////var/lib/interlock.db`."""
    if address.startswith("aws://"):
        raise InvalidValueError(
            f"{address}: on AWS the controller runs as functions, and this is for a sqlite:/// store:"
            f" `interlock console --store {address}` serves API and page over an environment"
        )
    if not address.startswith(_SQLITE) or address == _SQLITE:
        raise InvalidValueError(f"{address!r} is not a store: write sqlite:///interlock.db")
    return folder / address[len(_SQLITE) :]
