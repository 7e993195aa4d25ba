"""Bearer tokens of the HTTP API: made here, shown once, kept as a hash.

A token is 256 random bits, so a plain SHA-256 of it is as good as a slow hash: there is nothing to guess. Tokens are
read from the store at most twice a second; a revoked one therefore works for half a second more, and a write costs no
read.
"""

import hmac
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec

from interlock.embedded.database import Database, Row
from interlock.model.errors import InvalidValueError
from interlock.model.keys import check_id
from interlock.model.times import epoch_millis

PREFIX: Final = "ilk_"
OWN_NAME: Final = "interlock"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}")
_COLUMNS: Final = "id, name, scopes, pipelines, owners, created_ms, revoked_ms"
_REREAD_SECONDS: Final = 0.5
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Scope(StrEnum):
    """What a token allows. `admin` allows everything, `operate` includes `read`."""

    READ = "read"
    SENSOR_WRITE = "sensor:write"
    JOB_WRITE = "job:write"
    OPERATE = "operate"
    ADMIN = "admin"


LIMITED: Final = frozenset({Scope.SENSOR_WRITE, Scope.JOB_WRITE})
_IMPLIED: Final = {Scope.OPERATE: frozenset({Scope.READ}), Scope.ADMIN: frozenset(Scope)}


class Token(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of a token; the token itself is known to its owner alone.

    `pipelines` and `owners` limit `sensor:write` and `job:write` to these; both empty means to none in particular.
    """

    id: int
    name: str
    scopes: tuple[Scope, ...]
    pipelines: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    created_at: datetime
    revoked_at: datetime | None = None

    def allows(self, scope: Scope) -> bool:
        """Does it carry this scope, by itself or by one that includes it?"""
        return any(scope is own or scope in _IMPLIED.get(own, ()) for own in self.scopes)

    def allows_for(self, scope: Scope, pipeline: str, owner: str) -> bool:
        """Does it carry this scope for that pipeline?"""
        if not self.allows(scope):
            return False
        if scope not in LIMITED or not (self.pipelines or self.owners):
            return True
        return pipeline in self.pipelines or (bool(owner) and owner in self.owners)


class Tokens:
    """The tokens of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: tuple[tuple[bytes, Token], ...] = ()
        self._read_at: float | None = None

    def create(
        self, name: str, scopes: Iterable[Scope], *, pipelines: Sequence[str] = (), owners: Sequence[str] = ()
    ) -> tuple[str, Token]:
        """A new token, and what is known of it. The text is not kept: this is the only time that it can be shown."""
        chosen = tuple(dict.fromkeys(scopes))
        _check(name, chosen, pipelines, owners)
        text = PREFIX + secrets.token_urlsafe(32)
        row = (name, _hash(text), _text(chosen), _text(pipelines), _text(owners), epoch_millis(self._now()))
        try:
            id_ = self._database.write(lambda connection: _insert(connection, row))
        except sqlite3.IntegrityError as error:
            raise InvalidValueError(f"there is a token {name!r} already: choose another --name") from error
        self.forget()
        return text, next(token for token in self.list() if token.id == id_)

    def list(self) -> "TokenList":
        """Every token there ever was, in the order they were made."""
        rows = self._database.read(f"SELECT {_COLUMNS} FROM tokens ORDER BY id")
        return [_token(row) for row in rows]

    def revoke(self, name: str) -> Token:
        """End a token, by its name; it stays in the list."""
        now = epoch_millis(self._now())
        sql = "UPDATE tokens SET revoked_ms = coalesce(revoked_ms, ?) WHERE name = ?"
        if not self._database.write(lambda connection: connection.execute(sql, (now, name)).rowcount):
            raise InvalidValueError(f"there is no token {name!r}: `interlock token list` shows those there are")
        self.forget()
        return next(token for token in self.list() if token.name == name)

    def required(self) -> bool:
        """Must a caller show a token? From the first one that was ever made."""
        return bool(self._tokens())

    def usable(self) -> bool:
        """Is there one that works?"""
        return any(token.revoked_at is None for _, token in self._tokens())

    def verify(self, text: str) -> Token | None:
        """The token, if it is one that works. Takes the same time whichever it resembles."""
        given = _hash(text)
        found: Token | None = None
        for known, token in self._tokens():
            if hmac.compare_digest(known, given) and token.revoked_at is None:
                found = token
        return found

    def usable_by_id(self, id_: int) -> Token | None:
        """The token of that number, if it is one that works."""
        return next((token for _, token in self._tokens() if token.id == id_ and token.revoked_at is None), None)

    def forget(self) -> None:
        """Read the store again at the next question."""
        with self._lock:
            self._read_at = None

    def _tokens(self) -> tuple[tuple[bytes, Token], ...]:
        with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at > _REREAD_SECONDS:
                rows = self._database.read(f"SELECT {_COLUMNS}, hash FROM tokens ORDER BY id")
                self._known = tuple((row[-1], _token(row[:-1])) for row in rows)
                self._read_at = now
            return self._known

    def _now(self) -> datetime:
        return self._database.clock.now()


TokenList = list[Token]


def _check(name: str, scopes: Sequence[Scope], pipelines: Sequence[str], owners: Sequence[str]) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidValueError(f"{name!r} is not a token's name: letters, digits, ' ', '.', '_', '@', '-'; at most 64")
    if name == OWN_NAME:
        # In the job log it marks what the controller itself concluded.
        raise InvalidValueError(f"{name!r} is the controller's own name: choose another --name")
    if not scopes:
        raise InvalidValueError(f"a token needs a scope: {', '.join(Scope)}")
    for pipeline in pipelines:
        check_id(pipeline)
    unlimited = [scope for scope in scopes if scope not in LIMITED]
    if (pipelines or owners) and unlimited and unlimited != [Scope.READ]:
        raise InvalidValueError(
            f"pipelines and owners limit sensor:write and job:write only, not {', '.join(unlimited)}: make two tokens"
        )


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _text(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


def _insert(connection: sqlite3.Connection, row: tuple[object, ...]) -> int:
    sql = "INSERT INTO tokens (name, hash, scopes, pipelines, owners, created_ms) VALUES (?, ?, ?, ?, ?, ?)"
    return int(connection.execute(sql, row).lastrowid or 0)


def _token(row: Row) -> Token:
    id_, name, scopes, pipelines, owners, created, revoked = row
    return Token(
        id=id_,
        name=name,
        scopes=msgspec.json.decode(scopes, type=tuple[Scope, ...]),
        pipelines=msgspec.json.decode(pipelines, type=tuple[str, ...]),
        owners=msgspec.json.decode(owners, type=tuple[str, ...]),
        created_at=_EPOCH + timedelta(milliseconds=created),
        revoked_at=None if revoked is None else _EPOCH + timedelta(milliseconds=revoked),
    )
