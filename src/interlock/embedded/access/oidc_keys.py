"""The public keys of an OpenID Connect issuer: fetched, kept, and fetched again when a token names an unknown key.

Tokens are verified with what is kept: an issuer that is down keeps nobody out whose key is known. Whoever makes up
names of keys has them fetched at most twice a minute. What an issuer no longer publishes no longer counts.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from interlock.logs import get_logger
from interlock.loops import Loop, Loops
from interlock.model.errors import InterlockError, UnavailableError

_DISCOVERY: Final = "/.well-known/openid-configuration"
_EVERY_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 5.0
_MOST_ASKED: Final = 2
_WITHIN_SECONDS: Final = 60.0
_TIMEOUT: Final = 5.0
# The end of the controller does not wait for an issuer.
_STOP_SECONDS: Final = 0.1
_MOST_BYTES: Final = 1024 * 1024
_MOST_KEYS: Final = 100
_LEAST_RSA_BITS: Final = 2048
_OF_CURVE: Final = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",)}
_OF_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_OF_EDWARDS: Final = ("EdDSA",)
ALGORITHMS: Final = (*_OF_RSA, "ES256", "ES384", "ES512", *_OF_EDWARDS)

_log = get_logger(__name__)


class OidcKey(msgspec.Struct, frozen=True):
    """A public key, and the algorithms that it may be used with: never one that its kind does not have."""

    id: str
    key: object
    algorithms: tuple[str, ...]


Fetch = Callable[[], bytes]


class OidcKeys:
    """The keys of one issuer. `find` never waits; `refresh` does."""

    def __init__(self, fetch: Fetch, *, within: float = _WITHIN_SECONDS) -> None:
        self._fetch = fetch
        self._within = within
        self._keys: tuple[OidcKey, ...] = ()
        self._lock = threading.Lock()
        self._asked: tuple[float, ...] = ()
        self._error = ""
        self._loop: Loop | None = None
        self.generation = 0

    def start(self, loops: Loops) -> None:
        """Fetch them, now and from time to time, on a thread: an issuer that is down delays no start."""
        self._loop = loops.add("oidc", self._follow, vital=False, stop_seconds=_STOP_SECONDS)
        self._loop.start()

    def stop(self) -> None:
        """Fetch them no more."""
        if self._loop is not None:
            self._loop.stop()

    def problems(self) -> Iterable[str]:
        """What is wrong, in words without addresses: anybody may ask."""
        if self._error:
            known = "those known still count" if self._keys else "nobody can sign on"
            yield f"the keys of the OIDC issuer cannot be fetched: {known}; the log says why"

    def find(self, id_: str | None) -> OidcKey | None:
        """The key of that name; of a token that names none, the only key there is."""
        keys = self._keys
        if id_ is None:
            return keys[0] if len(keys) == 1 else None
        return next((key for key in keys if key.id == id_), None)

    def may_refresh(self) -> bool:
        """Would `refresh` ask the issuer now? What the thread asks by itself does not count."""
        return len(self._asked) < _MOST_ASKED or time.monotonic() - self._asked[0] >= self._within

    def refresh(self) -> None:
        """Ask the issuer, unless that was done twice within a minute. Who comes meanwhile waits for the answer."""
        with self._lock:
            if not self.may_refresh():
                return
            try:
                self._load()
            finally:
                self._asked = (*self._asked, time.monotonic())[-_MOST_ASKED:]

    def _load(self) -> None:
        try:
            found = parse_keys(self._fetch())
        except (InterlockError, OSError) as error:
            if str(error) != self._error:
                _log.error("the keys of the OIDC issuer cannot be fetched", error=str(error), known=len(self._keys))
            self._error = str(error) or type(error).__name__
        else:
            if self._error:
                _log.info("the keys of the OIDC issuer are known again")
            self._error = ""
            if [one.id for one in found] != [one.id for one in self._keys]:
                _log.info("keys of the OIDC issuer", keys=[one.id for one in found])
            self._keys = found
            self.generation += 1

    def _follow(self) -> float:
        with self._lock:
            self._load()
        # An issuer that did not answer is asked again soon.
        return _LOOK_SECONDS if self._error else _EVERY_SECONDS


def parse_keys(content: bytes) -> tuple[OidcKey, ...]:
    """The keys of a JWKS document that signatures can be verified with; others are left out."""
    try:
        document = msgspec.json.decode(content)
        entries = document["keys"]
    except (msgspec.DecodeError, TypeError, KeyError) as error:
        raise InterlockError("the answer is no JSON Web Key Set") from error
    if not isinstance(entries, list) or len(entries) > _MOST_KEYS:
        raise InterlockError("the answer is no JSON Web Key Set")
    found = tuple(key for key in map(_key, entries) if key is not None)
    if not found:
        raise InterlockError("there is no key for signatures (RSA of 2048 bits, EC or Ed25519) in the answer")
    return found


def _key(entry: object) -> OidcKey | None:
    import jwt

    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    possible = _algorithms_of(entry)
    stated = entry.get("alg")
    algorithms = possible if stated is None else tuple(one for one in possible if one == stated)
    if not algorithms:
        return None
    try:
        key = jwt.PyJWK.from_dict({**entry, "alg": algorithms[0]}).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if entry["kty"] == "RSA" and key.key_size < _LEAST_RSA_BITS:
        return None
    return OidcKey(str(entry.get("kid", "")), key, algorithms)


def _algorithms_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """By the kind of the key alone: a public key is never taken for the secret of an HMAC."""
    match entry.get("kty"):
        case "RSA":
            return _OF_RSA
        case "EC":
            return _OF_CURVE.get(str(entry.get("crv")), ())
        case "OKP":
            return _OF_EDWARDS if entry.get("crv") in ("Ed25519", "Ed448") else ()
        case _:
            return ()


# ------------------------------------------------------------------------------------------------- where they are


def from_file(path: Path) -> Fetch:
    """From a file that somebody else keeps up to date."""

    def read() -> bytes:
        return path.read_bytes()[:_MOST_BYTES]

    return read


def from_issuer(issuer: str, jwks: str, ca_file: Path | None) -> Fetch:
    """From the address of the keys, or from where the issuer says that they are."""
    verify = ssl.create_default_context(cafile=ca_file) if ca_file is not None else True

    def fetch() -> bytes:
        return _get(jwks or _discovered(issuer, verify), verify)

    return fetch


def _discovered(issuer: str, verify: ssl.SSLContext | bool) -> str:
    content = _get(issuer.rstrip("/") + _DISCOVERY, verify)
    try:
        document = msgspec.json.decode(content)
        named, found = document["issuer"], str(document["jwks_uri"])
    except (msgspec.DecodeError, TypeError, KeyError) as error:
        raise InterlockError(f"{issuer}{_DISCOVERY} says nothing of jwks_uri: set oidc.jwks") from error
    if named != issuer:
        raise InterlockError(f"{issuer}{_DISCOVERY} is of the issuer {named!r}: write oidc.issuer exactly so")
    if not is_safe(found):
        raise InterlockError(f"{issuer}{_DISCOVERY} names keys that are not at an https:// address")
    return found


def is_safe(url: str) -> bool:
    """Keys come over TLS, or from this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and local))


def _get(url: str, verify: ssl.SSLContext | bool) -> bytes:
    import httpx

    content = b""
    try:
        with httpx.stream("GET", url, timeout=_TIMEOUT, follow_redirects=False, verify=verify) as response:
            if response.status_code != 200:
                raise UnavailableError(f"{url} answers HTTP {response.status_code}")
            for part in response.iter_bytes():
                content += part
                if len(content) > _MOST_BYTES:
                    raise UnavailableError(f"{url} answers more than {_MOST_BYTES} bytes")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UnavailableError(f"{url} does not answer: {str(error) or type(error).__name__}") from error
    return content
