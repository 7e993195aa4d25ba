"""What jobs wrote, in pieces: streams of CloudWatch and packed files in S3."""

import gzip
from typing import Any

import pytest

from interlock.jobs.aws.logs import LINES, Match, Piece, matching_lines, read_packed, read_stream, split_s3
from interlock.model.errors import UnavailableError
from interlock.ports.jobs import OUTPUT_LIMIT
from tests.jobs.aws.moto_services import Aws

GROUP, STREAM, T0 = "/aws-glue/jobs/output", "jr_1", 1_772_000_000_000
BUCKET = "emr-logs"


def whole(logs: Any, until: int | None = None) -> list[str]:
    """Every piece until there is no more text; each is small enough."""
    pieces: list[str] = []
    offset = 0
    while True:
        piece = read_stream(logs, GROUP, STREAM, offset, until=until)
        assert piece is not None
        assert len(piece.text.encode()) <= OUTPUT_LIMIT
        if not piece.text:
            return pieces
        assert piece.next_offset > offset
        pieces.append(piece.text)
        offset = piece.next_offset


def test_a_stream_is_read_and_followed(aws: Aws) -> None:
    logs = aws.client("logs")
    assert read_stream(logs, GROUP, STREAM, 0) is None
    aws.log_group(GROUP)
    assert read_stream(logs, GROUP, STREAM, 0) is None
    aws.log(GROUP, STREAM, T0, "one", "two\n")
    first = read_stream(logs, GROUP, STREAM, 0)
    assert first == Piece("one\ntwo\n", T0 + 1, more=False)
    assert read_stream(logs, GROUP, STREAM, T0 + 1) == Piece("", T0 + 1, more=False)
    aws.log(GROUP, STREAM, T0 + 5, "three")
    assert read_stream(logs, GROUP, STREAM, T0 + 1) == Piece("three\n", T0 + 6, more=False)


def test_of_a_long_stream_the_last_lines_are_given(aws: Aws) -> None:
    for number in range(LINES + 200):
        aws.log(GROUP, STREAM, T0 + number, f"line {number}")
    (text,) = whole(aws.client("logs"))
    lines = text.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (LINES, "line 200", f"line {LINES + 199}")


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_is_more_than_a_piece_comes_in_several(aws: Aws, at_once: int) -> None:
    """Also where several lines share a millisecond: a piece ends between two of those, never within one."""
    written = [f"{number:03d} {'ü' * 2000}" for number in range(100)]
    for number, line in enumerate(written):
        aws.log(GROUP, STREAM, T0 + number // at_once, line)
    pieces = whole(aws.client("logs"))
    assert len(pieces) > 3
    assert "".join(pieces).splitlines() == written


def test_a_line_that_is_longer_than_a_piece_is_cut(aws: Aws) -> None:
    aws.log(GROUP, STREAM, T0, "short", "ü" * OUTPUT_LIMIT)
    aws.log(GROUP, STREAM, T0 + 1, "end")
    pieces = whole(aws.client("logs"))
    assert pieces == ["short\n[more lines of the same millisecond are left out]\n", "end\n"]
    aws.log(GROUP, STREAM, T0 + 2, "x" * OUTPUT_LIMIT)
    assert whole(aws.client("logs"))[-1].endswith("xxx...\n")


def test_a_stream_is_read_to_a_certain_time(aws: Aws) -> None:
    for number in range(4):
        aws.log(GROUP, STREAM, T0 + number, f"line {number}")
    assert whole(aws.client("logs"), until=T0 + 1)[0].startswith("line 0\nline 1\n")


class Pages:
    """CloudWatch as it may answer: pages without events that are not the last."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = list(pages)
        self.asked: list[dict[str, Any]] = []

    def get_log_events(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return self.pages.pop(0)

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return self.pages.pop(0) if len(self.pages) > 1 else self.pages[0]


def test_an_empty_page_is_not_the_end() -> None:
    event = {"timestamp": T0, "message": "late", "ingestionTime": T0}
    logs = Pages({"events": [], "nextForwardToken": "f/1"}, {"events": [event], "nextForwardToken": "f/2"})
    assert read_stream(logs, GROUP, STREAM, T0) == Piece("late\n", T0 + 1, more=False)
    assert [asked.get("nextToken") for asked in logs.asked] == [None, "f/1"]
    end = Pages({"events": [], "nextForwardToken": "f/1"}, {"events": [], "nextForwardToken": "f/1"})
    assert read_stream(end, GROUP, STREAM, T0) == Piece("", T0, more=False)


def test_a_search_goes_through_all_pages_but_not_forever() -> None:
    event = {"timestamp": T0, "message": "ERROR", "logStreamName": STREAM, "eventId": "1"}
    logs = Pages({"events": [], "nextToken": "a"}, {"events": [event], "nextToken": "b"}, {"events": []})
    found = matching_lines(logs, GROUP, '"ERROR"', stream=STREAM, since=T0)
    assert list(found) == [Match(T0, "ERROR", STREAM)]
    assert not found.cut
    assert [asked.get("nextToken") for asked in logs.asked] == [None, "a", "b"]
    assert {asked["startTime"] for asked in logs.asked} == {T0}
    endless = matching_lines(Pages({"events": [], "nextToken": "again"}), GROUP, '"ERROR"')
    assert list(endless) == []
    assert endless.cut


# -------------------------------------------------------------------------------------------------------------- S3


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("s3://bucket/prefix/", ("bucket", "prefix")),
        ("s3n://bucket/a/b", ("bucket", "a/b")),
        ("s3://bucket", ("bucket", "")),
        ("", ("", "")),
    ],
)
def test_where_logs_lie(uri: str, parts: tuple[str, str]) -> None:
    assert split_s3(uri) == parts


def put(aws: Aws, key: str, data: bytes) -> Any:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key=key, Body=data)
    return s3


def unpacked(s3: Any, key: str) -> list[str]:
    pieces: list[str] = []
    offset = 0
    while True:
        piece = read_packed(s3, BUCKET, key, offset)
        assert piece is not None
        assert len(piece.text.encode()) <= OUTPUT_LIMIT
        pieces.append(piece.text)
        offset = piece.next_offset
        if not piece.more:
            return pieces


def test_a_packed_file_is_read_and_followed(aws: Aws) -> None:
    s3 = put(aws, "a.gz", gzip.compress(b"one\ntwo\n"))
    assert read_packed(s3, BUCKET, "b.gz", 0) is None
    assert read_packed(s3, "nowhere", "b.gz", 0) is None
    assert read_packed(s3, BUCKET, "a.gz", 0) == Piece("one\ntwo\n", 8, more=False)
    assert read_packed(s3, BUCKET, "a.gz", 8) == Piece("", 8, more=False)
    put(aws, "a.gz", gzip.compress(b"one\ntwo\n") + gzip.compress(b"three\n"))
    assert read_packed(s3, BUCKET, "a.gz", 8) == Piece("three\n", 14, more=False)


def test_of_a_long_file_the_last_lines_are_given_in_pieces(aws: Aws) -> None:
    written = [f"{number:05d} {'x' * 150}" for number in range(20_000)]
    s3 = put(aws, "a.gz", gzip.compress("\n".join(written).encode()))
    pieces = unpacked(s3, "a.gz")
    assert len(pieces) > 2
    assert "".join(pieces).splitlines() == written[-LINES:]


def test_a_file_of_one_endless_line_is_bounded(aws: Aws) -> None:
    s3 = put(aws, "a.gz", gzip.compress(b"x" * 3_000_000))
    pieces = unpacked(s3, "a.gz")
    assert len("".join(pieces)) == 1024 * 1024


def test_a_file_that_is_not_packed_is_said_to_be_so(aws: Aws) -> None:
    s3 = put(aws, "a.gz", b"plain")
    with pytest.raises(UnavailableError, match=r"a\.gz cannot be unpacked"):
        read_packed(s3, BUCKET, "a.gz", 0)


def test_a_file_that_is_too_large_is_not_loaded() -> None:
    class Huge:
        def get_object(self, **_: Any) -> dict[str, Any]:
            return {"ContentLength": 10**9}

    piece = read_packed(Huge(), BUCKET, "a.gz", 0)
    assert piece is not None
    assert "too large" in piece.text
    assert not piece.more
