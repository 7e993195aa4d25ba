"""What alerts say, in words, in blocks and on the console."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from interlock.alerts.blocks import blocks_of, cut, escape, fallback_of
from interlock.alerts.console import ConsoleChannel
from interlock.alerts.messages import message_of, one_line
from interlock.model.events import EventType, Severity
from interlock.ports.channel import Alert
from tests.alerts.alerts import event
from tests.alerts.receivers import check_blocks

BREACH: dict[str, Any] = {
    "status": "waiting",
    "deadline": "10:00",
    "breachAt": "2026-03-02T15:00:00Z",
    "waitingFor": ["row-count: 5 is not >= 1000"],
    "actionHint": "look at who writes row-count",
    "dedupKey": "gold/cron/2026-03-02/SLA_BREACH",
}


def test_a_breach_says_what_is_wrong_and_what_to_do() -> None:
    message = message_of(event(**BREACH))
    assert message.severity is Severity.ERROR
    assert message.title == "ERROR: SLA breach - gold 2026-03-02"
    assert message.facts == (
        ("Pipeline", "gold"),
        ("Date", "2026-03-02"),
        ("Schedule", "cron"),
        ("Status", "waiting"),
        ("Deadline", "10:00"),
        ("Breach at", "2026-03-02T15:00:00Z"),
        ("Waiting for", "row-count: 5 is not >= 1000"),
    )
    assert message.hint == "look at who writes row-count"
    assert message.context == "SLA_BREACH at 2026-03-02T08:00:00Z"


@pytest.mark.parametrize(
    ("type_", "title"),
    [
        (EventType.RELATIVE_SLA_WARNING, "WARNING: Relative SLA warning - gold 2026-03-02"),
        (EventType.JOB_FAILED, "ERROR: Job failed - gold 2026-03-02"),
        (EventType.TRIGGER_UNCERTAIN, "CRITICAL: Trigger uncertain - gold 2026-03-02"),
    ],
)
def test_titles(type_: EventType, title: str) -> None:
    assert message_of(event(type_)).title == title


def test_failing_rules_and_config_errors_are_listed() -> None:
    results = [
        {"key": "a", "passed": True, "reason": "fine"},
        {"key": "b", "passed": False, "reason": "5 is not >= 10"},
    ]
    assert message_of(event(EventType.VALIDATION_EXHAUSTED, results=results)).lines == ("b: 5 is not >= 10",)
    errors = [f"error {n}" for n in range(30)]
    lines = message_of(event(EventType.CONFIG_INVALID, errors=errors)).lines
    assert lines[:2] == ("error 0", "error 1")
    assert lines[-1] == "and 10 more"
    checks = message_of(event(EventType.WATCHDOG_DEGRADED, checks=["stale"], errors={"stale": "boom"})).lines
    assert checks == ("stale: boom", "stale")


def test_facts_of_other_events_follow_the_catalogue() -> None:
    message = message_of(event(EventType.POST_RUN_DRIFT, key="rows", field="count", baseline=10, current=20, change=10))
    assert message.facts[3:] == (
        ("key", "rows"),
        ("field", "count"),
        ("baseline", "10"),
        ("current", "20"),
        ("change", "10"),
    )


def test_blocks_hold_header_facts_hint_and_context() -> None:
    blocks = blocks_of(event(**BREACH))
    check_blocks(blocks)
    assert [block["type"] for block in blocks] == ["header", "section", "section", "section", "context"]
    assert blocks[0]["text"] == {
        "type": "plain_text",
        "text": "ERROR: SLA breach - gold 2026-03-02",
        "emoji": False,
    }
    assert blocks[2]["fields"][-1]["text"] == "*Waiting for*\nrow-count: 5 is not &gt;= 1000"
    assert blocks[3]["text"]["text"] == "*What to do*\nlook at who writes row-count"
    assert blocks[4]["elements"][0]["text"] == "SLA_BREACH at 2026-03-02T08:00:00Z"


def test_nothing_that_was_reported_can_mention_a_channel() -> None:
    shown = event(EventType.JOB_FAILED, message="<!channel> & more", error="<https://evil|click>")
    text = str(blocks_of(shown)) + fallback_of(shown)
    assert "<" not in text
    assert "&lt;!channel&gt; &amp; more" in text


@given(st.text(st.sampled_from("&<>a"), max_size=60), st.integers(4, 40))
def test_cutting_never_leaves_half_an_escape(text: str, limit: int) -> None:
    escaped = escape(text)
    shortened = cut(escaped, limit)
    assert len(shortened) <= limit
    kept = shortened if shortened == escaped else shortened[:-3]
    for entity in ("&amp;", "&lt;", "&gt;"):
        kept = kept.replace(entity, "")
    assert set(kept) <= {"a"}


SENSIBLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4000),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=30,
)
FIELDS = ["status", "deadline", "waitingFor", "actionHint", "error", "errors", "results", "checks", "attempt", "reason"]


@given(
    st.sampled_from(EventType),
    st.text(max_size=6000),
    st.dictionaries(st.sampled_from(FIELDS), SENSIBLE),
    st.text(min_size=1, max_size=300),
)
def test_whatever_an_event_holds_slack_would_take_it(
    type_: EventType, text: str, detail: dict[str, Any], pipeline: str
) -> None:
    shown = event(type_, pipeline, message=text, **detail)
    check_blocks(blocks_of(shown))
    assert 1 <= len(fallback_of(shown)) <= 3000


def test_the_console_prints_one_line_whatever_is_in_it() -> None:
    out = io.StringIO()
    channel = ConsoleChannel(Console(file=out, width=40))
    evil = event(message="failed\nfaked line \x1b[31m[bold]red", waitingFor=["rows"], actionHint="look")
    channel.send(Alert("1", evil), thread=None, maybe_sent=None)
    assert out.getvalue() == (
        "2026-03-02T08:00:00Z ERROR: SLA breach - gold 2026-03-02: failed faked line  [31m[bold]red; "
        "waiting for rows; hint: look\n"
    )


def test_what_the_message_says_is_not_said_again() -> None:
    said = event(
        message="gold has missed its deadline: waiting for rows (no sensor rows)",
        **BREACH | {"waitingFor": ["rows (no sensor rows)"]},
    )
    assert "Waiting for" not in dict(message_of(said).facts)
    assert one_line(said).count("no sensor rows") == 1
    both = ["rows (no sensor rows)", "export (no sensor export)"]
    said = event(message="gold has missed its deadline: waiting for rows (no sensor rows) and 1 more", waitingFor=both)
    assert dict(message_of(said).facts)["Waiting for"] == ", ".join(both)
    assert one_line(said).count("no sensor rows") == 1
    failed = event(EventType.JOB_FAILED, message="the job failed: lost executor", error="lost executor", attempt=1)
    assert "Error" not in dict(message_of(failed).facts)


def test_the_console_prints_json_where_the_logs_are_json() -> None:
    out = io.StringIO()
    channel = ConsoleChannel(Console(file=out, width=40), json=True)
    evil = event(message="failed\nfaked line \x1b[31m[bold]red", **BREACH)
    channel.send(Alert("1", evil), thread=None, maybe_sent=None)
    (line,) = out.getvalue().splitlines()
    reported = json.loads(line)
    assert (reported["event"], reported["level"], reported["timestamp"]) == ("alert", "error", "2026-03-02T08:00:00Z")
    assert (reported["type"], reported["pipeline"], reported["date"]) == ("SLA_BREACH", "gold", "2026-03-02")
    assert reported["message"] == "failed\nfaked line \x1b[31m[bold]red"
    assert reported["detail"]["waitingFor"] == BREACH["waitingFor"]


def test_the_console_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleChannel().send(Alert("1", event()), thread=None, maybe_sent=None)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "SLA breach" in captured.err
