"""How requests reach the controller: over TLS, from this machine, through a proxy that is trusted, or in the clear.

A token that crosses a network in the clear belongs to everybody on the way. So whoever shows one over plain HTTP must
come from this machine or from a proxy that `interlock.toml` names, which has encrypted the way up to itself:

trusted_proxies = ["10.0.0.5", "10.1.0.0/16"]

[tls]
cert = "tls/interlock.crt"                # with the certificates that vouch for it
key = "tls/interlock.key"
client_ca = "tls/clients.crt"             # clients must show a certificate of this authority, too
"""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.api.tls import TlsFiles
from interlock.config.problems import Finding
from interlock.config.suggestions import did_you_mean
from interlock.model.errors import InterlockError

TABLE: Final = "tls"
PROXIES: Final = "trusted_proxies"
_KEYS: Final = ("cert", "key", "client_ca")
# As uvicorn calls it; it has the same meaning, and the file wins.
_VARIABLE: Final = "FORWARDED_ALLOW_IPS"
_LOCAL: Final = ("127.0.0.1", "::1")
_EVERYBODY: Final = "*"

_Network = IPv4Network | IPv6Network


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation says of it."""

    tls: TlsFiles | None = None
    trusted_proxies: tuple[str, ...] = ()

    def with_files(self, cert: Path | None, key: Path | None, client_ca: Path | None) -> "Transport":
        """Those of the command line win."""
        if cert is None and key is None and client_ca is None:
            return self
        old = self.tls
        cert = cert or (old.cert if old is not None else None)
        key = key or (old.key if old is not None else None)
        client_ca = client_ca or (old.client_ca if old is not None else None)
        if cert is None or key is None:
            missing = "--tls-cert" if cert is None else "--tls-key"
            raise InterlockError(f"{missing} is missing: a certificate and its key are given together")
        files = TlsFiles(cert=cert.absolute(), key=key.absolute(), client_ca=client_ca and client_ca.absolute())
        return msgspec.structs.replace(self, tls=files)


def problems(plain: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with the settings."""
    proxies = plain.get(PROXIES, [])
    if not isinstance(proxies, list):
        yield Finding((PROXIES,), 'is not a list: write ["10.0.0.5"]')
        proxies = []
    for number, one in enumerate(proxies):
        if not isinstance(one, str) or _network(one) is None:
            yield Finding((PROXIES, number), f"{one!r} is neither an address nor a network")
    yield from _tls_problems(plain.get(TABLE, {}))


def _tls_problems(tls: object) -> Iterator[Finding]:
    if not isinstance(tls, dict):
        yield Finding((TABLE,), "is not a table: write [tls]")
        return
    for name, value in tls.items():
        if name not in _KEYS:
            yield Finding((TABLE, name), f"is not a setting{did_you_mean(name, _KEYS)}")
        elif not isinstance(value, str) or not value:
            yield Finding((TABLE, name), f"{value!r} is not a file: write it in quotes")
    for name, other in (("cert", "key"), ("key", "cert")):
        if tls and name not in tls:
            yield Finding((TABLE, name), f"is missing: it belongs to {TABLE}.{other}")


def transport(plain: Mapping[str, Any], folder: Path) -> Transport:
    """The settings, of which nothing is wrong; files are relative to the folder."""
    tls = plain.get(TABLE) or {}
    paths = {name: folder / value for name, value in tls.items()}
    return Transport(
        tls=TlsFiles(**paths) if paths else None,
        trusted_proxies=tuple(plain.get(PROXIES, ())),
    )


def _network(text: str) -> _Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


class Ways:
    """Which connections may carry a token, and whose word about their clients is believed."""

    def __init__(self, named: tuple[str, ...] = ()) -> None:
        found = named or tuple(filter(None, map(str.strip, os.environ.get(_VARIABLE, "").split(","))))
        self._everybody = _EVERYBODY in found
        self._networks = tuple(network for network in map(_network, found) if network is not None)
        # A proxy on this machine needs no name: whoever is here could as well listen to the wire.
        self.believed: list[str] = [_EVERYBODY] if self._everybody else [*_LOCAL, *found]
        self._may_carry = lru_cache(maxsize=1024)(self._judge)

    def may_carry_token(self, scheme: str | None, client: str | None, server: str | None) -> bool:
        """Is the way of a connection from its client's address to ours safe for a token?"""
        return scheme == "https" or self._may_carry(client or "", server or "")

    def _judge(self, client: str, server: str) -> bool:
        address = _address(client)
        if address is None:
            return False
        return (
            address.is_loopback
            or address == _address(server)
            or self._everybody
            or any(address.version == network.version and address in network for network in self._networks)
        )


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found
