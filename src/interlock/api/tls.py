"""The certificate that the server shows: loaded, checked, and loaded again when its files change.

A pair is tried before it is used: a client of our own shakes hands with it in memory, which also says when it expires.
New files that cannot be used leave the certificate before in force, with an error in the log and in the health: a
renewal that went wrong must not end a controller. Connections that are open keep what they were opened with.
"""

import ssl
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from interlock.logs import get_logger
from interlock.loops import Loop, Loops
from interlock.model.errors import InterlockError
from interlock.ports.clock import Clock

EXPIRES_SOON: Final = timedelta(days=30)
_LOOK_SECONDS: Final = 1.0
_EXPIRED: Final = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_LONGEST_SHAKE: Final = 10

_Signature = tuple[tuple[int, int, int] | None, ...]

_log = get_logger(__name__)


class TlsError(InterlockError):
    """A certificate, its key or the authority of clients cannot be used."""


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where the certificate (with those that vouch for it), its key and the authority of clients are; PEM."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def all(self) -> tuple[Path, ...]:
        """Every file that matters."""
        return (self.cert, self.key) if self.client_ca is None else (self.cert, self.key, self.client_ca)


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A pair that works. `expires_at` is None when it has expired already; `text` is what the server shows, as PEM."""

    context: ssl.SSLContext
    text: str
    expires_at: datetime | None
    names: tuple[str, ...] = ()
    exposed: bool = False


def load(files: TlsFiles) -> Certificate:
    """The pair of these files, tried; an error says which file is wrong, and how."""
    plain = _context(files, client_ca=None)
    text = ssl.DER_cert_to_PEM_cert(_shown_to(plain, None).getpeercert(binary_form=True) or b"")
    expires_at, names = _validity(files, plain, text)
    return Certificate(
        context=_context(files, client_ca=files.client_ca),
        text=text,
        expires_at=expires_at,
        names=names,
        exposed=bool(files.key.stat().st_mode & stat.S_IROTH),
    )


def _context(files: TlsFiles, *, client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    _check_readable(files)
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except ssl.SSLError as error:
        raise TlsError(_reason(files, error)) from error
    except _EncryptedError:
        raise TlsError(f"TLS key {files.key}: it has a password: write it without (`openssl pkey -in ...`)") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(cafile=client_ca)
        except ssl.SSLError as error:
            raise TlsError(f"TLS client CA {client_ca}: it holds no certificate in PEM ({_words(error)})") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class _EncryptedError(Exception):
    """A key asks for its password. Nobody is there to type it when the files change."""


def _no_password() -> str:
    raise _EncryptedError


def _check_readable(files: TlsFiles) -> None:
    for name, path in (("certificate", files.cert), ("key", files.key), ("client CA", files.client_ca)):
        if path is None:
            continue
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise TlsError(f"TLS {name} {path}: it cannot be read: {error.strerror}") from error


def _reason(files: TlsFiles, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"TLS key {files.key} is not the key of the certificate {files.cert}: give the two that belong together"
    return f"TLS certificate {files.cert}, key {files.key}: they are no certificate and key in PEM ({_words(error)})"


def _words(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def _validity(files: TlsFiles, server: ssl.SSLContext, text: str) -> tuple[datetime | None, tuple[str, ...]]:
    client = pinned(text)
    try:
        found = _shown_to(server, client).getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == _EXPIRED:
            return None, ()
        raise TlsError(
            f"TLS certificate {files.cert}: clients would refuse it: {error.verify_message or _words(error)}"
        ) from error
    except ssl.SSLError as error:
        raise TlsError(f"TLS certificate {files.cert}: no client can connect with it: {_words(error)}") from error
    alternatives: Iterable[tuple[str, str]] = found.get("subjectAltName", ())  # type: ignore[assignment]
    names = tuple(str(value) for _, value in alternatives)
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(found["notAfter"])), UTC), names


def pinned(text: str) -> ssl.SSLContext:
    """For a client that knows the very certificate, and so does not ask for whom it was made."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cadata=text)
    return client


def _shown_to(server: ssl.SSLContext, client: ssl.SSLContext | None) -> ssl.SSLObject:
    """The client's end after a handshake in memory; without a client, by one that believes everything."""
    if client is None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = False
        client.verify_mode = ssl.CERT_NONE
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near, far = client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)
    for _ in range(_LONGEST_SHAKE):
        with suppress(ssl.SSLWantReadError):
            near.do_handshake()
            return near
        with suppress(ssl.SSLWantReadError):
            far.do_handshake()
    raise TlsError("TLS: no handshake is possible with this certificate")


class Certificates:
    """The certificate in force. `context` is for the next connection."""

    def __init__(self, files: TlsFiles, clock: Clock) -> None:
        """Raises TlsError when the files cannot be used: a start is refused, a running server goes on."""
        self._files = files
        self._clock = clock
        self._tried = self._signature()
        self._current = load(files)
        self._refused = False
        self._seen = self._tried
        self._loop: Loop | None = None
        # Told of each certificate that comes into force, as PEM.
        self.changed: list[Callable[[str], None]] = []

    @property
    def context(self) -> ssl.SSLContext:
        """What a connection that begins now is to use."""
        return self._current.context

    @property
    def text(self) -> str:
        """The certificate that is shown, as PEM."""
        return self._current.text

    @property
    def expires_at(self) -> datetime | None:
        """When it ends; None when it has."""
        return self._current.expires_at

    def start(self, loops: Loops) -> None:
        """Follow the files."""
        self._warn()
        self._loop = loops.add("tls", self._look, vital=False)
        self._loop.start()

    def stop(self) -> None:
        """Follow them no more."""
        if self._loop is not None:
            self._loop.stop()

    def problems(self) -> Iterable[str]:
        """What is wrong, in words without paths: anybody may ask."""
        if self._refused:
            yield "the new TLS certificate cannot be used, and the one before stays in force: the log says why"
        if self._current.exposed:
            yield "everybody on the machine may read the TLS key: chmod 600 it"
        left = self._left()
        if left <= timedelta():
            yield "the TLS certificate has expired: clients refuse it; renew it"
        elif left <= EXPIRES_SOON:
            yield f"the TLS certificate expires in {left.days} days: renew it"

    def _left(self) -> timedelta:
        expires_at = self._current.expires_at
        return timedelta() if expires_at is None else expires_at - self._clock.now()

    def _warn(self) -> None:
        for one in self.problems():
            _log.warning(one, certificate=str(self._files.cert))

    def _look(self) -> float:
        found = self._signature()
        # Certificate and key are two files: once neither changes any more, both are new.
        if found != self._tried and found == self._seen:
            self._tried = found
            self._reload()
        self._seen = found
        return _LOOK_SECONDS

    def _reload(self) -> None:
        try:
            self._current = load(self._files)
        except (TlsError, OSError) as error:
            self._refused = True
            _log.error("the new TLS certificate cannot be used: the one before stays in force", error=str(error))
            return
        self._refused = False
        _log.info("the TLS certificate was loaded again", names=self._current.names, until=self._current.expires_at)
        self._warn()
        for one in self.changed:
            one(self._current.text)

    def _signature(self) -> _Signature:
        return tuple(_signature(path) for path in self._files.all())


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
