"""An Airflow on loopback: answers of Airflow 3.3 (API v2, as seen on a real one) and of 2.10 (v1, as documented)."""

import base64
from typing import Any, Literal

import msgspec

from tests.jobs.api_server import ApiServer, Call, Reply

USER, PASSWORD = "interlock", "s3cret-of-airflow"
_ERRORS = "https://airflow.apache.org/docs/apache-airflow/2.10.5/stable-rest-api-ref.html#section/Errors"


class FakeAirflow(ApiServer):
    """DAGs, runs and tasks are dictionaries as the API shows them. A run is `queued` until a test says otherwise."""

    def __init__(self, version: Literal["v1", "v2"] = "v2") -> None:
        super().__init__()
        self.version = version
        self.dags: dict[str, dict[str, Any]] = {}
        self.runs: dict[tuple[str, str], dict[str, Any]] = {}
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        self.logs: dict[tuple[str, int], list[str]] = {}
        self.token = "token-1"
        self.logins = 0
        self.add_dag("orders")

    # ------------------------------------------------------------------------------------------------- for tests

    def add_dag(self, dag_id: str, **changes: object) -> None:
        active = {"is_stale": False} if self.version == "v2" else {"is_active": True}
        self.dags[dag_id] = {"dag_id": dag_id, "is_paused": False, "has_import_errors": False, **active, **changes}

    def end(self, state: str, *tasks: dict[str, Any], run_id: str | None = None) -> None:
        """End a run (the only one), with these task instances."""
        key = next(key for key in self.runs if run_id in (None, key[1]))
        self.runs[key]["state"] = state
        self.tasks[key[1]] = [
            {"map_index": -1, "try_number": 1, "start_date": f"2026-03-02T08:0{n}:00Z", **task}
            for n, task in enumerate(tasks)
        ]

    def renew_key(self) -> None:
        """Airflow is restarted with another key: no token is good any more."""
        self.token = f"token-{self.logins + 100}"

    # ---------------------------------------------------------------------------------------------------- answers

    def answer(self, call: Call) -> Reply:
        match call.method, call.path:
            case "GET", ("api", "v2", "version"):
                if self.version == "v1":
                    return Reply(404, b"<html>Airflow 404</html>", {"Content-Type": "text/html"})
                return Reply(200, {"version": "3.3.2", "git_version": ".release:aa19d2d"})
            case "POST", ("auth", "token"):
                return self._login(call)
            case _, ("api", self.version, "dags", dag_id, *rest):
                refused = self._unauthorized(call)
                return refused or self._dag(call, dag_id, tuple(rest))
            case _, ("api", "v1", *_):
                removed = "/api/v1 has been removed in Airflow 3, please use its upgraded version /api/v2 instead."
                return Reply(404, {"error": removed})
            case _:
                return Reply(404, {"detail": "Not Found"})

    def _login(self, call: Call) -> Reply:
        if self.version == "v1":
            return Reply(405, {"detail": None, "status": 405, "title": "Method Not Allowed"})
        body = call.json()
        if (body["username"], body["password"]) != (USER, PASSWORD):
            return Reply(401, {"detail": "Invalid credentials"})
        self.logins += 1
        return Reply(201, {"access_token": self.token})

    def _unauthorized(self, call: Call) -> Reply | None:
        given = call.headers.get("authorization", "")
        if self.version == "v1":
            basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            good = given in (f"Basic {basic}", f"Bearer {self.token}")
            title = {"detail": None, "status": 401, "title": "Unauthorized", "type": f"{_ERRORS}/Unauthenticated"}
            return None if good else Reply(401, title)
        if not given:
            return Reply(401, {"detail": "Not authenticated"})
        return None if given == f"Bearer {self.token}" else Reply(403, {"detail": "Invalid JWT token"})

    def _dag(self, call: Call, dag_id: str, rest: tuple[str, ...]) -> Reply:
        if dag_id not in self.dags:
            return self._missing(f"The Dag with ID: `{dag_id}` was not found", "DAG not found")
        match call.method, rest:
            case "GET", ():
                return Reply(200, self.dags[dag_id])
            case "POST", ("dagRuns",):
                return self._create(dag_id, call.json())
            case _, ("dagRuns", run_id, *more):
                if (dag_id, run_id) not in self.runs:
                    text = f"The DagRun with dag_id: `{dag_id}` and run_id: `{run_id}` was not found"
                    return self._missing(text, "DAGRun not found")
                return self._run(call, dag_id, run_id, tuple(more))
            case _:
                return Reply(405, {"detail": "Method Not Allowed"})

    def _missing(self, detail: str, title: str) -> Reply:
        old = {"status": 404, "title": title, "type": f"{_ERRORS}/NotFound"} if self.version == "v1" else {}
        return Reply(404, {"detail": detail, **old})

    def _create(self, dag_id: str, body: dict[str, Any]) -> Reply:
        run_id, date = body["dag_run_id"], body["logical_date"]
        known = set(body) <= {"dag_run_id", "logical_date", "conf", "note"}
        assert known, body
        taken = (dag_id, run_id) in self.runs
        same_date = any(key[0] == dag_id and run["logical_date"] == date for key, run in self.runs.items())
        if taken or same_date:
            if self.version == "v2":
                detail: object = {
                    "reason": "Unique constraint violation",
                    "statement": "hidden",
                    "orig_error": "hidden",
                    "message": "Serious error when handling your request.",
                }
                return Reply(409, {"detail": detail})
            what = f"DAGRun ID: '{run_id}'" if taken else f"DAGRun logical date: '{date}'"
            title = {"status": 409, "title": "Conflict", "type": f"{_ERRORS}/AlreadyExists"}
            return Reply(409, {"detail": f"DAGRun with DAG ID: '{dag_id}' and {what} already exists", **title})
        run = {**body, "dag_id": dag_id, "state": "queued", "run_type": "manual", "start_date": None, "end_date": None}
        self.runs[dag_id, run_id] = run
        return Reply(200, run)

    def _run(self, call: Call, dag_id: str, run_id: str, more: tuple[str, ...]) -> Reply:
        run = self.runs[dag_id, run_id]
        match call.method, more:
            case "GET", ():
                return Reply(200, run)
            case "PATCH", ():
                run["state"] = call.json()["state"]  # also of a run that has ended
                return Reply(200, run)
            case "GET", ("taskInstances",):
                wanted = call.query.get("state")
                found = [task for task in self.tasks.get(run_id, []) if wanted in (None, task["state"])][:100]
                return Reply(200, {"task_instances": found, "total_entries": len(found)})
            case "GET", ("taskInstances", task_id, "logs", number):
                return self._log(call, self.logs.get((task_id, int(number)), []))
            case _:
                return Reply(405, {"detail": "Method Not Allowed"})

    def _log(self, call: Call, lines: list[str]) -> Reply:
        if self.version == "v1":
            assert call.headers["accept"] == "text/plain"
            heading = [
                "worker-1",
                " INFO - ::group::Log message source details",
                "*** Found local files:",
                " INFO - ::endgroup::",
            ]
            stamped = [f"[2026-03-02T08:00:01.000+0000] {{etl.py:1}} {line}" for line in lines]
            return Reply(200, "\n".join([*heading, *stamped]).encode(), {"Content-Type": "text/plain"})
        assert call.headers["accept"] == "application/x-ndjson"
        messages: list[dict[str, Any]] = [
            {"timestamp": None, "event": "::group::Log message source details"},
            {"timestamp": None, "event": "/opt/airflow/logs/attempt=1.log"},
            {"timestamp": None, "event": "::endgroup::"},
        ]
        for line in lines:
            level, _, text = line.partition(": ")
            message: dict[str, Any] = {"timestamp": "2026-03-02T08:00:01Z", "event": text, "level": level}
            if level == "error":
                message["error_detail"] = [{"exc_type": "ValueError", "exc_value": "no rows", "frames": []}]
            messages.append(message)
        data = b"".join(msgspec.json.encode(message) + b"\n" for message in messages)
        return Reply(200, data, {"Content-Type": "application/x-ndjson"})
