"""Bearer tokens of the HTTP API: made here, shown once, kept as a hash.

A token is 256 random bits, so a plain SHA-256 of it is as good as a slow hash: there is nothing to guess. Tokens are
read from the store at most twice a second; a revoked one therefore works for half a second more, and a write costs no
read. When a token was last used is written down every few minutes, with somebody else's commit.

The owner's token (`local`) is made at the first start on loopback (`owner_token`). It does not count as a token that
somebody asked for: as long as it is the only one, requests of the controller's own user need none.
"""

import hmac
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_address, ip_network
from typing import Any, Final

import msgspec

from interlock.embedded.audit.actors import this_user
from interlock.embedded.audit.chain import append
from interlock.embedded.sqlite.database import Database, Row
from interlock.model.audit import Actor, AuditAction, AuditNote
from interlock.model.durations import parse_duration
from interlock.model.errors import InvalidValueError
from interlock.model.keys import check_id
from interlock.model.times import epoch_millis, format_instant

PREFIX: Final = "ilk_"
OWN_NAME: Final = "interlock"
LOCAL_NAME: Final = "local"
DEFAULT_LIFE: Final = "365d"
DEFAULT_GRACE: Final = timedelta(hours=1)
# How long before its end a token is reported as about to expire.
EXPIRES_SOON: Final = timedelta(days=14)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}")
_COLUMNS: Final = (
    "id, name, scopes, pipelines, owners, created_ms, revoked_ms, local, expires_ms, networks, used_ms, old_until_ms"
)
# How soon a token that another process made, changed or revoked counts. Longer where there are so many that reading
# them would take more than a fiftieth of the time.
_REREAD_SECONDS: Final = 0.02
_REREAD_TIMES: Final = 50
_USED_EVERY_MS: Final = 5 * 60_000
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Scope(StrEnum):
    """What a token allows. `admin` allows everything, `operate` includes `read`."""

    READ = "read"
    SENSOR_WRITE = "sensor:write"
    JOB_WRITE = "job:write"
    OPERATE = "operate"
    ADMIN = "admin"


_IMPLIED: Final = {Scope.OPERATE: frozenset({Scope.READ}), Scope.ADMIN: frozenset(Scope)}


class Token(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of a token; the token itself is known to its owner alone.

    `pipelines` and `owners` limit all that it allows to these; both empty means to none in particular. `networks` are
    where it may be used from; empty means anywhere. `local`: the owner's token of this machine.
    """

    id: int
    name: str
    scopes: tuple[Scope, ...]
    pipelines: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None
    local: bool = False

    @property
    def limited(self) -> bool:
        """Is it for some pipelines only?"""
        return bool(self.pipelines or self.owners)

    def allows(self, scope: Scope) -> bool:
        """Does it carry this scope, by itself or by one that includes it?"""
        return any(scope is own or scope in _IMPLIED.get(own, ()) for own in self.scopes)

    def allows_for(self, scope: Scope, pipeline: str, owner: str) -> bool:
        """Does it carry this scope for that pipeline?"""
        if not self.allows(scope):
            return False
        return not self.limited or pipeline in self.pipelines or (bool(owner) and owner in self.owners)

    def in_force(self, now: datetime) -> bool:
        """Does it work at all?"""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def from_there(self, address: str) -> bool:
        """May it be used from an address? A token with networks may not be used from where nobody can tell."""
        if not self.networks:
            return True
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        found = getattr(found, "ipv4_mapped", None) or found
        return any(found in ip_network(one) for one in self.networks)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a new token is bound to."""

    pipelines: Sequence[str] = ()
    owners: Sequence[str] = ()
    networks: Sequence[str] = ()
    expires_at: datetime | None = None


class _Known(msgspec.Struct, frozen=True):
    hash: bytes
    old_hash: bytes | None
    old_until: datetime | None
    token: Token

    def is_text(self, given: bytes, now: datetime) -> bool:
        """Is that the hash of its text, or of the one before it, which works for a while?"""
        same = hmac.compare_digest(self.hash, given)
        old = hmac.compare_digest(self.old_hash or b"", given)
        return same or (old and self.old_until is not None and now < self.old_until)


class Tokens:
    """The tokens of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: tuple[_Known, ...] = ()
        self._read_at: float | None = None
        self._reread_after = _REREAD_SECONDS
        self._used: dict[int, int] = {}
        self._demanded = False

    def create(
        self,
        name: str,
        scopes: Iterable[Scope],
        *,
        pipelines: Sequence[str] = (),
        owners: Sequence[str] = (),
        networks: Sequence[str] = (),
        expires_at: datetime | None = None,
        by: Actor | None = None,
    ) -> tuple[str, Token]:
        """A new token, and what is known of it. The text is not kept: this is the only time that it can be shown.

        `by` (default: the user of this process) is recorded as the one who made it.
        """
        chosen = tuple(dict.fromkeys(scopes))
        terms = Terms(pipelines=pipelines, owners=owners, networks=_networks(networks), expires_at=expires_at)
        _check(name, chosen, terms, self._now())
        return self._insert(name, chosen, terms, by or this_user(), local=False)

    def create_local(self) -> str:
        """The owner's token: everything, forever. Its text, for the file that its owner alone can read."""
        taken = {token.name for token in self.list()}
        name = LOCAL_NAME if LOCAL_NAME not in taken else f"{LOCAL_NAME}-{len(taken)}"
        return self._insert(name, (Scope.ADMIN,), Terms(), this_user(), local=True)[0]

    def _insert(self, name: str, scopes: Sequence[Scope], terms: Terms, by: Actor, *, local: bool) -> tuple[str, Token]:
        text = PREFIX + secrets.token_urlsafe(32)
        row = (
            name,
            _hash(text),
            _text(scopes),
            _text(terms.pipelines),
            _text(terms.owners),
            epoch_millis(self._now()),
            int(local),
            None if terms.expires_at is None else epoch_millis(terms.expires_at),
            _text(terms.networks),
        )
        made = _note(AuditAction.TOKEN_CREATED, by, name, after=_shown(row))

        def insert(connection: sqlite3.Connection) -> int:
            append(connection, [made], epoch_millis(self._now()))
            return _insert(connection, row)

        try:
            id_ = self._database.write(insert)
        except sqlite3.IntegrityError as error:
            raise InvalidValueError(f"there is a token {name!r} already: choose another --name") from error
        self.forget()
        return text, next(token for token in self.list() if token.id == id_)

    def list(self) -> "TokenList":
        """Every token there ever was, in the order they were made."""
        rows = self._database.read(f"SELECT {_COLUMNS} FROM tokens ORDER BY id")
        return [_token(row) for row in rows]

    def revoke(self, name: str, *, by: Actor | None = None) -> Token:
        """End a token, by its name; it stays in the list."""
        now = epoch_millis(self._now())
        made = _note(AuditAction.TOKEN_REVOKED, by or this_user(), name)

        def end(connection: sqlite3.Connection) -> None:
            sql = "UPDATE tokens SET revoked_ms = ? WHERE name = ? AND revoked_ms IS NULL"
            if connection.execute(sql, (now, name)).rowcount:
                append(connection, [made], now)

        self._database.write(end)
        self.forget()
        ended = next((token for token in self.list() if token.name == name), None)
        if ended is None:
            raise _unknown(name)
        return ended

    def rotate(
        self,
        name: str,
        *,
        grace: timedelta = DEFAULT_GRACE,
        expires_at: datetime | None = None,
        by: Actor | None = None,
        file_follows: bool = False,
    ) -> str:
        """A new text for a token. The one before works for the grace; without any, its sessions end as well.

        The owner's token is read from a file by the commands: only who writes that file, too, rotates it.
        """
        text, now = PREFIX + secrets.token_urlsafe(32), self._now()
        before = next((token for token in self.list() if token.name == name), None)
        if before is None:
            raise _unknown(name)
        if before.revoked_at is not None:
            raise InvalidValueError(f"the token {name!r} is revoked: make another with `interlock token create`")
        if before.local and not file_follows:
            raise InvalidValueError(
                f"the token {name!r} is the owner's, and commands read it from the file beside the store: "
                "remove that file and start `interlock serve` again, and both are new"
            )
        expires = before.expires_at if expires_at is None else expires_at
        row = (
            epoch_millis(now + grace) if grace else None,
            _hash(text),
            None if expires is None else epoch_millis(expires),
            before.id,
        )

        def replace(connection: sqlite3.Connection) -> None:
            old = connection.execute("SELECT hash, expires_ms FROM tokens WHERE id = ?", (before.id,)).fetchone()
            made = _note(
                AuditAction.TOKEN_ROTATED,
                by or this_user(),
                name,
                before=_secret_of(*old),
                after=_secret_of(row[1], row[2]),
            )
            append(connection, [made], epoch_millis(now))
            sql = "UPDATE tokens SET old_hash = hash, old_until_ms = ?, hash = ?, expires_ms = ? WHERE id = ?"
            connection.execute(sql, row)
            if not grace:
                connection.execute("DELETE FROM sessions WHERE token_id = ?", (before.id,))

        self._database.write(replace)
        self.forget()
        return text

    # ------------------------------------------------------------------------------------------------- asking

    def required(self) -> bool:
        """Must a caller show a token? From the first one on that somebody made, or where there is sign-on."""
        return self._demanded or any(not one.token.local for one in self._tokens())

    def usable(self) -> bool:
        """Is there one that somebody made, and that works; or another way to sign on?"""
        if self._demanded:
            return True
        now = self._now()
        return any(one.token.in_force(now) and not one.token.local for one in self._tokens())

    def demand(self) -> None:
        """Callers must show a token, also while there is none in the store: theirs come from elsewhere."""
        self._demanded = True

    def verify(self, text: str, address: str | None = None) -> Token | None:
        """The token, if it is one that works, from that address if one is given. Takes the same time for all."""
        given, now = _hash(text), self._now()
        found: Token | None = None
        for known in self._tokens():
            if known.is_text(given, now) and known.token.in_force(now):
                found = known.token
        return None if found is None or not (address is None or found.from_there(address)) else found

    def usable_by_id(self, id_: int, address: str | None = None) -> Token | None:
        """The token of that number, if it is one that works, from that address if one is given."""
        now = self._now()
        for one in self._tokens():
            if one.token.id == id_ and one.token.in_force(now):
                return one.token if address is None or one.token.from_there(address) else None
        return None

    def local(self) -> Token | None:
        """The owner's token, if it is one that works."""
        now = self._now()
        return next((one.token for one in self._tokens() if one.token.local and one.token.in_force(now)), None)

    def own_user_may(self) -> bool:
        """May the controller's own user go on without a token? Until one is made, or the owner's is revoked."""
        known = self._tokens()
        return not known or self.local() is not None

    def note_use(self, token: Token) -> None:
        """It was used just now: written down now and then, with the next commit."""
        now = epoch_millis(self._now())
        if not token.id:
            return  # none of the store's
        if now - self._used.get(token.id, 0) < _USED_EVERY_MS:
            return
        self._used[token.id] = now
        sql = "UPDATE tokens SET used_ms = max(coalesce(used_ms, 0), ?) WHERE id = ?"
        self._database.defer(f"token-{token.id}", lambda connection: connection.execute(sql, (now, token.id)))
        self._database.flush()

    def forget(self) -> None:
        """Read the store again at the next question."""
        with self._lock:
            self._read_at = None

    def _tokens(self) -> tuple[_Known, ...]:
        with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at > self._reread_after:
                rows = self._database.read(f"SELECT {_COLUMNS}, hash, old_hash FROM tokens ORDER BY id")
                self._known = tuple(_Known(row[-2], row[-1], _instant(row[-3]), _token(row[:-2])) for row in rows)
                self._read_at = now
                self._reread_after = max(_REREAD_SECONDS, _REREAD_TIMES * (time.monotonic() - now))
            return self._known

    def _now(self) -> datetime:
        return self._database.clock.now()


TokenList = list[Token]


def expiry(text: str, now: datetime) -> datetime | None:
    """When a token of that life expires: `90d`, or `never`."""
    if text.strip().lower() == "never":
        return None
    life = parse_duration(text)
    if not life:
        raise InvalidValueError("a token that expires at once would never work: write 90d, or never")
    return now + life


def _check(name: str, scopes: Sequence[Scope], terms: Terms, now: datetime) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidValueError(f"{name!r} is not a token's name: letters, digits, ' ', '.', '_', '@', '-'; at most 64")
    if name in (OWN_NAME, LOCAL_NAME):
        # In the job log they mark what the controller itself concluded, and what its owner did without a token.
        raise InvalidValueError(f"{name!r} is a name of the controller's own: choose another --name")
    if not scopes:
        raise InvalidValueError(f"a token needs a scope: {', '.join(Scope)}")
    for pipeline in terms.pipelines:
        check_id(pipeline)
    if (terms.pipelines or terms.owners) and Scope.ADMIN in scopes:
        raise InvalidValueError("pipelines and owners do not limit admin, which may change what they are: leave it out")
    if terms.expires_at is not None and terms.expires_at <= now:
        raise InvalidValueError(f"a token that expires at {terms.expires_at:%Y-%m-%d %H:%M} would never work")


def _networks(given: Sequence[str]) -> list[str]:
    found = []
    for one in given:
        try:
            found.append(str(ip_network(one.strip())))
        except ValueError as error:
            raise InvalidValueError(f"{one!r} is not a network: write 10.0.0.0/8 or 192.0.2.7 ({error})") from error
    return found


def _unknown(name: str) -> InvalidValueError:
    return InvalidValueError(f"there is no token {name!r}: `interlock token list` shows those there are")


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _text(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


def _note(
    action: AuditAction,
    by: Actor,
    name: str,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditNote:
    return AuditNote(action=action, actor=by, subject=name, before=before or {}, after=after or {})


def _secret_of(hash_: bytes, expires_ms: int | None) -> dict[str, object]:
    """A token's text in the audit trail: the beginning of its hash, and until when it works."""
    expires = _instant(expires_ms)
    return {"digest": hash_.hex()[:16], "expiresAt": None if expires is None else format_instant(expires)}


def _shown(row: tuple[Any, ...]) -> dict[str, object]:
    """A new token in the audit trail; `row` is that of the table."""
    _, hash_, scopes, pipelines, owners, _, local, expires, networks = row
    limits = {"pipelines": pipelines, "owners": owners, "networks": networks}
    given = {name: msgspec.json.decode(text) for name, text in limits.items()}
    shown = {"scopes": msgspec.json.decode(scopes), **{name: found for name, found in given.items() if found}}
    return {**shown, **_secret_of(hash_, expires), **({"local": True} if local else {})}


def _insert(connection: sqlite3.Connection, row: tuple[object, ...]) -> int:
    sql = (
        "INSERT INTO tokens (name, hash, scopes, pipelines, owners, created_ms, local, expires_ms, networks)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    return int(connection.execute(sql, row).lastrowid or 0)


def _token(row: Row) -> Token:
    id_, name, scopes, pipelines, owners, created, revoked, local, expires, networks, used, _ = row
    return Token(
        id=id_,
        name=name,
        scopes=msgspec.json.decode(scopes, type=tuple[Scope, ...]),
        pipelines=msgspec.json.decode(pipelines, type=tuple[str, ...]),
        owners=msgspec.json.decode(owners, type=tuple[str, ...]),
        networks=msgspec.json.decode(networks, type=tuple[str, ...]),
        created_at=_EPOCH + timedelta(milliseconds=created),
        expires_at=_instant(expires),
        used_at=_instant(used),
        revoked_at=_instant(revoked),
        local=bool(local),
    )


def _instant(millis: int | None) -> datetime | None:
    return None if millis is None else _EPOCH + timedelta(milliseconds=millis)
