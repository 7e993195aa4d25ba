"""Targets to play whole runs in: each is a real one, with a server on loopback that stands for the system it calls."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from interlock.control import catalog, records, starting
from interlock.control.context import Control
from interlock.embedded.targets import Targets, make_targets
from interlock.jobs.secrets import SecretStore
from interlock.model.keys import RunKey
from interlock.model.run import JobRecord, Run
from interlock.ports.clock import Clock
from interlock.ports.job_targets import TargetSettings
from interlock.ports.jobs import JobRequest, JobRunner
from interlock.simulation.jobs import ScriptedTargets
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.jobs.airflow_server import PASSWORD, USER, FakeAirflow
from tests.jobs.api_server import ApiServer, Call, Reply
from tests.jobs.databricks_server import CLIENT, SECRET, FakeDatabricks

DAY: Final = "2026-03-02"
KEY: Final = RunKey("gold", "stream", DAY)
START: Final = f"{DAY}T08:00:00Z"
SECRETS: Final = {
    "INTERLOCK_SECRET_PASSWORD": PASSWORD,
    "INTERLOCK_SECRET_CLIENT": SECRET,
    "INTERLOCK_SECRET_KEY": "k3y-k3y",
}


class Site:
    """A system with something to run in it."""

    type: str
    server: ApiServer
    config: dict[str, Any]
    stoppable = True

    def __init__(self) -> None:
        self.made: list[Targets] = []
        """What controllers have made to call it, for the end of the test."""

    def started(self) -> int:
        """How many jobs there are."""
        raise NotImplementedError

    def end(self, failure: str = "") -> None:
        """The latest job ends."""
        raise NotImplementedError


class Airflow(Site):
    type = "airflow"

    def __init__(self, version: Literal["v1", "v2"]) -> None:
        super().__init__()
        self.airflow = FakeAirflow(version)
        self.server = self.airflow
        kind = "basic" if version == "v1" else "jwt"
        auth = {"type": kind, "username": USER, "password": "${INTERLOCK_SECRET_PASSWORD}"}
        self.config = {"url": self.server.url, "dagId": "orders", "auth": auth, "conf": {"day": "${DATE}"}}

    def started(self) -> int:
        return len(self.airflow.runs)

    def end(self, failure: str = "") -> None:
        latest = list(self.airflow.runs)[-1][1]
        self.airflow.logs["load", 1] = ["info: 12 rows", *([f"error: {failure} {PASSWORD}"] if failure else [])]
        task = {"task_id": "load", "state": "failed" if failure else "success"}
        self.airflow.end("failed" if failure else "success", task, run_id=latest)


class Airflow2(Airflow):
    def __init__(self) -> None:
        super().__init__("v1")


class Airflow3(Airflow):
    def __init__(self) -> None:
        super().__init__("v2")


class Databricks(Site):
    type = "databricks"

    def __init__(self) -> None:
        super().__init__()
        self.databricks = FakeDatabricks()
        self.server = self.databricks
        auth = {"clientId": CLIENT, "clientSecret": "${INTERLOCK_SECRET_CLIENT}"}
        self.config = {"host": self.server.url, "jobName": "orders", "parameters": {"day": "${DATE}"}, "auth": auth}

    def started(self) -> int:
        return len(self.databricks.runs)

    def end(self, failure: str = "") -> None:
        task = {
            "task_key": "load",
            "run_id": 7,
            "end_time": 1,
            "state": {"result_state": "FAILED" if failure else "SUCCESS"},
        }
        self.databricks.outputs[7] = {"logs": f"12 rows {failure}"}
        self.databricks.end("TERMINATED", "FAILED" if failure else "SUCCESS", tasks=[task])
        self.databricks.runs[max(self.databricks.runs)]["state"]["state_message"] = (
            f"{failure} {SECRET}" if failure else ""
        )


class _JobApi(ApiServer):
    """A small API of jobs, as many write one: POST /jobs, GET /jobs/ID; honours Idempotency-Key."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, dict[str, Any]] = {}

    def answer(self, call: Call) -> Reply:
        if call.headers.get("x-api-key") != SECRETS["INTERLOCK_SECRET_KEY"]:
            return Reply(401, {"detail": "who are you?"})
        match call.method, call.path:
            case "POST", ("jobs",):
                key = call.headers["idempotency-key"]
                job = self.jobs.setdefault(key, {"id": len(self.jobs) + 1, "state": "RUNNING", "asked": call.json()})
                return Reply(202, {"job": job})
            case "GET", ("jobs", number):
                found = next((job for job in self.jobs.values() if str(job["id"]) == number), None)
                return Reply(404) if found is None else Reply(200, {"job": found})
            case _:
                return Reply(405)


class HttpPoll(Site):
    type = "http"
    stoppable = False

    def __init__(self) -> None:
        super().__init__()
        self.api = _JobApi()
        self.server = self.api
        self.config = {
            "url": f"{self.server.url}/jobs",
            "headers": {"X-Api-Key": "${INTERLOCK_SECRET_KEY}"},
            "body": {"day": "${DATE}"},
            "jobIdPath": "job.id",
            "idempotent": True,
            "poll": {
                "url": f"{self.server.url}/jobs/${{JOB_ID}}",
                "path": "job.state",
                "done": "DONE",
                "failed": "FAILED",
            },
        }

    def started(self) -> int:
        return len(self.api.jobs)

    def end(self, failure: str = "") -> None:
        job = list(self.api.jobs.values())[-1]
        job |= {
            "state": "FAILED" if failure else "DONE",
            "reason": f"12 rows {failure} {SECRETS['INTERLOCK_SECRET_KEY']}",
        }


SITES: Final[Sequence[type[Site]]] = (Airflow2, Airflow3, Databricks, HttpPoll)


def document(site: Site, **job: Any) -> dict[str, Any]:
    """A pipeline whose job is there."""
    return {
        "pipeline": {"id": "gold"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": site.type, "config": site.config, "maxCodeRetries": 0, **job},
    }


# ------------------------------------------------------------------------------------------------------ virtual time


Act = Callable[["SiteWorld"], None]


class _Targets(ScriptedTargets):
    """The targets of the registry; what happens in the systems they call happens at its instant."""

    def __init__(self, site: Site, clock: Clock, acts: list[tuple[datetime, Callable[[], None]]]) -> None:
        super().__init__({}, clock)
        self._site = site
        self._acts = sorted(acts, key=lambda act: act[0])

    def runners(self) -> dict[str, JobRunner]:
        made = make_targets(TargetSettings(clock=self._clock, allow_private=True), SecretStore(SECRETS))
        self._site.made.append(made)
        return made.runners

    def next_end(self) -> datetime | None:
        return self._acts[0][0] if self._acts else None

    def ended(self, now: datetime) -> JobRequest | None:
        while self._acts and self._acts[0][0] <= now:
            self._acts.pop(0)[1]()
        return None


class SiteWorld(World):
    """One run of a pipeline whose job is at a site; its sensor is written a minute after the start.

    An act is done at its instant; None is a crash of the controller.
    """

    def __init__(self, site: Site, acts: Mapping[str, Act | None], **job: Any) -> None:
        crashes = [{"at": at, "crash": True} for at, act in acts.items() if act is None]
        written = {"at": "+1m", "sensor": f"gold/ready#{DAY}", "data": {"status": "ready"}}
        pipelines = [document(site, **job)]
        super().__init__(inline_scenario(start=START, until="+3h", pipelines=pipelines, steps=[written, *crashes]))
        self.site = site
        there = [(self._instant_of(at), self._bound(act)) for at, act in acts.items() if act is not None]
        self.targets = _Targets(site, self.clock, there)

    def _instant_of(self, at: str) -> datetime:
        return self.scenario.start + timedelta(minutes=float(at.strip("+m")))

    def _bound(self, act: Act) -> Callable[[], None]:
        return lambda: act(self)

    @property
    def control(self) -> Control:
        return self.engine.control

    @property
    def run(self) -> Run:
        found = self.run_of(KEY)
        assert found is not None
        return found

    @property
    def job_log(self) -> list[JobRecord]:
        return records.job_log(self.engine.store, KEY)

    @property
    def runner(self) -> JobRunner:
        return self.control.jobs[self.site.type]

    def request(self) -> JobRequest:
        """The job of the latest attempt, as the controller would call its target."""
        run = self.run
        config = catalog.opened_with(self.engine.store, run.pipeline, run.config_version)
        return starting.request_of(self.control, config, run)

    def counts(self) -> dict[str, int]:
        types = [event.type.value for event in self.events]
        return {name: types.count(name) for name in dict.fromkeys(types)}

    def everything_kept(self) -> str:
        """All that the store has of the run, as text."""
        return msgspec.json.encode([self.events, self.job_log, self.run]).decode()


@contextmanager
def served(site: Site) -> Iterator[None]:
    """The site's server, for as long as it is needed."""
    with site.server:
        yield
        for made in site.made:
            made.close()


def succeeds(world: SiteWorld) -> None:
    """An act: the latest job succeeds."""
    world.site.end()


def breaks(world: SiteWorld) -> None:
    """An act: the latest job fails."""
    world.site.end("no such column")
