"""Addresses at which a job reports its own end: whoever has one may do that for one attempt, once, and nothing else.

An address holds what it is for and a signature of that, so nothing has to be remembered for it. The key lies beside the
store, readable by its owner alone; with another key the addresses of jobs that are under way are void.
"""

import contextlib
import hmac
import os
import secrets
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from interlock.model.errors import StoreError
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobRequest

PATH: Final = "/api/v1/callbacks/"
_KEY_BYTES: Final = 32
_PURPOSE: Final = b"interlock callback 1\n"


class Callback(msgspec.Struct, frozen=True, array_like=True):
    """The attempt whose end an address reports."""

    pipeline: str
    schedule: str
    date: str
    attempt: int
    run_id: str

    @property
    def key(self) -> RunKey:
        """The run."""
        return RunKey(self.pipeline, self.schedule, self.date)


class Callbacks:
    """Makes and reads the addresses of one controller. `lock`: held by who uses one up."""

    def __init__(self, store: Path | None) -> None:
        self._store = store
        self.lock = threading.Lock()
        self.base_url = ""
        """Where the controller is reached by those who report; "" while that is not known."""

    def url(self, request: JobRequest) -> str:
        """The address for the job of a request; "" when nobody knows where the controller is reached."""
        if not self.base_url:
            return ""
        run = request.key
        claim = Callback(run.pipeline, run.schedule, run.date, request.attempt, request.run_id)
        return f"{self.base_url.rstrip('/')}{PATH}{self.token(claim)}"

    def token(self, claim: Callback) -> str:
        """What stands behind PATH."""
        payload = msgspec.json.encode(claim)
        return f"{_text(payload)}.{_text(self._signature(payload))}"

    def read(self, token: str) -> Callback | None:
        """What a token is for; None when it is not one of ours."""
        payload, _, signature = token.partition(".")
        try:
            data, signed = _bytes(payload), _bytes(signature)
            if not hmac.compare_digest(signed, self._signature(data)):
                return None
            return msgspec.json.decode(data, type=Callback)
        except (ValueError, msgspec.DecodeError):
            return None

    @cached_property
    def _key(self) -> bytes:
        # When it is first needed: most controllers have no job that reports in this way.
        return signing_key(self._store)

    def _signature(self, payload: bytes) -> bytes:
        return hmac.new(self._key, _PURPOSE + payload, sha256).digest()


def signing_key(store: Path | None) -> bytes:
    """The key beside a store, made when there is none; a store in memory has one of its own."""
    if store is None:
        return secrets.token_bytes(_KEY_BYTES)
    path = store.with_name(f"{store.name}.callback-key")
    try:
        if not path.exists():
            _make(path)
        found = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: the addresses of callbacks are signed with it") from error
    if len(found) != _KEY_BYTES:
        raise StoreError(f"{path} is damaged: remove it; jobs that are to report by callback must then be rerun")
    return found


def _make(path: Path) -> None:
    """Whole or not at all, and never in place of one that is there."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, secrets.token_bytes(_KEY_BYTES))
        os.fsync(file)
    finally:
        os.close(file)
    with contextlib.suppress(FileExistsError):
        os.link(new, path)
    new.unlink()


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
