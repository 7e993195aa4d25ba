"""What a function gave up on, put whole into a queue: the mapping's own message has no record in it.

A letter is JSON. A letter larger than a message may be has its record compressed (`packed`: zlib, base64); one that
is too large even so keeps the key alone, and the item is still in its table.
"""

import base64
import zlib
from datetime import datetime
from typing import Any, Final

import msgspec

from interlock.aws.clients import Clients
from interlock.aws.failures import call
from interlock.model.errors import InvalidValueError

LARGEST: Final = 1024 * 1024 - 1024
"""A message has at most 1 MiB (SQS Developer Guide, "Message quotas"), attributes included."""
_PLAIN_LIMIT: Final = 200 * 1024


class Letter(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A stream record that was given up on."""

    table: str
    error: str
    tries: int
    first_at: datetime
    last_at: datetime
    function: str = ""
    record: dict[str, Any] | None = None
    """The record as Lambda gave it."""
    packed: str = ""
    """The same, compressed."""
    keys: dict[str, Any] | None = None
    """The key of a record that was too large to be kept."""


def letter_text(letter: Letter) -> str:
    """A letter as the body of a message."""
    text = msgspec.json.encode(letter)
    if len(text) <= _PLAIN_LIMIT or letter.record is None:
        return text.decode()
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(letter.record))).decode()
    text = msgspec.json.encode(msgspec.structs.replace(letter, record=None, packed=packed))
    if len(text) <= LARGEST:
        return text.decode()
    keys = letter.record.get("dynamodb", {}).get("Keys")
    return msgspec.json.encode(msgspec.structs.replace(letter, record=None, keys=keys)).decode()


def read_letter(text: str) -> Letter:
    """A letter with its record unpacked; InvalidValueError when the text is none of ours."""
    try:
        letter = msgspec.json.decode(text, type=Letter)
        if not letter.packed:
            return letter
        record = msgspec.json.decode(zlib.decompress(base64.b64decode(letter.packed)), type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, zlib.error) as error:
        raise InvalidValueError(f"this message is no dead letter of a stream: {error}") from error
    return msgspec.structs.replace(letter, record=record, packed="")


def send_letter(clients: Clients, url: str, letter: Letter) -> None:
    """Put a letter into a dead-letter queue."""
    call(
        f"putting a record into the dead-letter queue {url.rsplit('/', 1)[-1]}",
        lambda: clients("sqs").send_message(QueueUrl=url, MessageBody=letter_text(letter)),
    )
