"""The owner's token of a controller on loopback: made at the first start without tokens, kept beside the store.

It stands for the user who runs the controller: commands and the SDK find it by themselves (`interlock.owner_record`),
and the sessions of `interlock open` and of the address that `serve` prints are bound to it. To revoke it is to end
both, and to end what that user may do without a token.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from interlock.embedded.access.tokens import Token, Tokens
from interlock.embedded.sqlite.private_files import OWNER_TOKEN
from interlock.logs import get_logger
from interlock.model.errors import InterlockError
from interlock.owner_record import leave_record, remove_record, write_private

_log = get_logger(__name__)


def token_file(store: Path) -> Path:
    """Where the owner's token of a store is kept."""
    return store.with_name(store.name + OWNER_TOKEN)


class Offer:
    """An owner's token that its user can find, for as long as the controller listens at that address.

    Without it the controller works: where the system says whose a connection is, its user needs no token.
    """

    def __init__(self, store: Path, tokens: Tokens, url: str) -> None:
        self._store = store
        self._tokens = tokens
        self._url = url
        self._record: Path | None = None
        self.certificate = ""

    @contextmanager
    def made(self) -> Iterator[None]:
        """Have a token, and a record of it, until this is left."""
        try:
            if _have_token(self._store, self._tokens):
                self._leave()
        except (OSError, InterlockError) as error:
            _log.warning(
                "the owner's token cannot be kept: commands elsewhere on this machine need one", error=str(error)
            )
        try:
            yield
        finally:
            if self._record is not None:
                remove_record(self._record)

    def show(self, certificate: str) -> None:
        """The controller has another certificate now."""
        self.certificate = certificate
        if self._record is None:
            return
        try:
            self._leave()
        except OSError as error:
            _log.warning("commands of this user do not know the new certificate", error=str(error))

    def _leave(self) -> None:
        self._record = leave_record(self._url, token_file(self._store), certificate=self.certificate)


def _have_token(store: Path, tokens: Tokens) -> bool:
    file = token_file(store)
    known = tokens.local()
    if known is None:
        if tokens.list():
            return False
        write_private(file, tokens.create_local().encode())
        return True
    if not _is_text_of(file, tokens, known):
        write_private(file, tokens.rotate(known.name, grace=timedelta(), file_follows=True).encode())
    return True


def _is_text_of(file: Path, tokens: Tokens, known: Token) -> bool:
    try:
        found = tokens.verify(file.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return False
    return found is not None and found.id == known.id


def for_sessions(tokens: Tokens) -> Token | None:
    """The token that sessions of whoever may open the store are bound to; None when it was revoked."""
    known = tokens.local()
    if known is None and not any(one.local for one in tokens.list()):
        # Of a store that had tokens before there was an owner's. Nobody knows its text.
        tokens.create_local()
        known = tokens.local()
    return known
