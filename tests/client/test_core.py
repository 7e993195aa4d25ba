"""The flows of single requests: what is sent, when it is sent again, what an answer becomes."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlock.client import answers, requests
from interlock.client.core import Core
from interlock.client.errors import (
    AnswerError,
    ClientError,
    ConnectionFailedError,
    NotFoundError,
    RefusedError,
    ServerFailedError,
    UnauthorizedError,
    UnreadableAnswerError,
)
from interlock.client.retries import Fate
from interlock.client.steps import NoAnswer, Reply, Send
from tests.client.shell import URL, Script, ok, refused

AT = "2026-03-02T08:00:00Z"
WRITTEN = {"pipeline": "gold", "key": "rows", "receivedAt": AT, "period": "", "warnings": [], "newInLaterVersions": 1}
RECORD = {"pipeline": "gold", "schedule": "stream", "date": "2026-03-02", "event": "success", "attempt": 1, "at": AT}
UNSENT = NoAnswer(Fate.NOT_SENT, "refused")
BROKEN = NoAnswer(Fate.UNKNOWN, "reset")


def core(script: Script) -> Core:
    return Core(script.settings())


def run_of(date: str) -> dict[str, Any]:
    return {
        "pipeline": "gold",
        "schedule": "stream",
        "date": date,
        "status": "COMPLETED",
        "word": "done",
        "attempt": 1,
        "source": "first",
        "openedAt": AT,
        "updatedAt": AT,
    }


# -------------------------------------------------------------------------------------------------------- requests


def test_a_sensor_write() -> None:
    script = Script(ok(WRITTEN))
    written = script.perform(core(script).write_sensor("gold", "a/b#2026-03-02", {"count": 5}, ttl=1900000000))
    assert written == answers.Written(pipeline="gold", key="rows", received_at=datetime(2026, 3, 2, 8, tzinfo=UTC))
    [sent] = script.of(Send)
    assert (sent.method, sent.path) == ("PUT", "/api/v1/pipelines/gold/sensors/a%2Fb%232026-03-02")
    assert (sent.params, sent.body) == ({"ttl": "1900000000"}, b'{"count":5}')


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_another_address_is_refused_here(name: str) -> None:
    with pytest.raises(ClientError, match="part of an address"):
        requests.get_sensor("gold", name)


def test_what_is_no_json_is_refused_here() -> None:
    with pytest.raises(ClientError, match="cannot be sent as JSON"):
        requests.put_sensor("gold", "rows", {"x": object()}, None)


def test_a_naive_time_is_refused_here() -> None:
    with pytest.raises(ClientError, match="no time zone"):
        requests.event_filters(None, None, datetime(2026, 3, 2))  # noqa: DTZ001 - that is the mistake


def test_filters_of_events() -> None:
    since = datetime(2026, 3, 2, tzinfo=UTC)
    assert requests.event_filters("gold", ["A", "B"], since) == {
        "pipeline": "gold",
        "type": ["A", "B"],
        "since": "2026-03-02T00:00:00Z",
    }
    assert requests.event_filters(None, "A", None) == {"type": ["A"]}


def test_a_document_without_an_id_is_not_sent() -> None:
    for document in ({}, {"pipeline": "gold"}, {"pipeline": {"id": ""}}):
        with pytest.raises(ClientError, match=r"pipeline\.id"):
            requests.put_pipeline(document)


def test_pages_are_read_to_their_end() -> None:
    script = Script(
        ok({"items": [run_of("2026-03-03"), run_of("2026-03-02")], "next": "c1"}),
        ok({"items": [run_of("2026-03-01")], "next": None}),
    )
    found = script.perform(core(script).runs("gold", limit=None))
    assert [one.date for one in found] == ["2026-03-03", "2026-03-02", "2026-03-01"]
    assert [sent.params.get("cursor") for sent in script.of(Send)] == [None, "c1"]


def test_no_more_pages_are_read_than_wanted() -> None:
    script = Script(ok({"items": [run_of("2026-03-03"), run_of("2026-03-02")], "next": "c1"}))
    assert len(script.perform(core(script).runs("gold", limit=2))) == 2
    [sent] = script.of(Send)
    assert sent.params["limit"] == "2"


def test_the_schedule_may_be_left_out_where_there_is_one() -> None:
    script = Script(ok({"id": "gold", "schedules": ["cron"]}), ok(run_of("2026-03-02")))
    script.perform(core(script).run("gold", "2026-03-02"))
    assert script.of(Send)[1].path == "/api/v1/pipelines/gold/runs/cron/2026-03-02"
    script = Script(ok({"id": "gold", "schedules": ["a", "b"]}))
    with pytest.raises(ClientError, match="a, b"):
        script.perform(core(script).run("gold", "2026-03-02"))


# --------------------------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize("first", [UNSENT, BROKEN, refused(429), refused(502), refused(503), refused(504)])
def test_a_write_is_sent_until_it_arrives(first: Any) -> None:
    script = Script(first, first, ok(WRITTEN))
    script.perform(core(script).write_sensor("gold", "rows", {"count": 5}))
    assert script.pauses() == [1.0, 2.0]
    assert len({msgspec.json.encode(sent) for sent in script.of(Send)}) == 1


def test_what_was_deleted_although_the_answer_was_lost_is_gone() -> None:
    lost = Script(BROKEN, refused(404))
    lost.perform(core(lost).delete_sensor("gold", "rows"))
    assert [one.method for one in lost.of(Send)] == ["DELETE", "DELETE"]
    absent = Script(refused(404))
    with pytest.raises(NotFoundError):
        absent.perform(core(absent).delete_sensor("gold", "rows"))


@pytest.mark.parametrize("first", [BROKEN, refused(502), refused(503), refused(504), refused(500)])
def test_a_rerun_is_never_asked_for_twice(first: Any) -> None:
    script = Script(first)
    with pytest.raises(ClientError):
        script.perform(core(script).rerun("gold", "2026-03-02"))
    assert len(script.of(Send)) == 1


@pytest.mark.parametrize("first", [UNSENT, refused(429)])
def test_a_rerun_that_surely_was_not_asked_for_is_asked_for_again(first: Any) -> None:
    answer = {"id": "r1", "pipeline": "gold", "schedule": "cron", "date": "2026-03-02", "decision": "accepted"}
    script = Script(first, ok(answer))
    assert script.perform(core(script).rerun("gold", "2026-03-02", force=True)).decision == "accepted"
    body = msgspec.json.decode(script.of(Send)[0].body or b"")
    assert body == {"date": "2026-03-02", "reason": "", "force": True}


def test_an_outcome_is_reported_again_only_if_it_names_its_attempt() -> None:
    script = Script(BROKEN, ok(RECORD))
    script.perform(core(script).report_job("gold", "2026-03-02", "success", attempt=1))
    assert len(script.of(Send)) == 2
    script = Script(BROKEN)
    with pytest.raises(ConnectionFailedError):
        script.perform(core(script).report_job("gold", "2026-03-02", "success"))


def test_giving_up_says_what_to_do() -> None:
    script = Script(*[UNSENT] * 4)
    with pytest.raises(ConnectionFailedError, match="interlock serve"):
        script.perform(core(script).pipelines())
    assert script.pauses() == [1.0, 2.0, 4.0]


# ---------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RefusedError),
        (401, UnauthorizedError),
        (403, UnauthorizedError),
        (404, NotFoundError),
        (409, RefusedError),
        (413, RefusedError),
        (422, RefusedError),
        (500, ServerFailedError),
    ],
)
def test_errors_carry_the_problem(status: int, kind: type[AnswerError]) -> None:
    script = Script(refused(status, "there is no pipeline 'gld'; did you mean gold?"))
    with pytest.raises(kind, match="did you mean gold") as caught:
        script.perform(core(script).pipeline("gld"))
    assert caught.value.status == caught.value.problem.status == status
    assert caught.value.problem.detail == "there is no pipeline 'gld'; did you mean gold?"


def test_every_single_fault_is_told() -> None:
    body = {"status": 422, "detail": "2 refused", "errors": [{"path": "sensors[0]", "message": "too large"}, "odd"]}
    script = Script(Reply(422, {}, msgspec.json.encode(body)))
    with pytest.raises(RefusedError, match=r"2 refused\n  sensors\[0\]: too large\n  odd"):
        script.perform(core(script).write_sensors([{"pipeline": "gold", "key": "a", "data": {}}]))


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b"\xff\xfe", b'{"status": "x"}'])
def test_a_proxys_page_is_an_error_too(body: bytes) -> None:
    script = Script(*[Reply(502, {}, body)] * 4)
    with pytest.raises(ServerFailedError, match="502"):
        script.perform(core(script).pipelines())


@pytest.mark.parametrize("body", [b"hello", b"[]", b'{"pipeline": 5}', b""])
def test_an_answer_of_something_else(body: bytes) -> None:
    script = Script(Reply(200, {}, body))
    with pytest.raises(UnreadableAnswerError, match=URL):
        script.perform(core(script).read_sensor("gold", "rows"))
