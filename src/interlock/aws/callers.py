"""Who calls a function: a stream, a queue, or somebody else. Asked by all of them, so it imports nothing of ours."""

from collections.abc import Mapping
from typing import Any


def source_of(event: Mapping[str, Any]) -> str:
    """Which service the records of an event come from; "" when it has none."""
    found = event.get("Records")
    first = found[0] if isinstance(found, list) and found else None
    return str(first.get("eventSource", "")) if isinstance(first, Mapping) else ""


def is_stream(event: Mapping[str, Any]) -> bool:
    """Does a table's stream call?"""
    return source_of(event) == "aws:dynamodb"


def is_queue(event: Mapping[str, Any]) -> bool:
    """Does a queue call?"""
    return source_of(event) == "aws:sqs"
