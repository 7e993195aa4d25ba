"""Plain sensor writes take a short way; nobody can tell from the answer, and no limit is left out."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.api import plain_writes
from interlock.api.plain_writes import PlainWrites
from interlock.embedded.access.tokens import Scope
from interlock.embedded.service import Service
from interlock.model.errors import StoreError
from tests.api.running import pipeline, problem, running

V1 = "/api/v1"
# A header that makes a write take the long way, and means nothing without a session.
LONG = {"Cookie": "theme=dark"}
Apply = Callable[..., str]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each PUT took the short way."""
    seen: list[bool] = []
    begin = PlainWrites._begin

    plain = PlainWrites._plain

    def looked(self: PlainWrites, scope: Any) -> Any:
        found = plain(self, scope)
        if found is None:
            seen.append(False)
        return found

    def began(self: PlainWrites, scope: Any, *given: Any) -> Any:
        found = begin(self, scope, *given)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(PlainWrites, "_plain", looked)
    monkeypatch.setattr(PlainWrites, "_begin", began)
    return seen


@pytest.mark.parametrize("key", ["rows", "a%2Fb", "hourly%232026-03-03T10", "%C3%A4", "a:b@c~d"])
def test_both_ways_have_the_same_answer(api: httpx.Client, apply: Apply, short: list[bool], key: str) -> None:
    apply("both")
    short.clear()
    path = f"{V1}/pipelines/both/sensors/{key}"
    answers = [api.put(path, json={"count": 5.0, "n": [1]}, headers=headers) for headers in ({}, LONG)]
    assert short == [True, False]
    first, second = ({**one.json(), "receivedAt": ""} for one in answers)
    assert first == second
    names = [sorted(name for name in one.headers if name not in ("date", "x-request-id")) for one in answers]
    assert names[0] == names[1]
    assert all(len(one.headers["x-request-id"]) == 16 for one in answers)
    assert api.get(path).json()["data"] == {"count": 5, "n": [1]}


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("both/sensors/_own", b"{}", 422),
        ("both/sensors/x", b"[]", 422),
        ("both/sensors/x", b"{", 400),
        ("both/sensors/x", b'{"a": "\xff"}', 400),
        ("both/sensors/x", b"", 400),
        ("both/sensors/x", b'{"a": "%s"}' % (b"x" * 70_000), 413),
        ("nobody/sensors/x", b"{}", 404),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_refused_is_refused_on_the_long_way(
    api: httpx.Client, apply: Apply, short: list[bool], path: str, content: bytes, status: int
) -> None:
    apply("both")
    short.clear()
    plain = api.put(f"{V1}/pipelines/{path}", content=content)
    assert plain.status_code == status, plain.text
    assert not any(short)


def test_who_may_not_is_refused(tmp_path: Path, short: list[bool]) -> None:
    with running(tmp_path) as (service, client):
        client.put(f"{V1}/pipelines/gold", json=pipeline("gold"))
        path = f"{V1}/pipelines/gold/sensors/rows"
        texts = {
            "reader": service.tokens.create("reader", [Scope.READ])[0],
            "writer": service.tokens.create("writer", [Scope.SENSOR_WRITE])[0],
            "elsewhere": service.tokens.create("elsewhere", [Scope.SENSOR_WRITE], pipelines=["silver"])[0],
        }
        short.clear()
        found = {
            name: client.put(path, json={}, headers={"Authorization": f"Bearer {text}"}).status_code
            for name, text in texts.items()
        }
        assert found == {"reader": 403, "writer": 200, "elsewhere": 403}
        assert client.put(path, json={}).status_code == 401
        assert short == [False, True, False, False]


def test_writes_of_foreign_pages_and_hosts_are_refused(api: httpx.Client, apply: Apply, short: list[bool]) -> None:
    apply("both")
    short.clear()
    path = f"{V1}/pipelines/both/sensors/rows"
    for headers, status in (
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
    ):
        assert api.put(path, json={"a": 1}, headers=headers).status_code == status
    assert not any(short)


# ------------------------------------------------------------------------------------------------- commits that fail


@contextmanager
def held(service: Service) -> Iterator[threading.Event]:
    """The writer is busy until the event is set."""
    begun, go_on = threading.Event(), threading.Event()

    def block(_: object) -> None:
        begun.set()
        go_on.wait(30)

    thread = threading.Thread(target=lambda: service.database.write(block))
    thread.start()
    assert begun.wait(10)
    try:
        yield go_on
    finally:
        go_on.set()
        thread.join()


def test_a_commit_that_takes_too_long_is_answered(
    api: httpx.Client, service: Service, apply: Apply, short: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    apply("slow")
    short.clear()
    monkeypatch.setattr(plain_writes, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(plain_writes, "_LOOK_SECONDS", 0.05)
    with held(service):
        found = problem(api.put(f"{V1}/pipelines/slow/sensors/rows", json={"a": 1}), 503, "unavailable")
    assert "may still be done" in found["detail"]
    assert short == [True]


def test_a_commit_that_fails_is_answered(
    api: httpx.Client, service: Service, apply: Apply, short: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    apply("failing-commit")
    short.clear()

    def fail(loop: asyncio.AbstractEventLoop, _writes: object) -> "asyncio.Future[None]":
        failed: asyncio.Future[None] = loop.create_future()
        failed.set_exception(StoreError("the disk is full"))
        return failed

    monkeypatch.setattr(service.store, "submit_on", fail)
    problem(api.put(f"{V1}/pipelines/failing-commit/sensors/rows", json={"a": 1}), 503, "unavailable")
    assert short == [True]


def test_many_writes_share_a_commit(api: httpx.Client, service: Service, apply: Apply, short: list[bool]) -> None:
    apply("shared")
    short.clear()
    answers: list[int] = []

    def put(index: int) -> None:
        with httpx.Client(base_url=api.base_url) as client:
            answers.append(client.put(f"{V1}/pipelines/shared/sensors/k{index}", json={"n": index}).status_code)

    threads = [threading.Thread(target=put, args=(index,)) for index in range(8)]
    with held(service) as go_on:
        for thread in threads:
            thread.start()
        while len(short) < len(threads):
            go_on.wait(0.01)
        assert answers == []
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    assert short == [True] * 8
