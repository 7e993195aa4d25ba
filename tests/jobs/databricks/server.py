"""A Databricks workspace on loopback, with the answers that the documentation of the Jobs API 2.1 shows."""

import base64
from typing import Any

from tests.jobs.api_server import ApiServer, Call, Reply

TOKEN = "dapi-of-a-person"
CLIENT, SECRET = "principal-1", "s3cret-of-the-principal"


class FakeDatabricks(ApiServer):
    """Runs are dictionaries as `runs/get` shows them; one is PENDING until a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[dict[str, Any]] = [{"job_id": 11, "settings": {"name": "orders"}}]
        self.runs: dict[int, dict[str, Any]] = {}
        self.outputs: dict[int, dict[str, Any]] = {}
        self.by_token: dict[str, int] = {}
        self.logins = 0
        self.page_size = 100

    # ------------------------------------------------------------------------------------------------- for tests

    def end(self, life: str, result: str | None = None, **changes: Any) -> None:
        """The state of the latest run."""
        state = {"life_cycle_state": life, "state_message": "", "user_cancelled_or_timedout": False}
        run = self.runs[max(self.runs)]
        run |= {"state": {**state, **({"result_state": result} if result else {})}, **changes}

    def principal_token(self) -> str:
        return f"oauth-{self.logins}"

    # ---------------------------------------------------------------------------------------------------- answers

    def answer(self, call: Call) -> Reply:
        if call.path == ("oidc", "v1", "token"):
            return self._login(call)
        given = call.headers.get("authorization")
        if given not in (f"Bearer {TOKEN}", f"Bearer {self.principal_token()}" if self.logins else None):
            return Reply(401, {"error_code": "UNAUTHENTICATED", "message": f"Credential was not sent: {given}"})
        match call.method, call.path[2:]:
            case "POST", ("jobs", "run-now"):
                return self._run_now(call.json())
            case "POST", ("jobs", "runs", "submit"):
                return self._start(call.json(), 0)
            case "POST", ("jobs", "runs", "cancel"):
                self.end("TERMINATED", "CANCELED")
                return Reply(200, {})
            case "GET", ("jobs", "list"):
                return self._list(call)
            case "GET", ("jobs", "runs", "get"):
                return self._shown(int(call.query["run_id"]), self.runs)
            case "GET", ("jobs", "runs", "get-output"):
                return self._shown(int(call.query["run_id"]), self.outputs)
            case _:
                return Reply(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": "No API found"})

    def _login(self, call: Call) -> Reply:
        pair = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        assert call.body == b"grant_type=client_credentials&scope=all-apis"
        if call.headers.get("authorization") != f"Basic {pair}":
            return Reply(401, {"error": "invalid_client", "error_description": "Client authentication failed"})
        self.logins += 1
        return Reply(200, {"access_token": self.principal_token(), "token_type": "Bearer", "expires_in": 3600})

    def _run_now(self, body: dict[str, Any]) -> Reply:
        if not any(job["job_id"] == body["job_id"] for job in self.jobs):
            message = f"Job {body['job_id']} does not exist."
            return Reply(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": message})
        return self._start(body, body["job_id"])

    def _start(self, body: dict[str, Any], job_id: int) -> Reply:
        token = body["idempotency_token"]
        assert len(token) <= 64
        if token not in self.by_token:
            run_id = 500 + len(self.runs)
            self.by_token[token] = run_id
            self.runs[run_id] = {"run_id": run_id, "job_id": job_id, "asked": body, "tasks": []}
            self.end("PENDING", run_page_url=f"{self.url}/?o=1#job/{job_id}/run/{run_id}")
        return Reply(200, {"run_id": self.by_token[token], "number_in_job": self.by_token[token]})

    def _list(self, call: Call) -> Reply:
        found = [job for job in self.jobs if job["settings"]["name"].lower() == call.query["name"].lower()]
        start = int(call.query.get("page_token", "0"))
        page, more = found[start : start + self.page_size], len(found) > start + self.page_size
        body: dict[str, Any] = {"jobs": page, "has_more": more} if page else {"has_more": False}
        return Reply(200, {**body, "next_page_token": str(start + self.page_size)} if more else body)

    def _shown(self, run_id: int, found: dict[int, dict[str, Any]]) -> Reply:
        if run_id not in found:
            message = f"Run {run_id} does not exist."
            return Reply(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": message})
        return Reply(200, found[run_id])
