"""Reading server-sent events, however the bytes are cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock.client.sse import Message, SseReader

STREAM = (
    b"retry: 2000\n\n"
    b": still here\n\n"
    b'id: 1-10\nevent: JOB_COMPLETED\ndata: {"a": "\xe2\x80\xa8 \xc3\xb6"}\n\n'
    b"id: 2-11\r\ndata: one\r\ndata: two\r\n\r\n"
    b"data:no space\rignored: x\r\r"
    b"id\n\n"
    b"event: closed\ndata: bye\n\n"
)
MESSAGES = [
    Message("JOB_COMPLETED", '{"a": "\u2028 ö"}', "1-10"),
    Message("message", "one\ntwo", "2-11"),
    Message("message", "no space", "2-11"),
    Message("closed", "bye", ""),
]


def test_messages_are_read() -> None:
    reader = SseReader()
    assert reader.feed(STREAM) == MESSAGES
    assert reader.retry == 2.0
    assert reader.last_id == ""


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    reader = SseReader()
    found = [one for a, b in pairwise(places) for one in reader.feed(STREAM[a:b])]
    assert found == MESSAGES


def test_a_message_that_was_cut_short_is_asked_for_again() -> None:
    reader = SseReader("1-10")
    assert reader.feed(b"id: 2-11\ndata: half") == []
    assert reader.last_id == "1-10"
    reader.reconnected()
    assert reader.feed(b"id: 2-11\ndata: whole\n\n") == [Message("message", "whole", "2-11")]


def test_an_id_with_a_null_is_none() -> None:
    reader = SseReader("7")
    assert reader.feed(b"id: a\0b\ndata: x\n\n") == [Message("message", "x", "7")]
