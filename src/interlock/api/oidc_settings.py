"""`[oidc]` of `interlock.toml`: whose bearer tokens count, and what they allow; the first grant that is met counts.

[oidc]
issuer = "https://login.example.com/realms/data"
audience = "interlock"                                 # or a list
jwks = "https://login.example.com/keys"                # or a file; default: where the issuer says
ca_file = "ca.pem"                                     # the authority of the issuer's own certificate
algorithms = ["RS256", "ES256"]                        # default: all with public keys
subject = "email"                                      # who it is; default: sub
leeway = "60s"                                         # by how much clocks may differ

[[oidc.grants]]
claim = "groups"                                       # a.b is a claim in a claim
value = "platform"
scopes = ["admin"]

[[oidc.grants]]
claim = "groups"
value = "analysts"
scopes = ["read", "sensor:write"]
owners = ["analytics"]                                 # or owners_claim = "team", pipelines, pipelines_claim
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.config.problems import Finding
from interlock.config.suggestions import did_you_mean
from interlock.embedded.access.oidc_keys import ALGORITHMS, OidcKeys, from_file, from_issuer, is_safe
from interlock.embedded.access.sign_on import Grant, OidcSettings, SignOn
from interlock.embedded.access.tokens import Scope
from interlock.model.durations import parse_duration
from interlock.model.errors import InvalidValueError

TABLE: Final = "oidc"
_TEXTS: Final = ("issuer", "jwks", "ca_file", "subject", "leeway")
_KEYS: Final = (*_TEXTS, "audience", "algorithms", "grants")
_GRANT_TEXTS: Final = ("claim", "value", "pipelines_claim", "owners_claim")
_GRANT_LISTS: Final = ("scopes", "pipelines", "owners")
_GRANT_KEYS: Final = (*_GRANT_TEXTS, *_GRANT_LISTS)
_LONGEST_LEEWAY: Final = timedelta(minutes=10)


class Oidc(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation says of sign-on."""

    settings: OidcSettings
    jwks: str = ""
    keys_file: Path | None = None
    ca_file: Path | None = None

    def made(self) -> SignOn:
        """What verifies tokens; its keys are not fetched yet."""
        where = self.keys_file
        fetch = from_issuer(self.settings.issuer, self.jwks, self.ca_file) if where is None else from_file(where)
        return SignOn(self.settings, OidcKeys(fetch))


def problems(plain: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with the settings."""
    table = plain.get(TABLE)
    if table is None:
        return
    if not isinstance(table, dict):
        yield Finding((TABLE,), "is not a table: write [oidc]")
        return
    yield from _unknown(table, _KEYS, (TABLE,))
    yield from _texts(table, _TEXTS, (TABLE,))
    for name in ("issuer", "audience"):
        if not table.get(name):
            yield Finding((TABLE, name), "is missing")
    issuer, jwks = table.get("issuer"), table.get("jwks")
    if isinstance(issuer, str) and issuer and not is_safe(issuer):
        yield Finding((TABLE, "issuer"), f"{issuer!r} is not an https:// address")
    if isinstance(jwks, str) and "://" in jwks and not is_safe(jwks):
        yield Finding((TABLE, "jwks"), f"{jwks!r} is neither an https:// address nor a file")
    yield from _list_problems(table.get("audience"), (TABLE, "audience"), single=True)
    yield from _algorithm_problems(table.get("algorithms", list(ALGORITHMS)))
    yield from _leeway_problems(table.get("leeway", "60s"))
    yield from _grants_problems(table.get("grants", []))


def _algorithm_problems(given: object) -> Iterator[Finding]:
    path = (TABLE, "algorithms")
    if not isinstance(given, list) or not given:
        yield Finding(path, "is not a list of algorithms")
        return
    for one in given:
        if one not in ALGORITHMS:
            yield Finding(path, f"{one!r} is not allowed: only public keys sign: {', '.join(ALGORITHMS)}")


def _leeway_problems(text: object) -> Iterator[Finding]:
    if not isinstance(text, str):
        return
    try:
        if parse_duration(text) > _LONGEST_LEEWAY:
            yield Finding((TABLE, "leeway"), f"{text!r} is more than 10m")
    except InvalidValueError as error:
        yield Finding((TABLE, "leeway"), str(error))


def _grants_problems(grants: object) -> Iterator[Finding]:
    if not isinstance(grants, list) or not grants:
        yield Finding((TABLE, "grants"), "there is none, so nobody could do anything: write [[oidc.grants]]")
        return
    for number, grant in enumerate(grants):
        path = (TABLE, "grants", number)
        if not isinstance(grant, dict):
            yield Finding(path, "is not a table: write [[oidc.grants]]")
            continue
        yield from _grant_problems(grant, path)


def _grant_problems(grant: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Finding]:
    yield from _unknown(grant, _GRANT_KEYS, path)
    yield from _texts(grant, _GRANT_TEXTS, path)
    for name in _GRANT_LISTS:
        yield from _list_problems(grant.get(name, []), (*path, name))
    scopes = grant.get("scopes", [])
    if not scopes:
        yield Finding((*path, "scopes"), f"are missing: {', '.join(Scope)}")
    for one in scopes if isinstance(scopes, list) else []:
        if one not in list(Scope):
            yield Finding((*path, "scopes"), f"{one!r} is not a scope{did_you_mean(str(one), list(Scope))}")
    if ("claim" in grant) != ("value" in grant):
        yield Finding(path, "claim and value are given together")
    if "admin" in scopes and any(grant.get(name) for name in (*_GRANT_LISTS[1:], *_GRANT_TEXTS[2:])):
        yield Finding(path, "pipelines and owners do not limit admin, which may change what they are")


def _unknown(table: Mapping[str, Any], known: tuple[str, ...], path: tuple[str | int, ...]) -> Iterator[Finding]:
    for name in table:
        if name not in known:
            yield Finding((*path, name), f"is not a setting{did_you_mean(name, known)}")


def _texts(table: Mapping[str, Any], names: tuple[str, ...], path: tuple[str | int, ...]) -> Iterator[Finding]:
    for name in names:
        if name in table and not (isinstance(table[name], str) and table[name]):
            yield Finding((*path, name), f"{table[name]!r} is not text: write it in quotes")


def _list_problems(given: object, path: tuple[str | int, ...], *, single: bool = False) -> Iterator[Finding]:
    if given is None or (single and isinstance(given, str)):
        return
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        yield Finding(path, "is not a list of texts in quotes")


def oidc(plain: Mapping[str, Any], folder: Path) -> Oidc | None:
    """The settings, of which nothing is wrong; files are relative to the folder."""
    table = plain.get(TABLE)
    if table is None:
        return None
    audience = table["audience"]
    jwks = table.get("jwks", "")
    settings = OidcSettings(
        issuer=table["issuer"],
        audience=(audience,) if isinstance(audience, str) else tuple(audience),
        algorithms=tuple(table.get("algorithms", ALGORITHMS)),
        subject=table.get("subject", "sub"),
        leeway=parse_duration(table.get("leeway", "60s")),
        grants=tuple(msgspec.convert(one, Grant) for one in table["grants"]),
    )
    return Oidc(
        settings=settings,
        jwks=jwks if "://" in jwks else "",
        keys_file=folder / jwks if jwks and "://" not in jwks else None,
        ca_file=folder / table["ca_file"] if "ca_file" in table else None,
    )
