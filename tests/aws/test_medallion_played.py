"""The four pipelines of examples/medallion-aws on the in-process AWS, with its ingest functions and Glue on moto.

From the feeds to gold: a function lands an hour and writes its sensor, silver runs in Glue, EventBridge tells of its
end, gold follows. Nobody polls for it: the interval of the polls is set to ten minutes.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import RunStatus, Source
from interlock.simulation.scenario import Scenario, inline_scenario
from tests.aws.test_medallion_aws import EXAMPLE, Feed, module, quake
from tests.aws.world.targets import TargetWorld, everything, with_targets

HOUR = "2026-03-02T09"
IDS = ("crypto-gold", "crypto-silver", "earthquake-gold", "earthquake-silver")


def at(clock_time: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock_time}").replace(tzinfo=UTC)


def medallion(until: str) -> Scenario:
    """The example's own files, but for the interval of the polls."""
    pipelines = [yaml.safe_load((EXAMPLE / "pipelines" / f"{name}.yaml").read_text(encoding="utf-8")) for name in IDS]
    for one in pipelines:
        one["job"]["pollInterval"] = "10m"
    calendars = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in EXAMPLE.glob("calendars/*.yaml")]
    return inline_scenario(
        name="medallion-aws",
        start="2026-03-02T09:00:00Z",
        until=f"2026-03-02T{until}:00Z",
        calendars=[_plain(one) for one in calendars],
        pipelines=pipelines,
        jobs={},
        steps=[],
    )


def _plain(calendar: dict[str, Any]) -> dict[str, Any]:
    return {**calendar, "dates": [str(one) for one in calendar["dates"]]}


class Lake:
    """The two feeds, and the functions that read them into the lake."""

    def __init__(self, world: TargetWorld, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self._feed = feed
        self._patch = monkeypatch
        for name in IDS:
            world.aws.glue_job(f"etl-{name}")
        world.aws.client("s3").create_bucket(Bucket="lake")

    def reads(self, name: str, clock_time: str, answer: Any) -> None:
        """The schedule of a function fires."""

        def read() -> None:
            self._feed.answer = answer
            with self._patch.context() as patch:
                for variable, value in {
                    "BUCKET": "lake",
                    "CONTROL_TABLE": self.world.cloud.plan.tables[Table.CONTROL].name,
                    "FEED_URL": self._feed.url,
                }.items():
                    patch.setenv(variable, value)
                module(name).handler({"time": f"2026-03-02T{clock_time}:00Z"}, None)

        self.world.outside(at(clock_time), read)

    def quakes(self, clock_time: str, *ids: str) -> None:
        millis = int(at("09:50").timestamp() * 1000)
        self.reads("earthquake", clock_time, {"features": [quake(one, millis) for one in ids]})

    def prices(self, clock_time: str, coins: int = 100) -> None:
        self.reads("crypto", clock_time, {"data": [_coin(number) for number in range(coins)]})


def _coin(number: int) -> dict[str, Any]:
    return {"id": str(number), "symbol": f"C{number}", "price_usd": "1.5"}


@pytest.fixture
def ingest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    feed = Feed()
    monkeypatch.syspath_prepend(str(EXAMPLE / "ingest"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield feed
    feed.server.shutdown()
    feed.server.server_close()
    for name in ("landing", "earthquake", "crypto"):
        sys.modules.pop(name, None)


def when(world: TargetWorld, pipeline: str, type_: EventType) -> list[datetime]:
    return [event.timestamp for event in world.events if (event.pipeline_id, event.type) == (pipeline, type_)]


def run_key(pipeline: str) -> RunKey:
    return RunKey(pipeline, "stream", HOUR)


def test_an_hour_becomes_gold_by_the_events_of_glue(ingest: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with with_targets(medallion("10:50"), everything({"INTERLOCK_JOB_PREFIX": "etl"})) as world:
        lake = Lake(world, ingest, monkeypatch)
        for clock_time in ("09:00", "09:20", "09:40"):
            lake.prices(clock_time)
        lake.quakes("10:00", "a", "b")
        lake.prices("10:00")
        world.play()

        runs = {name: world.run_of(run_key(name)) for name in IDS}
        assert {name: run.status for name, run in runs.items() if run is not None} == dict.fromkeys(
            IDS, RunStatus.COMPLETED
        )
        for name in ("crypto", "earthquake"):
            # Four minutes each, and half a minute in which Glue's logs may still come; no poll was due before 10:10.
            (silver,) = when(world, f"{name}-silver", EventType.JOB_COMPLETED)
            (gold,) = when(world, f"{name}-gold", EventType.JOB_COMPLETED)
            assert at("10:04") <= silver <= at("10:04") + timedelta(seconds=40)
            assert silver + world.takes <= gold <= silver + world.takes + timedelta(seconds=40)
        (started,) = world.aws.glue_runs("etl-earthquake-gold")
        assert started.arguments["--par_day"] == "20260302"
        assert started.arguments["--par_hour"] == "09"
        noted = {one["PK"]["S"] for one in world.cloud.tables.items(Table.CONTROL) if one["SK"]["S"] == "JOBRUN"}
        assert noted == {f"JOBRUN#{run.job_run_id}" for name in IDS for run in world.aws.glue_runs(f"etl-{name}")}
        assert world.dead_letters() == 0
        assert world.cloud.rights.denied == []


def test_a_late_report_runs_silver_and_gold_again(ingest: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with with_targets(medallion("11:30"), everything({"INTERLOCK_JOB_PREFIX": "etl"})) as world:
        lake = Lake(world, ingest, monkeypatch)
        lake.quakes("10:00", "a", "b")
        lake.quakes("10:20", "a", "b", "late")
        world.play()

        assert when(world, "earthquake-silver", EventType.POST_RUN_DRIFT) == [at("10:20")]
        silver, gold = (world.run_of(run_key(f"earthquake-{tier}")) for tier in ("silver", "gold"))
        assert silver is not None
        assert gold is not None
        assert (silver.attempt, silver.source, silver.status) == (2, Source.DATA_DRIFT, RunStatus.COMPLETED)
        assert (gold.attempt, gold.source, gold.status) == (2, Source.UPSTREAM, RunStatus.COMPLETED)
        assert world.dead_letters() == 0


def test_a_failed_job_is_tried_again_and_gold_waits(ingest: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with with_targets(medallion("10:50"), everything({"INTERLOCK_JOB_PREFIX": "etl"})) as world:
        world.errors = ["Rate exceeded while reading from Amazon S3"]
        Lake(world, ingest, monkeypatch).quakes("10:00", "a")
        world.play()

        (failed,) = when(world, "earthquake-silver", EventType.JOB_FAILED)
        assert failed == at("10:04"), "a failure is believed at once"
        (opened,) = when(world, "earthquake-gold", EventType.TRIGGER_STARTED)
        (completed,) = when(world, "earthquake-silver", EventType.JOB_COMPLETED)
        assert opened == completed
        assert len(when(world, "earthquake-gold", EventType.JOB_COMPLETED)) == 1


def test_polling_finds_the_end_that_no_event_tells_of(ingest: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with with_targets(medallion("10:50"), everything({"INTERLOCK_JOB_PREFIX": "etl"})) as world:
        world.silent = True
        Lake(world, ingest, monkeypatch).quakes("10:00", "a")
        world.play()

        assert when(world, "earthquake-silver", EventType.JOB_COMPLETED) == [at("10:10")]
        assert when(world, "earthquake-gold", EventType.JOB_COMPLETED) == [at("10:20")]
