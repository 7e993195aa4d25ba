"""Probes through the embedded controller, in real time: a file on disk, threads, the real clock.

Nothing here sleeps: a test waits for a commit that shows what it waits for.
"""

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, records, writing
from interlock.embedded.service import Service, ServiceSettings
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import ProbeError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.probe import ProbeState
from interlock.model.run import RunStatus
from interlock.ports.probes import ProbeRequest
from tests.jobs.api_server import ApiServer, Call, Reply

DAY = "2026-03-02"


def pipeline(name: str, *probes: dict[str, Any], key: str = "landed", **more: Any) -> dict[str, Any]:
    """Opened by hand-written `open`; ready when what the probe sees says so."""
    return {
        "pipeline": {"id": name},
        "schedule": {"trigger": {"key": "open", "check": "exists"}, "evaluation": {"window": "1h", "interval": "1h"}},
        "validation": {"rules": [{"key": key, "check": "gte", "field": "count", "value": 1}]},
        "job": {"type": "command", "config": {"command": ["true"]}},
        "probes": list(probes),
        **more,
    }


class Rig:
    """A running controller, and what a test asks of it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.store = service.engine.store

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = monotonic() + 30
        while not condition():
            assert monotonic() < end, f"it never came to pass: {what}"
            self.service.database.wait_for_change(self.service.database.head(), 0.05)

    def open(self, name: str) -> None:
        writing.write_sensor(self.service.control, name, f"open#{DAY}", {"by": "hand"})

    def completed(self, name: str, date: str = DAY) -> bool:
        run = records.get_run(self.store, RunKey(name, "stream", date))
        return run is not None and run.status is RunStatus.COMPLETED

    def sensor(self, name: str, key: str = "landed") -> dict[str, Any] | None:
        found = records.get_sensors(self.store, name, [key]).get(key)
        return found.data if found is not None and not found.expired(self.service.clock.now()) else None

    def states(self, name: str) -> list[ProbeState]:
        found = self.store.query(Table.CONTROL, keys.pipeline_pk(name), keys.PROBE)
        return [records.convert(record.item, ProbeState, record.key) for record in found]

    def failures(self, name: str) -> list[str]:
        found = self.store.query(Table.EVENTS, keys.pipeline_pk(name))
        return [one.item["message"] for one in found if one.item["type"] == EventType.PROBE_FAILED]


@contextmanager
def running(
    folder: Path, *pipelines: dict[str, Any], probes: Any = None, environment: dict[str, str] | None = None
) -> Iterator[Rig]:
    configs = folder / "pipelines"
    configs.mkdir(exist_ok=True)
    for document in pipelines:
        (configs / f"{document['pipeline']['id']}.json").write_bytes(msgspec.json.encode(document))
    settings = ServiceSettings(
        store=folder / "interlock.db",
        pipelines=configs,
        working_folder=folder,
        allow_private_addresses=("127.0.0.1",),
        environment={"PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin", **(environment or {})},
    )
    service = Service(settings, probes=probes)
    try:
        applied = service.start()
        assert not [problem for problem in applied.problems if problem.severity == "error"]
        yield Rig(service)
    finally:
        service.stop()


class Evaluator(ApiServer):
    def answer(self, call: Call) -> Reply:
        return Reply(200, {"count": 3} if call.headers.get("x-key") == "s3cr3t-s3cr3t" else {"count": 0})


def test_each_kind_from_the_look_to_the_job(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "warehouse.db") as connection:
        connection.execute("CREATE TABLE orders (day TEXT)")
        connection.execute("INSERT INTO orders VALUES ('2026-03-02')")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"{DAY}.csv").write_text("1,2")
    code = "import json, sys; print(json.dumps({'count': 2 if json.load(sys.stdin)['date'] == sys.argv[1] else 0}))"
    with Evaluator() as server:
        configs: dict[str, dict[str, Any]] = {
            "http": {"url": server.url, "headers": {"x-key": "${INTERLOCK_SECRET_KEY}"}},
            "command": {"command": ["python", "-c", code, "${DATE}"]},
            "sql": {"url": f"sqlite:///{tmp_path}/warehouse.db", "query": "SELECT count(*) AS count FROM orders"},
            "file": {"path": "in/${DATE}.csv"},
        }
        documents = [
            pipeline(name, {"key": "landed", "type": name, "interval": "1h", "config": config})
            for name, config in configs.items()
        ]
        with running(tmp_path, *documents, environment={"INTERLOCK_SECRET_KEY": "s3cr3t-s3cr3t"}) as rig:
            for name in configs:
                rig.open(name)
            for name in configs:
                rig.until(lambda name=name: rig.completed(name), f"{name} completes")  # type: ignore[misc]
            assert rig.sensor("http") == {"count": 3}
            assert rig.sensor("command", f"landed#{DAY}") == {"count": 2}
            assert rig.sensor("sql") == {"count": 1}
            assert (rig.sensor("file", f"landed#{DAY}") or {})["exists"] is True
            assert [rig.failures(name) for name in configs] == [[], [], [], []]
    assert b"s3cr3t-s3cr3t" not in (tmp_path / "interlock.db").read_bytes()


class Scripted:
    """Answers by pipeline; a look of a name in `holds` waits for it."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.holds: dict[str, threading.Event] = {}
        self.results: dict[str, dict[str, Any] | ProbeError] = {}

    def answers(self, pipeline: str, key: str) -> bool:
        return True

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        self.looks.append(request.pipeline)
        if request.pipeline in self.holds:
            self.holds[request.pipeline].wait(60)
        result = self.results.get(request.pipeline, {"count": 1})
        if isinstance(result, ProbeError):
            raise result
        return result


FILE = {"key": "landed", "type": "file", "config": {"path": "x"}}


def test_a_hanging_probe_delays_nobody_else(tmp_path: Path) -> None:
    prober = Scripted()
    hung = [f"hung-{number}" for number in range(40)]  # more than there are places
    prober.holds = {name: threading.Event() for name in hung}
    documents = [pipeline(name, {**FILE, "interval": "1s", "timeout": "1s"}) for name in hung]
    documents.append(pipeline("fine", {**FILE, "interval": "1s"}))
    try:
        with running(tmp_path, *documents, probes=prober) as rig:
            rig.until(lambda: all(rig.failures(name) for name in hung), "every hanging look is given up")
            rig.open("fine")
            rig.until(lambda: rig.completed("fine"), "the other one runs")
            before = prober.looks.count("fine")
            rig.until(lambda: prober.looks.count("fine") > before, "and is looked at again")
            # A thread that has not come back is not joined by another; and it is said once.
            assert all(prober.looks.count(name) == 1 for name in hung)
            assert [len(rig.failures(name)) for name in hung] == [1] * len(hung)
            assert "had not ended after 1s" in rig.failures("hung-0")[0]
            assert rig.sensor("hung-0") is None
    finally:
        for event in prober.holds.values():
            event.set()


def test_failed_is_said_once_per_change(tmp_path: Path) -> None:
    prober = Scripted()
    prober.results["gold"] = ProbeError("no such table")
    with running(tmp_path, pipeline("gold", {**FILE, "interval": "1s"}), probes=prober) as rig:
        rig.until(lambda: len(prober.looks) >= 3, "three looks")
        assert rig.failures("gold") == ["the probe landed of gold failed, and writes nothing: no such table"]
        prober.results["gold"] = {"count": 5}
        rig.until(lambda: rig.sensor("gold") == {"count": 5}, "it is well again")
        prober.results["gold"] = ProbeError("gone again")
        rig.until(lambda: len(rig.failures("gold")) == 2, "the second change")
        # What may not be stored is a failed look as well, but no change.
        prober.results["gold"] = {"bad": float("nan")}
        looks = len(prober.looks)
        rig.until(lambda: len(prober.looks) >= looks + 2, "two more looks")
        assert len(rig.failures("gold")) == 2
        assert "not a JSON number" in rig.states("gold")[0].error


def test_a_restart_keeps_the_interval_and_what_was_said(tmp_path: Path) -> None:
    prober = Scripted()
    prober.results["bad"] = ProbeError("broken")
    documents = [pipeline("good", {**FILE, "interval": "1h"}), pipeline("bad", {**FILE, "interval": "1h"})]
    with running(tmp_path, *documents, probes=prober) as rig:
        rig.until(lambda: rig.sensor("good") and rig.failures("bad"), "both were looked at")
        first = {name: rig.states(name)[0].started_at for name in ("good", "bad")}
    looked = list(prober.looks)
    with running(tmp_path, pipeline("new", {**FILE, "interval": "1h"}), probes=prober) as rig:
        rig.until(lambda: rig.sensor("new"), "the new one was looked at")
        assert prober.looks == [*looked, "new"]
        assert {name: rig.states(name)[0].started_at for name in ("good", "bad")} == first
        assert len(rig.failures("bad")) == 1
        # A probe that is declared anew is looked at at once, and its failure is news.
        changed = pipeline("bad", {**FILE, "interval": "1h", "config": {"path": "y"}})
        config = _read(changed)
        catalog.apply_config(rig.service.control, config, changed)
        rig.until(lambda: len(rig.failures("bad")) == 2, "the changed probe is looked at")


def _read(document: dict[str, Any]) -> PipelineConfig:
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    return config


def test_a_deleted_pipeline_is_looked_at_no_more(tmp_path: Path) -> None:
    prober = Scripted()
    with running(tmp_path, pipeline("keep", {**FILE, "interval": "1s"}), probes=prober) as rig:
        gone = pipeline("gone", {**FILE, "interval": "1s"})
        catalog.apply_config(rig.service.control, _read(gone), gone)
        rig.until(lambda: "gone" in prober.looks, "it is looked at")
        catalog.delete_config(rig.service.control, "gone")
        rig.until(lambda: rig.service.engine.router.lag() == 0, "the deletion is known")
        before, kept = prober.looks.count("gone"), prober.looks.count("keep")
        rig.until(lambda: prober.looks.count("keep") >= kept + 3, "time passes")
        assert prober.looks.count("gone") <= before + 1  # one may have been under way


def test_an_expired_observation_turns_the_rule_red(tmp_path: Path) -> None:
    prober = Scripted()
    document = pipeline("gold", {**FILE, "interval": "1s", "ttl": "2s", "timeout": "1s"})
    with running(tmp_path, document, probes=prober) as rig:
        rig.until(lambda: rig.sensor("gold"), "it is there")
        prober.results["gold"] = ProbeError("gone")
        rig.until(lambda: rig.failures("gold") and rig.sensor("gold") is None, "it has expired")
        rig.open("gold")
        run = RunKey("gold", "stream", DAY)
        rig.until(lambda: records.get_run(rig.store, run), "the run is open")
        prober.results["gold"] = {"count": 1}
        rig.until(lambda: rig.completed("gold"), "it is ready again, without waiting for the hour's evaluation")


def test_an_evaluation_waits_for_the_look_that_is_under_way(tmp_path: Path) -> None:
    """What was seen an interval ago is not counted on while the probe looks; if that fails, it counts until its ttl."""
    prober = Scripted()
    document = pipeline("gold", {**FILE, "interval": "2s", "ttl": "1h", "timeout": "30s"})
    with running(tmp_path, document, probes=prober) as rig:
        rig.until(lambda: rig.sensor("gold"), "it is there")
        hold = prober.holds["gold"] = threading.Event()
        looks = len(prober.looks)
        rig.until(lambda: len(prober.looks) > looks, "a look is under way")
        rig.open("gold")
        run = RunKey("gold", "stream", DAY)
        rig.until(lambda: (active := records.get_active(rig.store, run)) and active.token, "the evaluation waits")
        found = records.get_run(rig.store, run)
        assert found is not None
        assert found.passed_at is None
        prober.results["gold"] = ProbeError("no answer")
        del prober.holds["gold"]
        hold.set()
        rig.until(lambda: rig.completed("gold"), "the earlier observation counts again")


def test_a_variable_that_is_not_set_is_a_failed_look(tmp_path: Path) -> None:
    probe = {**FILE, "config": {"path": "${INTERLOCK_NOWHERE}/x"}}
    with running(tmp_path, pipeline("gold", probe)) as rig:
        rig.until(lambda: rig.failures("gold"), "it is said")
        assert "probes[0].config.path: ${INTERLOCK_NOWHERE}: no such environment variable" in rig.failures("gold")[0]


@pytest.mark.parametrize("hours", [False, True])
def test_a_dated_probe_may_write_the_trigger(tmp_path: Path, hours: bool) -> None:
    name = "${DATE}T${HOUR}.csv" if hours else "${DATE}.csv"
    document = pipeline("gold", {"key": "open", "type": "file", "interval": "1s", "config": {"path": name}}, key="open")
    with running(tmp_path, document) as rig:
        now = rig.service.clock.now()
        date = f"{now:%Y-%m-%dT%H}" if hours else f"{now:%Y-%m-%d}"
        (tmp_path / f"{date}.csv").write_text("x")
        rig.until(lambda: rig.completed("gold", date), "the run of the period")
