"""How commands and the SDK of the user who runs a controller find its owner's token, wherever they are started.

A controller on loopback leaves a record in the user's state folder, named by its port: its address, its process, and
the file of its token. Both files are 0600. Who reads them believes only files of the same user that nobody else may
read, of a process of the same user that still lives, and sends the token to that very address: `localhost` may be
another one, on which somebody else listens.
"""

import os
import stat
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

_MOST_BYTES: Final = 64 * 1024
_PROC: Final = Path("/proc")


class OwnerRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a controller of this user listens, where its token is, and the certificate that it shows, as PEM."""

    url: str
    pid: int
    process_start: str
    token_file: str
    certificate: str = ""


def record_file(port: int) -> Path | None:
    """The record of a port, in the user's state folder; None for a user without one."""
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    except RuntimeError:
        return None
    return folder / "interlock" / "servers" / f"{port}.json" if folder.is_absolute() else None


def leave_record(url: str, token_file: Path, *, certificate: str = "") -> Path | None:
    """Leave the record of this process; the file, or None for a user without a state folder. Raises OSError."""
    path = record_file(urlsplit(url).port or 80)
    if path is None:
        return None
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_stale(path.parent)
    pid = os.getpid()
    record = OwnerRecord(
        url=url,
        pid=pid,
        process_start=process_start(pid),
        token_file=str(token_file.absolute()),
        certificate=certificate,
    )
    write_private(path, msgspec.json.encode(record))
    return path


def _remove_stale(folder: Path) -> None:
    """What processes left behind that were killed."""
    for path in folder.glob("*.json"):
        with suppress(msgspec.DecodeError):
            if not _is_own_process(msgspec.json.decode(_read_own(path), type=OwnerRecord)):
                path.unlink(missing_ok=True)


def remove_record(path: Path) -> None:
    """This process listens no more."""
    with suppress(OSError, msgspec.DecodeError):
        if msgspec.json.decode(path.read_bytes(), type=OwnerRecord).pid == os.getpid():
            path.unlink()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its user alone may read, whole at any instant. Raises OSError."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def find_token(url: str) -> str:
    """The owner's token of the controller at that very address, if it is one of this user; "" otherwise."""
    record = find_record(url)
    return "" if record is None else _read_own(Path(record.token_file)).decode("ascii", "replace").strip()


def find_certificate(url: str) -> str:
    """The certificate of the controller at that very address, if it is one of this user, as PEM; "" otherwise."""
    record = find_record(url)
    return "" if record is None else record.certificate


def find_record(url: str) -> OwnerRecord | None:
    """What a controller of this user that still lives has left of itself, if it listens at that very address."""
    try:
        parts = urlsplit(url)
        port, address = parts.port, ip_address(parts.hostname or "")
    except ValueError:
        return None
    if port is None or not address.is_loopback:
        return None
    path = record_file(port)
    content = _read_own(path) if path is not None else b""
    try:
        record = msgspec.json.decode(content, type=OwnerRecord)
        own = urlsplit(record.url)
        same = (own.scheme, ip_address(own.hostname or ""), own.port) == (parts.scheme, address, port)
    except (msgspec.DecodeError, ValueError):
        return None
    return record if same and _is_own_process(record) else None


def _read_own(path: Path) -> bytes:
    """The content of a file of this user that nobody else may read or write; nothing of any other."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return b""
        return os.read(file, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _is_own_process(record: OwnerRecord) -> bool:
    if record.pid <= 0:
        return False
    try:
        os.kill(record.pid, 0)
    except OSError:
        return False
    return process_start(record.pid) == record.process_start and process_owner(record.pid) in (None, os.geteuid())


def process_start(pid: int) -> str:
    """When a process started, in whatever unit the system has; "" where that cannot be found out."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The second field is the program's name in parentheses and may hold anything; the start is the 22nd.
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def process_owner(pid: int) -> int | None:
    """The effective user of a process; None where that cannot be found out."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = next((line.split() for line in lines if line.startswith("Uid:")), [])
    return int(found[2]) if len(found) > 2 else None
