"""What jobs on AWS wrote: streams of CloudWatch Logs, and log files that a service leaves in S3.

Of either the last LINES lines are given, in pieces of at most OUTPUT_LIMIT bytes, and then whatever is new. CloudWatch
numbers no lines: an offset into a stream is the time of a line, in milliseconds.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from interlock.jobs.aws.errors import code_of
from interlock.model.errors import UnavailableError
from interlock.ports.jobs import OUTPUT_LIMIT

LINES: Final = 1000
NOT_THERE: Final = frozenset({"ResourceNotFoundException", "NoSuchKey", "NoSuchBucket", "404"})
NOT_ALLOWED: Final = frozenset({"AccessDenied", "AccessDeniedException", "403"})
_PAGES: Final = 50
_FOLLOWED: Final = 5
_TAIL_BYTES: Final = 1024 * 1024
_MOST_PACKED: Final = 64 * 1024 * 1024
_MOST_UNPACKED: Final = 1024 * 1024 * 1024
_CHUNK: Final = 64 * 1024
_LEFT_OUT: Final = "[more lines of the same millisecond are left out]\n"
_PIECE: Final = OUTPUT_LIMIT - len(_LEFT_OUT)


class LogLine(msgspec.Struct, frozen=True):
    """One event of a stream; its message may have several lines."""

    timestamp: int
    message: str


class Piece(msgspec.Struct, frozen=True):
    """Text from an offset, and where the next piece begins. `more`: there is one already."""

    text: str
    next_offset: int
    more: bool


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    events: list[LogLine] = []
    next_token: str | None = None
    next_forward_token: str | None = None


# ------------------------------------------------------------------------------------------------- CloudWatch Logs


def read_stream(logs: Any, group: str, stream: str, offset: int, *, until: int | None = None) -> Piece | None:
    """A piece of a stream, up to the time `until`; None when there is no such stream."""
    where: dict[str, Any] = {"logGroupName": group, "logStreamName": stream, "limit": LINES}
    if until is not None:
        where["endTime"] = until + 1  # the end is not included
    try:
        if offset:
            lines = _from(logs, where, offset)
        else:
            lines = msgspec.convert(logs.get_log_events(**where, startFromHead=False), _Page).events
    except Exception as error:
        if code_of(error) in NOT_THERE:
            return None
        raise
    return _piece(lines, offset)


def _from(logs: Any, where: dict[str, Any], offset: int) -> list[LogLine]:
    """The lines from a time on. A page may be empty and not the last: its token says so by being another."""
    token: dict[str, str] = {}
    for _ in range(_FOLLOWED):
        answer = logs.get_log_events(**where, startTime=offset, startFromHead=True, **token)
        page = msgspec.convert(answer, _Page)
        if page.events or page.next_forward_token in (None, token.get("nextToken")):
            return page.events
        token = {"nextToken": page.next_forward_token or ""}
    return []


def _piece(lines: Sequence[LogLine], offset: int) -> Piece:
    """As many lines as fit, never part of a millisecond: the next piece begins with the next one."""
    kept: list[str] = []
    size = 0
    for index, line in enumerate(lines):
        text = line.message if line.message.endswith("\n") else line.message + "\n"
        size += len(text.encode())
        if size > _PIECE and kept:
            whole = next((at for at in range(index, 0, -1) if lines[at - 1].timestamp < line.timestamp), 0)
            if not whole:  # a single millisecond that does not fit
                return Piece("".join([*kept, _LEFT_OUT]), line.timestamp + 1, more=True)
            return Piece("".join(kept[:whole]), lines[whole - 1].timestamp + 1, more=True)
        kept.append(_cut(text, _PIECE))
    following = lines[-1].timestamp + 1 if lines else offset
    return Piece("".join(kept), following, more=len(lines) >= LINES and offset > 0)


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[: limit - 4].decode(errors="ignore") + "...\n"


def matching_lines(logs: Any, group: str, pattern: str, *, stream: str | None = None, since: int = 0) -> "Matches":
    """The lines of a stream (or a whole group) with the pattern's words; raises when it is not there."""
    where: dict[str, Any] = {"logGroupName": group, "filterPattern": pattern}
    if stream is not None:
        where["logStreamNames"] = [stream]
    if since:
        where["startTime"] = since
    return Matches(logs, where)


class Match(msgspec.Struct, frozen=True, rename="camel"):
    """A line that was found, and in which stream."""

    timestamp: int
    message: str
    log_stream_name: str = ""


class _Found(msgspec.Struct, frozen=True, rename="camel"):
    events: list[Match] = []
    next_token: str | None = None


class Matches:
    """Lines as CloudWatch finds them, oldest first. `cut`: the search was given up before it had seen everything."""

    def __init__(self, logs: Any, where: dict[str, Any]) -> None:
        self._logs = logs
        self._where = where
        self.cut = False

    def __iter__(self) -> Iterator[Match]:
        token: dict[str, str] = {}
        for _ in range(_PAGES):
            page = msgspec.convert(self._logs.filter_log_events(**self._where, **token), _Found)
            yield from page.events
            if page.next_token is None:
                return
            token = {"nextToken": page.next_token}
        self.cut = True


# -------------------------------------------------------------------------------------------------------------- S3


def split_s3(uri: str) -> tuple[str, str]:
    """Bucket and key prefix of `s3://bucket/prefix/`, which EMR may write as s3n or s3a."""
    bucket, _, key = uri.partition("://")[2].partition("/")
    return bucket, key.strip("/")


def read_packed(s3: Any, bucket: str, key: str, offset: int) -> Piece | None:
    """A piece of a gzipped log file; offsets are bytes of what is in it. None when there is no such file."""
    try:
        answer = s3.get_object(Bucket=bucket, Key=key)
    except Exception as error:
        if code_of(error) in NOT_THERE:
            return None
        raise
    if int(answer.get("ContentLength", 0)) > _MOST_PACKED:
        return Piece(f"s3://{bucket}/{key} is too large to be read here\n", max(offset, 1), more=False)
    with answer["Body"] as body:
        try:
            tail, total = _tail(_unpacked(iter(lambda: body.read(_CHUNK), b"")), offset)
        except zlib.error as error:
            raise UnavailableError(f"s3://{bucket}/{key} cannot be unpacked: {error}") from error
    begins = total - len(tail)
    if not offset:
        last = tail.splitlines(keepends=True)[-LINES:]
        begins, tail = total - sum(map(len, last)), b"".join(last)
    data = tail[:OUTPUT_LIMIT]
    if len(tail) > OUTPUT_LIMIT:
        data = data[: data.rfind(b"\n") + 1] or data
    return Piece(data.decode(errors="replace"), begins + len(data), more=len(data) < len(tail))


def _unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
    for chunk in chunks:
        while chunk:
            yield unpack.decompress(chunk, _CHUNK)
            chunk = unpack.unconsumed_tail
            if unpack.eof:
                chunk, unpack = unpack.unused_data, zlib.decompressobj(16 + zlib.MAX_WBITS)
    yield unpack.flush()


def _tail(chunks: Iterable[bytes], offset: int) -> tuple[bytes, int]:
    """What comes after the offset (without one: the end), at most _TAIL_BYTES of it; and how much there is so far."""
    kept, total = b"", 0
    for chunk in chunks:
        total += len(chunk)
        kept += chunk
        if offset:
            kept = kept[max(0, offset - (total - len(kept))) :] if total > offset else b""
            if len(kept) > _TAIL_BYTES:
                break
        elif len(kept) > 2 * _TAIL_BYTES:
            kept = kept[-_TAIL_BYTES:]
        if total > _MOST_UNPACKED:
            break
    return (kept if offset else kept[-_TAIL_BYTES:]), total
