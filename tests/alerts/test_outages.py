"""From the committed event to the receiver: through outages, restarts and crashes, once and in order."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.model.events import EventType
from tests.alerts.installation import SETTINGS, Installation, Receivers, receivers_of
from tests.alerts.receivers import HANG_UP, Answer, Fault, limited
from tests.conformance.manual_clock import ManualClock

TOKEN = "xoxb-outage"
PIPELINES = ("gold", "silver", "bronze")
WAIT = 30.0

Make = Callable[..., Installation]


class Crash(BaseException):
    """The process dies here."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def receivers(clock: ManualClock) -> Iterator[Receivers]:
    with receivers_of(clock, TOKEN) as receivers:
        yield receivers


@pytest.fixture
def make(tmp_path: Path, clock: ManualClock, receivers: Receivers) -> Iterator[Make]:
    """Another controller on the same store, as after a restart."""
    made: list[Installation] = []
    environment = {
        "SLACK_BOT_TOKEN": TOKEN,
        "HOOK_URL": receivers.hook.url,
        "HOOK_SECRET": "k",
        "HOOK_AUTH": "Bearer b",
    }
    with httpx.Client(trust_env=False) as client:

        def start(**given: object) -> Installation:
            for one in made:
                one.close()
            made.append(Installation(tmp_path / "s.db", clock, receivers, client, environment, **given))  # type: ignore[arg-type]
            return made[-1]

        yield start
        for one in made:
            one.close()


def check(receivers: Receivers, reported: list[str]) -> None:
    """Every alert once on each channel, in order per pipeline."""
    for heard in (receivers.slack.ids(), [taken["id"] for taken in receivers.hook.taken]):
        assert sorted(heard) == sorted(reported)
        for pipeline in PIPELINES:
            mine = [id_ for id_ in heard if id_.startswith(f"{pipeline}/")]
            assert mine == [id_ for id_ in reported if id_.startswith(f"{pipeline}/")]


def tell_some(installation: Installation, every: timedelta, count: int) -> list[str]:
    reported = []
    for n in range(count):
        reported.append(installation.tell(PIPELINES[n % 3]))
        installation.tell(PIPELINES[n % 3], EventType.JOB_COMPLETED)
        installation.play(every)
    return reported


def test_receivers_that_are_down_for_an_hour_miss_nothing(make: Make, receivers: Receivers) -> None:
    installation = make()
    reported = tell_some(installation, timedelta(minutes=5), 12)
    assert receivers.slack.messages == []
    receivers.up()
    reported += tell_some(installation, timedelta(minutes=5), 6)
    check(receivers, reported)
    assert installation.dispatcher.next_at() is None
    assert installation.letters.count() == 0


def test_an_outage_in_the_middle_with_restarts_all_along(make: Make, receivers: Receivers) -> None:
    receivers.up()
    reported = tell_some(make(), timedelta(seconds=10), 6)
    receivers.down()
    for _ in range(6):
        reported += tell_some(make(), timedelta(minutes=3), 3)
    receivers.up()
    reported += tell_some(make(), timedelta(minutes=10), 3)
    make().play(timedelta(hours=1))
    check(receivers, reported)
    assert [message.get("thread_ts") for message in receivers.slack.messages].count(None) == len(PIPELINES)


def test_rate_limits_errors_and_broken_connections_in_any_order(make: Make, receivers: Receivers) -> None:
    receivers.up()
    receivers.slack.faults.extend(
        [limited(45), Fault(HANG_UP), Fault(Answer(502, b"<html>")), limited(1), Fault(HANG_UP, after=True)]
    )
    receivers.hook.next.extend([Answer(429, b"", {"Retry-After": "20"}), HANG_UP, Answer(500), Answer(408)])
    installation = make()
    reported = tell_some(installation, timedelta(minutes=1), 9)
    installation.play(timedelta(hours=1))
    check(receivers, reported)


@pytest.mark.parametrize("crash_at", range(1, 30))
def test_a_crash_at_any_commit_is_not_heard_twice(make: Make, receivers: Receivers, crash_at: int) -> None:
    """Slack is looked at before anything is posted again; the webhook's receiver knows the id."""
    receivers.up()
    installation = make()
    reported = [installation.tell(pipeline) for pipeline in ("gold", "gold", "silver")]
    commits = 0

    def fault(_: str) -> None:
        nonlocal commits
        commits += 1
        if commits == crash_at:
            raise Crash

    installation.database.fault = fault
    try:
        installation.play(timedelta(minutes=1))
    except Crash:
        installation.database.fault = None
        installation.database.drop_deferred()
        installation = make()
        installation.play(timedelta(minutes=1))
    assert sorted(receivers.slack.ids()) == sorted(reported)
    unique = list({taken["id"]: None for taken in receivers.hook.taken})
    assert sorted(unique) == sorted(reported)
    assert len(receivers.hook.taken) <= len(reported) + 1
    assert installation.dispatcher.deliveries.count(DeliveryState.SENT) == 2 * len(reported)


def test_an_alert_that_a_receiver_refuses_can_be_looked_at_and_redriven(make: Make, receivers: Receivers) -> None:
    receivers.up()
    installation = make()
    receivers.hook.always = lambda event: Answer(422, b"no such team") if event["subject"].startswith("gold") else None
    reported = [installation.tell("gold"), installation.tell("silver")]
    installation.play(timedelta(minutes=5))
    assert [taken["id"] for taken in receivers.hook.taken] == [reported[1]]
    (letter,) = installation.letters.list()
    assert (letter.source, letter.record["event"]) == ("webhook:HOOK_URL", reported[0])
    assert "HTTP 422: no such team" in letter.error
    receivers.hook.always = lambda _: None
    assert installation.letters.redrive() == 1
    installation.play(timedelta(minutes=5))
    assert sorted(taken["id"] for taken in receivers.hook.taken) == sorted(reported)
    check(receivers, [reported[0], reported[1]])


def test_a_channel_that_was_renamed_away_does_not_lose_its_alerts(make: Make, receivers: Receivers) -> None:
    reported = make().tell("gold")
    make().play(timedelta(minutes=1))
    receivers.up()
    slack_only = SETTINGS[: SETTINGS.rindex("[[alerts]]")]
    installation = make(settings=slack_only)
    installation.play(timedelta(hours=1))
    assert receivers.slack.ids() == [reported]
    (letter,) = installation.letters.list()
    assert "webhook:HOOK_URL" in letter.error


def test_it_runs_on_threads(make: Make, receivers: Receivers) -> None:
    receivers.up()
    installation = make(inline=False)
    installation.dispatcher.start()
    try:
        reported = [installation.tell(PIPELINES[n % 3]) for n in range(12)]
        for _ in reported:
            assert receivers.hook.answered.acquire(timeout=WAIT)
            assert receivers.slack.answered.acquire(timeout=WAIT)
    finally:
        # What was answered is also recorded: a try that is under way is finished.
        installation.dispatcher.stop()
    check(receivers, reported)
    assert installation.dispatcher.deliveries.count(DeliveryState.SENT) == 2 * len(reported)


def test_a_retry_on_threads_waits_for_its_time(make: Make, receivers: Receivers, clock: ManualClock) -> None:
    receivers.up()
    receivers.hook.next.append(Answer(503))
    installation = make(inline=False)
    installation.dispatcher.start()
    try:
        reported = [installation.tell("gold")]
        assert receivers.hook.answered.acquire(timeout=WAIT)
        assert receivers.slack.answered.acquire(timeout=WAIT)
        assert receivers.hook.taken == []
        for _ in range(int(WAIT / 0.05)):
            # The failure may be recorded a moment after it was answered: virtual time has to go on until it was.
            clock.advance(seconds=1)
            if receivers.hook.answered.acquire(timeout=0.05):
                break
    finally:
        installation.dispatcher.stop()
    check(receivers, reported)


def test_a_receiver_that_hangs_does_not_hold_up_the_others(make: Make, receivers: Receivers) -> None:
    receivers.up()
    release, hanging = threading.Event(), threading.Event()

    def hang() -> None:
        hanging.set()
        release.wait(WAIT)

    receivers.slack.gate = hang
    installation = make(inline=False)
    installation.dispatcher.start()
    try:
        installation.tell("gold")
        assert hanging.wait(WAIT)
        assert receivers.hook.answered.acquire(timeout=WAIT), "the webhook was served while Slack hung"
        assert receivers.slack.messages == []
    finally:
        release.set()
        installation.dispatcher.stop()
    assert len(receivers.slack.messages) == 1
