"""An alert in Slack's Block Kit, within Slack's limits. Pure.

Text is escaped, so that nothing a job or a sensor reported can mention a channel or hide a link.
"""

from typing import Any, Final

from interlock.alerts.messages import Message, message_of, one_line
from interlock.model.events import Event

MAX_HEADER: Final = 150
MAX_SECTION: Final = 3000
MAX_FIELD: Final = 2000
MAX_FIELDS: Final = 10
MAX_BLOCKS: Final = 50
MAX_FALLBACK: Final = 3000

Block = dict[str, Any]


def blocks_of(event: Event) -> list[Block]:
    """Header, what happened, the facts, the reasons, what to do, and where it comes from."""
    message = message_of(event)
    blocks = [_header(message)]
    if message.summary:
        blocks.append(_section(escape(message.summary)))
    for start in range(0, len(message.facts), MAX_FIELDS):
        group = message.facts[start : start + MAX_FIELDS]
        blocks.append({"type": "section", "fields": [_field(label, value) for label, value in group]})
    if message.lines:
        blocks.append(_section("\n".join(f"• {escape(line)}" for line in message.lines)))
    if message.hint:
        blocks.append(_section(f"*What to do*\n{escape(message.hint)}"))
    context = {"type": "context", "elements": [_mrkdwn(escape(message.context), MAX_SECTION)]}
    return [*blocks[: MAX_BLOCKS - 1], context]


def fallback_of(event: Event) -> str:
    """For notifications, and for clients that show no blocks."""
    return cut(escape(one_line(event)), MAX_FALLBACK)


def escape(text: str) -> str:
    """Slack's three control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; never half an escape such as `&am`."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 3]
    start = kept.rfind("&", max(0, len(kept) - 5))
    if start >= 0 and ";" not in kept[start:]:
        kept = kept[:start]
    return kept + "..."


def _header(message: Message) -> Block:
    # Plain text is shown as it is: escaping it would show the escapes.
    return {"type": "header", "text": {"type": "plain_text", "text": cut(message.title, MAX_HEADER), "emoji": False}}


def _section(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text, MAX_SECTION)}


def _field(label: str, value: str) -> Block:
    return _mrkdwn(f"*{escape(label)}*\n{escape(value)}", MAX_FIELD)


def _mrkdwn(text: str, limit: int) -> Block:
    return {"type": "mrkdwn", "text": cut(text, limit)}
