"""Secrets never appear in any output. Everything is done with recognisable ones, and then everything is searched."""

import copy
import io
import logging
import pickle
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import structlog

from interlock.alerts.secrets import Secret, redact
from interlock.model.errors import InterlockError
from tests.alerts.alerts import alert
from tests.alerts.installation import SETTINGS, Installation, Receivers, receivers_of
from tests.alerts.receivers import HANG_UP, Answer, Fault, limited, refusal
from tests.conformance.manual_clock import ManualClock

MARK = "zq7secret"
TOKEN = f"xoxb-{MARK}-token"
HOOK_SECRET = f"{MARK}-signing"
HOOK_AUTH = f"Bearer {MARK}-auth"


class Output:
    """Everything that is printed or logged, by us or by a library, at the most talkative level."""

    def __init__(self, logs: list[MutableMapping[str, Any]]) -> None:
        self.printed = io.StringIO()
        self.logs = logs

    @property
    def text(self) -> str:
        return self.printed.getvalue() + repr(self.logs)


@pytest.fixture
def output() -> Iterator[Output]:
    root = logging.getLogger()
    level = root.level
    with structlog.testing.capture_logs() as logs:
        output = Output(logs)
        handler = logging.StreamHandler(output.printed)
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        with redirect_stdout(output.printed), redirect_stderr(output.printed):
            yield output
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    with receivers_of(ManualClock(), TOKEN) as receivers:
        yield receivers


@pytest.fixture
def installation(tmp_path: Path, receivers: Receivers) -> Iterator[Installation]:
    environment = {
        "SLACK_BOT_TOKEN": TOKEN,
        "HOOK_URL": hook_url(receivers),
        "HOOK_SECRET": HOOK_SECRET,
        "HOOK_AUTH": HOOK_AUTH,
    }
    with httpx.Client(trust_env=False) as client:
        made = Installation(tmp_path / "s.db", ManualClock(), receivers, client, environment)
        yield made
        made.close()


def misbehave(receivers: Receivers) -> None:
    """Receivers that fail in every way, and answer with everything secret they were sent."""
    said = f"you sent Bearer {TOKEN}"
    receivers.slack.faults.extend(
        [
            refusal(said),
            Fault(Answer(500, said.encode(), content_type="text/plain")),
            Fault(Answer(200, said.encode())),
            Fault(Answer(403, said.encode())),
            Fault(HANG_UP),
            limited(3),
        ]
    )
    said = f"you sent {HOOK_SECRET}, {HOOK_AUTH} to {hook_url(receivers)}"
    receivers.hook.next.extend([Answer(500, said.encode()), Answer(429, said.encode()), HANG_UP])


def hook_url(receivers: Receivers) -> str:
    return f"{receivers.hook.url}/{MARK}-path?key={MARK}-query"


def rows(installation: Installation) -> str:
    tables = [name for (name,) in installation.database.read("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return repr({table: installation.database.read(f"SELECT * FROM {table}") for table in tables})


def test_no_secret_in_any_output(
    installation: Installation, receivers: Receivers, output: Output, tmp_path: Path
) -> None:
    installation.tell("gold")
    installation.play(timedelta(minutes=10))
    receivers.up()
    misbehave(receivers)
    for pipeline in ("gold", "silver", "bronze"):
        installation.tell(pipeline)
    installation.play(timedelta(hours=3))
    receivers.slack.token = "another"
    receivers.hook.always = lambda _: Answer(403, f"no: {hook_url(receivers)}".encode())
    installation.tell("gold")
    installation.play(timedelta(hours=3))
    letters = installation.letters.list()
    assert {letter.source for letter in letters} == {"slack:C0123456789", "webhook:HOOK_URL"}
    assert "***" in repr(letters), "something was hidden, so the search below is not in vain"
    assert len(receivers.slack.messages) >= 3
    assert any(MARK in request.path for request in receivers.hook.requests), "the receiver does get the secrets"
    assert "not delivered" in output.text
    assert "became a dead letter" in output.text
    searched = [output.text, rows(installation), repr(letters), msgspec.json.encode(letters).decode()]
    searched += [repr(receivers.slack.messages), repr(receivers.hook.taken), repr(vars(installation.dispatcher))]
    searched += [repr(installation.dispatcher.deliveries._channels)]
    for text in searched:
        assert MARK not in text
    installation.close()
    for file in tmp_path.iterdir():
        assert MARK.encode() not in file.read_bytes()


def test_no_secret_in_what_a_channel_raises(installation: Installation, receivers: Receivers, output: Output) -> None:
    raised: list[InterlockError] = []
    channels = installation.dispatcher.deliveries._channels
    for up in (False, True):
        if up:
            receivers.up()
            misbehave(receivers)
        for channel in channels.values():
            for _ in range(6 if up else 1):
                try:
                    channel.send(alert(), thread=None, maybe_sent=None)
                except InterlockError as error:
                    raised.append(error)
    assert len(raised) == 2 + 6 + 3
    for one in raised:
        assert MARK not in "".join(traceback.format_exception(one)) + repr(one) + repr(vars(one))
        assert one.__context__ is None
    assert MARK not in output.text


def test_a_whole_day_down_leaves_dead_letters_without_secrets(installation: Installation, output: Output) -> None:
    installation.tell("gold")
    installation.play(timedelta(hours=25))
    letters = installation.letters.list()
    assert len(letters) == 2
    assert MARK not in repr(letters) + output.text + rows(installation)


def test_settings_show_no_secret() -> None:
    assert MARK not in SETTINGS, "settings name variables, never values"


# ------------------------------------------------------------------------------------------------- the type


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(MARK)
    shown = f"{secret} {secret!r} {secret:>20} {secret!s} %s {[secret]} { ({'a': secret}) }" % secret
    assert MARK not in shown
    assert secret.reveal() == MARK
    assert (secret == Secret(MARK), secret == Secret("x"), secret == MARK) == (True, False, False)
    assert not Secret("")
    assert len({secret, Secret(MARK)}) == 1


def test_a_secret_can_not_be_stored_by_accident() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(MARK))
    with pytest.raises(TypeError):
        copy.copy(Secret(MARK))
    with pytest.raises(TypeError):
        msgspec.json.encode(Secret(MARK))


def test_redacting_takes_the_longest_first_and_leaves_short_words_alone() -> None:
    secrets = [Secret("abcd"), Secret("abcdefgh"), Secret("a"), Secret("")]
    assert redact("a abcd abcdefgh abcdef", secrets) == "a *** *** ***ef"
