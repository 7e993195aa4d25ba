"""Where the server is and how patiently it is asked."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from interlock.client.errors import ClientError
from interlock.client.retries import RetryPolicy
from interlock.owner_record import find_token

URL_VARIABLE: Final = "INTERLOCK_URL"
TOKEN_VARIABLE: Final = "INTERLOCK_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`timeout`: seconds for one try of one request. `random` and `monotonic` are given so that tests may fix them."""

    url: str
    token: str = ""
    timeout: float = 30.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    ca_file: str | None = None
    random: Callable[[], float] = random.random
    monotonic: Callable[[], float] = time.monotonic

    def __repr__(self) -> str:
        # A settings object ends up in logs and tracebacks; the token must not.
        return f"Settings(url={self.url!r}, timeout={self.timeout})"


def settings_from(
    url: str | None, token: str | None, timeout: float, retry: RetryPolicy | None, ca_file: str | None = None
) -> Settings:
    """What was given, or else what the environment says; a clear error when nobody names a server."""
    chosen = url or os.environ.get(URL_VARIABLE, "")
    if not chosen:
        raise ClientError(f"no server is named: write Client('http://host:port'), or set {URL_VARIABLE}")
    address = _address(chosen)
    found = token_for(address) if token is None else token.strip()
    if not (found.isascii() and found.isprintable()):
        raise ClientError(f"the token is none of ours (it is not shown here): look at {TOKEN_VARIABLE}")
    return Settings(url=address, token=found, timeout=timeout, retry=retry or RetryPolicy(), ca_file=ca_file)


def token_for(address: str) -> str:
    """The token of the environment, or else the owner's token of a controller of this user at that very address."""
    return os.environ.get(TOKEN_VARIABLE, "").strip() or find_token(address)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        secret = parts.username is not None or parts.password is not None
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        secret = good = False
    if secret:
        # An address is shown in errors and logs; a password in it would be, too.
        raise ClientError(f"the server's address carries a password: leave it out, and set {TOKEN_VARIABLE} instead")
    if not good:
        raise ClientError(f"{url!r} is not the address of a server: write http://host:port")
    return url.rstrip("/")


def on_this_machine(url: str) -> bool:
    """A server of this machine is reached directly, whatever proxy the environment names."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
