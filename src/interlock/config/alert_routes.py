"""The `[[alerts]]` part of `interlock.toml`: who hears of what. All errors at once, and no secret in any of them.

Secrets themselves are not read here: the file names the environment variables they come from. An address or a header
that stands in the file all the same may be one, so neither is ever repeated in a message.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from interlock.config.decode import decode
from interlock.config.problems import Finding, Path
from interlock.config.suggestions import did_you_mean
from interlock.decide.pattern_names import unknown_names
from interlock.decide.patterns import check_pattern
from interlock.decide.values import show
from interlock.model.durations import Duration
from interlock.model.errors import InvalidValueError
from interlock.model.events import Severity

_SLACK_CHANNEL: Final = re.compile(r"#[^\s#@,]{1,80}|[CGD][A-Z0-9]{6,20}")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUR_HEADERS: Final = frozenset({"content-type", "content-length", "host", "x-interlock-signature"})
_LONGEST_TIMEOUT: Final = Duration(seconds=60)


class ChannelKind(StrEnum):
    """Where alerts can go."""

    SLACK = "slack"
    WEBHOOK = "webhook"
    CONSOLE = "console"


class AlertRoute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[alerts]]` entry: a channel and what goes there."""

    channel: ChannelKind
    name: str = ""
    severity: Severity | None = None
    pattern: Any = None
    slack_channel: str = ""
    url: str = ""
    url_env: str = ""
    secret_env: str = ""
    headers: dict[str, str] = {}
    headers_env: dict[str, str] = {}
    timeout: Duration = Duration(seconds=10)

    def __repr__(self) -> str:
        return f"AlertRoute({self.channel}, name={self.name!r})"


_COMMON: Final = frozenset({"channel", "name", "severity", "pattern"})
_OWN_KEYS: Final[Mapping[ChannelKind, frozenset[str]]] = {
    ChannelKind.SLACK: frozenset({"slack_channel"}),
    ChannelKind.WEBHOOK: frozenset({"url", "url_env", "secret_env", "headers", "headers_env", "timeout"}),
    ChannelKind.CONSOLE: frozenset(),
}


def parse_alert_routes(value: object) -> tuple[AlertRoute, ...] | tuple[Finding, ...]:
    """The routes of a list of plain tables, or everything that is wrong with them."""
    if not isinstance(value, list | tuple):
        return (Finding(("alerts",), "is not a list of tables: write [[alerts]], with two brackets"),)
    routes: list[AlertRoute] = []
    findings: list[Finding] = []
    for index, entry in enumerate(value):
        path: Path = ("alerts", index)
        made = _entry(entry, path)
        if isinstance(made, AlertRoute):
            routes.append(made)
        else:
            findings += made
    findings += _clashes(routes) if not findings else ()
    return tuple(findings) or tuple(routes)


def _entry(entry: object, path: Path) -> AlertRoute | list[Finding]:
    if not isinstance(entry, Mapping):
        return [Finding(path, "is not a table of keys such as `channel`")]
    plain = dict(entry)
    findings = [_below(path, finding) for finding in _hidden_values(plain)]
    pattern, wrong = _pattern(plain.get("pattern"))
    findings += [_below(path, finding) for finding in wrong]
    plain["pattern"] = pattern
    decoded = decode(plain, AlertRoute)
    if not isinstance(decoded, AlertRoute):
        return findings + [_below(path, finding) for finding in decoded]
    findings += [_below(path, finding) for finding in _check(decoded, entry)]
    return findings or _completed(decoded)


def _below(path: Path, finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, path=(*path, *finding.path))


def _hidden_values(plain: dict[str, Any]) -> Iterator[Finding]:
    """What may hold a secret is checked here, and taken out when wrong: the decoder would repeat it in its message."""
    if not isinstance(plain.get("url", ""), str):
        del plain["url"]
        yield Finding(("url",), "is not text")
    for name in ("headers", "headers_env"):
        given = plain.get(name, {})
        if isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values()):
            continue
        del plain[name]
        yield Finding((name,), 'is not a table of texts: write { X-Team = "data" }')


def _pattern(value: object) -> tuple[Mapping[str, Any] | None, list[Finding]]:
    """The pattern, given as a table or as JSON text."""
    if value is None:
        return None, []
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            return None, [Finding(("pattern",), f"is not JSON: {error}")]
    if not isinstance(value, Mapping):
        return None, [Finding(("pattern",), f"{show(value)} is not an event pattern: write a table or JSON text")]
    try:
        check_pattern(value)
    except InvalidValueError as error:
        return None, [Finding(("pattern",), str(error))]
    return value, [Finding(("pattern",), one) for one in unknown_names(value)]


def _check(route: AlertRoute, given: Mapping[str, Any]) -> Iterator[Finding]:
    allowed = _COMMON | _OWN_KEYS[route.channel]
    for key in given:
        if key not in allowed:
            yield Finding((key,), f"has no meaning for {route.channel}{did_you_mean(key, allowed - given.keys())}")
    match route.channel:
        case ChannelKind.SLACK:
            yield from _check_slack(route)
        case ChannelKind.WEBHOOK:
            yield from _check_webhook(route)
        case ChannelKind.CONSOLE:
            pass


def _check_slack(route: AlertRoute) -> Iterator[Finding]:
    if not route.slack_channel:
        yield Finding(("slack_channel",), 'is missing: write "#data-alerts" or the channel\'s id')
    elif not _SLACK_CHANNEL.fullmatch(route.slack_channel):
        yield Finding(
            ("slack_channel",),
            f'{show(route.slack_channel)} is not a Slack channel: write "#data-alerts" or an id such as C0123456789',
        )


def _check_webhook(route: AlertRoute) -> Iterator[Finding]:
    if bool(route.url) is bool(route.url_env):
        yield Finding(("url",), "give either url or url_env (the environment variable that holds the address)")
    elif route.url:
        yield from _check_url(route.url)
    for name in ("url_env", "secret_env"):
        variable = getattr(route, name)
        if variable and not _VARIABLE.fullmatch(variable):
            # Not repeated: who wrote the secret itself here would find it in a log.
            yield Finding((name,), "is not the name of an environment variable")
    for name, variable in route.headers_env.items():
        if not _VARIABLE.fullmatch(variable):
            yield Finding(("headers_env", name), "is not the name of an environment variable")
    yield from _check_headers(route)
    if not Duration(0) < route.timeout <= _LONGEST_TIMEOUT:
        yield Finding(("timeout",), "must be more than 0s and at most 60s")


def _check_url(url: str) -> Iterator[Finding]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        yield Finding(("url",), "cannot be read as an address: write https://host/path")
        return
    if parts.scheme not in ("http", "https") or not host:
        yield Finding(("url",), "is not an HTTP address: write https://host/path")
    elif parts.username or parts.password:
        yield Finding(("url",), "holds a user or password: give them as a header, with headers_env")
    elif not url.isprintable() or " " in url:
        yield Finding(("url",), "holds spaces or control characters")


def _check_headers(route: AlertRoute) -> Iterator[Finding]:
    seen: set[str] = set()
    for key, table in (("headers", route.headers), ("headers_env", route.headers_env)):
        for name, value in table.items():
            if not _HEADER_NAME.fullmatch(name) or name.lower() in _OUR_HEADERS:
                yield Finding((key, name), "is not a header that can be set")
            elif name.lower() in seen:
                yield Finding((key, name), "is given twice")
            elif not (value.isascii() and value.isprintable()):
                yield Finding((key, name), "has a value that a header cannot carry")
            seen.add(name.lower())


def _completed(route: AlertRoute) -> AlertRoute:
    """With its name and severity. A name is made from the destination alone, so that it is the same after a restart
    and for every entry with that destination: one event goes there once, however many entries send it.
    """
    severity = route.severity
    if severity is None:
        # Who names event types means them, also those of severity info.
        named = route.pattern is not None and "detail-type" in route.pattern
        severity = Severity.INFO if named else Severity.WARNING
    return msgspec.structs.replace(route, name=route.name or _destination(route), severity=severity)


def _destination(route: AlertRoute) -> str:
    match route.channel:
        case ChannelKind.SLACK:
            return f"slack:{route.slack_channel}"
        case ChannelKind.CONSOLE:
            return "console"
        case ChannelKind.WEBHOOK:
            if route.url_env:
                return f"webhook:{route.url_env}"
            return f"webhook:{urlsplit(route.url).hostname}-{sha256(route.url.encode()).hexdigest()[:8]}"


def _settings(route: AlertRoute) -> AlertRoute:
    return msgspec.structs.replace(route, name="", severity=None, pattern=None)


def _clashes(routes: Sequence[AlertRoute]) -> Iterator[Finding]:
    """Entries of one name are one channel, so they must agree on what it is."""
    first: dict[str, AlertRoute] = {}
    for index, route in enumerate(routes):
        other = first.setdefault(route.name, route)
        if _settings(other) != _settings(route):
            message = f"{show(route.name)} is also the name of another destination, or of the same one set up otherwise"
            yield Finding(("alerts", index, "name"), message)
