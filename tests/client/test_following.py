"""Following events over lost connections, and waiting for readiness without asking in a loop."""

from typing import Any

import msgspec
import pytest

from interlock.client.core import Core
from interlock.client.errors import (
    ConnectionFailedError,
    NotFoundError,
    NotReadyError,
    ServerFailedError,
    WithheldError,
)
from interlock.client.following import events, follow, wait_until_ready
from interlock.client.retries import Fate
from interlock.client.steps import Came, HangUp, Listen, NoAnswer, Pause, Reply, Send
from tests.client.shell import Script, ok, refused

AT = "2026-03-02T08:00:00Z"
OPEN = Reply(200, {}, b"")
AWAY = NoAnswer(Fate.NOT_SENT, "refused")
SILENT = NoAnswer(Fate.UNKNOWN, "timed out")


def message(number: int, name: str = "") -> bytes:
    event = {
        "id": name or f"e{number}",
        "type": "JOB_COMPLETED",
        "severity": "info",
        "pipelineId": "gold",
        "message": "done",
        "timestamp": AT,
    }
    return b"id: %d-0\nevent: JOB_COMPLETED\ndata: %s\n\n" % (number, msgspec.json.encode(event))


def readiness(ready: bool, **more: Any) -> Reply:
    found = {
        "pipeline": "gold",
        "schedule": "cron",
        "date": "2026-03-02",
        "ready": ready,
        "mode": "ALL",
        "summary": "2 of 2 rules pass" if ready else "1 of 2 rules pass; rows is missing",
        "evaluatedAt": AT,
        **more,
    }
    return ok(found)


# ------------------------------------------------------------------------------------------------------- following


def test_a_lost_stream_is_resumed_where_it_broke() -> None:
    script = Script(OPEN, message(1) + message(2)[:20], SILENT, AWAY, OPEN, message(2) + message(3), b"")
    found = script.take(follow(Core(script.settings()), {"pipeline": "gold", "since": AT}), 3)
    assert [one.id for one in found] == ["e1", "e2", "e3"]
    listened = script.of(Listen)
    assert [one.headers.get("Last-Event-ID") for one in listened] == [None, "1-0", "1-0"]
    # Where it broke off says more than where it began.
    assert [one.params for one in listened] == [{"pipeline": "gold", "since": AT}, *[{"pipeline": "gold"}] * 2]


def test_an_event_that_comes_again_is_given_once() -> None:
    script = Script(OPEN, message(1, "same"), b"", OPEN, message(1, "same") + message(2))
    found = script.take(follow(Core(script.settings()), {}), 2)
    assert [one.id for one in found] == ["same", "e2"]


def test_the_servers_notices_are_no_events() -> None:
    script = Script(OPEN, b"retry: 3000\n\nevent: dropped\ndata: you read too slowly\n\n", b"", OPEN, message(1))
    assert len(script.take(follow(Core(script.settings()), {}), 1)) == 1
    assert script.pauses() == [3.0]


def test_a_server_that_was_never_there_is_given_up() -> None:
    script = Script(*[AWAY] * 4)
    with pytest.raises(ConnectionFailedError):
        script.take(follow(Core(script.settings()), {}), 1)


def test_a_server_that_went_away_is_waited_for() -> None:
    script = Script(OPEN, message(1), b"", *[AWAY] * 20, refused(503), OPEN, message(2))
    assert len(script.take(follow(Core(script.settings()), {}), 2)) == 2
    assert max(script.pauses()) == 8.0


@pytest.mark.parametrize(("answer", "kind"), [(refused(404), NotFoundError), (refused(500), ServerFailedError)])
def test_a_refusal_ends_it(answer: Reply, kind: type[Exception]) -> None:
    script = Script(*[answer] * 4)
    with pytest.raises(kind):
        script.take(follow(Core(script.settings()), {}), 1)


def test_without_following_it_is_the_latest_oldest_first() -> None:
    rows = [msgspec.json.decode(message(n).partition(b"data: ")[2]) for n in (3, 2, 1)]
    script = Script(ok({"items": rows, "next": "more"}))
    found = script.take(events(Core(script.settings()), False, None, None, None, 3), 3)
    assert [one.id for one in found] == ["e1", "e2", "e3"]


# --------------------------------------------------------------------------------------------------------- waiting


def test_readiness_is_asked_after_listening_began() -> None:
    script = Script(OPEN, readiness(True))
    assert script.perform(wait_until_ready(Core(script.settings()), "gold", "2026-03-02")).ready
    assert [type(step) for step in script.steps] == [Listen, Send, HangUp]


def test_an_event_of_the_pipeline_is_news() -> None:
    script = Script(OPEN, readiness(False), b": still here\n\n", message(1), OPEN, readiness(True))
    assert script.perform(wait_until_ready(Core(script.settings()), "gold", "2026-03-02", timeout=60)).ready
    assert not script.of(Pause)
    assert script.of(Listen)[0].params == {"pipeline": "gold"}


def test_without_news_it_asks_less_and_less_often() -> None:
    quiet: list[Came] = [OPEN, readiness(False), SILENT]
    script = Script(*quiet * 8, OPEN, readiness(True))
    assert script.perform(wait_until_ready(Core(script.settings()), "gold")).ready
    assert [one.silence for one in script.of(Listen)] == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0]
    # Which run is meant is decided by the first answer.
    assert [sent.params for sent in script.of(Send)] == [{}, *[{"date": "2026-03-02", "schedule": "cron"}] * 8]


def test_without_a_stream_it_waits_between() -> None:
    script = Script(refused(404), readiness(False), AWAY, readiness(False), refused(503), readiness(True))
    assert script.perform(wait_until_ready(Core(script.settings()), "gold")).ready
    assert script.pauses() == [0.5, 1.0]


def test_the_time_is_over() -> None:
    alone: list[Came] = [AWAY, readiness(False, awaitedUpstreams=["silver"])]
    script = Script(*alone * 4)
    with pytest.raises(NotReadyError, match=r"within 3 s: 1 of 2 .*; upstream silver has not completed") as caught:
        script.perform(wait_until_ready(Core(script.settings()), "gold", timeout=3))
    assert caught.value.summary == "1 of 2 rules pass; rows is missing"
    assert script.time == 3.0


def test_rules_that_pass_are_not_enough_while_an_upstream_is_awaited() -> None:
    script = Script(AWAY, readiness(True, awaitedUpstreams=["silver"]), AWAY, readiness(True))
    assert script.perform(wait_until_ready(Core(script.settings()), "gold")).awaited_upstreams == []
    assert len(script.of(Send)) == 2


def test_an_excluded_date_is_not_waited_for() -> None:
    script = Script(OPEN, readiness(False, excluded="2026-03-01 is a Sunday"))
    with pytest.raises(WithheldError, match="Sunday"):
        script.perform(wait_until_ready(Core(script.settings()), "gold", timeout=3600))
