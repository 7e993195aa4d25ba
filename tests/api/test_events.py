"""Events: pages either way, by pipeline and type; the stream, from the past into the present without a gap."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.control import records
from interlock.control.views import event_views
from interlock.embedded.service import Service
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from tests.api.running import WAIT, pipeline, running, until

Apply = Callable[..., str]
V1 = "/api/v1"


def tell(service: Service, name: str, count: int, type_: EventType = EventType.JOB_TRIGGERED) -> list[str]:
    """Commit some events; their messages."""
    messages = [f"{name} {index}" for index in range(count)]
    for message in messages:
        made = records.event(type_, RunKey(name, "stream", "2026-03-03"), service.clock.now(), message)
        service.engine.store.commit([records.put_event(made)])
    return messages


# ------------------------------------------------------------------------------------------------------------ pages


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("narrow", [True, False], ids=["one pipeline", "all pipelines"])
def test_pages_hold_every_event_once_and_in_order(
    api: httpx.Client, service: Service, order: str, narrow: bool
) -> None:
    name = f"paged-{order}-{narrow}"
    since = service.clock.now()
    messages = tell(service, name, 25)
    params: dict[str, Any] = {"limit": 7, "order": order, "type": "JOB_TRIGGERED", "since": since.isoformat()}
    seen: list[str] = []
    while True:
        page = api.get(f"{V1}/events", params={**params, **({"pipeline": name} if narrow else {})}).json()
        seen += [one["message"] for one in page["items"]]
        if page["next"] is None:
            break
        params["cursor"] = page["next"]
    assert seen == (messages if order == "asc" else messages[::-1])


def test_events_are_filtered_by_several_types(api: httpx.Client, service: Service) -> None:
    tell(service, "typed", 2, EventType.SLA_WARNING)
    tell(service, "typed", 2, EventType.SLA_BREACH)
    tell(service, "typed", 2, EventType.SLA_MET)
    params = {"pipeline": "typed", "type": ["SLA_WARNING", "SLA_BREACH"], "order": "asc"}
    found = api.get(f"{V1}/events", params=params).json()["items"]
    assert [one["type"] for one in found] == ["SLA_WARNING"] * 2 + ["SLA_BREACH"] * 2


def test_since_is_a_time_in_any_of_its_forms(api: httpx.Client, service: Service) -> None:
    tell(service, "timed", 1)
    now = service.clock.now()
    for since, count in [
        ("2026-01-01T00:00:00Z", 1),
        ("2026-01-01T02:00:00+02:00", 1),
        ("1700000000", 1),
        ("1700000000000", 1),
        (str(int(now.timestamp()) + 3600), 0),
    ]:
        items = api.get(f"{V1}/events", params={"pipeline": "timed", "since": since}).json()["items"]
        assert len(items) == count, since
    # An unescaped plus sign in a query is a space.
    raw = api.get(f"{V1}/events?pipeline=timed&since=2026-01-01T02:00:00+02:00")
    assert raw.status_code == 200


@pytest.mark.parametrize(
    "params",
    [{"since": "yesterday"}, {"cursor": "nonsense"}, {"type": "ODD"}, {"limit": "0"}, {"limit": "x"}, {"order": "up"}],
    ids=str,
)
def test_what_can_not_be_asked_is_a_problem(api: httpx.Client, params: dict[str, str]) -> None:
    response = api.get(f"{V1}/events", params=params)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_the_newest_events_are_found_however_old(api: httpx.Client, service: Service) -> None:
    old = records.event(EventType.PROBE_FAILED, RunKey("ancient", "", ""), datetime(2026, 9, 1, tzinfo=UTC), "long ago")
    put = records.put_event(old)
    put.item["ttl"] = 4_000_000_000
    service.engine.store.commit([put])
    found = api.get(f"{V1}/events", params={"type": "PROBE_FAILED", "limit": 5}).json()["items"]
    assert [one["message"] for one in found] == ["long ago"]


# ----------------------------------------------------------------------------------------------------------- stream


class Messages:
    """The messages of one stream, as they come."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()

    def next(self) -> dict[str, Any]:
        """The next message that is one."""
        fields: dict[str, Any] = {}
        for line in self._lines:
            if line == "" and "data" in fields:
                return fields
            if line == "":
                fields = {}
                continue
            name, _, value = line.partition(": ")
            fields[name] = value
        raise EOFError

    def events(self, count: int) -> list[str]:
        """The texts of the next events."""
        return [json.loads(self.next()["data"])["message"] for _ in range(count)]


@contextmanager
def stream(api: httpx.Client, last: str | None = None, **params: Any) -> Iterator[Messages]:
    headers = {"Last-Event-ID": last} if last is not None else {}
    with api.stream("GET", f"{V1}/events/stream", params=params, headers=headers, timeout=WAIT) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Messages(response)


def test_the_stream_tells_what_happens(api: httpx.Client, service: Service) -> None:
    with stream(api, pipeline="live") as messages:
        until(lambda: service.feed._listeners or None, "the listener")
        tell(service, "other", 3)
        reported = tell(service, "live", 5)
        first = messages.next()
        assert json.loads(first["data"])["message"] == reported[0]
        assert first["event"] == "JOB_TRIGGERED"
        assert messages.events(4) == reported[1:]


def test_a_stream_goes_on_where_it_left_off(api: httpx.Client, service: Service) -> None:
    with stream(api, pipeline="resumed") as messages:
        until(lambda: service.feed._listeners or None, "the listener")
        reported = tell(service, "resumed", 10)
        assert messages.events(3) == reported[:3]
        last = messages.next()["id"]
    missed = tell(service, "resumed", 5)
    with stream(api, last, pipeline="resumed") as messages:
        assert messages.events(11) == [*reported[4:], *missed]
        assert messages.events(0) == []
        more = tell(service, "resumed", 2)
        assert messages.events(2) == more


def test_a_stream_from_before_the_changes_were_pruned_goes_on_by_time(tmp_path: Path) -> None:
    with running(tmp_path) as (service, api):
        since = service.clock.now()
        reported = tell(service, "pruned", 1200)
        first = records.event(EventType.SLA_MET, RunKey("pruned", "", ""), since, "unwanted")
        service.engine.store.commit([records.put_event(first)])
        prune_changes(service)
        with stream(api, f"1-{int(since.timestamp() * 1000)}", pipeline="pruned", type="JOB_TRIGGERED") as messages:
            assert messages.events(1200) == reported
            more = tell(service, "pruned", 3)
            assert messages.events(3) == more
        with stream(api, since=since.isoformat(), type="JOB_TRIGGERED") as messages:
            assert messages.events(1203) == reported + more


def prune_changes(service: Service) -> None:
    """What a client finds that was away for more than a minute."""
    head = service.database.head()
    until(lambda: all(consumer.lag() == 0 for consumer in service.consumers) or None, "the consumers")
    service.database.flush()

    def pruned() -> bool:
        service.engine.store.sweep()
        return bool(service.database.read("SELECT count(*) FROM changes WHERE seq <= ?", (head,))[0][0] == 0)

    until(lambda: pruned() or None, "the pruning")


def test_a_stream_that_goes_on_by_time_tells_nothing_twice(tmp_path: Path) -> None:
    """Many events of one millisecond, of many types and pipelines; the client leaves off after any of them."""
    types = [EventType.JOB_TRIGGERED, EventType.SLA_MET, EventType.RETRY_EXHAUSTED, EventType.JOB_FAILED]
    with running(tmp_path) as (service, api):
        at = service.clock.now()
        ids: list[str] = []
        with stream(api) as messages:
            until(lambda: service.feed._listeners or None, "the listener")
            for number in range(60):
                event = records.event(types[number % 4], RunKey(f"p{number % 3}", "", ""), at, str(number))
                service.engine.store.commit([records.put_event(event)])
            for number in range(60):
                message = messages.next()
                assert json.loads(message["data"])["message"] == str(number)
                ids.append(message["id"])
        assert len({one.split("-")[1] for one in ids}) == 1
        prune_changes(service)
        for left_off in (0, 1, 17, 30, 58):
            with stream(api, ids[left_off]) as messages:
                assert messages.events(59 - left_off) == [str(number) for number in range(left_off + 1, 60)]
        with stream(api, ids[-1]) as messages:
            until(lambda: service.feed._listeners or None, "the listener")
            tell(service, "after", 1)
            assert messages.events(1) == ["after 0"]


def test_pages_of_events_that_break_within_a_millisecond_are_told_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.api.sse._PAGE", 7)
    types = [EventType.SLA_MET, EventType.JOB_TRIGGERED, EventType.RETRY_EXHAUSTED]
    with running(tmp_path) as (service, api):
        at = service.clock.now()
        for number in range(50):
            instant = at + timedelta(milliseconds=number // 20)
            event = records.event(types[number % 3], RunKey(f"p{number % 4}", "", ""), instant, str(number))
            service.engine.store.commit([records.put_event(event)])
        prune_changes(service)
        with stream(api, since=at.isoformat()) as messages:
            assert messages.events(50) == [str(number) for number in range(50)]


def test_many_writers_one_order_and_nothing_twice(api: httpx.Client, service: Service) -> None:
    with stream(api, type="SFN_TIMEOUT") as messages:
        until(lambda: service.feed._listeners or None, "the listener")
        threads = [
            threading.Thread(target=tell, args=(service, f"writer-{index}", 100, EventType.SFN_TIMEOUT))
            for index in range(4)
        ]
        for thread in threads:
            thread.start()
        seen = messages.events(200)
        last = messages.next()
        seen.append(json.loads(last["data"])["message"])
        for thread in threads:
            thread.join()
    with stream(api, last["id"], type="SFN_TIMEOUT") as messages:
        seen += messages.events(199)
    assert len(seen) == len(set(seen)) == 400
    for index in range(4):
        own = [message for message in seen if message.startswith(f"writer-{index} ")]
        assert own == [f"writer-{index} {number}" for number in range(100)]


def test_a_foreign_position_is_refused(api: httpx.Client) -> None:
    response = api.get(f"{V1}/events/stream", headers={"Last-Event-ID": "abc"})
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


def test_a_client_that_does_not_read_is_told_and_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.api.sse.QUEUE", 50)
    with running(tmp_path) as (service, api):
        api.put(f"{V1}/pipelines/slow", json=pipeline("slow"))
        with stream(api, pipeline="slow") as messages:
            until(lambda: service.feed._listeners or None, "the listener")
            big = "x" * 50_000
            for _ in range(300):
                made = records.event(EventType.JOB_TRIGGERED, RunKey("slow", "", ""), service.clock.now(), big)
                service.engine.store.commit([records.put_event(made)])
            until(lambda: service.feed._position == service.database.head() or None, "the feed")
            read, last = 0, ""
            while (message := messages.next()).get("event") != "dropped":
                last, read = message["id"], read + 1
            assert read < 300
            with pytest.raises(EOFError):
                messages.next()
        with stream(api, last, pipeline="slow") as messages:
            assert len(messages.events(300 - read)) == 300 - read


def test_a_stream_is_closed_when_the_server_stops(tmp_path: Path) -> None:
    with running(tmp_path) as (service, api), stream(api) as messages:
        until(lambda: service.feed._listeners or None, "the listener")
        service.feed.stop()
        assert messages.next()["event"] == "closed"
        with pytest.raises(EOFError):
            messages.next()


# ------------------------------------------------------------------------------------- filters that no index has


def test_events_are_filtered_by_severity_text_period_and_end(api: httpx.Client, service: Service) -> None:
    since = service.clock.now().isoformat()
    tell(service, "sieved", 3, EventType.JOB_COMPLETED)
    tell(service, "sieved", 2, EventType.SLA_WARNING)
    tell(service, "sieved", 1, EventType.JOB_FAILED)

    def found(**params: Any) -> list[str]:
        page = api.get(f"{V1}/events", params={"since": since, "order": "asc", "pipeline": "sieved", **params})
        assert page.status_code == 200, page.text
        return [one["type"] for one in page.json()["items"]]

    assert found(severity="warning") == ["SLA_WARNING", "SLA_WARNING", "JOB_FAILED"]
    assert found(severity="critical") == []
    assert found(q="SIEVED 2") == ["JOB_COMPLETED"]
    assert found(q="sla_warn") == ["SLA_WARNING"] * 2
    assert found(schedule="stream", date="20260303", severity="error") == ["JOB_FAILED"]
    assert found(schedule="cron") == []
    assert found(until=since) == []
    assert len(found(limit=2, severity="info")) == 2
    assert api.get(f"{V1}/events", params={"date": "someday"}).status_code == 422


@pytest.mark.parametrize("narrow", [True, False], ids=["one pipeline", "all pipelines"])
def test_where_few_events_fit_the_pages_go_on(
    api: httpx.Client, service: Service, monkeypatch: pytest.MonkeyPatch, narrow: bool
) -> None:
    monkeypatch.setattr(event_views, "_SCAN", 4)
    monkeypatch.setattr(event_views, "_MOST_LOOKED_AT", 8)
    name = f"rare-{narrow}"
    since = service.clock.now().isoformat()
    for index in range(5):
        tell(service, name, 6)
        tell(service, name, index % 2, EventType.SLA_BREACH)
    params: dict[str, Any] = {"since": since, "severity": "error", **({"pipeline": name} if narrow else {})}
    seen, pages = 0, 0
    while True:
        page = api.get(f"{V1}/events", params=params).json()
        seen += len([one for one in page["items"] if one["pipelineId"] == name])
        pages += 1
        if page["next"] is None:
            break
        params["cursor"] = page["next"]
    assert seen == 2
    assert pages > 1


def test_a_stream_tells_of_sensors_to_who_asks(api: httpx.Client, apply: Apply) -> None:
    name = apply("told-of-sensors")
    with (
        api.stream("GET", f"{V1}/events/stream", params={"sensors": "true", "pipeline": name}) as stream,
        api.stream("GET", f"{V1}/events/stream", params={"pipeline": name, "severity": "error"}) as other,
    ):
        lines = (line for line in stream.iter_lines() if line)
        next(lines)
        others = (line for line in other.iter_lines() if line)
        next(others)
        api.put(f"{V1}/pipelines/{name}/sensors/rows%23odd", json={"count": 1})
        reported = until(lambda: json.loads(next(lines).partition("data: ")[2] or "null"), "the notice")
        assert (reported["pipeline"], reported["key"]) == (name, "rows#odd")
        assert reported["receivedAt"].endswith("Z")


def test_a_stream_tells_of_the_sensors_of_the_pipelines_that_it_names(api: httpx.Client, apply: Apply) -> None:
    mine, other = apply("sensors-named"), apply("sensors-not-named")
    with api.stream("GET", f"{V1}/events/stream", params={"sensors": "true", "sensorsOf": mine}) as stream:
        lines = (line for line in stream.iter_lines() if line)
        next(lines)
        api.put(f"{V1}/pipelines/{other}/sensors/rows", json={"count": 1})
        api.put(f"{V1}/pipelines/{mine}/sensors/rows", json={"count": 1})
        found = next(line for line in lines if line.startswith("data: ") and '"key"' in line)
    assert json.loads(found.removeprefix("data: "))["pipeline"] == mine
