"""The SDK against the real `interlock serve`: both shells, one behaviour."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from interlock import AsyncClient, Client
from interlock.client import (
    ClientError,
    ConnectionFailedError,
    Event,
    NotClaimedError,
    NotFoundError,
    NotReadyError,
    Observation,
    RefusedError,
    RetryPolicy,
    UnauthorizedError,
)
from tests.api.running import Process, pipeline, serving, until
from tests.cli.stage import make_token

T = TypeVar("T")

DAY = "2026-03-02"
READY = {"status": "ready", "date": DAY}
QUICK = RetryPolicy(retries=40, first_delay=0.05, longest_delay=0.2)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with serving(tmp_path_factory.mktemp("server")) as process:
        yield process


@pytest.fixture
def client(server: Process) -> Iterator[Client]:
    with Client(server.url, retry=QUICK) as made:
        yield made


@pytest.fixture
def gold(client: Client, request: pytest.FixtureRequest) -> str:
    """A pipeline of the test's own."""
    name = "".join(char if char.isalnum() else "-" for char in request.node.name)
    client.apply(pipeline(name))
    return name


def asynchronously(server: Process, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with AsyncClient(server.url, retry=QUICK) as made:
            return await work(made)

    return asyncio.run(run())


# -------------------------------------------------------------------------------------------------------- requests


def test_a_sensor_is_written_and_read(client: Client, gold: str) -> None:
    written = client.sensor(gold, "rows").set({"date": DAY}, count=15432)
    assert (written.pipeline, written.key, written.period, written.warnings) == (gold, "rows", DAY, [])
    found = client.sensor(gold, "rows").get()
    assert (found.data, found.period, found.read) == ({"count": 15432, "date": DAY}, DAY, True)


def test_a_sensor_is_deleted(server: Process, client: Client, gold: str) -> None:
    client.sensor(gold, "rows#2026-03-02").set(count=1)
    client.sensor(gold, "rows").set(count=2)
    client.sensor(gold, "rows#2026-03-02").delete()
    assert [one.key for one in client.sensors.list(gold)] == ["rows"]

    async def work(made: AsyncClient) -> None:
        await made.sensor(gold, "rows").delete()

    asynchronously(server, work)
    for delete in (client.sensor(gold, "rows").delete, lambda: client.delete_sensor(gold, "rows")):
        with pytest.raises(NotFoundError, match="has no sensor 'rows'"):
            delete()


def test_a_pipeline_is_explained_and_deleted(client: Client, gold: str) -> None:
    client.sensor(gold, "up").set(READY)
    until(lambda: _word(client, gold) == "waiting" or None, "the run")
    found = client.why(gold, DAY)
    assert (found.pipeline, found.date, found.state) == (gold, DAY, "waiting")
    assert "no sensor rows" in str(found)
    assert str(found).startswith(found.verdict)
    client.delete(gold)
    with pytest.raises(NotFoundError):
        client.pipeline(gold)
    with pytest.raises(NotFoundError):
        client.delete(gold)


def test_calendars(client: Client) -> None:
    made = client.apply_calendar({"name": "sdk-month-end", "dates": ["2026-03-31"]})
    assert made in client.calendars()
    with pytest.raises(RefusedError, match="2026-02-30"):
        client.apply_calendar({"name": "sdk-month-end", "dates": ["2026-02-30"]})
    with pytest.raises(ClientError, match="has no name"):
        client.apply_calendar({"dates": ["2026-03-31"]})


def test_the_same_by_awaiting(server: Process, client: Client, gold: str) -> None:
    async def work(made: AsyncClient) -> Any:
        await made.sensor(gold, "rows").set(count=7)
        return await made.sensor(gold, "rows").get()

    assert asynchronously(server, work) == client.sensor(gold, "rows").get()


@pytest.mark.parametrize("key", ["lineage:ns/db.table", "hourly#2026-03-02T10", "a b%2Fc?d=é&x", "../rows", "ünï"])
def test_a_key_arrives_as_it_was_written(client: Client, key: str) -> None:
    client.apply(pipeline("keys"))
    client.sensor("keys", key).set(count=1)
    assert client.sensor("keys", key).get().key == key
    assert key in [one.key for one in client.sensors.list("keys")]


def test_a_field_given_twice_is_refused(client: Client, gold: str) -> None:
    with pytest.raises(Exception, match="count given twice"):
        client.sensor(gold, "rows").set({"count": 1}, count=2)


def test_a_batch_is_one_request(client: Client, gold: str) -> None:
    written = client.sensors.batch(
        [
            Observation(pipeline=gold, key="up", data=READY),
            {"pipeline": gold, "key": "rows", "data": {"count": 20, "date": DAY}, "ttl": 4_000_000_000},
        ]
    )
    assert [one.key for one in written] == ["up", "rows"]
    assert client.sensor(gold, "rows").get().ttl == 4_000_000_000
    until(lambda: _word(client, gold) == "running" or None, "the start of the job")


def test_a_batch_with_a_fault_writes_nothing(client: Client, gold: str) -> None:
    bad = [{"pipeline": gold, "key": "fine", "data": {}}, {"pipeline": gold, "key": "_mine", "data": {}}]
    with pytest.raises(RefusedError, match="reserved"):
        client.sensors.batch(bad)
    with pytest.raises(NotFoundError):
        client.sensor(gold, "fine").get()


def test_from_readiness_to_a_reported_job_and_a_rerun(client: Client, gold: str) -> None:
    assert not client.readiness(gold, DAY).ready
    client.sensor(gold, "up").set(READY)
    client.sensor(gold, "rows").set(count=20, date=DAY)
    until(lambda: _word(client, gold) == "running" or None, "the start of the job")
    run = client.run(gold, DAY)
    assert [one.passed for one in run.rules] == [True, True]
    client.report_job(gold, DAY, "success", run_id=run.run_id)
    until(lambda: _word(client, gold) == "done" or None, "completion")
    assert client.pipeline(gold).latest == client.runs(gold)[0]
    refused = client.rerun(gold, DAY, reason="again")
    assert (refused.decision, "no sensor" in refused.reason) == ("rejected", True)
    assert client.rerun(gold, DAY, reason="again", force=True).decision == "accepted"
    assert client.run(gold, DAY).attempt == 2
    types = [one.type for one in client.events(pipeline=gold)]
    assert types.index("TRIGGER_STARTED") < types.index("JOB_COMPLETED") < types.index("RERUN_ACCEPTED")
    assert [one.type for one in client.events(pipeline=gold, type=["RERUN_REJECTED"])] == ["RERUN_REJECTED"]


def test_a_run_is_claimed_once(server: Process, client: Client, gold: str) -> None:
    with pytest.raises(NotClaimedError, match="no sensor up") as early:
        client.claim(gold, DAY)
    assert early.value.later
    client.sensor(gold, "rows").set(count=50, date=DAY)
    client.apply({**pipeline(gold), "validation": {"rules": [{"key": "rows", "check": "exists"}]}})
    made = client.claim(gold, DAY, claim_id="mine")
    assert (made.date, made.attempt) == (DAY, 1)
    assert client.claim(gold, DAY, schedule="stream", claim_id="mine").run_id == made.run_id

    async def work(other: AsyncClient) -> Any:
        return await other.claim(gold, DAY)

    with pytest.raises(NotClaimedError, match="claimed by") as taken:
        asynchronously(server, work)
    assert not taken.value.later
    assert client.run(gold, DAY).claimed_by
    client.report_job(gold, DAY, "success", run_id=made.run_id)
    until(lambda: _word(client, gold) == "done" or None, "completion")


def _word(client: Client, name: str) -> str:
    runs = client.runs(name)
    return runs[0].word if runs else ""


def test_pages_are_read_to_the_end(client: Client, gold: str) -> None:
    for hour in range(0, 24, 4):
        client.sensor(gold, "up").set(status="ready", date=DAY, hour=hour)
    until(lambda: len(client.runs(gold)) == 6 or None, "six runs")
    assert len(client.runs(gold, limit=4)) == 4
    assert [one.date[-3:] for one in client.runs(gold, limit=None)] == ["T20", "T16", "T12", "T08", "T04", "T00"]


def test_operations(client: Client) -> None:
    assert client.run_watchdog().failed_checks == []
    assert client.dead_letters() == []
    assert client.redrive() == 0
    assert "sla" in client.stats(days=3)


def test_unknown_things(client: Client, gold: str) -> None:
    with pytest.raises(NotFoundError, match=f"did you mean {gold}"):
        client.readiness(f"{gold}x")
    with pytest.raises(NotFoundError, match="never run"):
        client.run(gold, "2020-01-01")
    with pytest.raises(RefusedError, match="2026-13-01"):
        client.rerun(gold, "2026-13-01")
    with pytest.raises(RefusedError, match="schedle"):
        client.apply({**pipeline(gold), "schedle": {}})


# --------------------------------------------------------------------------------------------------------- waiting


def test_waiting_ends_when_the_rules_pass(client: Client, gold: str) -> None:
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(client.wait_until_ready(gold, DAY, timeout=30).ready))
    waiting.start()
    client.sensors.batch(
        [
            {"pipeline": gold, "key": "up", "data": READY},
            {"pipeline": gold, "key": "rows", "data": {"count": 20, "date": DAY}},
        ]
    )
    waiting.join(30)
    assert found == [True]


def test_waiting_ends_when_the_time_is_over(server: Process, gold: str) -> None:
    with pytest.raises(NotReadyError, match="0 of 2 rules pass"):
        asynchronously(server, lambda made: made.wait_until_ready(gold, DAY, timeout=0.3))


# ------------------------------------------------------------------------------------------------------- following


def test_events_are_followed_by_both(server: Process, client: Client, gold: str) -> None:
    async def first_two(made: AsyncClient) -> list[str]:
        coming = made.events(follow=True, pipeline=gold, since="2026-01-01T00:00:00Z")
        return [(await anext(coming)).type, (await anext(coming)).type]

    client.sensor(gold, "up").set(READY)
    client.sensor(gold, "rows").set(count=20, date=DAY)
    expected = ["TRIGGER_STARTED", "VALIDATION_PASSED"]
    assert asynchronously(server, first_two) == expected
    coming = client.events(follow=True, pipeline=gold, type=expected, since="2026-01-01T00:00:00Z")
    assert [next(coming).type, next(coming).type] == expected


def test_following_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    """Every event once, in order, over a kill -9 and a restart on the same port."""
    with serving(tmp_path) as first:
        port = first.url.rpartition(":")[2]
        client = Client(first.url, retry=QUICK)
        client.apply(pipeline("gold"))
        got: list[Event] = []
        enough = threading.Event()

        def follow() -> None:
            for event in client.events(follow=True, pipeline="gold", since="2026-01-01T00:00:00Z"):
                got.append(event)
                if event.date == "2026-03-04":
                    enough.set()
                    return

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        client.sensor("gold", "up").set(status="ready", date="2026-03-02")
        until(lambda: got or None, "the first event")
        first.kill()
        with serving(tmp_path, "--port", port):
            client.sensor("gold", "up").set(status="ready", date="2026-03-03")
            client.sensor("gold", "up").set(status="ready", date="2026-03-04")
            assert enough.wait(30)
            thread.join()
            kept = [one.id for one in client.events(pipeline="gold")]
        client.close()
    assert [one.id for one in got] == kept
    assert [one.date for one in got] == ["2026-03-02", "2026-03-03", "2026-03-04"]


# ---------------------------------------------------------------------------------------------------------- access


def test_a_token_is_needed_once_there_is_one(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        with Client(process.url) as anybody:
            anybody.apply(pipeline("gold"))
        token = make_token(process.store, "sensor:write")
        with Client(process.url, "") as nobody:
            # A server reads its tokens once a second.
            assert "INTERLOCK_TOKEN" in until(lambda: _refusal(nobody), "the refusal")
        with Client(process.url, token) as writer:
            assert writer.sensor("gold", "rows").set(count=1).key == "rows"
            with pytest.raises(UnauthorizedError) as caught:
                writer.rerun("gold", DAY)
        assert token not in str(caught.value)


def _refusal(client: Client) -> str | None:
    try:
        client.pipelines()
    except UnauthorizedError as error:
        return str(error)
    return None


def test_nobody_listens() -> None:
    with (
        Client("http://127.0.0.1:9", retry=RetryPolicy(retries=1, first_delay=0.01)) as client,
        pytest.raises(ConnectionFailedError, match="interlock serve"),
    ):
        client.pipelines()
