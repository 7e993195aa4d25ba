"""Browser sessions: a random cookie that stands for a token, so that no page ever keeps the token itself.

A session ends after 12 hours without use, after 7 days in any case, when it is ended, or when its token is revoked. It
is read from the store at most twice a second, so that a session ended by another process works for half a second more.
A code is exchanged for a session once, within 5 minutes: `interlock open` puts one into the address it opens.

Times are the machine's, not the controller's: a demo's hour that takes half a minute must not log anybody out.
"""

import secrets
import sqlite3
import threading
import time
from hashlib import sha256
from typing import Final

import msgspec

from interlock.embedded.access.tokens import Token, Tokens
from interlock.embedded.audit.actors import of_token, this_user
from interlock.embedded.audit.chain import append
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.model.audit import Actor, AuditAction, AuditNote
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock

IDLE_MS: Final = 12 * 3_600_000
LONGEST_MS: Final = 7 * 86_400_000
CODE_MS: Final = 5 * 60_000
# A session's use is written down at most so often: a page that is looked at must not write with every request.
_SEEN_EVERY_MS: Final = 5 * 60_000
_REREAD_SECONDS: Final = 0.5
_MOST_REMEMBERED: Final = 1000

_EXPIRED: Final = "DELETE FROM sessions WHERE seen_ms <= ? OR begun_ms <= ?"


class Session(msgspec.Struct, frozen=True):
    """A session that is in force."""

    token: Token


class _Row(msgspec.Struct, frozen=True):
    token_id: int | None
    begun_ms: int
    seen_ms: int


class Sessions:
    """The sessions of a store."""

    def __init__(self, database: Database, tokens: Tokens, clock: Clock | None = None) -> None:
        self._database = database
        self._tokens = tokens
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._known: dict[bytes, tuple[float, _Row | None]] = {}

    def begin(self, token: Token, address: str = "") -> str:
        """A new session of a token; the value of its cookie, which is not kept."""
        now = self._now()

        def begin(connection: sqlite3.Connection) -> str:
            self._record(connection, AuditAction.SESSION_BEGUN, token.id, address, "with a token")
            return _begin(connection, token.id, now)

        return self._database.write(begin)

    def find(self, value: str, address: str | None = None) -> Session | None:
        """The session of a cookie, if it is in force, from that address if one is given; this counts as use."""
        if not value:
            return None
        now, key = self._now(), _hash(value)
        row = self._row(key)
        if row is None or now - row.seen_ms >= IDLE_MS or now - row.begun_ms >= LONGEST_MS:
            return None
        token = None if row.token_id is None else self._tokens.usable_by_id(row.token_id, address)
        if token is None:
            return None
        if now - row.seen_ms >= _SEEN_EVERY_MS:
            self._touch(key, row, now)
        return Session(token)

    def end(self, value: str, address: str = "") -> None:
        """End the session of a cookie; ending what has ended is no error."""
        key = _hash(value)

        def end(connection: sqlite3.Connection) -> None:
            sql = "DELETE FROM sessions WHERE hash = ? RETURNING token_id"
            found = connection.execute(sql, (key,)).fetchone()
            if found is not None:
                self._record(connection, AuditAction.SESSION_ENDED, found[0], address)

        self._database.write(end)
        with self._lock:
            self._known.pop(key, None)

    # --------------------------------------------------------------------------------------------------- codes

    def make_code(self, token: Token, by: Actor | None = None) -> str:
        """A code that begins a session once, within 5 minutes; made by the user of this process, unless `by` is."""
        text, now = secrets.token_urlsafe(32), self._now()
        row = (_hash(text), token.id, now + CODE_MS)

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM session_codes WHERE expires_ms <= ?", (now,))
            connection.execute("INSERT INTO session_codes (hash, token_id, expires_ms) VALUES (?, ?, ?)", row)
            made = AuditNote(action=AuditAction.SESSION_CODE_MADE, actor=by or this_user(), subject=token.name)
            append(connection, [made], epoch_millis(self._database.clock.now()))

        self._database.write(insert)
        return text

    def redeem(self, code: str, address: str = "") -> str | None:
        """Exchange a code for a session: the value of its cookie; None for a code that is used up, old or unknown."""
        now = self._now()

        def exchange(connection: sqlite3.Connection) -> tuple[int | None, str] | None:
            sql = "DELETE FROM session_codes WHERE hash = ? RETURNING token_id, expires_ms"
            found = connection.execute(sql, (_hash(code),)).fetchone()
            if found is None or found[1] <= now:
                return None
            self._record(connection, AuditAction.SESSION_BEGUN, found[0], address, "with a code")
            return found[0], _begin(connection, found[0], now)

        made = self._database.write(exchange)
        self._tokens.forget()  # who made the code may have made its token just before, in another process
        if made is None or made[0] is None or self._tokens.usable_by_id(made[0]) is None:
            return None
        return made[1]

    def _record(
        self, connection: sqlite3.Connection, action: AuditAction, token_id: int | None, address: str, how: str = ""
    ) -> None:
        """Record what the holder of a token did, within the transaction that does it."""
        found = connection.execute("SELECT name, local FROM tokens WHERE id = ?", (token_id,)).fetchone()
        if found is not None:
            actor = of_token(found[0], local=bool(found[1]), address=address)
            made = AuditNote(action=action, actor=actor, subject=found[0], reason=how)
            append(connection, [made], epoch_millis(self._database.clock.now()))

    # ------------------------------------------------------------------------------------------------- reading

    def _row(self, key: bytes) -> _Row | None:
        now = time.monotonic()
        with self._lock:
            known = self._known.get(key)
            if known is not None and now - known[0] <= _REREAD_SECONDS:
                return known[1]
        rows = self._database.read("SELECT token_id, begun_ms, seen_ms FROM sessions WHERE hash = ?", (key,))
        row = _Row(*rows[0]) if rows else None
        self._remember(key, row, now)
        return row

    def _remember(self, key: bytes, row: _Row | None, now: float) -> None:
        with self._lock:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = (now, row)

    def _touch(self, key: bytes, row: _Row, now: int) -> None:
        """Written with the next commit: nobody waits for it. Remembered, so that it is asked for once."""
        sql = "UPDATE sessions SET seen_ms = max(seen_ms, ?) WHERE hash = ?"
        self._database.defer(f"session-{key.hex()}", lambda connection: connection.execute(sql, (now, key)))
        self._database.flush()
        self._remember(key, msgspec.structs.replace(row, seen_ms=now), time.monotonic())

    def _now(self) -> int:
        return epoch_millis(self._clock.now())


def _begin(connection: sqlite3.Connection, token_id: int | None, now: int) -> str:
    value = secrets.token_urlsafe(32)
    connection.execute(_EXPIRED, (now - IDLE_MS, now - LONGEST_MS))
    sql = "INSERT INTO sessions (hash, token_id, begun_ms, seen_ms) VALUES (?, ?, ?, ?)"
    connection.execute(sql, (_hash(value), token_id, now, now))
    return value


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
