"""Sign-on: bearer tokens of an OpenID Connect issuer, verified here with its public keys, without asking it.

A token counts if a key of the issuer signed it, by an algorithm that is allowed and that fits the key; if it is for us
(`audience`), from that issuer, and in time. What it may do is said by the first of `grants` that it meets. Its holder
is called `oidc:` and the subject: no token of our own can have such a name.
"""

import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.embedded.access.oidc_keys import ALGORITHMS, OidcKeys
from interlock.embedded.access.tokens import PREFIX, Scope, Token
from interlock.embedded.clock import SystemClock
from interlock.model.errors import InterlockError
from interlock.ports.clock import Clock

NAME: Final = "oidc:"
# Of a token that was signed on with: no row of the store has this number.
NO_ID: Final = 0
_LONGEST_TOKEN: Final = 16 * 1024
_LONGEST_SUBJECT: Final = 200
_MOST_REMEMBERED: Final = 1000


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What those may do whose token has this value in that claim; without a claim, all.

    `pipelines_claim` and `owners_claim` name claims that hold the pipelines or owners; who has none does not meet it.
    """

    claim: str = ""
    value: str = ""
    scopes: tuple[Scope, ...]
    pipelines: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    pipelines_claim: str = ""
    owners_claim: str = ""


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a token, and what it then allows."""

    issuer: str
    audience: tuple[str, ...]
    grants: tuple[Grant, ...]
    algorithms: tuple[str, ...] = ALGORITHMS
    subject: str = "sub"
    leeway: timedelta = timedelta(seconds=60)


class OidcRefusedError(InterlockError):
    """Why a token does not count, for its holder and the log."""


class SignOn:
    """Verifies tokens of one issuer. Nothing here waits for it, but `keys.refresh`."""

    def __init__(self, settings: OidcSettings, keys: OidcKeys, clock: Clock | None = None) -> None:
        check_installed()
        self._settings = settings
        self.keys = keys
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._verified: dict[bytes, Token] = {}
        self._generation = keys.generation

    def wants_keys(self, text: str) -> bool:
        """Is this a token of a key that is not known, and may the issuer be asked for it?"""
        if not is_signed(text) or not self.keys.may_refresh():
            return False
        try:
            return self.keys.find(self._head(text).get("kid")) is None
        except OidcRefusedError:
            return False

    def verify(self, text: str) -> Token | None:
        """What the token allows, if it counts."""
        try:
            return self.judge(text)
        except OidcRefusedError:
            return None

    def judge(self, text: str) -> Token:
        """What the token allows; raises what is wrong with it."""
        if not is_signed(text):
            raise OidcRefusedError("it is no signed token (JWT)")
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        found = self._remembered(digest)
        if found is None:
            found = self._token(self._claims(text))
            self._remember(digest, found)
        if not found.in_force(self._clock.now()):
            raise OidcRefusedError("it has expired")
        return found

    def _remembered(self, digest: bytes) -> Token | None:
        with self._lock:
            if self._generation != self.keys.generation:
                # Whoever signed it may not be believed any more.
                self._verified.clear()
                self._generation = self.keys.generation
            return self._verified.get(digest)

    def _remember(self, digest: bytes, token: Token) -> None:
        with self._lock:
            if len(self._verified) >= _MOST_REMEMBERED:
                self._verified.clear()
            self._verified[digest] = token

    def _head(self, text: str) -> Mapping[str, Any]:
        import jwt

        try:
            head = jwt.get_unverified_header(text)
        except jwt.PyJWTError as error:
            raise OidcRefusedError(f"it cannot be read: {error}") from error
        if head.get("alg") not in self._settings.algorithms:
            raise OidcRefusedError(f"the algorithm {str(head.get('alg'))[:20]!r} is not allowed")
        if not isinstance(head.get("kid", ""), str):
            raise OidcRefusedError("the name of its key (kid) is not text")
        return head

    def _claims(self, text: str) -> Mapping[str, Any]:
        import jwt

        head = self._head(text)
        key = self.keys.find(head.get("kid"))
        if key is None:
            raise OidcRefusedError("no key of the issuer has signed it")
        if head["alg"] not in key.algorithms:
            raise OidcRefusedError(f"the algorithm {head['alg']} does not fit its key")
        try:
            found: Mapping[str, Any] = jwt.decode(
                text,
                key=key.key,  # type: ignore[arg-type]  # made by the same library
                algorithms=[head["alg"]],
                audience=list(self._settings.audience),
                issuer=self._settings.issuer,
                leeway=self._settings.leeway,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise OidcRefusedError(_words(error)) from error
        return found

    def _token(self, claims: Mapping[str, Any]) -> Token:
        subject = claim_of(claims, self._settings.subject)
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
            raise OidcRefusedError(f"the claim {self._settings.subject!r} names nobody")
        for grant in self._settings.grants:
            limits = _limits(grant, claims)
            if limits is not None and _meets(grant, claims):
                return Token(
                    id=NO_ID,
                    name=NAME + subject,
                    scopes=grant.scopes,
                    pipelines=limits[0],
                    owners=limits[1],
                    created_at=self._instant(claims.get("iat")),
                    expires_at=self._instant(claims["exp"]) + self._settings.leeway,
                )
        raise OidcRefusedError(f"none of the grants is for {subject!r}")

    def _instant(self, seconds: object) -> datetime:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return self._clock.now()
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            raise OidcRefusedError("its times are beyond all bounds") from None


def check_installed() -> None:
    """Raise unless the library that verifies signatures is there."""
    try:
        import cryptography  # noqa: F401  the library needs it for public keys, and may be there without
        import jwt  # noqa: F401
    except ImportError as error:
        raise InterlockError(f"[oidc] needs more packages: pip install 'interlock[oidc]' ({error})") from error


def is_signed(text: str) -> bool:
    """Does it look like a JWT, and not like a token of ours?"""
    return text.count(".") == 2 and not text.startswith(PREFIX) and len(text) <= _LONGEST_TOKEN and text.isascii()


def claim_of(claims: Mapping[str, Any], path: str) -> object:
    """The value of a claim; a name with dots is a path, unless there is a claim of that very name."""
    if path in claims:
        return claims[path]
    found: object = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def values_of(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The texts of a claim: a list, or one; `scope` and `scp` are words in one text."""
    found = claim_of(claims, path)
    if isinstance(found, str):
        return tuple(found.split()) if path in ("scope", "scp") else (found,)
    if isinstance(found, bool):
        return ("true",) if found else ("false",)
    if isinstance(found, Iterable) and not isinstance(found, Mapping):
        return tuple(one for one in found if isinstance(one, str))
    return ()


def _meets(grant: Grant, claims: Mapping[str, Any]) -> bool:
    return not grant.claim or grant.value in values_of(claims, grant.claim)


def _limits(grant: Grant, claims: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """To which pipelines and owners; None for who should have a limit of their own and has none."""
    pipelines, owners = grant.pipelines, grant.owners
    if grant.pipelines_claim:
        pipelines += (found := values_of(claims, grant.pipelines_claim))
        if not found:
            return None
    if grant.owners_claim:
        owners += (found := tuple(one for one in values_of(claims, grant.owners_claim) if one))
        if not found:
            return None
    return pipelines, owners


def _words(error: Exception) -> str:
    import jwt

    match error:
        case jwt.ExpiredSignatureError():
            return "it has expired"
        case jwt.ImmatureSignatureError():
            return "it is not in force yet"
        case jwt.InvalidAudienceError():
            return "it is for another audience"
        case jwt.InvalidIssuerError():
            return "it is of another issuer"
        case jwt.MissingRequiredClaimError():
            return str(error)
        case _:
            return "its signature is wrong"
