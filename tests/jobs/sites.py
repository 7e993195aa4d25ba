"""Targets to play whole runs in: each is a real one, with a server on loopback that stands for the system it calls."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, Literal

from interlock.embedded.targets import Targets, make_targets
from interlock.jobs.secrets import SecretStore
from interlock.ports.clock import Clock
from interlock.ports.job_targets import TargetSettings
from interlock.ports.jobs import JobRunner
from tests.jobs.airflow.server import PASSWORD, USER, FakeAirflow
from tests.jobs.api_server import ApiServer, Call, Reply
from tests.jobs.databricks.server import CLIENT, SECRET, FakeDatabricks
from tests.jobs.stage import Target

SECRETS: Final = {
    "INTERLOCK_SECRET_PASSWORD": PASSWORD,
    "INTERLOCK_SECRET_CLIENT": SECRET,
    "INTERLOCK_SECRET_KEY": "k3y-k3y",
}


class Site(Target):
    """A system behind a server on loopback."""

    server: ApiServer
    stoppable = True

    def __init__(self) -> None:
        self.made: list[Targets] = []
        """What controllers have made to call it, for the end of the test."""

    def runners(self, clock: Clock) -> Mapping[str, JobRunner]:
        """The targets of the registry, with the secrets of this file."""
        made = make_targets(TargetSettings(clock=clock, allow_private=True), SecretStore(SECRETS))
        self.made.append(made)
        return made.runners


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

    def end(self, now: datetime, error: str = "") -> None:
        latest = list(self.airflow.runs)[-1][1]
        self.airflow.logs["load", 1] = ["info: 12 rows", *([f"error: {error} {PASSWORD}"] if error else [])]
        task = {"task_id": "load", "state": "failed" if error else "success"}
        self.airflow.end("failed" if error else "success", task, run_id=latest)


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

    def end(self, now: datetime, error: str = "") -> None:
        task = {
            "task_key": "load",
            "run_id": 7,
            "end_time": 1,
            "state": {"result_state": "FAILED" if error else "SUCCESS"},
        }
        self.databricks.outputs[7] = {"logs": f"12 rows {error}"}
        self.databricks.end("TERMINATED", "FAILED" if error else "SUCCESS", tasks=[task])
        self.databricks.runs[max(self.databricks.runs)]["state"]["state_message"] = f"{error} {SECRET}" if error else ""


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

    def end(self, now: datetime, error: str = "") -> None:
        job = list(self.api.jobs.values())[-1]
        job |= {
            "state": "FAILED" if error else "DONE",
            "reason": f"12 rows {error} {SECRETS['INTERLOCK_SECRET_KEY']}",
        }


SITES: Final[Sequence[type[Site]]] = (Airflow2, Airflow3, Databricks, HttpPoll)


@contextmanager
def served(site: Site) -> Iterator[None]:
    """The site's server, for as long as it is needed."""
    with site.server:
        yield
        for made in site.made:
            made.close()
